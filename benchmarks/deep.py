"""What the accelerator's meeting in the middle sees by itself (`search/deep`): seconds of its reaches, and which formulas.

    PYTHONPATH=src python benchmarks/deep.py CASES.json ... [--problems A,B] [--reaches 1]

For every problem's table as it is, without the smaller ones that a search goes on with: seconds until the first exact formula
and until the end. The first lines are a table of noise, looked at three times: what is compiled and taken then is not counted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

import numpy as np

from gmeql.evaluation.problems.problem import Problem
from gmeql.evaluation.problems.suites import load_suite
from gmeql.fitters.cuda.driver import Driver, drivers
from gmeql.formula.expression import Expression
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.deep.meeting import DEEP, Reach, propose
from gmeql.search.direct.table import DirectTable

EXACT = 1e-12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--problems", help="names, with commas between; all unless given")
    parser.add_argument("--reaches", type=int, default=len(DEEP.reaches), help="so many of them")
    arguments = parser.parse_args()
    wanted = arguments.problems.split(",") if arguments.problems else None
    reaches = DEEP.reaches[: arguments.reaches]
    functions, driver = FunctionSet(DEFAULT_FUNCTIONS), drivers()[0]
    rng = np.random.default_rng(0)
    noise = DirectTable(rng.uniform(1, 2, (300, 5)), rng.normal(size=300), np.ones(300))
    for _ in range(3):
        show({"problem": "noise", **looked_at(driver, noise, functions, reaches)})
    found = []
    for cases in arguments.cases:
        for problem in load_suite(cases):
            if wanted is None or problem.name in wanted:
                X, y = table_of(problem)
                told = looked_at(driver, DirectTable(X, y, np.ones(len(y))), functions, reaches)
                found.append(told["exact_after"])
                show({"cases": cases, "problem": problem.name, **told})
    seen = [seconds for seconds in found if seconds is not None]
    show({"problems": len(found), "seen": len(seen), "median_seconds": float(np.median(seen)) if seen else None})


def table_of(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    return problem.sample(problem.generator(0, "train"), 300)


def looked_at(driver: Driver, table: DirectTable, functions: FunctionSet, reaches: Sequence[Reach]) -> dict:
    """One table: when an exact formula was seen, the plainest, and how long all took."""
    began, exact_after, best = time.perf_counter(), None, ""
    names = [f"x{i}" for i in range(table.n_columns)]
    for reach in reaches:
        for root in propose(driver, table, functions, reach):
            if exact_after is None and table.error(root) < EXACT:
                exact_after, best = time.perf_counter() - began, str(Expression(root, names))[:100]
    return {
        "exact_after": exact_after,
        "seconds": time.perf_counter() - began,
        "columns": table.n_columns,
        "best": best,
    }


def show(told: dict) -> None:
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
