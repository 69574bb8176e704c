"""Derivatives match differences and read well."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.calculus import Slopes, constants_of, expand, row_slopes, with_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable, calls, row_values
from gmeql.formula.operators import OPERATORS
from gmeql.formula.registration import register_operator, unregister_operator
from random_trees import call, comparable, expressions, rows
from thinned import examples

x1, x2, x3 = (Variable(i) for i in range(3))


@pytest.mark.parametrize("name", [name for name, op in OPERATORS.items() if op.arity == 1 and not op.is_dense])
def test_derivative_of_every_function(name: str) -> None:
    X = np.linspace(0.15, 0.85, 9)[:, None]
    expression = Expression(Call(name, (call("mul", 0.9, x1),)))
    step = 1e-6
    numeric = (expression(X + step) - expression(X - step)) / (2 * step)
    np.testing.assert_allclose(expression.diff("x1")(X), numeric, rtol=1e-7)


@examples(100)
@given(expressions(protected=False), st.integers(0, 2))
def test_derivative_matches_differences(expression: Expression, column: int) -> None:
    X = rows(n=40)
    derivative = expression.diff(column)
    steps = []
    for h in (1e-4, 2e-4):
        up, down = X.copy(), X.copy()
        up[:, column] += h
        down[:, column] -= h
        with np.errstate(all="ignore"):
            steps.append((expression(up) - expression(down)) / (2 * h))
    values, slopes = expression(X), derivative(X)
    with np.errstate(all="ignore"):
        better = (4 * steps[0] - steps[1]) / 3
        # where differences of two widths agree they can be trusted, and rounding does not swamp them
        scale = np.maximum(np.abs(better), 1e-6 * np.abs(values))
        trusted = np.isfinite(slopes) & np.isfinite(better) & (np.abs(steps[0] - steps[1]) < 1e-4 * scale)
        trusted &= comparable(expression, X)
        assert (np.abs(slopes - better) <= 1e-3 * scale + 1e-9 * np.abs(values) + 1e-12)[trusted].all()


def test_derivatives_read_well() -> None:
    assert str(Expression(call("square", x1)).diff("x1")) == "2*x1"
    assert str(Expression(call("add", x1, x2)).diff("x1")) == "1"
    assert str(Expression(call("mul", x1, x2)).diff("x1")) == "x2"
    assert str(Expression(call("exp", call("mul", -2.0, x1))).diff("x1")) == "-2*exp(-2*x1)"
    assert str(Expression(call("sin", x2)).diff("x1")) == "0"
    assert str(Expression(call("abs", x1)).diff("x1")) == "x1/abs(x1)"


def test_derivative_of_a_users_operator() -> None:
    register_operator("cosine_twin", lambda xp, x: xp.sin(x), derivative=lambda xp, x: xp.cos(x))
    try:
        assert str(Expression(call("cosine_twin", call("mul", 3.0, x1))).diff("x1")) == "3*cos(3*x1)"
    finally:
        unregister_operator("cosine_twin")


def test_derivative_that_cannot_be_written_says_so() -> None:
    slope = lambda xp, x: xp.where(x > 0, 2 * x, 0 * x)  # noqa: E731
    register_operator("half_square", lambda xp, x: xp.where(x > 0, x * x, 0 * x), derivative=slope)
    try:
        with pytest.raises(ValueError, match="'where'"):
            Expression(call("half_square", x1)).diff("x1")
    finally:
        unregister_operator("half_square")


def test_d_is_written_out_the_innermost_first() -> None:
    x, y = Variable(0), Variable(1)
    inner = Call("D", (Call("mul", (Call("pow4", (x,)), y)), x))
    root = expand(Call("add", (Call("D", (inner, x)), Call("D", (Call("sin", (y,)), x)))))
    X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 2))
    assert np.allclose(row_values(root, ("x", "y"), X), 12 * X[:, 0] ** 2 * X[:, 1])
    assert not any(call.operator == "D" for call in calls(root))


def test_d_of_an_unknown_function_waits_for_it() -> None:
    waiting = Call("D", (Call("square", (Variable(7),)), Variable(0)))
    assert expand(waiting, range(5, 9)) == waiting
    assert expand(waiting) == Constant(0.0)


def test_d_takes_a_column_and_has_no_value_of_its_own() -> None:
    with pytest.raises(ValueError, match="the column to differentiate by"):
        Call("D", (Variable(0), Constant(1.0)))
    with pytest.raises(ValueError, match="acts on the formula"):
        row_values(Call("D", (Variable(0), Variable(0))), ("x",), np.ones((2, 1)))


def test_slopes_for_other_constants_are_those_of_the_formula_that_has_them() -> None:
    formula = Expression(call("add", call("mul", 2.0, call("sin", call("mul", 0.5, x1))), call("div", x2, 3.0), x1))
    X, others = rows(n=20), [1.5, 0.7, 2.0]
    values, slopes, by_column = row_slopes(formula.with_constants(others).root, X, (0, 2))
    some = Slopes(formula.root, X, columns=(0, 2), by=(2, 0))
    for found, expected in zip(some(others), (values, slopes[:, [2, 0]], by_column), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(some()[0], formula(X[:, :2]))
    assert Slopes(formula.root, X, by=())(others)[1].shape == (20, 0)


def test_constants_are_counted_from_left_to_right() -> None:
    root = Call("add", (Call("pow", (Variable(0), Constant(2.5))), Call("mul", (Constant(-1.0), Variable(1)))))
    assert constants_of(root) == [2.5, -1.0]
    other = with_constants(root, [3.5, 4.0])
    assert constants_of(other) == [3.5, 4.0] and constants_of(root) == [2.5, -1.0]
    assert with_constants(other, [2.5, -1.0]) == root
