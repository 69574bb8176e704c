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

START = time.perf_counter()


def log(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f} s] {text}", flush=True)


def evolve(cell: dict) -> dict:
    """One GP or fitted run in a worker process."""
    from gmeql.evaluation.paper.cells import Cell
    from gmeql.evaluation.paper.plan import budget_plan
    from gmeql.evaluation.paper.train import train

    return train([Cell(**cell)], budget_plan(cell["budget"]))[0].to_dict() | {"device": "one CPU core"}


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
    parser.add_argument("--skip-standard", action="store_true", help="only ablations and noise, except for GP")
    options = parser.parse_args()

    from gmeql.evaluation.paper.cells import Cell
    from gmeql.evaluation.paper.figures import FIGURES
    from gmeql.evaluation.paper.plan import budget_plan
    from gmeql.evaluation.paper.records import device
    from gmeql.evaluation.paper.train import batches, train

    plan = budget_plan(options.budget)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.loads(line)
        for path in (options.out, *options.done)
        if path.exists()
        for line in path.read_text().splitlines()
    ]

    def is_short(line: dict) -> bool:
        cut = line["cell"]["method"] == "dsr" and not line["cell"]["noise"] and line["total"] < plan.dsr_samples
        return cut and not (line["mae"] and line["mae"][-1] is not None and line["mae"][-1] < 1e-8)

    done = {Cell(**line["cell"]).key for line in lines if not (options.longer and is_short(line))}
    problems, methods = options.problems.split(","), options.methods.split(",")
    wanted = dict.fromkeys(cell for figure in FIGURES for cell in figure.cells(plan) if cell.problem in problems)

    def missing(method: str, seeds: int) -> list[Cell]:
        found = [c for c in wanted if c.method == method in methods and c.seed < seeds and c.key not in done]
        standard = options.skip_standard and method != "gp"
        return [c for c in found if not standard or c.noise or c.setting != "standard"]

    def keep(outcomes: list[dict]) -> None:
        text = "".join(json.dumps(outcome) + "\n" for outcome in outcomes)
        file = os.open(options.out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, text.encode())  # in one piece: other calls may write too
        os.close(file)

    def left() -> float:
        return options.seconds - (time.perf_counter() - START)

    pool, evolutions = None, []
    by_seed = sorted(missing("gp", options.gp_seeds), key=lambda cell: (cell.seed, cell.problem not in ("b4", "b7")))
    fitted = sorted(missing("fitted", options.seeds), key=lambda cell: (cell.noise > 0, cell.problem != "b2"))
    if cells := by_seed + fitted:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ[name] = "1"
        pool = multiprocessing.get_context("spawn").Pool(min(options.workers, len(cells)))
        if "fitted" in methods:  # compile once, into the cache, while GP keeps the others busy
            pool.apply_async(evolve, (Cell("b1", "fitted", budget="smoke").__dict__,))
        evolutions = [(cell, pool.apply_async(evolve, (cell.__dict__,))) for cell in cells]
        log(f"{len(by_seed)} GP runs and {len(cells) - len(by_seed)} fitted runs on {options.workers} workers")

    def collect() -> None:
        for pair in [pair for pair in evolutions if pair[1].ready()]:
            evolutions.remove(pair)
            try:
                outcome = pair[1].get()
            except Exception as error:  # noqa: BLE001  # a dead run is reported, the others go on
                log(f"{pair[0].key} failed: {type(error).__name__}: {error}")
                continue
            keep([outcome])
            log(f"{pair[0].key}: {outcome['seconds']:.1f} s, final MAE {outcome['mae'][-1]}")

    def attempt(cells: list[Cell], seconds: float) -> None:
        name = f"{cells[0].method} on {','.join(dict.fromkeys(c.problem for c in cells))}"
        if seconds < 15:
            log(f"{name}: no time left for {len(cells)} runs")
            return
        log(f"{name}: {len(cells)} runs side by side")
        try:
            outcomes = train(cells, plan, seconds)
        except TimeoutError as error:
            log(str(error))
            return
        keep([outcome.to_dict() | {"device": device()} for outcome in outcomes])
        for key in dict.fromkeys((o.cell.problem, o.cell.setting, o.cell.noise) for o in outcomes):
            mine = sorted(o.mae[-1] for o in outcomes if (o.cell.problem, o.cell.setting, o.cell.noise) == key)
            log(f"  {key}: final training MAE median {mine[len(mine) // 2]:.3g}, best {mine[0]:.3g} of {len(mine)}")
        log(f"{name}: {max(o.candidates[-1] for o in outcomes)} candidates a run, {outcomes[0].seconds:.2f} s a run")
        collect()

    reserve = 25.0  # to end in good order
    if cells := missing("eql", options.seeds):
        attempt(cells, left() - reserve)
    for batch in batches(missing("gmeql", options.seeds), {"gmeql": 200}):
        attempt(batch, left() - reserve)
    if cells := missing("dsr", options.seeds):
        attempt(cells, left() - reserve)
    while evolutions and left() > 5:
        time.sleep(1)
        collect()
    if pool is not None:
        if evolutions:
            log(f"time is up: {len(evolutions)} GP and fitted runs are left for the next call")
        pool.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
