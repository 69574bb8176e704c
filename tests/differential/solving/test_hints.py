"""Columns that an equation suggests."""

from __future__ import annotations

import numpy as np
import sympy
from differential_problems import SLOPE, x, y

from gmeql.differential.solving.hints import Hints, characteristic_functions
from gmeql.differential.solving.reading import read_problem
from gmeql.formula.nodes import Call, Variable


def test_functions_of_the_equation_become_columns_and_go_back_into_formulas() -> None:
    equation = sympy.Eq(SLOPE, sympy.log(x) + sympy.sin(y(x)) + sympy.cos(2 * x))
    hints = Hints.of(read_problem(equation, y(x), domain=(1, 2)))
    X = np.array([[1.5]])
    values = hints.columns(X)
    assert sorted(values[0].tolist()) == sorted([1.5, np.log(1.5), np.cos(3.0), np.sin(3.0)])  # sin(y) is no column
    place = values[0].tolist().index(np.log(1.5))
    assert str(hints.restore(Call("log", (Variable(place),)))) == "log(log(x))"


def test_an_equation_without_functions_suggests_none() -> None:
    assert Hints.of(read_problem(sympy.Eq(SLOPE, x * y(x)), y(x))).trees == ()


def test_sums_below_a_fraction_are_suggested() -> None:
    hints = Hints.of(read_problem(sympy.Eq(SLOPE, 1 / (1 + x**2) ** 2 + x / y(x)), y(x)))
    assert hints.columns(np.array([[2.0]])).tolist() == [[2.0, 5.0]]


def test_linear_equations_suggest_their_exponentials_and_waves() -> None:
    def suggested(equation: sympy.Eq) -> set[str]:
        return {str(f) for f in characteristic_functions(read_problem(equation, y(x), domain=(1, 2)))}

    D, D2 = SLOPE, y(x).diff(x, 2)
    assert suggested(sympy.Eq(D2, y(x))) == {"exp(x)", "exp(-x)"}
    assert suggested(sympy.Eq(D2 + 2 * D + 5 * y(x), sympy.sin(x))) == {"exp(-x)", "sin(2*x)", "cos(2*x)"}
    assert suggested(sympy.Eq(x * D2 + 2 * D + x * y(x), 0)) == {"sin(x)", "cos(x)"}
    assert suggested(sympy.Eq(D, y(x) ** 2)) == set()
