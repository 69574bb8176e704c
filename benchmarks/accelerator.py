"""What an accelerator is worth: whole searches on it, beside one core and all cores of the same machine.

    PYTHONPATH=src python benchmarks/accelerator.py rate                 candidates a second, 300 to 1,000,000 rows
    PYTHONPATH=src python benchmarks/accelerator.py solve CASES.json ... seconds to an exact formula, one after the other
    PYTHONPATH=src python benchmarks/accelerator.py hardest CASES.json   those that take all cores longest: card, all cores
    PYTHONPATH=src python benchmarks/accelerator.py quick --seeds 3      b1-b8 one after the other: nobody shall be slower
    PYTHONPATH=src python benchmarks/accelerator.py paper --seeds 20     b1-b8, all seeds at once
    PYTHONPATH=src python benchmarks/accelerator.py steps --islands 224  steps of islands alone, for a profiler, too
    PYTHONPATH=src python benchmarks/accelerator.py compare              drawn candidates fitted there and on a core

`rate` searches noisy tables (`--tables`), on which nothing ends early, and says when the card was taken and whether the
search ended in time; `solve` takes the given problems (`--problems`) with each of `--devices` (gpu, with all cores
beside it; auto, with one core beside it; cpu, that is one core; cores, that is all; with `--islands-alone` nothing but
islands searches, neither symmetries nor direct methods); `hardest` asks one core, in all
cores at once, and then all cores together which problems those are, unless they are named, and says how many times
sooner the card has a formula for the middle one; `paper` shares the card among `--workers` processes. Every search has
a warm process: compiled kernels are loaded before its clock starts.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import math
import statistics
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from gmeql.evaluation.problems.problem import Problem
from gmeql.evaluation.problems.suites import load_suite
from gmeql.model.fit.preparation import prepare
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search

TABLES = ((300, 5), (100_000, 10), (1_000_000, 10))
ISLANDS_ALONE = {"symmetries": False, "formulas_viewed": 0, "direct": ()}


def warm_up(device: str) -> None:
    """Load what a search compiles: a short one on a table without a formula."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (60, 2))
    for _ in Search(X, rng.normal(size=60), config=SearchConfig(max_time=3, device=device, n_jobs=1)).run():
        pass


def searched(X: np.ndarray, y: np.ndarray, config: SearchConfig, seed: int = 0, every: float | None = None) -> dict:
    """One search, timed from its first line; candidates are looked at `every` so many seconds."""
    began = time.perf_counter()
    data = prepare(X, y)  # as the regressor does: sizes beyond the ordinary are brought into range
    search, taken = Search(data.X, data.y, config=config, seed=seed, sample_weight=data.weight), None
    is_over, counted = threading.Event(), [(0.0, 0)]

    def count() -> None:
        while not is_over.wait(every):
            counted.append((time.perf_counter() - began, search.candidates))

    if every is not None:
        threading.Thread(target=count, daemon=True).start()
    for progress in search.run():
        if taken is None and search._executor.on_cards:
            taken = time.perf_counter() - began
    seconds = time.perf_counter() - began
    is_over.set()
    if every is not None:
        rates = [round((n - m) / (t - s) / 1e6, 2) for (s, m), (t, n) in itertools.pairwise(counted)]
        show({"every": every, "millions_per_second": rates})
    found = {"seconds": seconds, "candidates": search.candidates, "reason": search.reason, "card_taken": taken}
    return found | {"per_second": search.candidates / seconds, "best": str(progress.best.expression)[:100]}


def rate(arguments: argparse.Namespace) -> None:
    for device in arguments.devices:
        name, n_jobs = place(device)
        warm_up(name)
        for rows, columns in arguments.tables:
            X, y = noisy_table(rows, columns)
            config = SearchConfig(max_time=arguments.seconds, device=name, n_jobs=n_jobs, **arguments.settings)
            found = searched(X, y, config, every=arguments.every)
            show(
                {"rows": rows, "columns": columns, "device": device, "late": found["seconds"] - arguments.seconds}
                | found
            )


def solve(arguments: argparse.Namespace) -> None:
    problems = chosen_problems(arguments)
    for device in arguments.devices:
        solved_by(device, problems, arguments.max_time, arguments)


