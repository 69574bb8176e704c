"""Sums f(x) + h(z) g(x) are taken apart: h by one least squares fit each, then f and g as sums of one column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import calls, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.sections import propose
from gmeql.search.direct.table import DirectTable, Effort
from thinned import thinned


def proposed(f: Callable[..., np.ndarray], functions: FunctionSet | None = None, seconds: float = 3.0) -> tuple:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(0.2, 4, 400), rng.uniform(1, 40, 400)])
    table = DirectTable(X, f(*X.T), np.ones(400))
    effort = Effort(seconds)
    return table, list(propose(table, functions=functions or FunctionSet(), effort=effort, rng=rng))


@pytest.mark.parametrize(
    "f",
    thinned([
        lambda x, z: 0.7 * x**2 - 0.31 * x * np.exp(-0.083 * z) + 0.4 * np.cos(np.log(x + 1)),
        lambda x, z: 1.3 * x + 2 * x**2 - 9 * np.log(x + 1) + z * (0.2 * np.log(x + 1) - 0.7 * x + 0.3),
        lambda x, z: 0.6 * x**2 / (x**4 + 1.4) + 0.2 * x * np.log(0.3 * z + 1),
        lambda x, z: 62 * x**0.47 * np.exp(-0.7 / z) + 1.4 * x**3 * (z - 34),
        lambda x, z: 0.8 * x * np.exp(-0.1 * z) + 0.8 * x / z**1.5 + 0.8 * np.sqrt(x) * np.cos(0.5 * z),
        lambda x, z: -0.6 * z + 3.1 * x * np.exp(-((z - 22.3) ** 2)) + 180,
    ], quick=1),
)  # fmt: skip
def test_sums_over_two_columns_are_found(f: Callable[..., np.ndarray]) -> None:
    table, roots = proposed(f)
    assert table.error(roots[0]) < 1e-7
    assert tree_complexity(roots[0]) < 45


def law_of_two_falls(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    fraction = x**2 * np.exp(-0.0745 * z) / (1 + 0.54 * x)
    return 0.85 * x**2 / (0.93 * x**4 + 1) + 0.71 * np.cos(np.log(x + 1)) - 0.43 * (x * np.exp(-0.0925 * z) + fraction)


@pytest.mark.parametrize(
    "f",
    thinned([
        law_of_two_falls,
        lambda z, x: 0.95 * np.exp(-0.42 * x**2) + 0.15 * x * np.sin(0.57 * z) - 0.65 * x**2 * np.exp(-0.1 * z) / (1 + x),
        lambda z, x: 60 * x**0.62 * np.exp(-0.7 / z) + (8.9 * z - 160) * np.exp(-x),
    ], quick=1),
)  # fmt: skip
def test_several_functions_of_either_column(f: Callable[..., np.ndarray]) -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(1, 30, 600), rng.uniform(0.05, 2, 600)])
    table = DirectTable(X, f(*X.T), np.ones(600))
    *_, root = propose(table, functions=FunctionSet(), effort=Effort(3.0), rng=rng)
    assert table.error(root) < 1e-9
    assert tree_complexity(root) < 55


def test_what_is_no_such_sum_is_left_alone() -> None:
    rng = np.random.default_rng(0)
    assert proposed(lambda x, z: np.sin(x * z))[1] == []
    assert proposed(lambda x, z: rng.normal(size=len(x)))[1] == []
    assert proposed(lambda x, z: np.log(z + np.exp(z / 9)))[1] == []  # of one column


@pytest.mark.parametrize(
    "f",
    thinned([
        lambda x, z: 0.56 * x**2 / (0.92 * x**4 + 1) - 0.4 * x**1.478,
        lambda x, z: 0.31 * np.cos(np.log(x + 1)) + 0.5 * x / (x + 0.23) - 0.88 * x**1.405,
    ], quick=1),
)  # fmt: skip
def test_sums_of_one_column_are_found_beside_another_that_plays_no_part(f: Callable[..., np.ndarray]) -> None:
    table, roots = proposed(f)
    assert table.error(roots[0]) < 1e-9
    assert tree_complexity(roots[0]) < 45


def test_powers_that_have_no_values_below_zero_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-10, 10, 400), rng.uniform(0.01, 10, 400)])
    X[0, 0] = 0.001  # one row beside the pole makes all others look alike
    y = X[:, 1] + 0.5 * np.log(X[:, 1]) + X[:, 1] ** 2 / X[:, 0] ** 2
    table = DirectTable(X, y, np.ones(400))
    roots = list(propose(table, functions=FunctionSet(), effort=Effort(0.5), rng=np.random.default_rng(0)))
    assert all(np.isfinite(table.error(root)) for root in roots)


def test_functions_that_are_not_allowed_are_not_used() -> None:
    table, roots = proposed(
        lambda x, z: x**2 + x * np.exp(-0.1 * z), FunctionSet(["add", "mul", "div", "square", "exp"])
    )
    assert table.error(roots[0]) < 1e-7
    assert {call.operator for call in calls(roots[0])} <= {"add", "mul", "div", "square", "exp", "pow", "neg", "inv"}
