"""EQL, GMEQL, DSR and GP on b1-b8 at the paper's budget: training only, for a machine with an accelerator.

usage: PYTHONPATH=src python benchmarks/paper_baselines.py --out FILE.jsonl [--seconds 520] [--methods eql,gmeql,dsr,gp]

One JSON line per run (curve, final expression, cost). A run whose line is there already (or in the file of `--done`) is
skipped, so a call that ends at its time limit is continued by the next. `gmeql.experiments.take_over(FILE.jsonl, OUT)`
judges the lines and adds them to the records that `gmeql paper --budget full --out OUT` draws from.

EQL and DSR train all problems and seeds as one batch, GMEQL one batch per network shape, its ablations and noise levels
included; they need only jax, numpy, scipy and sympy. DSR comes last and takes the time that is left: a run's line says
how many samples it drew. GP (gplearn) runs beside them on the CPU cores; `--wheels DIR` names a folder of wheels to
take scikit-learn and gplearn from where they are not installed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import zipfile
from pathlib import Path

START = time.perf_counter()


def log(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f} s] {text}", flush=True)


def unpack(wheels: Path) -> None:
    """Make the wheels of a folder importable here and in worker processes."""
    target = tempfile.mkdtemp(prefix="gmeql-wheels-")
    for wheel in sorted(wheels.glob("*.whl")):
        zipfile.ZipFile(wheel).extractall(target)
    sys.path.append(target)
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), target])


def evolve(cell: dict) -> dict:
    """One GP run in a worker process."""
    from gmeql.experiments.cells import Cell, train
    from gmeql.experiments.plan import budget_plan

    return train([Cell(**cell)], budget_plan(cell["budget"]))[0].to_dict()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--done", type=Path, help="lines of an earlier call, to skip what they hold")
    parser.add_argument("--methods", default="eql,gmeql,dsr,gp")
    parser.add_argument("--problems", default="b1,b2,b3,b4,b5,b6,b7,b8")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--gp-seeds", type=int, default=5)
    parser.add_argument("--gp-workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--budget", default="full")
    parser.add_argument("--seconds", type=float, default=520.0, help="end by then, start included")
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--skip-standard", action="store_true", help="of GMEQL only the ablations and the noise")
    options = parser.parse_args()

    from gmeql.experiments.cells import Cell, batches, train
    from gmeql.experiments.figures import FIGURES
    from gmeql.experiments.plan import budget_plan

    plan = budget_plan(options.budget)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    files = [path for path in (options.out, options.done) if path is not None and path.exists()]
    done = {Cell(**json.loads(line)["cell"]).key for path in files for line in path.read_text().splitlines()}
    problems, methods = options.problems.split(","), options.methods.split(",")
    wanted = dict.fromkeys(cell for figure in FIGURES for cell in figure.cells(plan) if cell.problem in problems)

    def late(cell: Cell) -> bool:
        """Noise on other problems than b2 is not in the paper's figures and comes after everything else."""
        return bool(cell.noise) and cell.problem != "b2"

    def missing(method: str, seeds: int) -> list[Cell]:
        return [c for c in wanted if c.method == method in methods and c.seed < seeds and c.key not in done]

    def keep(outcomes: list[dict]) -> None:
        with options.out.open("a") as file:
            for outcome in outcomes:
                file.write(json.dumps(outcome) + "\n")

    def left() -> float:
        return options.seconds - (time.perf_counter() - START)

    pool, evolutions = None, []
    if cells := missing("gp", options.gp_seeds):
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[name] = "1"
        if options.wheels:
            unpack(options.wheels)
        pool = multiprocessing.get_context("spawn").Pool(min(options.gp_workers, len(cells)), maxtasksperchild=1)
        evolutions = [(cell, pool.apply_async(evolve, (cell.__dict__,))) for cell in cells]
        log(f"gp: {len(cells)} runs on {options.gp_workers} workers")

    def collect() -> None:
        for pair in [pair for pair in evolutions if pair[1].ready()]:
            evolutions.remove(pair)
            try:
                outcome = pair[1].get()
            except Exception as error:  # noqa: BLE001  # a dead run is reported, the others go on
                log(f"{pair[0].key} failed: {type(error).__name__}: {error}")
                continue
            keep([outcome])
            log(f"{pair[0].key}: {outcome['seconds']:.0f} s, final MAE {outcome['mae'][-1]}")

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
        keep([outcome.to_dict() for outcome in outcomes])
        for key in dict.fromkeys((o.cell.problem, o.cell.setting, o.cell.noise) for o in outcomes):
            mine = sorted(o.mae[-1] for o in outcomes if (o.cell.problem, o.cell.setting, o.cell.noise) == key)
            log(f"  {key}: final training MAE median {mine[len(mine) // 2]:.3g}, best {mine[0]:.3g} of {len(mine)}")
        log(f"{name}: {max(o.candidates[-1] for o in outcomes)} candidates a run, {outcomes[0].seconds:.2f} s a run")
        collect()

    reserve = 25.0  # to end in good order
    if cells := missing("eql", options.seeds):
        attempt(cells, left() - reserve)
    gmeql = missing("gmeql", options.seeds)
    if options.skip_standard:
        gmeql = [cell for cell in gmeql if cell.noise or cell.setting != "standard"]
    for batch in batches([cell for cell in gmeql if not late(cell)], {"gmeql": 200}):
        attempt(batch, left() - reserve)
    if cells := missing("dsr", options.seeds):
        attempt(cells, left() - reserve)
    for batch in batches([cell for cell in gmeql if late(cell)], {"gmeql": 200}):
        attempt(batch, left() - reserve)
    while evolutions and left() > 5:
        time.sleep(1)
        collect()
    if pool is not None:
        if evolutions:
            log(f"time is up: {len(evolutions)} GP runs are left for the next call")
        pool.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
