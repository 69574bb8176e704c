"""Formulas behind several steps are seen, steps are read off in spite of what is hidden, and noise is taken for nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import Node, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.steps.nested import propose
from gmeql.search.direct.steps.robust import robust_choice
from gmeql.search.direct.table import DirectTable, Effort
from thinned import thinned


def proposed(
    f: Callable[..., np.ndarray],
    *,
    low: float = -8.0,
    high: float = 8.0,
    effort: Effort | None = None,
    functions: FunctionSet | None = None,
) -> tuple[DirectTable, list[Node]]:
    rng = np.random.default_rng(2)
    X = rng.uniform(low, high, (900, f.__code__.co_argcount))
    with np.errstate(all="ignore"):
        y = f(*X.T)
    kept = np.isfinite(y)
    table = DirectTable(X[kept], y[kept], np.ones(int(kept.sum())))
    given = functions or FunctionSet()
    return table, list(propose(table, functions=given, effort=effort or Effort(2.0), rng=rng))


@pytest.mark.parametrize(
    ("f", "low", "complexity"),
    thinned([
        (lambda a, b, c, d: a - b**2 + 0.7 * np.sqrt((c - 2.3 * a) / (b**3 * d)), -8.0, 30),
        (lambda a, b, c: a * np.cos(b) - c + 1.6 * np.sqrt(0.3 / a - b), -8.0, 25),
        (lambda a, b, c: b + np.log(a**2 + 0.7 * np.exp(c) / (b**2 + 3.1)), -3.0, 35),
        (lambda a, b, c: c + np.cos(b) * np.sqrt(a**2 + 2.3 * b**2 + np.sin(c) + 1.9), -6.0, 30),
        (lambda a, b: np.exp(-((a - 1) ** 2)) / (1.4 + (b - 2.2) ** 2), -3.0, 35),
        (lambda a, b, c: np.exp(a) * b / np.sqrt(c**2 + 1.7 * np.sin(b) + 2.9), -3.0, 30),
        (lambda a, b, c, d, e: a * b * (c + d) / (c * d * np.sqrt(b + e + 17.4)), -8.0, 30),
        (lambda a, b, c, d: (a - b) * np.exp(0.5 * c) * np.log(d**2 + 2.7 * np.sin(a) + 5), -4.0, 35),
        (lambda a, b, c, d, e: a * np.sin(a) + b - d * np.sqrt(c) / (3.2 * a * b * e + c + 2.2 * d * e + 90), -3.0, 40),
    ], quick=(0, 2, 4, 6)),
)  # fmt: skip
def test_formulas_behind_several_steps(f: Callable[..., np.ndarray], low: float, complexity: int) -> None:
    table, roots = proposed(f, low=low, high=-low)
    assert len(roots) == 1
    assert table.error(roots[0]) < 1e-9
    assert tree_complexity(roots[0]) <= complexity


@pytest.mark.parametrize(
    ("f", "complexity"),
    thinned([
        (lambda a, b, c, d, e: 3.42 * a * b * c - 1.63 * d**2 + a * e + np.sqrt(a * b - 1.7 * d + e), 35),  # numbers ahead
        (lambda a, b, c: c * b + 0.31 * (a + (a - b) * np.sqrt(c + 2.31)) * np.cos(b), 35),  # a root whose factor turns
        (lambda a, b, c: a / b - b - a * b * c + np.sqrt(3.9 * a**3 / b + a + 57 * c + 9.1), 45),  # a fraction beside it
        (lambda a, b, c, d: c - np.log(a * b * d - a + b - c**2 - c * d + 9.6 * d), 35),  # a logarithm taken off
    ], quick=(0, 1)),
)  # fmt: skip
def test_terms_that_show_although_the_rest_is_hidden(f: Callable[..., np.ndarray], complexity: int) -> None:
    table, (root,) = proposed(f, effort=Effort(4.0))
    assert table.error(root) < 1e-9
    assert tree_complexity(root) <= complexity


def test_the_root_of_a_product_whose_factors_have_both_signs() -> None:
    table, (root,) = proposed(lambda a, b, c, d: np.sqrt(a * b) * c * (1.9 * a + b * c + d**2 + 70) / (a * d**3))
    assert table.error(root) < 1e-9
    assert tree_complexity(root) <= 35


def test_cubes_and_fourth_roots_of_sums() -> None:
    for f in (
        lambda a, b, c: (2 * a - b * c + np.log(c)) ** 3,
        lambda a, b, c: (2.1 * a * b + c**2 - 0.7 * a) ** 0.25,
    ):
        table, (root,) = proposed(f)
        assert table.error(root) < 1e-9
        assert tree_complexity(root) <= 25


def test_terms_are_read_off_under_heavy_tails() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (400, 5))
    y = 2 * X[:, 1] - X[:, 3] + 7.0 + rng.standard_cauchy(400) * 0.05
    numbers, factors, _ = robust_choice(X.T, y)
    assert sorted(numbers) == [1, 3]
    found = dict(zip([*numbers, -1], factors, strict=True))
    np.testing.assert_allclose([found[1], found[3], found[-1]], [2, -1, 7], rtol=0.01)


def test_nothing_is_seen_in_noise_or_in_a_noisy_law() -> None:
    noise = np.random.default_rng(4).standard_normal(900)
    assert proposed(lambda a, b: a * 0 + noise)[1] == []
    assert proposed(lambda a, b: a - b**2 + np.sqrt(a**2 + 3 * np.cos(b) + 4) + 0.01 * noise)[1] == []


def law(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.asarray(a * np.cos(b) - c + 1.6 * np.sqrt(0.3 / a - b))


def test_work_is_bounded() -> None:
    assert len(proposed(law)[1]) == 1
    assert proposed(law, effort=Effort(0.01))[1] == []
    assert proposed(law, effort=Effort(2.0, out_of_time=lambda: True))[1] == []


def test_only_functions_that_are_allowed() -> None:
    assert len(proposed(law, functions=FunctionSet(["add", "mul", "div", "cos", "sqrt"]))[1]) == 1
    assert proposed(law, functions=FunctionSet(["add", "mul", "div", "cos", "log"]))[1] == []


@pytest.mark.parametrize("y", [lambda a: a * 0 + 3, lambda a: np.sign(a), lambda a: a * (a > 0)])
def test_targets_with_little_to_say(y: Callable[..., np.ndarray]) -> None:
    table, roots = proposed(y)
    assert all(np.isfinite(table.error(root)) for root in roots)


@pytest.mark.parametrize(
    ("f", "is_followed"),
    [
        (lambda a, b, c, d: a - b**2 + 0.7 * np.sqrt((c - 2.3 * a) / (b**3 * d)), True),  # two terms
        (lambda a, b, c: np.exp(a) * b / np.sqrt(c**2 + 1.7 * np.sin(b) + 2.9), True),  # two factors
        (lambda a, b, c: np.random.default_rng(7).normal(size=len(a)), False),
        (lambda a, b, c: 3.7 * a - 1.34 * b + np.random.default_rng(7).normal(size=len(a)), False),
    ],
)
def test_more_is_done_only_where_the_first_step_is_clearly_seen(
    f: Callable[..., np.ndarray], is_followed: bool
) -> None:
    followed: list[bool] = []

    def more() -> Effort:
        followed.append(True)
        return Effort(2.0)

    table, roots = proposed(f, effort=Effort(0.06, more=more))
    assert bool(followed) is is_followed
    assert [table.error(root) < 1e-9 for root in roots] == [True] * is_followed


def test_where_nothing_may_stand_before_the_rest_nothing_fails() -> None:
    """A column that holds 0, without exponentials and waves: the method ended with a traceback."""
    X = np.arange(200.0)[:, None] % 50
    table = DirectTable(X, np.where(X[:, 0] < 20, 1.0, 2.0) * X[:, 0], np.ones(200))
    functions = FunctionSet({"add", "mul", "div"})
    assert list(propose(table, functions=functions, effort=Effort(2.0), rng=np.random.default_rng(0))) == []
