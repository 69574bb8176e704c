"""A whole benchmark: the cells that have no record yet, one after the other or in worker processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmeql.evaluation.bench.cells import Factory, default_model, empty_record, run_cell, warm_up
from gmeql.evaluation.bench.display import Display
from gmeql.evaluation.bench.records import BenchConfig, BenchRecord, RecordFile
from gmeql.evaluation.problems import Problem, load_suite
from gmeql.fitters.threads import available_cores

if TYPE_CHECKING:
    from rich.console import Console


def run_suite(
    suite: str | os.PathLike[str],
    *,
    problems: Sequence[str] | None = None,
    seeds: int | Iterable[int] = 1,
    method: str = "fitted",
    max_time: float | None = 60.0,
    max_candidates: int | None = None,
    noise: float = 0.0,
    noise_std: float = 0.0,
    rows: int | None = None,
    options: Mapping[str, Any] | None = None,
    jobs: int = 1,
    path: str | os.PathLike[str] | None = None,
    show: bool | Console = False,
    factory: Factory = default_model,
) -> list[BenchRecord]:
    """Run a benchmark and return its records, problem by problem and seed by seed.

    `seeds`: how many (0, 1, ...), or which. `noise` is relative to the root mean square of the training targets,
    `noise_std` in their units. `rows` replaces the number of training rows drawn from a formula. `options` go to the
    regressor. With `path`, records are appended there and cells that it already holds are not run again; cells that
    ended with an error are. `show`: progress on stderr (True) or on the console given, as a live table where that is a
    terminal; print `table(records)` for the outcome.
    """
    chosen = load_suite(suite, problems)
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not numbers or len(set(numbers)) != len(numbers) or any(seed < 0 for seed in numbers):
        raise ValueError(f"seeds={seeds!r}; give a positive number of seeds, or different numbers from 0 on")
    if jobs < 1:
        raise ValueError(f"jobs={jobs}; at least one fit must run at a time")
    name = os.fspath(suite)
    config = BenchConfig(
        suite=Path(name).name,
        method=method,
        max_time=max_time,
        max_candidates=max_candidates,
        noise=noise,
        noise_std=noise_std,
        rows=rows,
        options=dict(options or {}),
    )
    cells = [(problem, seed) for problem in chosen for seed in numbers]
    store = RecordFile(path) if path is not None else None
    kept = {record.cell: record for record in store.read() if not record.error} if store is not None else {}
    done = {}
    for problem, seed in cells:
        earlier = kept.get(empty_record(problem, seed, config).cell)
        if earlier is not None:
            done[problem.name, seed] = earlier
    todo = [cell for cell in cells if (cell[0].name, cell[1]) not in done]

    display = Display(show, [problem.name for problem in chosen], len(numbers), list(done.values()))
    with display:
        for record in _execute(todo, config, factory, jobs, display.started):
            if store is not None:
                store.append(record)
            done[record.problem, record.seed] = record
            display.finished(record)
    return [done[problem.name, seed] for problem, seed in cells]


def _execute(
    cells: Sequence[tuple[Problem, int]],
    config: BenchConfig,
    factory: Factory,
    jobs: int,
    started: Callable[[str, int], None],
) -> Iterator[BenchRecord]:
    if not cells:
        return
    if jobs == 1:
        warm_up(config, factory)
        for problem, seed in cells:
            started(problem.name, seed)
            yield run_cell(problem, seed, config, factory=factory)
        return
    threads = max(1, available_cores() // jobs)
    waiting = list(reversed(cells))
    while waiting:
        suspects = yield from _pool(waiting, config, factory, jobs, threads, started)
        for problem, seed in suspects:  # one of them took its worker down; alone, each shows whether it was the one
            if (yield from _pool([(problem, seed)], config, factory, 1, threads, started)):
                empty = empty_record(problem, seed, config)
                yield BenchRecord(**{**asdict(empty), "error": "the worker process died, also when run alone"})


def _pool(
    waiting: list[tuple[Problem, int]],
    config: BenchConfig,
    factory: Factory,
    jobs: int,
    threads: int,
    started: Callable[[str, int], None],
) -> Generator[BenchRecord, None, list[tuple[Problem, int]]]:
    """Records of the `waiting` cells, which it empties. Returns the cells in flight when a worker died, if one did."""
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=warm_up, initargs=(config, factory)
    )
    flying: dict[Any, tuple[Problem, int]] = {}
    try:
        while waiting or flying:
            while waiting and len(flying) < jobs:
                problem, seed = waiting[-1]
                future = pool.submit(run_cell, problem, seed, config, factory=factory, threads=threads)
                flying[future] = waiting.pop()  # only now: a broken pool refuses what is submitted
                started(problem.name, seed)
            finished, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in finished:
                record = future.result()
                del flying[future]
                yield record
        return []
    except BrokenProcessPool:
        return list(flying.values())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
