"""The searches of `test_recorded_fronts.py`: the tables, how each is searched, what it ends with as plain data.

Only public names are used here, so that files may move.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from gmeql import Expression, Front, GMEQLRegressor, Progress, Search, SearchConfig, architecture_preset

Table = tuple[np.ndarray, ...]
"""X [N, V], y [N] or [N, targets], and perhaps weights [N]."""
Outcome = dict[str, Any]
"""All that a search ends with, but for the time it took, as JSON knows it."""


# --- the tables -------------------------------------------------------------------------------------------------------


def uniform(rows: int, *ranges: tuple[float, float]) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(low, high, rows) for low, high in ranges])


def noise(rows: int, size: float) -> np.ndarray:
    return size * np.random.default_rng(1).standard_normal(rows)


def polynomial() -> Table:
    a, b, c, d = (X := uniform(120, (-2, 2), (-2, 2), (-1, 3), (0, 4))).T
    return X, 2 * a * b - 0.7 * c**2 + 3 * d + 1.5


def wave_and_root() -> Table:
    a, b = (X := uniform(150, (0.5, 4), (0.5, 4))).T
    return X, 1.3 * np.sin(1.7 * a) + 0.5 * np.sqrt(b)


def noisy() -> Table:
    a, b, c = (X := uniform(100, (1, 3), (1, 3), (1, 3))).T
    return X, 2 * a * b / c + noise(100, 0.1)


def two_targets() -> Table:
    a, b = (X := uniform(80, (0.5, 2), (0.5, 2))).T
    return X, np.column_stack([a**2 * b, 3 * a / b + noise(80, 0.05)])


def weighted() -> Table:
    """Rows that count for nothing, rows that stand twice, and weights of which none is a whole number."""
    a, b = (X := uniform(90, (1, 3), (1, 3))).T
    weights = 0.7 * np.random.default_rng(2).integers(0, 4, 90)
    y = 1.7 * a / b + noise(90, 0.1) * np.where(weights < 1, 5.0, 1.0)
    return tuple(np.concatenate([part, part[:9]]) for part in (X, y, weights))


def outliers() -> Table:
    a, b = (X := uniform(100, (0.5, 3), (0.5, 3))).T
    return X, 2 * a * b + 1 + noise(100, 0.05) + 8.0 * (np.arange(100) % 9 == 0)


def long_table() -> Table:
    """More rows than candidates are fitted on, and more than formulas are polished on."""
    a, b = (X := uniform(2600, (0.5, 3), (0.5, 3))).T
    return X, 2.5 * a * b + 0.5 + noise(2600, 0.1)


def wide_table() -> Table:
    """More columns than one island sees."""
    X = uniform(150, *[(0.5, 2)] * 40)
    return X, 2 * X[:, 17] * X[:, 31] + noise(150, 0.05)


def wave_and_line() -> Table:
    a, b = (X := uniform(150, (0, 6), (0, 6))).T
    return X, 1.2 * np.sin(1.1 * a) + 0.3 * b


def wave_times_square() -> Table:
    a, b = (X := uniform(100, (0, 3), (0, 3))).T
    return X, np.sin(1.4 * a) * b**2 + noise(100, 0.1)


def two_products() -> Table:
    a, b = (X := uniform(100, (0, 3), (0, 3))).T
    return X, a**2 * b + 0.5 * b


def far_units() -> Table:
    """Squares of these numbers overflow or vanish unless columns and target are scaled."""
    a, b = (X := uniform(60, (1, 3), (1, 3)) * [2.0**500, 2.0**-400]).T
    return X, 3 * a * b


def parabola() -> Table:
    X = uniform(60, (-1, 1), (-1, 1))
    return X, X[:, 0] ** 2


def product() -> Table:
    """Of the form of Coulomb's law: five columns of which units leave one."""
    p, q, e, r, angle = (X := uniform(300, *[(1, 5)] * 5)).T
    return X, p * q / (4 * np.pi * e * r**2) * np.sin(angle)


def bell() -> Table:
    """Four columns of which one is left: two are read by their difference alone, and that in units of a third."""
    height, x, centre, width = (X := uniform(300, *[(1, 4)] * 4)).T
    return X, height * np.exp(-(((x - centre) / width) ** 2) / 2)


# --- the searches -----------------------------------------------------------------------------------------------------

