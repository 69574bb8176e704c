"""Two functions of one column that hide each other are seen together, and nothing that stands in for something plainer is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, calls
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.curve_pairs import TIMES, WHOLE_POWERS, CurvePairs, plain_powers

Curve = Callable[[np.ndarray], np.ndarray]


def never() -> bool:
    return False


def pairs_of(f: Curve, *, functions: FunctionSet | None = None, error: float = 1e-10) -> CurvePairs:
    x = np.random.default_rng(3).uniform(0.1, 30, 120)
    return CurvePairs(x, f(x), np.ones(120), functions or FunctionSet(), allowed=error)


def written(nodes: list[Node] | None) -> set[str]:
    return {str(Expression(node, ["x"])) for node in nodes or []}


@pytest.mark.parametrize(
    ("f", "terms"),
    [
        (
            lambda x: 0.46 * np.exp(-0.036 * x) + 0.46 / (1 + np.exp(-0.122 * (x - 4.77))),
            {"exp(-0.036*x)", "tanh(0.061*(x - 4.77))", "1"},
        ),
        (lambda x: 0.55 * np.exp(-0.0343 * x) + 0.55 * np.log(x + 1.487), {"exp(-0.0343*x)", "log(x + 1.487)"}),
        (
            lambda x: np.sin(0.91 * x) - 0.7 / (1 + np.exp(-0.24 * (x - 11.5))),
            {"sin(0.91*x)", "tanh(0.12*(x - 11.5))", "1"},
        ),
        (lambda x: 0.8 * x**-1.58 + np.exp(-0.046 * x), {"1/x**1.58", "exp(-0.046*x)"}),
    ],
)
def test_two_functions_that_hide_each_other(f: Curve, terms: set[str]) -> None:
    assert written(pairs_of(f).two(never)) == terms


def test_one_function_beside_plain_powers_of_which_none_stays_that_is_not_needed() -> None:
    x = np.random.default_rng(3).uniform(0.5, 50, 120)
    y = 0.3 * x - 0.01 * x**3 + 0.85 * x**2 * np.exp(-0.0986 * x)
    powers = plain_powers(x, FunctionSet())
    pairs = CurvePairs(x, y, np.ones(120), FunctionSet(), allowed=1e-8, numbers=TIMES, plain=powers)
    assert written(pairs.one(never)) == {"x", "x**3", "x**2*exp(-0.0986*x)"}


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 0.7 * x + 0.4 / (x + 1.1),  # no exponential that is straight on these rows stands for x
        lambda x: np.sqrt(x + np.cos(x)),
        lambda x: np.random.default_rng(1).standard_normal(len(x)),
        lambda x: 0 * x + 3,
    ],
)
def test_nothing_else_is_taken_for_them(f: Curve) -> None:
    pairs = pairs_of(f, error=1.0)
    assert pairs.one(never) is None
    assert pairs.two(never) is None


def test_the_foot_of_a_step_is_no_exponential() -> None:
    assert written(pairs_of(lambda x: 0.94 * np.exp(-0.085 * x) + 0.94, error=1e-3).one(never)) == {
        "exp(-0.085*x)",
        "1",
    }


def test_it_keeps_to_the_functions_that_are_allowed_and_to_its_time() -> None:
    pairs = pairs_of(lambda x: np.sin(0.5 * x) + np.exp(-0.1 * x), functions=FunctionSet(["add", "mul", "sin", "exp"]))
    found = pairs.two(never) or []
    assert {call.operator for node in found for call in calls(node)} == {"mul", "sin", "exp"}
    without = pairs_of(lambda x: np.sin(0.5 * x) + np.exp(-0.1 * x), functions=FunctionSet(["add", "mul"]))
    assert without.one(never) is without.two(never) is None
    assert pairs_of(lambda x: np.sin(0.5 * x) + np.exp(-0.1 * x)).two(lambda: True) is None


@pytest.mark.parametrize(
    ("rate", "offset", "power"), [(0.0821, 1.7415, 1), (0.0404, 1.234, 2), (0.0871, 1.158, 1), (0.0559, 1.588, 2)]
)
def test_two_functions_beside_plain_powers(rate: float, offset: float, power: int) -> None:
    x = np.random.default_rng(3).uniform(0.5, 50, 120)
    y = 3.6 * x - 0.016 * x**2 - 0.96 * x**power * np.exp(-rate * x) + 2.9 / (x + offset)
    powers = plain_powers(x, FunctionSet(), WHOLE_POWERS)
    pairs = CurvePairs(x, y, np.ones(120), FunctionSet(), allowed=1e-8, numbers=TIMES, plain=powers)
    found = written(pairs.two(never))
    assert any(f"exp(-{rate:g}*x)" in term for term in found)
    assert any(f"/(x + {offset:g})" in term for term in found)
