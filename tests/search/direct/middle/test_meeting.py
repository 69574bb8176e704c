"""Formulas of two or three small ones are met in the middle, whatever constants stand between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from drawn_tables import even_table

from gmeql.formula.nodes import Constant, Node, Variable, build, calls, row_values
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.direct.middle.kernels import LOGGED, MINUS, OVER, PLUS, RAISED, SQUARED, STAY, TIMES, UNDER
from gmeql.search.direct.middle.meeting import (
    ONE_STEP,
    Target,
    _hits,
    behind,
    few_rows,
    propose,
    stepped,
    undone,
    verified,
)
from gmeql.search.direct.middle.small_formulas import SmallFormulas
from gmeql.search.direct.table import DirectTable, Effort

ALL = FunctionSet(DEFAULT_FUNCTIONS)


table = partial(even_table, rows=300)


def proposed(given: DirectTable, functions: FunctionSet = ALL, seconds: float = 0.2) -> list[Node]:
    return list(propose(given, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("f", "n_columns"),
    [
        (lambda a, b: np.sqrt(a) / (1 + b * np.cos(a)), 2),
        (lambda a, b: np.arccos(0.2 * (a + b) / (1 + a * b)), 2),
        (lambda a, b: np.sin(a) ** 2 / np.sin(b + 3) ** 2, 2),
        (lambda a, b, c: np.sqrt(1 + 0.37 * np.exp(a / b)) * c, 3),
        (lambda a, b: a * b + np.sqrt(7.7 - 2.1 * np.sin(a * b) * b), 2),
        (lambda a: np.exp(-a) * np.sin(a * a + a), 1),
    ],
)
def test_what_sampling_misses_is_met(f: Callable[..., np.ndarray], n_columns: int) -> None:
    given = table(f, n_columns)
    roots = proposed(given)
    assert roots and given.error(roots[0]) < 1e-8


@pytest.mark.parametrize("seed", range(6))
def test_random_pairs_of_small_formulas_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 2.5, (300, 2))
    small = SmallFormulas.of(X[:8], ALL, max_kept=1_000, max_formulas=1_000)
    given = DirectTable(X, np.ones(300), np.ones(300))
    while True:
        a, b = (given.values(small.tree(int(i))) for i in rng.integers(0, 1_000, 2))
        y = a * (rng.uniform(0.5, 2) + rng.uniform(0.5, 2) * b)
        if np.isfinite(y).all() and 1e-3 < np.abs(y).min() and np.abs(y).max() < 1e3 and np.ptp(y) > 0.1:
            break
    given = DirectTable(X, y, np.ones(300))
    assert min(map(given.error, proposed(given)), default=1.0) < 1e-8


def test_only_allowed_functions() -> None:
    given = table(lambda a, b: np.sqrt(a) / (1 + b * np.cos(a)), 2)
    allowed = FunctionSet(["add", "mul", "div", "exp"])
    assert proposed(given, allowed) == []
    roots = proposed(table(lambda a, b: np.exp(a * b) / (1 + 3 * a), 2), allowed)
    assert {call.operator for call in calls(roots[0])} <= {"add", "mul", "div", "exp", "neg", "inv"}


def test_noise_and_nonsense_are_not_met() -> None:
    rng = np.random.default_rng(0)
    given = DirectTable(rng.normal(size=(200, 3)), rng.normal(size=200), np.ones(200))
    assert proposed(given) == []
    assert proposed(DirectTable(rng.normal(size=(200, 3)), np.ones(200), np.ones(200))) == []
    assert proposed(DirectTable(rng.normal(size=(5, 3)), rng.normal(size=5), np.ones(5))) == []


def test_too_little_effort_finds_nothing_and_the_clock_ends_it() -> None:
    given = table(lambda a: np.exp(-a) * np.sin(a * a + a), 1)
    assert proposed(given, seconds=0.0) == []
    assert list(propose(given, functions=ALL, effort=Effort(0.2, lambda: True), rng=np.random.default_rng(0))) == []


def test_a_machine_slower_than_counted_on_looks_its_table_up_once() -> None:
    """Time is over when the table of small formulas is made: what it cost is spent, and the look-up is short."""
    asked = iter([False])
    late = Effort(0.2, lambda: next(asked, True))
    given = table(lambda a, b: np.sin(a) ** 2 / np.sin(b + 3) ** 2, 2)
    (root, *_) = propose(given, functions=ALL, effort=late, rng=np.random.default_rng(0))
    assert given.error(root) < 1e-9


def test_what_is_huge_beside_the_target_is_no_step_from_it() -> None:
    given = table(lambda a, b: 1e-7 * a * b, 2)
    rows = few_rows(given.y)
    small = SmallFormulas.of(given.X[rows], ALL, max_kept=5_000, max_formulas=5_000)
    hits = _hits(small, given.y[None, rows], ONE_STEP[:2], len(small.values), 1)  # as it is, and minus a formula
    ranges = np.ptp(small.values, axis=1)
    assert len(hits) and all(
        step == STAY or ranges[a] < 1e6 * np.ptp(given.y[rows]) for _, step, a, *_ in hits.tolist()
    )


def given_slope(given: DirectTable) -> Node:
    """The first column times what fits best."""
    x, y = given.X[:, 0], given.y
    return build("mul", Constant(float(x @ y / (x @ x))), Variable(0))


def test_what_holds_to_rounding_comes_before_what_nearly_holds() -> None:
    rng = np.random.default_rng(0)
    X = np.stack([10 ** rng.uniform(0, 4, 300), rng.uniform(0.5, 2.5, 300)], axis=1)
    given = DirectTable(X, X[:, 0] * (1 + 4e-9 * np.sin(X[:, 1])), np.ones(300))
    errors = [given.error(root) for root in proposed(given)]
    assert errors[0] < 1e-15 and given.error(given_slope(given)) < 1e-9


@pytest.mark.parametrize("step", [MINUS, PLUS, TIMES, OVER, UNDER, SQUARED, LOGGED, RAISED])
def test_a_step_is_undone(step: int) -> None:
    given = table(lambda a, b: 2 + a * b, 2)
    made = given.X[:, 0].copy()
    root = undone(step, Variable(2), Variable(0), 1.0)
    y = row_values(root, ["a", "b", "c"], np.stack([made, made, 1 + given.X[:, 1]], axis=1))
    np.testing.assert_allclose(stepped(step, y, made), 1 + given.X[:, 1], rtol=1e-12)


def test_a_reading_that_is_one_number_is_met_by_nothing() -> None:
    given = table(lambda a, b: a * b, 2)
    small = SmallFormulas.of(given.X[:8], ALL, max_kept=100, max_formulas=100)
    flat = Target(np.ones(len(given.y)), lambda root: root)
    assert list(verified(np.array([[0, STAY, 0, STAY, 0, 0]]), small, given, [flat], Effort(1.0))) == []


def test_what_a_formula_leaves_leads_back_to_the_target() -> None:
    given = table(lambda a, b: a / b + np.sin(a), 2)
    as_it_is = Target(given.y, lambda root: root)
    times, over = behind(given, as_it_is, Variable(1))
    assert (times.values == given.y * given.X[:, 1]).all() and (over.values == given.y / given.X[:, 1]).all()
    assert times.restore(Variable(0)) == build("div", Variable(0), Variable(1))
    assert over.restore(Variable(0)) == build("mul", Variable(1), Variable(0))
    assert behind(given, as_it_is, Constant(2.0)) == []
    given.X[0, 1] = 0.0  # nothing is divided by that
    assert len(behind(given, as_it_is, Variable(1))) == 1
