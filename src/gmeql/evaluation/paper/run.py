"""The whole evaluation: which cells are missing, train them, draw everything.

Heavy modules are imported inside the functions: worker processes import this package before they have set their
environment (see `workers`).
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gmeql.evaluation.paper.workers import TrainingPool

LARGEST_BATCH_ON_DEVICE = 200
"""Runs of a method that train side by side on an accelerator."""
LONGEST_FIRST = ("dsr", "gp", "gmeql", "eql", "fitted")
"""Order in which methods train, so that no worker is left alone with a long run at the end."""


def run(
    budget: str = "smoke",
    only: Sequence[str] | None = None,
    out: str | Path = "gmeql-paper",
    *,
    methods: Sequence[str] | None = None,
    workers: int | None = None,
    train: bool = True,
    say: Callable[[str], None] | None = None,
) -> Path:
    """Train what is missing, draw everything; returns the path of the page.

    Args:
        budget: "smoke", "quick" or "full".
        only: names of figures ("fig2a", "success", ...); all of them by default.
        out: folder of records, figures, tables and page.
        methods: only their runs are trained ("gmeql", "eql", ...); figures show what is there of the others.
        workers: processes that train; by default one per core this process may use; 0 trains in this process.
        train: False draws from the records that are there; figures say what is not measured.
        say: takes lines of progress; by default they go to stderr.
    """
    from gmeql.evaluation.paper import figures, records, report
    from gmeql.evaluation.paper.methods import METHODS
    from gmeql.evaluation.paper.plan import budget_plan
    from gmeql.evaluation.paper.train import batches
    from gmeql.fitters.threads import available_cores

    plan = budget_plan(budget)
    wanted = figures.chosen(only)
    folder = Path(out)
    say = say or (lambda line: print(line, file=sys.stderr, flush=True))
    cells = list(dict.fromkeys(cell for figure in wanted for cell in figure.cells(plan)))
    if unknown := set(methods or ()) - set(METHODS):
        raise ValueError(f"methods must be among {', '.join(METHODS)}, got {', '.join(sorted(unknown))}")
    cells = [cell for cell in cells if methods is None or cell.method in methods]
    cells.sort(key=lambda cell: LONGEST_FIRST.index(cell.method))
    done = {key for key, record in records.load(folder).items() if record["status"] == "done"}
    on_device = _on_accelerator() if train and plan.uses_accelerators else ()
    # Batches are made of all cells before finished ones are left out: a run taken up again trains as one never stopped.
    largest = {**plan.largest_batch, **dict.fromkeys(on_device, LARGEST_BATCH_ON_DEVICE)}
    pending = [[cell for cell in batch if cell.key not in done] for batch in batches(cells, largest)]
    pending = [batch for batch in pending if batch]
    missing = sum(map(len, pending))
    rest = "to train" if train else "left out"
    say(f"{len(cells)} runs for {len(wanted)} figures; {len(cells) - missing} are there, {missing} {rest}")
    if not train:
        pending = []
    cores = available_cores() if workers is None else workers
    pool = TrainingPool(folder, missing, say)
    if on_device:
        usual, pool.job = pool.job, partial(_train_here, judges=cores)
        pool.work([batch for batch in pending if batch[0].method in on_device], 0)
        pool.job = usual
    pool.work([batch for batch in pending if batch[0].method not in on_device], cores)
    report.write(folder, plan, wanted, records.load(folder))
    say(f"page: {folder / 'index.html'}")
    return folder / "index.html"


def take_over(lines: str | Path, out: str | Path, where: str | None = None, *, workers: int = 0) -> int:
    """Judge training outcomes from another machine and add them to the records; returns how many were new.

    `lines` is a file of `benchmarks/paper_baselines.py`, or of `benchmarks/paper_race/race.py`, of which the runs whose
    setting is one of the evaluation's are taken. Of two outcomes of one cell the longer run counts. `workers` processes
    judge side by side; 0 judges in this one.
    """
    from gmeql.evaluation.paper import records
    from gmeql.evaluation.paper.train import trained_cell_of

    folder = Path(out)
    done = {
        key: max(record["curve"]["candidates"], default=0)
        for key, record in records.load(folder).items()
        if record["status"] == "done"
    }  # how far the curve goes: a run that found the truth counts fewer candidates
    longest: dict[str, tuple[int, str]] = {}
    for line in Path(lines).read_text(encoding="utf-8").splitlines():
        trained = trained_cell_of(json.loads(line))
        length = -1 if trained is None else max(trained.candidates, default=0)
        if trained is not None and length > max(
            done.get(trained.cell.key, -1), longest.get(trained.cell.key, (-1,))[0]
        ):
            longest[trained.cell.key] = (length, line)
    jobs = [(line, where) for _, line in longest.values()]
    if workers == 0:
        for job in jobs:
            records.append(folder, [_judged(job)])
        return len(jobs)
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for record in pool.imap_unordered(_judged, jobs):
            records.append(folder, [record])
    return len(jobs)


def _train_here(cells: list[dict[str, Any]], *, judges: int) -> list[dict[str, Any]]:
    """Cells of one batch to records: trained in this process, which has the accelerator, judged on all cores."""
    from gmeql.evaluation.paper.cells import Cell
    from gmeql.evaluation.paper.plan import budget_plan
    from gmeql.evaluation.paper.records import device
    from gmeql.evaluation.paper.train import train

    batch = [Cell(**cell) for cell in cells]
    jobs = [(json.dumps(trained.to_dict()), device()) for trained in train(batch, budget_plan(batch[0].budget))]
    if judges == 0:
        return [_judged(job) for job in jobs]
    with multiprocessing.get_context("spawn").Pool(judges) as pool:
        return pool.map(_judged, jobs, chunksize=1)


def _judged(job: tuple[str, str | None]) -> dict[str, Any]:
    """The record of a line, judged; runs in worker processes too."""
    from gmeql.evaluation.paper.records import record_of
    from gmeql.evaluation.paper.train import trained_cell_of

    line, where = job
    data = json.loads(line)
    trained = trained_cell_of(data)
    assert trained is not None  # only such lines are handed on
    return record_of(trained, where=where or data.get("device"))


def _on_accelerator() -> tuple[str, ...]:
    """The methods that an accelerator of this machine trains, many runs side by side."""
    import jax

    from gmeql.evaluation.paper.methods import METHODS
    from gmeql.fitters.cuda import driver

    if jax.default_backend() != "cpu":
        return tuple(name for name, method in METHODS.items() if method.side_by_side)
    return () if driver.why_not() else ("gmeql",)