TINY = [["id", "square"]]
FITS: dict[str, tuple[Callable[[], Table], dict[str, Any]]] = {
    "polynomial": (polynomial, dict(max_candidates=30_000)),
    "wave and root": (wave_and_root, dict(max_candidates=30_000)),
    "noisy": (noisy, dict(max_candidates=2000, max_complexity=24)),
    "noisy, judged on rows kept back": (noisy, dict(max_candidates=1500, model_selection="validation")),
    "two targets": (two_targets, dict(max_candidates=5000)),
    "weighted": (weighted, dict(max_candidates=4000)),
    "long table": (long_table, dict(max_candidates=3000, max_complexity=20)),
    "wide table": (wide_table, dict(max_candidates=5000)),
    "few functions": (wave_and_line, dict(max_candidates=20_000, functions=["+", "*", "sum", "sin"])),
    "given layers": (
        wave_times_square,
        dict(max_candidates=4000, architecture=[["id", "sin", "square"], ["sum", "mul"]]),
    ),
    "given preset": (
        two_products,
        dict(max_candidates=8000, architecture=architecture_preset("general", n_variables=2)),
    ),
    "far units": (far_units, dict(max_candidates=4000)),
    # a step draws 40 candidates: 500 steps of choosing structures, and 500 in which the paper trains weights as well
    "released": (parabola, dict(max_candidates=20_000, method="released", architecture=TINY)),
    "paper": (parabola, dict(max_candidates=260_000, method="paper", architecture=TINY, random_state=3)),
}
"""By the estimator: the table, and the parameters that differ from `fit_options`."""

SMALL = dict(table_bits=14, few_islands=4, islands_per_generation=12)
SEARCHES: dict[str, tuple[Callable[[], Table], dict[str, Any]]] = {
    # several short generations: outliers are weighed anew after each, and the next sees more rows
    "huber": (outliers, dict(SMALL, loss="huber", stage_ages=(2, 4), search_rows=32, max_candidates=6000)),
    # a first stage of one step, so that symmetries are looked for soon
    # without look-up, which would see it before islands of the smaller tables do
    "symmetries of a product": (
        product,
        dict(SMALL, stage_ages=(1, 3, 8, 18), max_candidates=40_000, direct=("linear", "rational")),
    ),
    "symmetries of a bell": (bell, dict(SMALL, stage_ages=(1, 3, 8, 18), max_candidates=40_000)),
}
"""By `Search` itself, with settings that the estimator does not have."""
SEED = 2

CASES = (*FITS, *SEARCHES)
RUNS = [
    *((name, "plain") for name in CASES),
    *((name, "one thread") for name in ("noisy", "weighted", "huber", "symmetries of a product")),
    ("huber", "workers"),  # several stages: at the end of each the workers hear what others tried
    *((name, "resumed") for name in ("noisy", "paper", "huber", "symmetries of a product")),
]
LONG = {
    ("released", "plain"),
    ("noisy", "resumed"),
    ("huber", "one thread"),  # search/test_search.py has one and two threads
    ("huber", "workers"),  # search/workers/test_pool.py has threads and workers
    ("noisy", "one thread"),
    ("paper", "resumed"),  # paper/test_search.py resumes one
    ("weighted", "one thread"),
    ("symmetries of a product", "one thread"),
    ("symmetries of a product", "resumed"),
}
"""Of these, long ones of which others hold the like: they run with the slow tests."""
STOPS = {"noisy": 2, "paper": 25, "huber": 12, "symmetries of a product": 4}
"""Rounds after which a search that is to be resumed stops: in its second stage or generation, if it has one."""


def fit_options(name: str, n_jobs: int = 2) -> dict[str, Any]:
    return dict(max_time=None, random_state=0, n_jobs=n_jobs) | FITS[name][1]


def fitted(name: str, **options: Any) -> Outcome:
    table, _ = FITS[name]
    model = GMEQLRegressor(**fit_options(name) | options).fit(*table())
    per_target = [model.front_, model.selected_index_, model.stop_reason_]
    if not isinstance(model.front_, list):
        per_target = [[value] for value in per_target]
    targets = [target(*values, **facts(values[0])) for values in zip(*per_target, strict=True)]
    return {"candidates": model.candidates_, "targets": targets}


def search_config(name: str, n_jobs: int = 2) -> SearchConfig:
    return SearchConfig(n_jobs=n_jobs, **SEARCHES[name][1])


