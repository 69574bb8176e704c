"""What units are worth: the cases of a file with noise, fitted with and without the units of their columns.

    python benchmarks/units.py CASES.json --noise 0.1 --max-time 15 --jobs 4 [--out FILE.jsonl] [--problems I.8.14,test_5]

The units stand in benchmarks/cases/feynman-units.json, by the names that the Feynman lectures' formulas have in public
benchmarks; each was written down from the physics and is held against the formula before anything is fitted. A case is
solved as `gmeql bench` says.
"""

from __future__ import annotations

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from gmeql.evaluation.problems import Problem, judge, read_cases
from gmeql.evaluation.problems.problem import root_mean_square

UNITS = Path(__file__).parent / "cases" / "feynman-units.json"


def run(
    problem: Problem, units: dict[str, str] | None, noise: float, seconds: float, rows: int, seed: int
) -> dict[str, Any]:
    """One fit on one thread, judged."""
    import pandas as pd

    from gmeql import GMEQLRegressor

    warnings.simplefilter("ignore")
    clean = problem.train(problem.generator(seed, "train"), rows=rows)[1]
    X, y = problem.train(problem.generator(seed, "train"), rows=rows, noise=noise)
    more: dict[str, Any] = {}
    if units is not None:
        more = {"units": [units[name] for name in problem.names], "target_units": units["target"]}
    model = GMEQLRegressor(max_time=seconds, n_jobs=1, random_state=seed, **more)
    model.fit(pd.DataFrame(X, columns=list(problem.names)), y)
    verdict = judge(model.expression_, problem, noise_std=noise * root_mean_square(clean), seed=seed)
    return {
        "problem": problem.name,
        "units": units is not None,
        "noise": noise,
        "solved": verdict.solved,
        "relative_rmse": verdict.relative_rmse,
        "seconds": round(model.seconds_, 2),
        "expression": str(model.expression_),
        "truth": problem.formula_text,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases")
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--max-time", type=float, default=15.0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--problems", default="")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    units = json.loads(UNITS.read_text(encoding="utf-8"))
    wanted = options.problems.split(",") if options.problems else []
    problems = [p for p in read_cases(options.cases) if p.name in units and (not wanted or p.name in wanted)]
    numbers = options.noise, options.max_time, options.rows, options.seed
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(run, p, u, *numbers) for p in problems for u in (None, units[p.name])]
        records = [future.result() for future in waiting]
    if options.out:
        Path(options.out).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    for with_units in (False, True):
        mine = [record for record in records if record["units"] is with_units]
        solved = sum(record["solved"] for record in mine)
        print(f"{'with' if with_units else 'without'} units: {solved} of {len(mine)} solved")


if __name__ == "__main__":
    main()
