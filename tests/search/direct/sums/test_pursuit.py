"""Sums of a few terms out of very many are seen one term after the other, and nothing else is taken for one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import Node, calls, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.methods import ask
from gmeql.search.direct.sums.pursuit import PURSUIT, Chase, Terms, functions_of, powers_of
from gmeql.search.direct.table import DirectTable, Effort
from thinned import thinned

Law = Callable[..., np.ndarray]


def proposed(
    f: Law,
    *,
    noise: float = 0.0,
    effort: float = 2.0,
    rows: int = 1000,
    wide: float = 10.0,
    functions: FunctionSet | None = None,
) -> tuple[DirectTable, list[Node]]:
    rng = np.random.default_rng(1)
    X = rng.uniform(-wide, wide, (rows, f.__code__.co_argcount))
    with np.errstate(all="ignore"):
        y = f(*X.T)
    kept = np.isfinite(y)
    y = y + noise * np.median(np.abs(y[kept])) * rng.standard_normal(len(y))
    table = DirectTable(X[kept], y[kept], np.ones(int(kept.sum())))
    return table, list(ask("pursuit", table, functions=functions or FunctionSet(), effort=Effort(effort), rng=rng))


@pytest.mark.parametrize(
    ("f", "complexity"),
    thinned([
        (lambda a, b, c, d, e, f: 7.1 * (a + b**2 * (b + c * d + f**2)) / (e * f) + b * e * (a - d) / a, 70),
        (lambda a, b, c, d, e, f: (3.8 * b / c**2 + f / (b * c) - 3) * (13.7 + f / e) + (a + b - 3.6 * a * c) / d, 90),
        (lambda a, b, c, d, e, f, g: b - a + 11.3 * b * e / (c * g) + f - g + (0.8 * a + d) ** 2, 50),
        (lambda a, b, c, d: 2 * a * c * d * (3 * a - a**2 - 11.6 * b - d) - np.cos(c * d), 50),  # a function of two columns
        (lambda a, b, c, d: a * b * np.sin(c) / d + 1.7 * a**2 * d - b * c * d, 40),  # of one
        (lambda a, b, c, d, e, f, g: c * (a**3 + b + c + d + f**2 - 14.6) / (a * (e + 1.3 * g)), 60),  # a fraction
        (lambda a, b, c, d, e: np.sqrt(a**2 * b**2 + 0.3 * e**2 * d**2 + c**2 * b**4), 40),  # a reading
    ], quick=(1, 3, 5)),
)  # fmt: skip
def test_sums_of_products_of_many_columns(f: Law, complexity: int) -> None:
    table, roots = proposed(f)
    assert table.error(roots[0]) < 1e-11
    assert tree_complexity(roots[0]) <= complexity


def test_functions_that_are_much_alike_are_told_apart() -> None:
    """Oscillators: what is chosen first is often the neighbour of a right term."""

    def force(x: np.ndarray, t: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -1.84 * (v * np.exp(-np.abs(x)) + v + np.sin(v) + np.log(np.abs(v) + 1)) - 0.113 * x * (10 * t + 31)

    table, roots = proposed(force, wide=2.0)
    assert table.error(roots[0]) < 1e-11
    assert tree_complexity(roots[0]) <= 50


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c: np.sin(a * b - c),
        lambda a, b: np.exp(-((a - 1) ** 2) / 9) / (1 + np.abs(b)),
        lambda a, b, c, d: a * b / c + np.tanh(a + b + c * d),
    ],
)
def test_nothing_else_is_proposed(f: Law) -> None:
    assert not proposed(f)[1]


def test_noise_ends_it() -> None:
    assert not proposed(lambda a, b, c, d: a * b / c + a**2 * d, noise=1e-3)[1]


def test_what_came_near_is_spanned_only_where_the_target_may_be_its_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    def spanned(chase: Chase, numbers: list[int]) -> None:
        raise AssertionError(f"{len(numbers)} terms were spanned")

    monkeypatch.setattr(Chase, "span", spanned)
    monkeypatch.setattr(Chase, "_may_be_sum", lambda chase, numbers, values: spanned(chase, numbers))
    rng = np.random.default_rng(0)
    X, functions = rng.uniform(0.5, 3.0, (600, 2)), FunctionSet()
    terms = Terms(X, powers_of(X, functions), functions_of(X, functions), 320, PURSUIT.few_powers)
    assert terms.sum_for(rng.standard_normal(600)) is None


def test_only_functions_that_are_allowed() -> None:
    some = FunctionSet(["add", "mul", "square", "cube"])
    assert not proposed(lambda a, b, c: a * b / c + b**3 * a, functions=some)[1]
    table, roots = proposed(lambda a, b, c: a * b * c - b**3 * a * c + 2 * a**2 * c, functions=some)
    assert table.error(roots[0]) < 1e-12
    assert {call.operator for call in calls(roots[0])} <= {"add", "mul", "square", "cube", "neg", "sub"}


def test_tables_that_are_too_small_or_hold_nothing() -> None:
    assert not proposed(lambda a, b, c: a * b / c + b, rows=50)[1]
    assert not proposed(lambda a, b, c: 0 * a + 2.0)[1]
    assert not proposed(lambda a, b, c: a * b / c + b, effort=0.0)[1]


def test_terms_are_the_products_that_they_say() -> None:
    X = np.random.default_rng(2).uniform(1, 3, (40, 3))
    terms = Terms(X, powers_of(X, FunctionSet()), functions_of(X, FunctionSet()), 30, 500)
    table = DirectTable(X, X[:, 0], np.ones(40))
    numbers = [int(m) for m in np.linspace(0, len(terms) - 1, 60)]
    exact = terms.exact(numbers, 40)
    for m, values in zip(numbers, exact, strict=True):
        np.testing.assert_allclose(values, table.values(terms.node(m)), rtol=1e-12)
        ratio = terms.values[m] / values[:30]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)  # in single precision, each with a scale of its own
    assert len({str(terms.node(m)) for m in range(len(terms))}) == len(terms)
    assert terms.costs.max() <= PURSUIT.most_cost


@pytest.mark.parametrize(
    ("f", "is_followed"),
    [
        (lambda a, b, c, d, e: b * (a + np.cos(a)) / (c * d) + e / b, True),
        (lambda a, b, c, d, e: np.random.default_rng(7).normal(size=len(a)), False),
        (lambda a, b, c, d, e: np.sin(0.1 * a) * np.exp(0.1 * b) + np.tanh(0.3 * c), False),
    ],
)
def test_more_is_done_only_where_the_first_terms_explain_much(f: Law, is_followed: bool) -> None:
    followed: list[bool] = []

    def more() -> Effort:
        followed.append(True)
        return Effort(2.0)

    rng = np.random.default_rng(1)
    X = rng.uniform(-10, 10, (1000, 5))
    table = DirectTable(X, f(*X.T), np.ones(1000))
    found = list(ask("pursuit", table, functions=FunctionSet(), effort=Effort(0.08, more=more), rng=rng))
    assert bool(followed) is is_followed
    assert bool(found) is is_followed
