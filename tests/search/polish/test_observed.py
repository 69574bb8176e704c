"""Parts that the rows cannot tell from less."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant
from gmeql.formula.parsing import parse_tree
from gmeql.search.polish.observed import observed, two_valued

NAMES = ("green", "side", "t")
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.integers(0, 2, 80), RNG.choice([-1.0, 1.0], 80), RNG.uniform(0.5, 3.0, 80)]).astype(float)


def seen(formula: str) -> str:
    return str(Expression(observed(parse_tree(formula, NAMES), X, two_valued(X)), NAMES))


def test_columns_of_two_values_are_found() -> None:
    assert two_valued(X) == {0: (0.0, 1.0), 1: (-1.0, 1.0)}
    assert two_valued(np.array([[0.0, 2.0], [1.0, 1.0], [-1.0, 2.0]])) == {}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("green**6", "green"),
        ("sqrt(green)", "green"),
        ("abs(green)", "green"),
        ("3*green**2*t", "3*green*t"),
        ("side**2", "1"),
        ("side**3", "side"),
        ("abs(side)", "1"),
        ("cos(side)", "0.5403"),
        ("tanh(5*t)**2*green**4", "green*tanh(5*t)**2"),
        ("exp(0.3*green)", "exp(0.3*green)"),
        ("t**6", "t**6"),
        ("green*side", "green*side"),
        ("tanh(6.2551e+14*t)", "1"),
        ("exp(-1.9e+114*t) + t", "t"),
        ("exp(-t)", "exp(-t)"),
    ],
)
def test_what_the_rows_see(formula: str, expected: str) -> None:
    assert seen(formula) == expected


def test_values_on_the_rows_stay() -> None:
    for formula in ("sin(green + 2)*t", "1/(side + 3) + cos(2*side)", "(green - 0.5)**2", "log(green + 1)"):
        root = parse_tree(formula, NAMES)
        other = Expression(observed(root, X, two_valued(X)), NAMES)
        np.testing.assert_allclose(other(X), Expression(root, NAMES)(X), rtol=1e-13)


def test_a_function_without_a_value_somewhere_is_left_alone() -> None:
    root = parse_tree("1/green", NAMES)
    assert observed(root, X, two_valued(X)) == root


def test_a_frozen_function_becomes_a_number() -> None:
    assert observed(parse_tree("atan(1e30*t)", NAMES), X, {}) == Constant(np.pi / 2)