def solved_by(device: str, problems: list[Problem], max_time: float, arguments: argparse.Namespace) -> list[float]:
    """Seconds to an exact formula, inf where there was none in time; shown one by one and together."""
    name, n_jobs = place(device)
    warm_up(name)
    times = []
    for problem in problems:
        config = SearchConfig(max_time=max_time, device=name, n_jobs=n_jobs, **arguments.settings)
        found = searched(*table(problem, 0), config)
        times.append(found["seconds"] if found["reason"] == "exact" else math.inf)
        show({"problem": problem.name, "device": device} | found)
    solved = sum(map(math.isfinite, times))
    show({"device": device, "problems": len(times), "solved": solved, "median_seconds": statistics.median(times)})
    return times


def chosen_problems(arguments: argparse.Namespace) -> list[Problem]:
    wanted = arguments.problems.split(",") if arguments.problems else None
    problems = [problem for cases in arguments.cases for problem in load_suite(cases)]
    return [problem for problem in problems if wanted is None or problem.name in wanted]


def hardest(arguments: argparse.Namespace) -> None:
    """The goal is judged by the middle of the times; the cores get just the time after which they have lost.

    Which problems those are is asked by rule: of those that take one core longest, the ones that take all cores longest
    among those that they solve, or (`--unsolved`) whether they solve them or not; these count with the time they had.
    """
    problems, first, others = chosen_problems(arguments), arguments.devices[0], arguments.devices[1:]
    if not arguments.problems:
        problems, slow = asked_for_hardest(problems, arguments)
        fast = solved_by(first, problems, arguments.max_time, arguments)
        show({"device": "cores", "against": first} | times_sooner(fast, slow, arguments.max_time))
        return
    fast = solved_by(first, problems, arguments.max_time, arguments)
    for device in others:
        limit = max(arguments.times * statistics.median(fast), 1.0)
        limit = arguments.max_time if math.isinf(limit) else limit
        slow = solved_by(device, problems, limit, arguments)
        show({"device": device, "against": first, "limit": limit} | times_sooner(fast, slow, limit))


def asked_for_hardest(problems: list[Problem], arguments: argparse.Namespace) -> tuple[list[Problem], list[float]]:
    """The hardest problems that all cores solve, and their seconds there; one core is asked first, in all at once."""
    cells = [(problem, arguments.max_time, arguments.settings) for problem in problems]
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=warm_up, initargs=("cpu",)) as pool:
        found = list(pool.map(one_core, *zip(*cells, strict=True)))
    long_ones = longest(problems, found, arguments.asked)
    show({"hardest for one core": ",".join(problem.name for problem in long_ones)})
    seconds = solved_by("cores", long_ones, arguments.max_time, arguments)
    chosen = hardest_of(seconds, arguments.most, unsolved=arguments.unsolved)
    told = "hardest for all cores" if arguments.unsolved else "hardest that all cores solve"
    show({told: ",".join(long_ones[i].name for i in chosen)})
    return [long_ones[i] for i in chosen], [seconds[i] for i in chosen]


def hardest_of(seconds: list[float], most: int, *, unsolved: bool) -> list[int]:
    """Places of the longest times, in their order; among the finite ones where the `unsolved` do not count."""
    counted = [i for i, each in enumerate(seconds) if unsolved or math.isfinite(each)]
    return sorted(sorted(counted, key=lambda i: seconds[i], reverse=True)[:most])


def longest(problems: list[Problem], found: list[tuple[float, int]], most: int) -> list[Problem]:
    """Those that took longest; of those that were not solved the ones with the most candidates."""
    order = sorted(range(len(problems)), key=lambda i: found[i], reverse=True)
    return [problems[i] for i in sorted(order[:most])]


def times_sooner(fast: list[float], slow: list[float], limit: float) -> dict:
    """How many times sooner the middle problem is solved; at least so many where the slower one was stopped before."""
    middle = statistics.median(min(one, limit) for one in slow)
    is_bound = math.isinf(statistics.median(slow))
    return {"times_sooner": middle / statistics.median(fast), "at_least": is_bound}


def one_core(problem: Problem, max_time: float, settings: dict) -> tuple[float, int]:
    found = searched(*table(problem, 0), SearchConfig(max_time=max_time, device="cpu", n_jobs=1, **settings))
    return (found["seconds"] if found["reason"] == "exact" else math.inf, found["candidates"])


