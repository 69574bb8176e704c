"""Equations as algebra of derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from differential_problems import k, laplace, oscillator, x, y

from gmeql.differential.solving.problem import Jet, numbers, point_columns, weigh
from gmeql.differential.solving.reading import read_problem


def test_orders_and_highest_derivatives() -> None:
    assert oscillator().orders == (2,)
    assert oscillator().highest == (Jet(0, (2,)),)
    assert not laplace().is_ordinary


def test_slopes_are_those_of_the_residual() -> None:
    (slopes,) = oscillator().slopes
    assert slopes == {Jet(0, (2,)): 1, Jet(0, (0,)): 1}


def test_weigh_gives_value_slopes_and_the_size_of_terms_that_cancel() -> None:
    problem = oscillator()
    columns = {Jet(0, (2,)).symbol.name: np.array([-3.0]), Jet(0, (0,)).symbol.name: np.array([3.0])}
    values, factors, scale = weigh(problem.residuals[0], problem.slopes[0], columns, 1)
    assert values.tolist() == [0.0] and scale.tolist() == [6.0]
    assert {jet.orders: factor.tolist() for jet, factor in factors.items()} == {(2,): [1.0], (0,): [1.0]}


def test_numbers_for_parameters_reach_equation_and_conditions() -> None:
    problem = read_problem(sympy.Eq(y(x).diff(x), -k * y(x)), y(x), ics={y(0): 2 * k}, parameters=[k])
    numeric = problem.with_numbers({problem.parameters[0]: sympy.Integer(3)})
    assert not numeric.parameters
    (jet,) = numeric.conditions[0].jets
    assert numeric.conditions[0].residual == jet.symbol - 6
    assert numeric.residuals[0].free_symbols == {j.symbol for j in numeric.jets}


def test_point_columns_and_numbers() -> None:
    problem = laplace()
    columns = point_columns(problem, np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert {name: column.tolist() for name, column in columns.items()} == {"x": [0.0, 2.0], "t": [1.0, 3.0]}
    a, b = problem.variables
    assert numbers(a + 2 * b, columns, 2).tolist() == pytest.approx([2.0, 8.0])
