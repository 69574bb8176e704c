"""Proofs: of what is true, and of nothing else."""

from __future__ import annotations

import math

import pytest
import sympy
from differential_problems import SLOPE, oscillator, x, y

from gmeql.differential.solving.numerical import sample_points
from gmeql.differential.solving.problem import Problem
from gmeql.differential.solving.proof import Judge, Judged
from gmeql.differential.solving.reading import read_problem
from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree


def judged(problem: Problem, text: str) -> Judged:
    names = tuple(v.name for v in problem.variables)
    return Judge(problem, sample_points(problem.box, 60)).judge(
        [Expression(parse_tree(text, names), names)], polish=True
    )


def test_a_fitted_formula_is_polished_made_exact_and_proven() -> None:
    found = judged(oscillator(domain=(0, 2)), "0.9999*sin(1.0001*x + 0.00001)")
    assert found.proven and str(found.forms[0]) == "sin(x)"
    assert found.residual < 1e-14 and found.misfit < 1e-14
    assert found.expressions[0].constants == (1.0, 1.0, 0.0)


def test_terms_that_rounding_swallows_and_a_common_factor_are_taken_out() -> None:
    equation = sympy.Eq(x * y(x).diff(x, 2) + 2 * SLOPE + x * y(x), 0)
    problem = read_problem(equation, y(x), ics={y(1): sympy.sin(1)}, domain=(1, 2))
    found = judged(problem, "(3e12*sin(x) + 0.1*x)/(3e12*x + 0.2*cos(x))")
    assert found.proven and found.forms[0] == sympy.sin(problem.variables[0]) / problem.variables[0]


@pytest.mark.parametrize("text", ["x + 0.000001*x**2", "x - x**3/6", "cos(x)", "sin(2*x)"])
def test_nothing_false_is_proven(text: str) -> None:
    found = judged(oscillator(domain=(0, 2)), text)
    assert not found.proven
    assert found.verdict.startswith("approximation")


def test_a_solution_of_the_equation_that_misses_a_condition_is_not_proven() -> None:
    problem = read_problem(sympy.Eq(y(x).diff(x, 2), -y(x)), y(x), ics={y(0): 0, y(1): 0.9}, domain=(0, 1))
    assert not judged(problem, "sin(x)").residual > 1e-12
    found = judged(problem, "1.07*sin(x)")
    assert found.proven  # its factor follows from the condition: 9/10 over sin(1)
    assert sympy.simplify(found.forms[0].subs(problem.variables[0], 1) - sympy.Rational(9, 10)) == 0


def test_constants_that_nobody_writes_follow_from_the_conditions() -> None:
    equation = sympy.Eq(y(x).diff(x, 2), SLOPE)
    found = judged(read_problem(equation, y(x), ics={y(0): 0, y(1): 1}), "0.58*exp(x) - 0.58")
    assert found.proven
    assert sympy.simplify(found.forms[0].diff() * (sympy.E - 1) / sympy.exp(found.forms[0].free_symbols.pop()) - 1) == 0


def test_rounded_conditions_are_verified_in_numbers_and_said_so() -> None:
    problem = read_problem(sympy.Eq(y(x).diff(x, 2), -100 * y(x)), y(x), ics={y(0): 0, y(1): math.sin(10)})
    found = judged(problem, "sin(10*x)")
    assert not found.proven
    assert found.verdict.startswith("equation proven; y(1) = -0.544")


def test_conditions_where_the_solution_has_only_a_limit_are_proven() -> None:
    equation = sympy.Eq(x * y(x).diff(x, 2) + 2 * SLOPE + x * y(x), 0)
    problem = read_problem(equation, y(x), ics={y(0): 1, SLOPE.subs(x, 0): 0}, domain=(0, 3))
    assert judged(problem, "1.001*sin(x)/x").proven
    assert not judged(problem, "cos(x)/x").proven  # solves the equation, too
    assert not judged(problem, "(sin(x) + 0.001*cos(x))/x").proven
