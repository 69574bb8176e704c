"""Numerical solutions as tables: rows, columns and values against solutions that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy

from differential_problems import SLOPE, k, slope_at, w, x, y
from gmeql.differential.solving import sampled as module
from gmeql.differential.solving.config import NUMERICAL, SOLVE
from gmeql.differential.solving.reading import read_problem
from gmeql.differential.solving.sampled import SolutionTable, solution_tables
from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree


def only(equation, function, ics, **more) -> SolutionTable:
    (table,) = solution_tables(read_problem(equation, function, ics=ics, **more))
    return table


def test_a_wave_is_sampled_on_its_interval() -> None:
    oscillation = sympy.Eq(y(x).diff(x, 2), -4 * y(x))
    table = only(oscillation, y(x), {y(0): 0, slope_at(0): 2}, domain=(0, 3))
    assert table.X.shape == (SOLVE.points, 1) and table.names[0] == "x"
    assert table.X.min() >= 0 and table.X.max() <= 3
    np.testing.assert_allclose(table.Y[:, 0], np.sin(2 * table.X[:, 0]), atol=1e-9)


def test_a_system_has_a_column_for_each_function() -> None:
    equations = [sympy.Eq(SLOPE, w(x)), sympy.Eq(w(x).diff(x), -y(x))]
    table = only(equations, [y(x), w(x)], {y(0): 0, w(0): 1}, domain=(0, 2))
    np.testing.assert_allclose(table.Y, np.column_stack([np.sin(table.X[:, 0]), np.cos(table.X[:, 0])]), atol=1e-9)


def test_the_parameters_of_a_family_are_columns() -> None:
    table = only(sympy.Eq(SLOPE, -k * y(x)), y(x), {y(0): 1}, parameters=[k], domain=(0, 2))
    assert table.names[:2] == ("x", "k")
    assert len(np.unique(table.X[:, 1])) == NUMERICAL.parameter_values
    np.testing.assert_allclose(table.Y[:, 0], np.exp(-table.X[:, 1] * table.X[:, 0]), rtol=1e-8)


def test_what_was_filled_and_ends_early_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = read_problem(sympy.Eq(SLOPE, y(x)), y(x), ics={y(0): 1}, domain=(0, 2))
    whole = next(iter(module.numerical_solutions(problem)))
    early = replace(whole, problem=replace(problem, box=((0.0, 1.0),)), filled="y(0) = 2")
    given = [early, replace(whole, filled="y(0) = 1"), replace(early, filled="")]
    monkeypatch.setattr(module, "numerical_solutions", lambda problem: given)
    assert [table.solution for table in solution_tables(problem)] == [given[1], given[2], given[0]]


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_judge_knows_the_equation(factor: float) -> None:
    table = only(sympy.Eq(SLOPE, 2 * x), y(x), {y(0): 0}, domain=(0, 1))
    judged = table.judge.judge([Expression(parse_tree(f"{factor}*x**2", table.names), table.names)], polish=False)
    assert (judged.relative < 1e-9) == (factor == 1.0)
