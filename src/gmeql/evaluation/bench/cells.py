"""One cell of a benchmark: a problem and a seed, fitted, measured on test rows and judged."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from gmeql._version import __version__
from gmeql.evaluation.bench.records import BenchConfig, BenchRecord
from gmeql.evaluation.problems import Problem, judge
from gmeql.evaluation.problems.problem import root_mean_square, standard_deviation

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


def run_cell(
    problem: Problem,
    seed: int,
    config: BenchConfig,
    *,
    factory: Factory = default_model,
    threads: int | None = None,
) -> BenchRecord:
    """Fit one problem with one seed and judge the result. A failing fit is a record with `error`, not an exception."""
    import polars as pl

    X, clean = problem.train(problem.generator(seed, "train"), rows=config.rows)
    y = problem.train(
        problem.generator(seed, "train"), rows=config.rows, noise=config.noise, noise_std=config.noise_std
    )[1]
    noise_std = config.noise_std or config.noise * root_mean_square(clean)
    empty = empty_record(problem, seed, config)
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
        return BenchRecord(**{**asdict(empty), "seconds": time.perf_counter() - start, "error": text})
    relative = root_mean_square(predicted - yt) / (standard_deviation(yt) or 1.0)
    return BenchRecord(
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


def empty_record(problem: Problem, seed: int, config: BenchConfig) -> BenchRecord:
    return BenchRecord(
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


def warm_up(config: BenchConfig, factory: Factory) -> None:
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
