"""Direct methods alone: what they see without a single candidate drawn, and what they cost where they see nothing.

    python benchmarks/direct.py CASES.json --candidates 100000 [--methods rational,meeting]
    python benchmarks/direct.py --cost 1000x6,100000x10 --max-time 30

The first asks them about every case of a file, on its columns and on the smaller tables that its symmetries give, with
the work that a search of so many candidates would grant them. A case is seen where a formula is exact on the training
rows; whether it is the truth is for `gmeql bench` to judge. The second times every method on tables of noise.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

from gmeql.evaluation.problems.cases import read_cases
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.direct.methods import DIRECT_METHODS
from gmeql.search.direct.middle.meeting import compile_look_up
from gmeql.search.search import Search
from gmeql.search.seeing import look_directly
from gmeql.search.stopping import has_exact_formula

ROWS = 1000


def seen(X: np.ndarray, y: np.ndarray, names: tuple[str, ...], config: SearchConfig) -> tuple[bool, str, float]:
    """Whether a formula is exact on a table after one look, the best formula, and the look's seconds of processor."""
    search = Search(X, y, names=names, config=config)
    search._look_for_symmetries()
    start = time.process_time()
    look_directly(search._state, Clock.unlimited())
    seconds = time.process_time() - start
    best = search.progress().best.expression
    return has_exact_formula(search._state), str(best), seconds


def cases(path: str, config: SearchConfig) -> Iterator[tuple[str, bool, str, float]]:
    """Name and outcome of every case."""
    for problem in read_cases(path):
        X, y = problem.train(problem.generator(0, "train"), rows=ROWS)
        yield problem.name, *seen(X, y, problem.names, config)


def costs(n_rows: int, n_columns: int, max_time: float) -> Iterator[tuple[str, float, float, float]]:
    """Share in seconds, seconds of processor and MB of memory of each method on a table that holds nothing to see."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0.5, 3.0, (n_rows, n_columns)), rng.normal(size=n_rows)
    compile_look_up()
    for method in DIRECT_METHODS:
        config = SearchConfig(max_time=max_time, direct=(method,), n_jobs=1)
        state = Search(X, y, config=config)._state
        before, start = _megabytes(), time.process_time()
        look_directly(state, Clock.start(config))
        yield method, config.direct_seconds, time.process_time() - start, _megabytes() - before


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?")
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--methods")
    parser.add_argument("--cost")
    parser.add_argument("--max-time", type=float, default=30.0)
    given = parser.parse_args()
    if given.cases:
        asked = None if given.methods is None else tuple(given.methods.split(","))
        outcomes = []
        for name, is_seen, formula, seconds in cases(
            given.cases, SearchConfig(max_candidates=given.candidates, direct=asked, n_jobs=1)
        ):
            outcomes.append(is_seen)
            print("seen" if is_seen else "  --", f"{seconds:5.2f} s", name, formula[:100], flush=True)
        print(f"{sum(outcomes)} of {len(outcomes)} seen")
    for size in given.cost.split(",") if given.cost else ():
        n_rows, n_columns = map(int, size.split("x"))
        for method, share, seconds, memory in costs(n_rows, n_columns, given.max_time):
            print(
                f"{size:>10} {method:>10} {seconds:6.2f} s of {share:.2f} s allowed if asked alone, {memory:5.0f} MB more"
            )


if __name__ == "__main__":
    main()