def quick(arguments: argparse.Namespace) -> None:
    """What is found at once: seconds of each run by device, and how much slower than the first device any was."""
    seconds: dict[str, list[float]] = {device: [] for device in arguments.devices}
    cells = [(f"b{i}", seed) for seed in range(arguments.seeds) for i in range(1, 9)]
    for device in arguments.devices:
        name, n_jobs = place(device)
        warm_up(name)
        for problem, seed in cells:
            (loaded,) = load_suite("paper", [problem])
            config = SearchConfig(max_time=30, device=name, n_jobs=n_jobs, **arguments.settings)
            found = searched(*table(loaded, seed), config, seed)
            seconds[device].append(found["seconds"])
            show({"problem": problem, "seed": seed, "device": device} | found)
    first, *others = arguments.devices
    for device in others:
        show({"device": device, "against": first} | slower(cells, seconds[first], seconds[device]))


def slower(cells: list[tuple[str, int]], first: list[float], second: list[float]) -> dict:
    """How much longer the second device took: in the middle, at most and where, and how often more than 0.2 s."""
    longer = [b - a for a, b in zip(first, second, strict=True)]
    worst = max(range(len(cells)), key=longer.__getitem__)
    return {
        "runs": len(cells), "median_longer": statistics.median(longer), "most_longer": longer[worst],
        "where": "{} seed {}".format(*cells[worst]), "longer_than_0.2": sum(one > 0.2 for one in longer),
    }  # fmt: skip


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


