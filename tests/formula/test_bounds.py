"""Interval bounds hold every value of a formula, and tell where it may have none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.bounds import bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable, build
from random_trees import N_VARIABLES, trees

x, y = Variable(0), Variable(1)


@given(trees(), st.integers(0, 2**32 - 1))
def test_every_value_lies_within_the_bounds(root, seed):
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.normal(0, 3, (N_VARIABLES, 2)), axis=1)
    found = bounds(root, corners)
    X = rng.uniform(corners[:, 0], corners[:, 1], (300, N_VARIABLES))
    with np.errstate(all="ignore"):
        values = Expression(root, tuple(f"x{i + 1}" for i in range(N_VARIABLES)))(X)
    if found.defined:
        assert not np.isnan(values).any()
    finite = values[np.isfinite(values)]
    slack = 1e-9 * (1 + np.abs(finite))  # values are rounded at every step, and so are the bounds
    assert (finite >= found.low - slack).all() and (finite <= found.high + slack).all()
    if found.finite:
        assert np.isfinite(values).all()


@pytest.mark.parametrize(
    ("root", "low", "high"),
    [
        (build("square", x), 0.0, 4.0),
        (build("cube", x), -1.0, 8.0),
        (build("sin", build("mul", Constant(10.0), x)), -1.0, 1.0),
        (build("exp", x), math.exp(-1), math.exp(2)),
        (build("inv", build("add", build("square", x), Constant(1.0))), 0.2, 1.0),
        (build("pow", build("add", x, Constant(2.0)), Constant(-0.5)), 0.5, 1.0),
        (build("abs", x), 0.0, 2.0),
    ],
)
def test_bounds_of_one_operator_are_tight(root, low, high):
    found = bounds(root, [(-1.0, 2.0)])
    assert found.finite
    assert found.low == pytest.approx(low, abs=0.05) and found.high == pytest.approx(high, abs=0.05)


@pytest.mark.parametrize(
    "root",
    [
        build("inv", x),
        build("div", y, build("sub", x, Constant(0.3))),
        build("log", x),
        build("sqrt", x),
        build("pow", x, Constant(-2.0)),
        build("pow", x, Constant(0.5)),
        build("asin", build("mul", Constant(2.0), x)),
        build("inv", build("sub", build("mul", x, y), Constant(0.5))),
    ],
)
def test_a_pole_or_a_gap_inside_the_ranges_is_seen(root):
    assert not bounds(root, [(-1.0, 1.0), (0.0, 1.0)]).finite


def test_protected_operators_are_defined_everywhere():
    found = bounds(Call("div", (Constant(1.0), x), protected=True), [(-1.0, 1.0)])
    assert found.finite and found.low == pytest.approx(-100) and found.high == pytest.approx(100)


@pytest.mark.parametrize(
    "denominator", [Constant(7e-216), build("mul", Constant(1e-13), build("add", y, Constant(2.0)))]
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_protected_quotient_of_a_tiny_denominator_is_0(denominator, sign):
    root = Call("div", (build("mul", Constant(sign), x), denominator), protected=True)
    found = bounds(root, [(1.0, 2.0), (0.0, 20.0)])
    assert found.low <= 0.0 <= found.high and max(-found.low, found.high) == pytest.approx(100)


def test_boxes_undo_most_of_what_a_repeated_column_costs():
    # x - x**2 lies in [-2, 1/4] on [-1, 2]... taken at once, interval arithmetic gives [-5, 2]
    found = bounds(build("sub", x, build("square", x)), [(-1.0, 2.0)])
    assert -2.1 < found.low <= -2.0 and 0.25 <= found.high < 0.3


def test_a_formula_without_columns():
    assert bounds(Constant(2.0), [(0.0, 1.0)]).low == pytest.approx(2.0)


def test_what_is_never_negative_has_a_root_for_certain():
    """Rounding outward must not take a sum of squares below zero; a difference of squares stays uncertain."""
    ranges = [(-1.0, 1.0), (0.0, 2.0)]
    squares = build("add", build("mul", Constant(0.99), build("square", x)), build("pow", y, Constant(4.0)))
    assert bounds(build("sqrt", squares), ranges).finite and bounds(squares, ranges).low == 0.0
    assert not bounds(build("sqrt", build("sub", build("square", x), build("square", y))), ranges).defined
    assert bounds(build("pow", x, Constant(3.0)), ranges).low < -1.0


def test_a_sum_of_more_columns_than_arrays_have_dimensions() -> None:
    total = build("add", *(build("mul", Constant(2.0), Variable(column)) for column in range(70)))
    found = bounds(total, [(-1.0, 3.0)] * 70)
    assert (found.low, found.high) == pytest.approx((-140.0, 420.0)) and found.defined
