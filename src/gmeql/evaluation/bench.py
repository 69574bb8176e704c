"""Benchmarks: every problem of a suite, several seeds each, with one method and one budget.

One record per problem and seed goes to a file as it is finished, so an interrupted benchmark goes on where it stopped.
By default one fit runs at a time, because a fit uses every core; `jobs` runs several in worker processes, with fewer
threads each. Before the clock starts, each process fits a small table once, so that loading libraries and compiled
kernels is not counted as search time.

>>> records = run_suite("paper", problems=["b1"], seeds=1, max_time=20)      # doctest: +SKIP
>>> summarise(records)[0].solved                                             # doctest: +SKIP
1
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.evaluation.problems import Problem, judge, load_suite
from gmeql.evaluation.problems.problem import root_mean_square, standard_deviation
from gmeql.model.storage import write_atomic

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@dataclass(frozen=True)
class BenchConfig:
    """What a cell needs besides problem and seed. Two records are of one benchmark when these agree."""

    suite: str = "paper"
    method: str = "fitted"
    max_time: float | None = 60.0
    max_candidates: int | None = None
    noise: float = 0.0
    noise_std: float = 0.0
    rows: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_time is None and self.max_candidates is None:
            raise ValueError("max_time and max_candidates are both None; give a budget")
        for name in ("max_time", "max_candidates", "rows"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r}; it must be greater than 0")
        if self.noise < 0 or self.noise_std < 0 or (self.noise and self.noise_std):
            raise ValueError(f"noise={self.noise}, noise_std={self.noise_std}: give one of them, not negative")


@dataclass(frozen=True)
class Record:
    """The outcome of one problem and seed. `solved` is None where the truth is unknown; errors are on test rows."""

    problem: str
    seed: int
    method: str
    solved: bool | None
    relative_rmse: float | None
    seconds: float
    candidates: int | None
    expression: str
    truth: str | None
    complexity: int | None
    r2: float | None = None
    reason: str = ""
    exact: str = ""
    error: str = ""
    suite: str = ""
    max_time: float | None = None
    max_candidates: int | None = None
    noise: float = 0.0
    noise_std: float = 0.0
    rows: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""

    @property
    def cell(self) -> tuple:
        """What tells this record's cell from all others, whichever version computed it."""
        settings = json.dumps(self.options, sort_keys=True, default=str)
        budget = (self.max_time, self.max_candidates, self.noise, self.noise_std, self.rows)
        return (self.suite, self.problem, self.seed, self.method, *budget, settings)


Factory = Callable[[BenchConfig, int, int | None], Any]
"""`factory(config, seed, threads)` makes an unfitted regressor; a module's function, so that workers can import it."""


def default_model(config: BenchConfig, seed: int, threads: int | None) -> Any:
    """The library's own regressor for a cell."""
    from gmeql.estimator import GMEQLRegressor

    return GMEQLRegressor(
        method=config.method,
        max_time=config.max_time,
        max_candidates=config.max_candidates,
        random_state=seed,
        n_jobs=threads,
        verbose=0,
        **config.options,
    )


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
) -> list[Record]:
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
        earlier = kept.get(_empty_record(problem, seed, config).cell)
        if earlier is not None:
            done[problem.name, seed] = earlier
    todo = [cell for cell in cells if (cell[0].name, cell[1]) not in done]

    display = _Display(show, [problem.name for problem in chosen], len(numbers), list(done.values()))
    with display:
        for record in _execute(todo, config, factory, jobs, display.started):
            if store is not None:
                store.append(record)
            done[record.problem, record.seed] = record
            display.finished(record)
    return [done[problem.name, seed] for problem, seed in cells]


# ---------------------------------------------------------------------------------------------------------------- cells


def run_cell(
    problem: Problem,
    seed: int,
    config: BenchConfig,
    *,
    factory: Factory = default_model,
    threads: int | None = None,
) -> Record:
    """Fit one problem with one seed and judge the result. A failing fit is a record with `error`, not an exception."""
    import polars as pl

    X, clean = problem.train(problem.generator(seed, "train"), rows=config.rows)
    y = problem.train(
        problem.generator(seed, "train"), rows=config.rows, noise=config.noise, noise_std=config.noise_std
    )[1]
    noise_std = config.noise_std or config.noise * root_mean_square(clean)
    empty = _empty_record(problem, seed, config)
    names = list(problem.names)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = factory(config, seed, threads).fit(pl.DataFrame(X, schema=names), y)
            seconds = time.perf_counter() - start
        expression = model.expression_
        # Given rows are split by one shuffle, so their test part needs the generator of the training part.
        Xt, yt = problem.test(problem.generator(seed, "train" if problem.rows_X is not None else "test"))
        predicted = np.asarray(expression(Xt), dtype=np.float64)
        verdict = judge(expression, problem, noise_std=noise_std, seed=seed)
    except Exception as error:  # noqa: BLE001  one failing cell must not cost the other results
        text = f"{type(error).__name__}: {error}"
        return Record(**{**asdict(empty), "seconds": time.perf_counter() - start, "error": text})
    relative = root_mean_square(predicted - yt) / (standard_deviation(yt) or 1.0)
    return Record(
        **{
            **asdict(empty),
            "solved": None if problem.formula is None else verdict.solved,
            "relative_rmse": relative if math.isfinite(relative) else None,
            "r2": 1 - relative**2 if math.isfinite(relative) else None,
            "seconds": seconds,
            "candidates": getattr(model, "candidates_", None),
            "expression": str(expression),
            "exact": expression.exact() if hasattr(expression, "exact") else "",
            "complexity": getattr(expression, "complexity", None),
            "reason": verdict.reason,
        }
    )


