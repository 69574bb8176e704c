"""What a person wrote: made exact, or refused with one clear sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy
from differential_problems import SLOPE, k, slope_at, t, u, w, x, y

from gmeql.differential.solving.problem import Jet
from gmeql.differential.solving.reading import read_problem

DECAY = sympy.Eq(SLOPE, -y(x))


@pytest.mark.parametrize(
    ("equation", "options", "sentence"),
    [
        ("y' = y", {}, "holds no unknown function"),
        (3.0, {}, "holds no unknown function"),
        (sympy.Eq(y(x), x), {}, "no derivative of y\\(x\\) stands in the equation"),
        (sympy.Eq(SLOPE, k * y(x)), {}, "k in the equation is no variable.*parameters=\\[k\\]"),
        ([DECAY, DECAY], {"function": y(x)}, "2 equations for 1 unknown"),
        ([DECAY, sympy.Eq(w(t).diff(t), 1)], {}, "same variables"),
        (sympy.Eq(SLOPE, sympy.Integral(y(x), x)), {}, "holds an integral"),
        (sympy.Eq(SLOPE, y(x - 1)), {}, "only the variables themselves and fixed points"),
        (DECAY, {"function": "y"}, "is no function of symbols"),
        (DECAY, {"ics": {y(0): "1"}}, "is no number, expression or function"),
        (DECAY, {"ics": {x: 1}}, "says nothing about y"),
        (DECAY, {"ics": {y(x): 1}}, "must hold at a point"),
        (DECAY, {"ics": {y(0): k}}, "k in y\\(0\\) = k is no variable"),
        (DECAY, {"ics": [1]}, "is no condition"),
        (
            DECAY,
            {"ics": [sympy.Eq(y(0), 1), sympy.Eq(y(0), 2)]},
            "contradict each other: y\\(0\\) = 1 and y\\(0\\) = 2",
        ),
        (DECAY, {"ics": {y(3): 1}, "domain": (0, 1)}, "lies outside domain x in \\(0, 1\\)"),
        (DECAY, {"domain": (1, 0)}, "the smaller first"),
        (DECAY, {"domain": (0, math.inf)}, "two finite numbers"),
        (DECAY, {"domain": {t: (0, 1)}}, "t, which is no variable"),
        (DECAY, {"parameters": [3]}, "must be symbols"),
        (sympy.Eq(u(x, t).diff(t), u(x, t).diff(x, 2)), {"ics": {u(x, 0): x}}, "domain of x is not known"),
    ],
)
def test_bad_input_is_one_clear_error(equation: object, options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_problem(equation, options.pop("function", None), **options)


def test_true_and_false_are_no_equations() -> None:
    with pytest.raises(ValueError, match="is no equation"):
        read_problem(sympy.true, y(x))


def test_decimals_become_fractions_and_rounded_numbers_are_known_as_such() -> None:
    problem = read_problem(sympy.Eq(SLOPE, -0.2 * y(x)), y(x), ics={y(0.1): 20.1})
    assert problem.residuals[0] == Jet(0, (1,)).symbol + sympy.Rational(1, 5) * Jet(0, (0,)).symbol
    assert not problem.conditions[0].rounded
    assert problem.conditions[0].residual.subs(problem.conditions[0].jets[0].symbol, 0) == -sympy.Rational(201, 10)
    assert read_problem(DECAY, y(x), ics={y(0): math.sin(10)}).conditions[0].rounded


def test_derivatives_at_points_and_combinations_of_them() -> None:
    problem = read_problem(
        sympy.Eq(y(x).diff(x, 2), 0), y(x), ics=[sympy.Eq(y(0) + slope_at(0), 1), sympy.Eq(y(0), y(2))]
    )
    first, second = problem.conditions
    assert {(jet.orders, jet.place) for jet in first.jets} == {((0,), (0,)), ((1,), (0,))}
    assert {jet.place for jet in second.jets} == {(0,), (2,)}
    assert problem.box == ((0.0, 2.0),)


def test_signs_of_symbols_follow_the_domain() -> None:
    assert read_problem(DECAY, y(x), domain=(1, 2)).variables[0].is_positive
    assert read_problem(DECAY, y(x), domain=(-2, -1)).variables[0].is_negative
    assert read_problem(DECAY, y(x), domain=(-1, 1)).variables[0].is_positive is None


def test_a_callable_is_given_variables_and_unknown_functions() -> None:
    problem = read_problem(lambda x, y: y.diff(x) + y, y(x))
    assert problem.residuals[0] == Jet(0, (1,)).symbol + Jet(0, (0,)).symbol


def test_derivatives_of_expressions_are_taken() -> None:
    problem = read_problem(sympy.Eq(sympy.Derivative(y(x) ** 2, x), 1), y(x))
    assert problem.residuals[0] == 2 * Jet(0, (0,)).symbol * Jet(0, (1,)).symbol - 1


def test_the_ends_of_the_domain_come_from_the_conditions() -> None:
    assert read_problem(DECAY, y(x), ics={y(1): 1}).box == ((1.0, 3.0),)
    assert read_problem(sympy.Eq(y(x).diff(x, 2), 0), y(x), ics={y(1): 1, y(5): 2}).box == ((1.0, 5.0),)


def test_a_callable_as_for_numbers_is_given_derivatives() -> None:
    problem = read_problem(lambda x, y, dy: dy - np.exp(y), y(x))
    assert problem.residuals[0] == Jet(0, (1,)).symbol - sympy.exp(Jet(0, (0,)).symbol)
