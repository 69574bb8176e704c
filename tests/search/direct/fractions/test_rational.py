"""Fractions of polynomials are read off the table, and what is no fraction is not taken for one."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import Node, calls, tree_complexity
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.direct.fractions.polynomials import monomials, values
from gmeql.search.direct.fractions.rational import propose
from gmeql.search.direct.table import DirectTable, Effort
from thinned import thinned

ALL = FunctionSet(DEFAULT_FUNCTIONS)


def table(f: Callable[..., np.ndarray], low: float, high: float, *, noise: float = 0.0, rows: int = 400) -> DirectTable:
    n_columns = f.__code__.co_argcount
    rng = np.random.default_rng(0)
    X = rng.uniform(low, high, (rows, n_columns))
    y = f(*X.T)
    return DirectTable(X, y + noise * y.std() * rng.standard_normal(rows), np.ones(rows))


def proposed(given: DirectTable, functions: FunctionSet = ALL, seconds: float = 0.5) -> list[Node]:
    return list(propose(given, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("f", "complexity"),
    [
        (lambda x, y: 1 / (1 + x**-4) + 1 / (1 + y**-4), 40),
        (lambda x, y: 8 / (2 + x**2 + y**2), 12),
        (lambda x: (x**6 + 3 * x - 1) / (x**4 + 2 * x**2 + 3), 25),
        (lambda x: (x + 1) ** 3 / (x**2 - x + 1), 16),
        (lambda x: (x**4 - 1.21 * x**3 + 3.23 * x**2 + 0.77) / (x**4 + 7.1 * x**2 + 9.3), 45),
        (lambda a, b, c, d, e: a * b / (c**2 - d**2 + 70 * e**2), 20),
        (lambda a, b, c: np.sqrt(a**2 * b**2 + c**2), 16),
        (lambda x: np.exp(-(x**2)), 8),
        (lambda g, w, v: np.arctan(g * w / ((v + 3) ** 2 - w**2)), 24),
        (lambda a, b, c: a + 2 * b + 0.7 / (b * c + c + 2.08), 18),
        (lambda a, b: 2.01 * a / (14.7 + 4.97 * b) + a**2 - 1.3 * b, 20),
    ],
)
def test_fractions_are_found_and_written_short(f: Callable[..., np.ndarray], complexity: int) -> None:
    given = table(f, 0.5, 3.0)
    root = proposed(given)[0]
    assert given.error(root) < 1e-10
    assert tree_complexity(root) <= complexity


@pytest.mark.parametrize("seed", range(8))
def test_random_sparse_fractions_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_columns = int(rng.integers(1, 4))
    terms = monomials(n_columns, 3)
    X = rng.uniform(0.5, 2.0, (500, n_columns))
    above, below = (
        values([terms[i] for i in rng.choice(len(terms), 3, replace=False)], X) @ rng.uniform(0.5, 3, 3) for _ in "ab"
    )
    given = DirectTable(X, above / below, np.ones(500))
    assert given.error(proposed(given, seconds=2.0)[0]) < 1e-9


SMOOTH = [np.sin, np.tanh, lambda x: x * np.log(x + 3), lambda x: np.sin(x) * np.exp(-x) + x]


@pytest.mark.parametrize(
    ("f", "ends"),
    thinned(itertools.product(SMOOTH, [(-2.0, 2.0), (0.5, 1.5), (1.0, 5.0)]), quick=(0, 5, 7, 9)),
)
def test_a_smooth_function_that_is_no_fraction_is_not_called_one(
    f: Callable[..., np.ndarray], ends: tuple[float, float]
) -> None:
    X = np.random.default_rng(0).uniform(*ends, (400, 1))
    given = DirectTable(X, f(X[:, 0]), np.ones(400), unexplained=0.0)
    assert proposed(given) == []


def test_under_noise_a_start_near_the_truth_is_proposed() -> None:
    given = table(lambda x: 3.7 * x / (x + 0.53), 0.1, 3.0, noise=0.01)
    assert given.error(proposed(given)[0]) < 0.012


@pytest.mark.parametrize("rows", [20, 24, 30])
def test_of_few_exact_rows_the_fraction_of_least_degree_without_terms_that_are_rounding(rows: int) -> None:
    """Too few to prove a null space: divided by a coefficient that is rounding, all others were of 1e15."""
    given = table(lambda x: x / (1 + x**2), 0.5, 3.0, rows=rows)
    root = proposed(given)[0]
    assert given.error(root) < 1e-10 and tree_complexity(root) <= 9


def test_only_allowed_functions() -> None:
    given = table(lambda x: 1 / (1 + x**2), 0.5, 3.0)
    assert proposed(given, FunctionSet(["add", "mul", "sin"])) == []
    assert proposed(given, FunctionSet(["sin", "exp"])) == []
    root = proposed(table(lambda x: 2 * x**3 - x, 0.5, 3.0), FunctionSet(["add", "mul"]))[0]
    assert {call.operator for call in calls(root)} <= {"add", "sub", "mul", "neg", "square", "cube"}
    assert proposed(table(lambda x: np.sqrt(1 + x**2), 0.5, 3.0), FunctionSet(["add", "mul"])) == []


def test_tables_that_say_nothing() -> None:
    rng = np.random.default_rng(0)
    for X in (np.zeros((50, 1)), rng.normal(size=(50, 8)), rng.normal(size=(3, 2))):
        assert all(
            isinstance(root, Node) for root in proposed(DirectTable(X, rng.normal(size=len(X)), np.ones(len(X))))
        )


def test_the_clock_ends_it() -> None:
    given = table(lambda x, y: np.sin(x * y), 0.5, 3.0)
    over = Effort(10.0, lambda: True)
    assert list(propose(given, functions=ALL, effort=over, rng=np.random.default_rng(0))) == []
