"""Templates in the literature's style: fixed outer forms whose free functions and constants are found.

    python benchmarks/templates.py --seeds 0:3 --max-time 20

Two free functions and a constant, a damped oscillator, one function summed over pairs of columns, and the same outer form
over groups of rows with constants of their own. A run is solved where the chosen formula meets targets without noise, on
1,000 fresh rows, to 1e-6 of their spread. Seconds are of one core.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

ROWS, FRESH, HOLDS = 300, 1000, 1e-6


@dataclass(frozen=True)
class Case:
    """A template, columns with their ranges, the law over the frame, and how many groups its rows have."""

    template: str
    columns: dict[str, tuple[float, float]]
    law: Callable[[pd.DataFrame], np.ndarray]
    groups: int = 0


CASES = {
    "two functions and a constant": Case(
        "a*exp(-b*f(x)) + g(y, z)",
        {"x": (0.5, 3), "y": (0.5, 3), "z": (0.5, 3)},
        lambda d: 2.5 * np.exp(-0.7 * np.sqrt(d.x)) + d.y**2 / d.z,
    ),
    "damped oscillator": Case(
        "f(t)*cos(w*t + p)", {"t": (0, 10)}, lambda d: 1.7 * np.exp(-0.31 * d.t) * np.cos(2.3 * d.t + 0.4)
    ),
    "sum over pairs": Case(
        "f(q1, r1) + f(q2, r2) + f(q3, r3)",
        dict.fromkeys(("q1", "r1", "q2", "r2", "q3", "r3"), (0.5, 3)),
        lambda d: sum(1.3 * d[f"q{i}"] / d[f"r{i}"] ** 2 for i in (1, 2, 3)),
    ),
    "own constants of six groups": Case(
        "a*f(t) + b",
        {"t": (0.2, 4)},
        lambda d: (1 + 0.2 * d.group) * np.exp(-0.8 * d.t) + 0.3 * d.group,
        groups=6,
    ),
}


def frame(case: Case, rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows drawn evenly over the ranges, with a column `group` where there are groups."""
    found = pd.DataFrame({name: rng.uniform(*ends, rows) for name, ends in case.columns.items()})
    return found.assign(group=rng.integers(0, case.groups, rows)) if case.groups else found


def solve(case: Case, seed: int, max_time: float) -> tuple[bool, float, str]:
    """Whether one fit found the law, the seconds it took, and its formula."""
    from gmeql import GMEQLRegressor

    rng = np.random.default_rng(seed)
    seen, fresh = frame(case, ROWS, rng), frame(case, FRESH, rng)
    model = GMEQLRegressor(template=case.template, max_time=max_time, random_state=seed, n_jobs=1)
    began = time.process_time()
    model.fit(seen, case.law(seen), groups="group" if case.groups else None)
    seconds = time.process_time() - began
    truth = case.law(fresh)
    error = float(np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) / truth.std())
    return error <= HOLDS, seconds, str(model.expression_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:3", help="first:last")
    parser.add_argument("--max-time", type=float, default=20.0)
    parser.add_argument("--cases", default=",".join(CASES))
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    from gmeql.model.fit.kernels import keep_kernels, load_kernels

    keep_kernels()
    load_kernels()
    print("| template | solved | slowest solved, s | formula |\n| --- | --- | --- | --- |")
    for name in options.cases.split(","):
        runs = [solve(CASES[name], seed, options.max_time) for seed in range(first, last)]
        slowest = max((seconds for solved, seconds, _ in runs if solved), default=float("nan"))
        solved = sum(solved for solved, _, _ in runs)
        print(
            f"| {name}: `{CASES[name].template}` | {solved}/{len(runs)} | {slowest:.1f} | `{runs[0][2]}` |", flush=True
        )


if __name__ == "__main__":
    main()