def searched(search: Search) -> Outcome:
    *_, progress = search.run()
    ended = target(progress.front, progress.front.index(progress.best), progress.reason)
    views = len(search.state()["views"])
    return {"candidates": progress.candidates, "islands": progress.islands, "views": views, "targets": [ended]}


def facts(front: Front) -> dict[str, Any]:
    """What a front knows of the table it was fitted to."""
    return {name: getattr(front, name) for name in ("rows", "target_spread", "target_largest")}


def target(front: Any, chosen: int, reason: str, **more: Any) -> dict[str, Any]:
    members = [{"complexity": m.complexity, "loss": m.loss, "formula": postfix(m.expression)} for m in front]
    return {"reason": reason, **more, "chosen": chosen, "front": members}


def postfix(expression: Expression) -> list[float | str]:
    """The tree, arguments before the call that takes them: numbers are constants, words columns and calls."""
    data = expression.to_dict()
    words: list[float | str] = []
    for node in data["nodes"]:
        if "constant" in node:
            words.append(node["constant"])
        elif "variable" in node:
            words.append(data["names"][node["variable"]])
        else:
            words.append(f"{node['call']}/{len(node['args'])}{' protected' if node.get('protected') else ''}")
    return words


def run_plain(name: str, n_jobs: int = 2) -> Outcome:
    if name in FITS:
        return fitted(name, n_jobs=n_jobs)
    table, _ = SEARCHES[name]
    return searched(Search(*table(), config=search_config(name, n_jobs), seed=SEED))


def run_on_workers(name: str) -> Outcome:
    with joblib.parallel_config("loky", n_jobs=2):
        return run_plain(name)


def run_resumed(name: str) -> Outcome:
    """Stopped in the middle and gone on from what was stored: a folder of checkpoints, or the state alone."""
    rounds = STOPS[name]
    if name in SEARCHES:
        table = SEARCHES[name][0]()
        first = Search(*table, config=search_config(name), seed=SEED)
        events = first.run()
        stopped = [next(events) for _ in range(rounds)][-1]
        events.close()
        assert not stopped.done, f"{name} ended within {rounds} rounds: nothing is left to resume"
        second = Search.from_state(first.state(), *table)
        assert second.candidates == stopped.candidates
        return searched(second)
    before: list[Progress] = []
    after: list[Progress] = []

    def stop(event: Progress) -> bool:
        before.append(event)
        return len(before) == rounds

    with tempfile.TemporaryDirectory() as folder:
        model = GMEQLRegressor(**fit_options(name), checkpoint=folder, callbacks=stop).fit(*FITS[name][0]())
        assert model.stop_reason_ == "stopped by a callback", f"{name} ended within {rounds} rounds"
        found = fitted(name, checkpoint=folder, callbacks=after.append)
    assert after[0].candidates > before[-1].candidates, "the fit began anew"
    return found


HOW: dict[str, Callable[[str], Outcome]] = {
    "plain": run_plain,
    "one thread": lambda name: run_plain(name, n_jobs=1),
    "workers": run_on_workers,
    "resumed": run_resumed,
}


@cache
def ending(name: str, how: str) -> Outcome:
    """What a search ends with, by compiled code from Numba's cache, which is what every process but the first runs.

    The process that compiles the kernels may link other copies of their parts than one that loads them, and those can
    round otherwise. Where this process is that one, another takes the search.
    """
    if not compiled_here():
        found = ended(name, how)
        if not compiled_here():
            return found
    return process_that_loads().submit(ended, name, how).result()


def ended(name: str, how: str) -> Outcome:
    """What a search ends with in this process, as JSON knows it."""
    with threadpool_limits(1, user_api="blas"):  # as tests/conftest.py has it, for the script too
        return json.loads(json.dumps(HOW[how](name)))


@cache
def process_that_loads() -> ProcessPoolExecutor:
    """One process beside this one for all its searches, begun when the kernels are on disk."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def compiled_here() -> bool:
    """Whether this process compiled any kernel of gmeql itself."""
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "gmeql"]
    values = [value for module in modules for value in vars(module).values()]
    kernels = [value for value in values if hasattr(value, "signatures") and hasattr(value, "stats")]
    return any(kernel.stats.cache_misses for kernel in kernels)
