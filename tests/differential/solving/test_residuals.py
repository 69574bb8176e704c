"""Formulas put into equation and conditions."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from differential_problems import laplace, oscillator

from gmeql.differential.solving.numerical import sample_points
from gmeql.differential.solving.problem import Jet
from gmeql.differential.solving.residuals import OpenFormula, Substituted
from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree


def formula(text: str, *names: str) -> Expression:
    return Expression(parse_tree(text, names), names)


def test_free_constants_stand_as_columns_and_exponents_stay() -> None:
    opened = OpenFormula.of([formula("2.5*x**3 + 0.5*sin(1.5*x)", "x")])
    assert opened.constants == (2.5, 1.5, 0.5)
    (closed,) = opened.closed([1.0, 3.0, 2.0])
    X = np.array([[0.7]])
    assert closed(X) == pytest.approx(0.7**3 + 2 * np.sin(2.1))
    (form,) = opened.sympy([sympy.Symbol("x")], [sympy.Integer(1), sympy.pi, sympy.Rational(1, 3)])
    assert form == sympy.Symbol("x") ** 3 + sympy.sin(sympy.pi * sympy.Symbol("x")) / 3


def test_slopes_by_constants_are_those_of_the_derivative() -> None:
    opened = OpenFormula.of([formula("0.5*sin(1.5*x)", "x")])
    X, constants = np.array([[0.7], [1.1]]), np.array([1.5, 0.5])
    found = opened.slopes(Jet(0, (2,)), X, constants)[:, ::-1]  # d²/dx² = -a*w²*sin(w*x)
    a, w, v = 0.5, 1.5, X[:, 0]
    expected = np.stack([-(w**2) * np.sin(w * v), -a * (2 * w * np.sin(w * v) + w**2 * v * np.cos(w * v))], axis=1)
    assert found == pytest.approx(expected, rel=1e-12)


def test_constants_are_polished_on_equation_and_conditions() -> None:
    problem = oscillator(domain=(0, 2))
    substituted = Substituted(problem, sample_points(problem.box, 40))
    opened = OpenFormula.of([formula("0.99*sin(1.01*x)", "x")])
    constants, left = substituted.polish(opened)
    assert constants == pytest.approx([1.0, 1.0], abs=1e-13)
    assert left < 1e-13


def test_a_wrong_formula_keeps_its_misfit() -> None:
    problem = laplace()
    substituted = Substituted(problem, sample_points(problem.box, 40))
    values, _, _, of_equation = substituted.rows(
        OpenFormula.of([formula("x**2 + t**2 + x", "x", "t")]), [], slopes=False
    )
    assert np.abs(values[of_equation]).max() < 1e-12
    assert np.abs(values[~of_equation]).max() == pytest.approx(1.0, abs=0.02)


def test_of_constants_that_say_the_same_one_is_set() -> None:
    problem = oscillator(domain=(0, 2))
    substituted = Substituted(problem, sample_points(problem.box, 40))
    constants, left = substituted.polish(OpenFormula.of([formula("0.25*(4.0*sin(1.0*x))", "x")]))
    assert sorted(constants.tolist()) == pytest.approx([1.0, 1.0, 1.0]) and left < 1e-13


def test_a_value_that_is_missing_at_one_place_is_its_limit_and_a_pole_or_a_jump_has_none() -> None:
    X, step = np.array([[0.0]]), np.array([0.03])
    sinc = OpenFormula.of([formula("sin(x)/x", "x")])
    found = [sinc.values(sinc.derivative(0, (k,)), X, np.empty(0), step)[0] for k in range(3)]
    assert found == pytest.approx([1.0, 0.0, -1 / 3], abs=1e-10)
    for text in ("1/x", "1/x**2", "abs(x)/x", "x*log(x)"):
        other = OpenFormula.of([formula(text, "x")])
        assert np.isnan(other.values(other.roots[0], X, np.array(other.constants), step)).all()
