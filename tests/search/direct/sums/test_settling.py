"""Constants inside a few terms: taken to rounding beside a basis, with weights, and damped where terms are much alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gmeql.formula.calculus import constants_of
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.search.direct.sums.settling import settled, straightened

X = np.linspace(0.1, 6.0, 200)[:, None]
NOTHING = np.zeros((200, 0))


def falling(rate: float) -> Node:
    return build("exp", build("mul", Constant(-rate), Variable(0)))


def test_a_rate_and_a_factor_are_met_beside_a_basis() -> None:
    line = np.linalg.qr(np.column_stack([np.ones(200), X[:, 0]]))[0]
    target = 3.0 * np.exp(-0.7 * X[:, 0]) + 2.0 - 0.5 * X[:, 0]
    (node,), (factor,), error = settled([falling(0.5)], X, target, line)
    assert constants_of(node) == pytest.approx([-0.7], rel=1e-9)
    assert factor == pytest.approx(3.0, rel=1e-8)
    assert error < 1e-10


def test_damped_steps_tell_two_falls_apart_that_are_much_alike() -> None:
    target = 1.5 * np.exp(-0.3 * X[:, 0]) + 0.8 * np.exp(-0.5 * X[:, 0])
    start = [falling(0.1), falling(0.9)]
    nodes, factors, error = settled(start, X, target, NOTHING, is_damped=True)
    found = sorted(zip(factors, (constants_of(node)[0] for node in nodes), strict=True))
    assert np.array(found) == pytest.approx(np.array([[0.8, -0.5], [1.5, -0.3]]), rel=1e-4)
    assert error < 1e-8


def test_rows_without_weight_do_not_count() -> None:
    target = 3.0 * np.exp(-0.7 * X[:, 0])
    target[150:] = 50.0
    roots = np.where(np.arange(200) < 150, math.sqrt(200 / 150), 0.0)
    (node,), (factor,), _ = settled([falling(0.5)], X, target, NOTHING, roots=roots)
    assert (factor, *constants_of(node)) == pytest.approx((3.0, -0.7), rel=1e-8)


def test_a_term_without_a_value_is_left_as_it_is() -> None:
    root = build("log", build("sub", Variable(0), Constant(1.0)))
    assert settled([root], X, X[:, 0], NOTHING) == ([root], (0.0,), math.inf)


def test_a_term_stands_before_several_columns_with_one_constant_inside() -> None:
    rng = np.random.default_rng(2)
    before = rng.uniform(1.0, 2.0, (200, 2))
    target = (before @ np.array([2.0, -3.0])) * np.exp(-0.7 * X[:, 0])
    (node,), factors, error = settled([falling(0.5)], X, target, NOTHING, before=before, is_damped=True)
    assert constants_of(node) == pytest.approx([-0.7], rel=1e-9)
    assert factors == pytest.approx((2.0, -3.0), rel=1e-8)
    assert error < 1e-10


@pytest.mark.parametrize(
    ("operator", "factor", "offset", "written"),
    [
        ("tanh", 6e-10, 0.0, "x*x"),  # the line through zero
        ("exp", -3e-8, 0.0, "x*x"),
        ("inv", 1.0, 4e7, "x*x"),
        ("tanh", 0.5, 0.0, "x*tanh(0.5*x)"),
        ("log", 1.0, 0.5, "x*log(x + 0.5)"),
    ],
)
def test_functions_that_no_rows_tell_from_a_line_are_one(
    operator: str, factor: float, offset: float, written: str
) -> None:
    inside = build("add", build("mul", Constant(factor), Variable(0)), Constant(offset))
    node = straightened(build("mul", Variable(0), build(operator, inside)), X)
    assert str(Expression(node, ["x"])) == written