def noisy_table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """A table on which no search ends early."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (rows, columns))
    y = np.sqrt(X[:, 0] ** 2 + (X[:, 1] * np.cos(X[:, 2])) ** 2 + X[:, 3]) / X[:, 4]
    return X, y + 0.05 * rng.standard_normal(rows)


def steps(arguments: argparse.Namespace) -> None:
    from gmeql.search.accelerator.cards import required_cards
    from gmeql.search.accelerator.stage import Stage

    state = Search(*noisy_table(300, 5), config=SearchConfig(max_time=60, n_jobs=1), seed=1)._state
    opened = [state.portfolio.open_island(state.rng, on_device=True) for _ in range(arguments.islands)]
    began = time.perf_counter()
    (card, *_) = required_cards()
    ready_after = time.perf_counter() - began
    stage = Stage(card, opened, [state.portfolio.task(island) for island in opened])

    def drawn(n: int) -> int:
        for _ in range(n):
            stage.take_step()
        return int(stage.look()["n_drawn_in_all"].sum())

    before = drawn(arguments.warm_steps)
    began = time.perf_counter()
    n = drawn(arguments.steps) - before
    seconds = time.perf_counter() - began
    show({"islands": arguments.islands, "ready_after": ready_after, "seconds": seconds, "per_second": n / seconds})


def compare(arguments: argparse.Namespace) -> None:
    from gmeql.fitters import cpu
    from gmeql.fitters.cuda import engine
    from gmeql.fitters.jobs import FitJob
    from gmeql.fitters.kernel.arrays import FitData

    for rows in arguments.rows:
        config = SearchConfig(max_candidates=3000, n_jobs=1, search_rows=rows, symmetries=False, direct=())
        X, y = noisy_table(rows, 5)
        search = Search(arguments.scale * X, y, config=config, seed=rows)
        for _ in search.run():
            pass
        state, here = search._state, []
        for number in range(24):
            island = state.portfolio.open_island(np.random.default_rng(number))
            task = state.portfolio.task(island)
            data = FitData(task.inputs, task.target, task.weights)
            here.append(FitJob(island.draw(state.tried, 60, 0), data, math.inf if number % 2 else 0.05))
        there = copy.deepcopy(here)
        options = dict(max_steps=10, tolerance=1e-4, screen_rows=64)
        cpu.fit_batches(here, **options, n_threads=1)
        engine.fit_batches(there, **options)
        losses = [np.concatenate([job.batch.losses for job in jobs]) for jobs in (here, there)]
        ends = [np.concatenate([job.batch.codes for job in jobs]) for jobs in (here, there)]
        finite = np.isfinite(losses[0]) & np.isfinite(losses[1])
        off = np.abs(losses[1][finite] / losses[0][finite] - 1)
        found = {"rows": rows, "scale": arguments.scale, "candidates": len(finite), "median_off": float(np.median(off))}
        show(
            found | {"share_off_by_1e-6": float((off > 1e-6).mean()), "other_ends": float((ends[0] != ends[1]).mean())}
        )


def ready(_: int) -> None:
    time.sleep(0.2)


def one_of_paper(name: str, seed: int, device: str) -> dict:
    (problem,) = load_suite("paper", [name])
    return searched(*table(problem, seed), SearchConfig(max_time=30, device=device, n_jobs=1), seed)


def table(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return problem.sample(problem.generator(seed, "train"), 300)


def place(device: str) -> tuple[str, int | None]:
    """A device and its threads: gpu (with all cores beside it), auto and cpu (one core), cores (all of them)."""
    return {"gpu": ("gpu", None), "auto": ("auto", 1), "cpu": ("cpu", 1), "cores": ("cpu", None)}[device]


def sizes(text: str) -> list[tuple[int, ...]]:
    """ "300x5,1000000x10" as rows and columns."""
    return [tuple(int(n) for n in each.split("x")) for each in text.split(",")]


def settings(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in (each.split("=") for each in text.split(","))}


def show(entry: dict) -> None:
    rounded = {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in entry.items()}
    print(json.dumps(rounded), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--devices",
        type=lambda text: text.split(","),
        help="gpu,cpu,cores unless given; hardest: gpu,cores; quick: cpu,auto,gpu",
    )
    parser.add_argument(
        "--settings", type=settings, default={}, help="numbers of `SearchConfig`, such as later_device_islands=112"
    )
    parser.add_argument("--islands-alone", action="store_true", help="without symmetries and direct methods")
    commands = parser.add_subparsers(required=True)
    of_tables = commands.add_parser("rate")
    of_tables.add_argument("--seconds", type=float, default=20, help="of each search, its end included")
    of_tables.add_argument("--tables", type=sizes, default=TABLES, help="rows x columns, such as 300x5,1000000x10")
    of_tables.add_argument("--every", type=float, help="also the rate of each so many seconds")
    of_tables.set_defaults(run=rate)
    for name, run in (("solve", solve), ("hardest", hardest)):
        of_cases = commands.add_parser(name)
        of_cases.add_argument("cases", nargs="+")
        of_cases.add_argument("--problems", help="names, separated by commas; all unless given")
        of_cases.add_argument("--max-time", type=float, default=30 if run is solve else 20)
        if run is hardest:
            of_cases.add_argument("--most", type=int, default=10, help="how many are the hardest")
            of_cases.add_argument("--asked", type=int, default=20, help="of how many that take one core longest")
            of_cases.add_argument("--unsolved", action="store_true", help="those that all cores do not solve, too")
            of_cases.add_argument(
                "--times", type=float, default=5, help="how many times sooner the first device shall be"
            )
        of_cases.set_defaults(run=run)
    of_single = commands.add_parser("quick")
    of_single.add_argument("--seeds", type=int, default=3)
    of_single.set_defaults(run=quick)
    of_steps = commands.add_parser("steps")
    of_steps.add_argument("--islands", type=int, default=224)
    of_steps.add_argument("--steps", type=int, default=10)
    of_steps.add_argument("--warm-steps", type=int, default=4)
    of_steps.set_defaults(run=steps)
    of_fits = commands.add_parser("compare")
    of_fits.add_argument(
        "--rows", type=lambda text: [int(n) for n in text.split(",")], default=[70, 256, 300, 400, 999]
    )
    of_fits.add_argument(
        "--scale", type=float, default=1.0, help="factor of all columns: with 1e4, angles of waves are large"
    )
    of_fits.set_defaults(run=compare)
    of_paper = commands.add_parser("paper")
    of_paper.add_argument("--seeds", type=int, default=20)
    of_paper.add_argument("--workers", type=int, default=8)
    of_paper.set_defaults(run=paper)
    arguments = parser.parse_args()
    usual = {hardest: ["gpu", "cores"], quick: ["cpu", "auto", "gpu"]}
    arguments.devices = arguments.devices or usual.get(arguments.run, ["gpu", "cpu", "cores"])
    if arguments.islands_alone:
        arguments.settings = ISLANDS_ALONE | arguments.settings
    arguments.run(arguments)


if __name__ == "__main__":
    main()
