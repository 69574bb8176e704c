"""All methods on b1-b8 at the paper's budget: training only, for a machine with an accelerator.

usage: PYTHONPATH=src python benchmarks/paper_baselines.py --out FILE.jsonl [--seconds 520] [--methods eql,gmeql,dsr,gp]

One JSON line per run (curve, final expression, cost). A run whose line is there already (or in a file of `--done`) is
skipped, so a call that ends at its time limit is continued by the next; with `--longer` a noise-free DSR run that was cut
short by its time limit before it found an exact formula is trained again. `gmeql.evaluation.paper.take_over(FILE.jsonl, OUT)`
judges the lines and adds them to the records that `gmeql paper --budget full --out OUT` draws from.

EQL and DSR train all problems and seeds as one batch, GMEQL one batch per network shape, its ablations and noise levels
included; they need only jax, numpy, scipy and sympy. DSR comes last and takes the time that is left: a run's line says
how many samples it drew. GP (gplearn) and fitted (numba) run beside them on the CPU cores, GP's first seed on all
problems, the long ones before the others, then its second; several calls may write to one file at the same time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

START = time.perf_counter()
RESERVE = 25.0
"""Seconds to end in good order."""


def log(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f} s] {text}", flush=True)


def evolve(cell: dict) -> dict:
    """One GP or fitted run in a worker process."""
    from gmeql.evaluation.paper.cells import Cell
    from gmeql.evaluation.paper.plan import budget_plan
    from gmeql.evaluation.paper.train import train

    return train([Cell(**cell)], budget_plan(cell["budget"]))[0].to_dict() | {"device": "one CPU core"}


class Session:
    """What one call trains: the cells that the lines of earlier calls do not hold, until its time is up."""

    def __init__(self, options: argparse.Namespace) -> None:
        from gmeql.evaluation.paper.cells import Cell
        from gmeql.evaluation.paper.figures import FIGURES
        from gmeql.evaluation.paper.plan import budget_plan

        self.options, self.plan = options, budget_plan(options.budget)
        self.methods, problems = options.methods.split(","), options.problems.split(",")
        paths = [path for path in (options.out, *options.done) if path.exists()]
        lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
        kept = [line for line in lines if not (options.longer and self.is_short(line))]
        self.done = {Cell(**line["cell"]).key for line in kept}
        cells = (cell for figure in FIGURES for cell in figure.cells(self.plan))
        self.wanted = list(dict.fromkeys(cell for cell in cells if cell.problem in problems))
        self.pool: Any = None
        self.evolutions: list[tuple[Any, Any]] = []

    def is_short(self, line: dict) -> bool:
        """Whether a line's DSR run was cut by the time before it found an exact formula."""
        cut = line["cell"]["method"] == "dsr" and not line["cell"]["noise"] and line["total"] < self.plan.dsr_samples
        return cut and not (line["mae"] and line["mae"][-1] is not None and line["mae"][-1] < 1e-8)

    def missing(self, method: str, seeds: int) -> list[Any]:
        """Cells of a method that are still to train."""
        if method not in self.methods:
            return []
        found = [c for c in self.wanted if c.method == method and c.seed < seeds and c.key not in self.done]
        return [
            c for c in found if not self.options.settings or c.method != "gmeql" or c.setting in self.options.settings
        ]

    def keep(self, lines: list[dict]) -> None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        file = os.open(self.options.out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, text.encode())  # in one piece: other calls may write too
        os.close(file)

    def left(self) -> float:
        return self.options.seconds - (time.perf_counter() - START)

    def start_evolutions(self) -> None:
        """GP and fitted runs, each on a worker of its own, beside what trains in this process."""
        from gmeql.evaluation.paper.cells import Cell

        by_seed = sorted(
            self.missing("gp", self.options.gp_seeds), key=lambda cell: (cell.seed, cell.problem not in ("b4", "b7"))
        )
        fitted = sorted(
            self.missing("fitted", self.options.seeds), key=lambda cell: (cell.noise > 0, cell.problem != "b2")
        )
        cells = by_seed + fitted
        if not cells:
            return
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ[name] = "1"
        self.pool = multiprocessing.get_context("spawn").Pool(min(self.options.workers, len(cells)))
        if "fitted" in self.methods:  # compile once, into the cache, while GP keeps the others busy
            self.pool.apply_async(evolve, (Cell("b1", "fitted", budget="smoke").__dict__,))
        self.evolutions = [(cell, self.pool.apply_async(evolve, (cell.__dict__,))) for cell in cells]
        log(f"{len(by_seed)} GP runs and {len(fitted)} fitted runs on {self.options.workers} workers")

    def collect(self) -> None:
        """Keep the runs that workers have finished."""
        for pair in [pair for pair in self.evolutions if pair[1].ready()]:
            self.evolutions.remove(pair)
            try:
                line = pair[1].get()
            except Exception as error:  # noqa: BLE001  # a dead run is reported, the others go on
                log(f"{pair[0].key} failed: {type(error).__name__}: {error}")
                continue
            self.keep([line])
            log(f"{pair[0].key}: {line['seconds']:.1f} s, final MAE {line['mae'][-1]}")

    def attempt(self, cells: list[Any]) -> None:
        """Train cells side by side in the time that is left."""
        from gmeql.evaluation.paper.records import device
        from gmeql.evaluation.paper.train import train

        if not cells:
            return
        name = f"{cells[0].method} on {','.join(dict.fromkeys(c.problem for c in cells))}"
        seconds = self.left() - RESERVE
        if seconds < 15:
            log(f"{name}: no time left for {len(cells)} runs")
            return
        log(f"{name}: {len(cells)} runs side by side")
        try:
            trained = train(cells, self.plan, seconds)
        except TimeoutError as error:
            log(str(error))
            return
        self.keep([run.to_dict() | {"device": device()} for run in trained])
        for key in dict.fromkeys((t.cell.problem, t.cell.setting, t.cell.noise) for t in trained):
            mine = sorted(t.mae[-1] for t in trained if (t.cell.problem, t.cell.setting, t.cell.noise) == key)
            log(f"  {key}: final training MAE median {mine[len(mine) // 2]:.3g}, best {mine[0]:.3g} of {len(mine)}")
        log(f"{name}: {max(t.candidates[-1] for t in trained)} candidates a run, {trained[0].seconds:.2f} s a run")
        self.collect()

    def run(self) -> None:
        from gmeql.evaluation.paper.train import batches

        self.start_evolutions()
        self.attempt(self.missing("eql", self.options.seeds))
        for batch in batches(self.missing("gmeql", self.options.seeds), {"gmeql": 400}):
            self.attempt(batch)
        self.attempt(self.missing("dsr", self.options.seeds))
        while self.evolutions and self.left() > 5:
            time.sleep(1)
            self.collect()
        if self.pool is not None:
            if self.evolutions:
                log(f"time is up: {len(self.evolutions)} GP and fitted runs are left for the next call")
            self.pool.terminate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--done", type=Path, nargs="*", default=[], help="lines of earlier calls: skip what they hold")
    parser.add_argument("--longer", action="store_true", help="DSR runs that were cut short start again")
    parser.add_argument("--methods", default="eql,gmeql,dsr,gp")
    parser.add_argument("--problems", default="b1,b2,b3,b4,b5,b6,b7,b8")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--gp-seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="for GP and fitted")
    parser.add_argument("--budget", default="full")
    parser.add_argument("--seconds", type=float, default=520.0, help="end by then, start included")
    parser.add_argument(
        "--settings",
        default=[],
        type=lambda text: text.split(","),
        help="of GMEQL, such as raced,released; all by default",
    )
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Session(options).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
