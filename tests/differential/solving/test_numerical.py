"""Numerical solutions: every branch, what is missing filled, what contradicts refused."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import sympy
from differential_problems import SLOPE, laplace, oscillator, t, u, x, y

from gmeql.differential.solving.collocation import ChebyshevSolution, Contradiction, Undetermined
from gmeql.differential.solving.numerical import missing_conditions, numerical_solutions, sample_points
from gmeql.differential.solving.reading import read_problem


def test_errors_lie_below_what_the_search_takes_for_exact() -> None:
    for problem, truth in (
        (oscillator(domain=(0, 6)), np.sin),
        (read_problem(sympy.Eq(SLOPE, 1 / (2 * y(x))), y(x), ics={y(1): 1}, domain=(1, 4)), np.sqrt),
        (read_problem(sympy.Eq(SLOPE, (2 * x - y(x)) / x), y(x), ics={y(1): 3}, domain=(0.1, 1)), lambda v: v + 2 / v),
    ):
        solution = next(numerical_solutions(problem))
        points = sample_points(problem.box, 50)
        expected = truth(points[:, 0])
        assert isinstance(solution.source, ChebyshevSolution)
        assert np.abs(solution.values(points)[0] - expected).max() < 1e-12 * np.abs(expected).max()


def test_a_boundary_problem_that_is_singular_at_its_end() -> None:
    equation = sympy.Eq(x * y(x).diff(x, 2) + (1 - x) * SLOPE + y(x), 0)
    (solution,) = numerical_solutions(read_problem(equation, y(x), ics={y(0): 1, y(1): 0}))
    points = sample_points(((0, 1),), 11)
    assert solution.values(points)[0] == pytest.approx(1 - points[:, 0], abs=1e-13)


def test_conditions_that_are_missing_are_filled_and_named() -> None:
    problem = read_problem(sympy.Eq(y(x).diff(x, 2), 0), y(x), ics={y(1): 0}, domain=(1, 2))
    assert [jet.orders for jet in missing_conditions(problem)] == [(1,)]
    solutions = list(islice(numerical_solutions(problem), 3))
    ends = [s.values(np.array([[2.0]]))[0, 0] for s in solutions]
    assert ends == pytest.approx([0, 1, 2], abs=1e-12)
    assert [s.filled for s in solutions] == ["y'(1) = 0", "y'(1) = 1", "y'(1) = 2"]
    assert missing_conditions(oscillator()) == []


def test_conditions_that_contradict_the_equation_are_refused() -> None:
    for problem in (
        read_problem(sympy.Eq(SLOPE, y(x)), y(x), ics={y(0): 1, y(1): 5}),
        read_problem(sympy.Eq(y(x).diff(x, 2), 0), y(x), ics={y(0): 0, y(1): 1, y(2): 5}),
    ):
        with pytest.raises(Contradiction, match="contradict each other"):
            next(numerical_solutions(problem))


def test_a_field_with_too_few_values_on_its_edge_is_refused() -> None:
    (solution,) = numerical_solutions(laplace())
    assert solution.error < 1e-12
    equation = sympy.Eq(u(x, t).diff(x, 2) + u(x, t).diff(t, 2), 4)
    few = read_problem(equation, u(x, t), ics={u(0, t): t**2, u(1, t): 1 + t**2}, domain={x: (0, 1), t: (0, 1)})
    with pytest.raises(Undetermined, match="more faces"):
        next(numerical_solutions(few))


def test_sample_points_fill_the_box() -> None:
    assert sample_points(((1, 4),), 3).tolist() == [[1.5], [2.5], [3.5]]
    points = sample_points(((0, 1), (2, 4)), 200)
    assert points.shape == (200, 2)
    assert (points.min(axis=0) >= [0, 2]).all() and (points.max(axis=0) <= [1, 4]).all()
    assert points.mean(axis=0) == pytest.approx([0.5, 3], abs=0.05)
