"""The paper's evaluation, with one command: cells -> records -> figures -> page.

`run(budget, only, out)` is what `gmeql paper` calls. It trains the cells that the chosen figures need and that have
no record yet, and then draws everything from the records in `out`. Stop it at any time and start it again: finished
cells are skipped. A cell that dies is tried once more on its own and, if it dies again, reported on the page.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

__all__ = ["run", "take_over"]

ATTEMPTS = 2
LARGEST_BATCH = {
    "smoke": {"gmeql": 24, "eql": 16, "dsr": 8},  # few compilations count for more than even shares
    "quick": {"gmeql": 10, "eql": 20, "dsr": 10},
    "full": {"gmeql": 20, "eql": 20, "dsr": 20},
}
"""Runs trained side by side on a CPU core."""
LARGEST_BATCH_ON_DEVICE = {"gmeql": 200, "eql": 200, "dsr": 200}
_LONGEST_FIRST = ("dsr", "gp", "gmeql", "eql", "fitted")


def run(
    budget: str = "smoke",
    only: Sequence[str] | None = None,
    out: str | Path = "gmeql-paper",
    *,
    workers: int | None = None,
    train: bool = True,
    say: Callable[[str], None] | None = None,
) -> Path:
    """Train what is missing, draw everything; returns the path of the page.

    Args:
        budget: "smoke", "quick" or "full".
        only: names of figures ("fig2a", "success", ...); all of them by default.
        out: folder of records, figures, tables and page.
        workers: processes that train; by default one per core this process may use; 0 trains in this process.
        train: False draws from the records that are there; figures say what is not measured.
        say: takes lines of progress; by default they go to stderr.
    """
    from gmeql.evaluation.paper import figures, records, report
    from gmeql.evaluation.paper.cells import batches
    from gmeql.evaluation.paper.plan import budget_plan

    plan = budget_plan(budget)
    wanted = figures.chosen(only)
    folder = Path(out)
    say = say or (lambda line: print(line, file=sys.stderr, flush=True))
    cells = list(dict.fromkeys(cell for figure in wanted for cell in figure.cells(plan)))
    cells.sort(key=lambda cell: _LONGEST_FIRST.index(cell.method))
    done = {key for key, record in records.load(folder).items() if record["status"] == "done"}
    on_device = train and plan.is_full and _has_accelerator()
    # Batches are made of all cells before finished ones are left out: a run taken up again trains as one never stopped.
    grouped = batches(cells, LARGEST_BATCH_ON_DEVICE if on_device else LARGEST_BATCH[plan.name])
    pending = [[cell for cell in batch if cell.key not in done] for batch in grouped]
    pending = [batch for batch in pending if batch]
    missing = sum(map(len, pending))
    rest = "to train" if train else "left out"
    say(f"{len(cells)} runs for {len(wanted)} figures; {len(cells) - missing} are there, {missing} {rest}")
    if not train:
        pending = []
    crew = _Crew(folder, missing, say)
    if on_device:
        crew.work([batch for batch in pending if batch[0].method in ("gmeql", "eql", "dsr")], 0)
        pending = [batch for batch in pending if batch[0].method in ("gp", "fitted")]
    crew.work(pending, _cores() if workers is None else workers)
    report.write(folder, plan, wanted, records.load(folder))
    say(f"page: {folder / 'index.html'}")
    return folder / "index.html"


def take_over(lines: str | Path, out: str | Path, where: str | None = None) -> int:
    """Judge training outcomes from another machine and add them to the records; returns how many were new.

    `lines` is a file of `benchmarks/paper_baselines.py` or of `benchmarks/paper_table.py` (of which the runs with
    the paper's numbers are taken). Of two outcomes of one cell the longer run counts.
    """
    from gmeql.evaluation.paper import records
    from gmeql.evaluation.paper.cells import outcome_of

    folder, added = Path(out), 0
    done = {
        key: max(record["curve"]["candidates"], default=0)
        for key, record in records.load(folder).items()
        if record["status"] == "done"
    }  # how far the curve goes: a run that found the truth counts fewer candidates
    for line in Path(lines).read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        outcome = outcome_of(data)
        if outcome is None:
            continue
        length = max(outcome.candidates, default=0)
        if length > done.get(outcome.cell.key, -1):
            records.append(folder, [records.record_of(outcome, where=where or data.get("device"))])
            done[outcome.cell.key] = length
            added += 1
    return added


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _has_accelerator() -> bool:
    import jax

    return jax.default_backend() != "cpu"


# --- worker processes ---------------------------------------------------------------------------------------------


def _prepare_worker() -> None:
    """One core per worker: two workers that each think they own the machine are slower than two that do not."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _end_with(parent: int) -> None:
    """A worker whose command was killed must not train on for nobody."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _train_and_judge(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs in a worker process: cells of one batch to records."""
    from gmeql.evaluation.paper.cells import Cell, train
    from gmeql.evaluation.paper.plan import budget_plan
    from gmeql.evaluation.paper.records import record_of

    batch = [Cell(**cell) for cell in cells]
    return [record_of(outcome) for outcome in train(batch, budget_plan(batch[0].budget))]


class _Crew:
    """Threads that each own one worker process, take batches off a queue and append the records."""

    def __init__(
        self, folder: Path, missing: int, say: Callable[[str], None], job: Callable[..., Any] | None = None
    ) -> None:
        self.folder, self.missing, self.say = folder, missing, say
        self.job = job or _train_and_judge
        self.finished = 0
        self.error: BaseException | None = None
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    def work(self, batches: Sequence[Sequence[Any]], workers: int) -> None:
        """Train all batches, in this process where `workers` is 0; returns when none is left."""
        jobs: queue.SimpleQueue[tuple[list[Any], int]] = queue.SimpleQueue()
        for batch in batches:
            jobs.put((list(batch), 1))
        if workers == 0:
            return self._worker(jobs, None)
        threads = [
            threading.Thread(target=self._guarded_worker, args=(jobs, self._hire()), daemon=True)
            for _ in range(min(workers, len(batches)))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.5)
            if self.error is not None:
                raise self.error
        except BaseException:  # interrupted: leave no process behind, then go on unwinding
            self.stopped.set()
            for child in multiprocessing.active_children():
                child.terminate()
            raise

    def _guarded_worker(self, jobs: queue.SimpleQueue[tuple[list[Any], int]], executor: ProcessPoolExecutor) -> None:
        try:
            self._worker(jobs, executor)
        except BaseException as error:  # noqa: BLE001  # a full disk, say: raised where the caller sees it
            self.error = error

    def _worker(self, jobs: queue.SimpleQueue[tuple[list[Any], int]], executor: ProcessPoolExecutor | None) -> None:
        while not self.stopped.is_set():
            try:
                batch, attempt = jobs.get_nowait()
            except queue.Empty:
                break
            try:
                cells = [dict(cell.__dict__) for cell in batch]
                found = self.job(cells) if executor is None else executor.submit(self.job, cells).result()
            except BrokenProcessPool:
                executor = self._hire()
                self._retry(jobs, batch, attempt, "the worker process died")
            except Exception as error:  # noqa: BLE001  # whatever a method raises is reported with its cell
                self._retry(jobs, batch, attempt, f"{type(error).__name__}: {error}")
            else:
                self._keep(found)
        if executor is not None:
            executor.shutdown(wait=False)

    @staticmethod
    def _hire() -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=context, initializer=_prepare_worker)

    def _retry(self, jobs: queue.SimpleQueue[tuple[list[Any], int]], batch: list[Any], attempt: int, why: str) -> None:
        """Try the cells of a dead batch once more, each on its own; then give up and say so."""
        from gmeql.evaluation.paper.records import failure_of

        if self.stopped.is_set():
            return
        self.say(f"{batch[0].key}{f' and {len(batch) - 1} more' if len(batch) > 1 else ''}: {why} (attempt {attempt})")
        if attempt >= ATTEMPTS:
            self._keep([failure_of(cell, why, attempt) for cell in batch])
            return
        for cell in batch:
            jobs.put(([cell], attempt + 1))

    def _keep(self, found: list[dict[str, Any]]) -> None:
        from gmeql.evaluation.paper.records import append

        with self.lock:
            append(self.folder, found)
            self.finished += len(found)
            cell = found[0]["cell"]
            setting = "" if cell["setting"] == "standard" else f" {cell['setting']}"
            noise = f" noise {cell['noise']:g}" if cell["noise"] else ""
            problems = ",".join(dict.fromkeys(record["cell"]["problem"] for record in found))
            what = f"{cell['method']}{setting}{noise} on {problems}"
            self.say(f"[{self.finished}/{self.missing}] {what}: {len(found)} runs")