def _empty_record(problem: Problem, seed: int, config: BenchConfig) -> Record:
    from gmeql._version import __version__

    return Record(
        problem=problem.name,
        seed=seed,
        solved=None if problem.formula_text is None else False,
        relative_rmse=None,
        seconds=0.0,
        candidates=None,
        expression="",
        truth=problem.formula_text,
        complexity=None,
        version=__version__,
        **asdict(config),
    )


def _warm_up(config: BenchConfig, factory: Factory) -> None:
    """Load and compile what every fit needs, outside of any cell's time."""
    import sympy  # noqa: F401

    if config.method != "fitted":  # the other methods compile for each shape of data anew
        return
    X = np.random.default_rng(0).uniform(1, 2, (20, 1))
    small = BenchConfig(method=config.method, max_time=60.0, max_candidates=256, options=config.options)
    try:
        factory(small, 0, None).fit(X, X[:, 0] ** 2)
    except Exception:  # noqa: BLE001  whatever is wrong shows up in the first cell, which reports it
        return


def _execute(
    cells: Sequence[tuple[Problem, int]],
    config: BenchConfig,
    factory: Factory,
    jobs: int,
    started: Callable[[str, int], None],
) -> Iterator[Record]:
    if not cells:
        return
    if jobs == 1:
        _warm_up(config, factory)
        for problem, seed in cells:
            started(problem.name, seed)
            yield run_cell(problem, seed, config, factory=factory)
        return
    threads = max(1, (os.cpu_count() or 1) // jobs)
    waiting = list(reversed(cells))
    while waiting:
        suspects = yield from _pool(waiting, config, factory, jobs, threads, started)
        for problem, seed in suspects:  # one of them took its worker down; alone, each shows whether it was the one
            if (yield from _pool([(problem, seed)], config, factory, 1, threads, started)):
                empty = _empty_record(problem, seed, config)
                yield Record(**{**asdict(empty), "error": "the worker process died, also when run alone"})


def _pool(
    waiting: list[tuple[Problem, int]],
    config: BenchConfig,
    factory: Factory,
    jobs: int,
    threads: int,
    started: Callable[[str, int], None],
) -> Generator[Record, None, list[tuple[Problem, int]]]:
    """Records of the `waiting` cells, which it empties. Returns the cells in flight when a worker died, if one did."""
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=_warm_up, initargs=(config, factory)
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


# -------------------------------------------------------------------------------------------------------------- records


class RecordFile:
    """Records in a file, saved as they come: one JSON object a line, or one JSON array where the name ends in .json."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.is_array = self.path.suffix == ".json"
        if self.path.is_dir():
            raise ValueError(f"records file {self.path} is a folder; give a file")

    def read(self) -> list[Record]:
        """All records; a last line cut off by a crash is removed from the file."""
        content = self.path.read_bytes() if self.path.exists() else b""
        if self.is_array and content:
            try:
                values = json.loads(content)
            except ValueError as error:
                raise ValueError(f"{self.path} holds no benchmark records ({error}); give another file") from error
            if not isinstance(values, list):
                raise ValueError(f"{self.path} holds no list of benchmark records; give another file")
            return [_record(value, f"{self.path}, entry {n}") for n, value in enumerate(values)]
        whole = content[: content.rfind(b"\n") + 1]
        records = [_record(line, f"{self.path}:{n}") for n, line in enumerate(whole.splitlines(), 1) if line]
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))
        return records

    def append(self, record: Record) -> None:
        line = json.dumps(asdict(record), default=str, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.is_array:
            lines = [json.dumps(asdict(earlier)) for earlier in self.read()]
            write_atomic(self.path, ("[\n" + ",\n".join([*lines, line]) + "\n]\n").encode())
            return
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def _record(source: bytes | dict, where: str) -> Record:
    known = {f.name for f in fields(Record)}
    try:
        values = json.loads(source) if isinstance(source, bytes) else source
        return Record(**{key: value for key, value in values.items() if key in known})
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is not a benchmark record ({error}); give another file") from error


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a benchmark's file."""
    if not Path(path).is_file():
        raise ValueError(f"records file {os.fspath(path)!r} does not exist")
    return RecordFile(path).read()


@dataclass(frozen=True)
class Summary:
    """One problem over its seeds. `solved` is None where the truth is unknown."""

    problem: str
    runs: int
    solved: int | None
    errors: int
    median_seconds: float
    max_seconds: float
    median_candidates: float | None
    median_relative_rmse: float | None
    expression: str
    truth: str | None


def summarise(records: Iterable[Record]) -> list[Summary]:
    """One line per problem, in the order the problems first appear."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.problem, []).append(record)

    def middle(values: Iterable[float | None]) -> float | None:
        present = [value for value in values if value is not None]
        return float(median(present)) if present else None

    return [
        Summary(
            problem=name,
            runs=len(group),
            solved=None if all(r.solved is None for r in group) else sum(bool(r.solved) for r in group),
            errors=sum(bool(r.error) for r in group),
            median_seconds=float(median(r.seconds for r in group)),
            max_seconds=max(r.seconds for r in group),
            median_candidates=middle(r.candidates for r in group),
            median_relative_rmse=middle(r.relative_rmse for r in group),
            expression=min(group, key=lambda r: (not r.solved, r.error != "", r.seed)).expression,
            truth=group[0].truth,
        )
        for name, group in groups.items()
    ]


def table(records: Sequence[Record], *, problems: Sequence[str] = (), seeds: int = 0, width: int = 160) -> Table:
    """The summary as a table for people, for a terminal of this `width`; `problems` not yet run stand there empty."""
    from rich.table import Table
    from rich.text import Text

    judged = [record for record in records if record.solved is not None]
    share = f"{sum(bool(r.solved) for r in judged)} of {len(judged)} runs solved" if judged else f"{len(records)} runs"
    view = Table(title=share, title_justify="left", expand=False)
    rows = {summary.problem: summary for summary in summarise(records)}
    first = max(map(len, [*problems, *rows, "problem"]))
    view.add_column("problem", no_wrap=True)
    for heading in ("solved", "seconds", "worst", "candidates", "relative RMSE"):
        view.add_column(heading, justify="right", no_wrap=True)
    # On a narrow terminal long formulas are cut, not the numbers; 72 is what the numbers and lines take.
    view.add_column("formula", overflow="ellipsis", no_wrap=True, max_width=max(8, width - first - 72))
    for name in [*problems, *(name for name in rows if name not in problems)]:
        s = rows.get(name)
        if s is None:
            view.add_row(Text(name), f"0/{seeds}")
            continue
        share = f"{'-' if s.solved is None else s.solved}/{s.runs}" + (f" ({s.errors} failed)" if s.errors else "")
        view.add_row(
            Text(name),
            share,
            f"{s.median_seconds:.2f}",
            f"{s.max_seconds:.1f}",
            "" if s.median_candidates is None else f"{s.median_candidates:,.0f}",
            "" if s.median_relative_rmse is None else f"{s.median_relative_rmse:.1e}",
            Text(s.expression),
        )
    return view


class _Display:
    """The live table of a benchmark; plain lines where the console is no terminal; nothing where `show` is False."""

    def __init__(self, show: bool | Console, problems: Sequence[str], seeds: int, records: Sequence[Record]) -> None:
        self.problems, self.seeds, self.records = problems, seeds, list(records)
        self.running: dict[tuple[str, int], float] = {}
        self.console: Console | None = None
        self.live: Any = None
        if show is not False:
            from rich.console import Console

            self.console = Console(stderr=True) if show is True else show
        self._context: AbstractContextManager[Any] = nullcontext()
        if self.console is not None and self.console.is_terminal:
            from rich.live import Live

            self.live = self._context = Live(
                get_renderable=self._view, console=self.console, refresh_per_second=2, transient=True
            )

    def __enter__(self) -> _Display:
        self._context.__enter__()
        if self.console is not None and self.live is None and self.records:
            self._line(f"{len(self.records)} of {len(self.problems) * self.seeds} runs were finished before")
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def started(self, problem: str, seed: int) -> None:
        self.running[problem, seed] = time.perf_counter()

    def finished(self, record: Record) -> None:
        self.running.pop((record.problem, record.seed), None)
        self.records.append(record)
        if self.console is not None and self.live is None:
            state = {True: "solved", False: "not solved", None: "done"}[record.solved] if not record.error else "FAILED"
            what = record.error or f"{record.expression}  ({record.reason})"
            self._line(f"{record.problem} seed {record.seed}: {state}, {record.seconds:.2f} s: {what}")

    def _line(self, text: str) -> None:
        from rich.text import Text

        if self.console is not None:
            self.console.print(Text(text), soft_wrap=True)

    def _view(self) -> Table:
        width = self.console.width if self.console is not None else 160
        view = table(self.records, problems=self.problems, seeds=self.seeds, width=width)
        now = time.perf_counter()
        view.caption = ", ".join(f"{name} seed {seed} {now - t:.0f} s" for (name, seed), t in self.running.items())
        return view
