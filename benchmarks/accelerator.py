"""What an accelerator is worth: whole searches on it, beside one core and all cores of the same machine.

    PYTHONPATH=src python benchmarks/accelerator.py rate                 candidates a second, 300 to 1,000,000 rows
    PYTHONPATH=src python benchmarks/accelerator.py solve CASES.json ... seconds to an exact formula, one after the other
    PYTHONPATH=src python benchmarks/accelerator.py paper --seeds 20     b1-b8, all seeds at once

`rate` searches noisy tables, on which nothing ends early; `solve` takes the given problems (`--problems`) with each of
`--devices` (gpu; auto, with one core beside it; cpu, that is one core; cores, that is all); `paper` shares the card among
`--workers` processes. Every search has a warm process: compiled kernels are loaded before its clock starts.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from gmeql.evaluation.problems.problem import Problem
from gmeql.evaluation.problems.suites import load_suite
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search

TABLES = ((300, 5), (100_000, 10), (1_000_000, 10))


def warm_up(device: str) -> None:
    """Load what a search compiles: a short one on a table without a formula."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (60, 2))
    for _ in Search(X, rng.normal(size=60), config=SearchConfig(max_time=3, device=device, n_jobs=1)).run():
        pass


def searched(X: np.ndarray, y: np.ndarray, config: SearchConfig, seed: int = 0) -> dict:
    """One search, timed from its first line."""
    began = time.perf_counter()
    search = Search(X, y, config=config, seed=seed)
    for progress in search.run():
        pass
    seconds = time.perf_counter() - began
    found = {"seconds": seconds, "candidates": search.candidates, "reason": search.reason}
    return found | {"per_second": search.candidates / seconds, "best": str(progress.best.expression)[:100]}


def rate(arguments: argparse.Namespace) -> None:
    for device in arguments.devices:
        name, n_jobs = place(device)
        warm_up(name)
        for rows, columns in TABLES:
            rng = np.random.default_rng(0)
            X = rng.uniform(1.0, 3.0, (rows, columns))
            y = np.sqrt(X[:, 0] ** 2 + (X[:, 1] * np.cos(X[:, 2])) ** 2 + X[:, 3]) / X[:, 4]
            y += 0.05 * rng.standard_normal(rows)
            config = SearchConfig(max_time=arguments.seconds, device=name, n_jobs=n_jobs)
            show({"rows": rows, "columns": columns, "device": device} | searched(X, y, config))


def solve(arguments: argparse.Namespace) -> None:
    wanted = arguments.problems.split(",") if arguments.problems else None
    times: dict[str, list[float]] = {device: [] for device in arguments.devices}
    for device in arguments.devices:
        name, n_jobs = place(device)
        warm_up(name)
        problems = [problem for cases in arguments.cases for problem in load_suite(cases)]
        for problem in problems:
            if wanted is not None and problem.name not in wanted:
                continue
            X, y = table(problem, 0)
            found = searched(X, y, SearchConfig(max_time=arguments.max_time, device=name, n_jobs=n_jobs))
            times[device].append(found["seconds"] if found["reason"] == "exact" else math.inf)
            show({"problem": problem.name, "device": device} | found)
    for device, seconds in times.items():
        solved = sum(math.isfinite(one) for one in seconds)
        show(
            {"device": device, "problems": len(seconds), "solved": solved, "median_seconds": statistics.median(seconds)}
        )


def paper(arguments: argparse.Namespace) -> None:
    cells = [(name, seed) for seed in range(arguments.seeds) for name in (f"b{i}" for i in range(1, 9))]
    for device in arguments.devices:
        name, _ = place(device)
        with ProcessPoolExecutor(
            arguments.workers, mp_context=get_context("spawn"), initializer=warm_up, initargs=(name,)
        ) as pool:
            list(pool.map(ready, range(4 * arguments.workers)))  # all processes are up
            began = time.perf_counter()
            found = list(pool.map(one_of_paper, *zip(*((*cell, name) for cell in cells), strict=True)))
            wall = time.perf_counter() - began
        exact = sum(one["reason"] == "exact" for one in found)
        slowest = max(one["seconds"] for one in found)
        show({"device": device, "runs": len(found), "exact": exact, "wall_seconds": wall, "slowest": slowest})


def ready(_: int) -> None:
    time.sleep(0.2)


def one_of_paper(name: str, seed: int, device: str) -> dict:
    (problem,) = load_suite("paper", [name])
    return searched(*table(problem, seed), SearchConfig(max_time=30, device=device, n_jobs=1), seed)


def table(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return problem.sample(problem.generator(seed, "train"), 300)


def place(device: str) -> tuple[str, int | None]:
    """A device and its threads: gpu, auto, cpu (one core), cores (all of them)."""
    return (device, 1) if device in ("gpu", "auto", "cpu") else ("cpu", None)


def show(entry: dict) -> None:
    rounded = {key: round(value, 3) if isinstance(value, float) else value for key, value in entry.items()}
    print(json.dumps(rounded), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=lambda text: text.split(","), default=["gpu", "cpu", "cores"])
    commands = parser.add_subparsers(required=True)
    of_tables = commands.add_parser("rate")
    of_tables.add_argument("--seconds", type=float, default=20, help="of each search, its end included")
    of_tables.set_defaults(run=rate)
    of_cases = commands.add_parser("solve")
    of_cases.add_argument("cases", nargs="+")
    of_cases.add_argument("--problems", help="names, separated by commas; all unless given")
    of_cases.add_argument("--max-time", type=float, default=30)
    of_cases.set_defaults(run=solve)
    of_paper = commands.add_parser("paper")
    of_paper.add_argument("--seeds", type=int, default=20)
    of_paper.add_argument("--workers", type=int, default=8)
    of_paper.set_defaults(run=paper)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
