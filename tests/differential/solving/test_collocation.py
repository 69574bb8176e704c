"""Chebyshev polynomials fitted to equation and conditions."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from differential_problems import SLOPE, laplace, oscillator, x, y

from gmeql.differential.solving.collocation import basis, gauss_points, open_directions, solve_collocation
from gmeql.differential.solving.reading import read_problem


def test_points_lie_inside_and_rise() -> None:
    points = gauss_points(7, 2.0, 5.0)
    assert (np.diff(points) > 0).all() and 2.0 < points[0] and points[-1] < 5.0


def test_derivatives_of_the_basis_are_those_of_its_polynomials() -> None:
    points = np.array([[0.3, 1.2], [0.9, 1.9]])
    box = ((0.0, 1.0), (1.0, 2.0))
    h = 1e-6
    moved = basis(points + [[0, h]], 5, box, (1, 0)) - basis(points - [[0, h]], 5, box, (1, 0))
    assert basis(points, 5, box, (1, 1)) == pytest.approx(moved / (2 * h), abs=1e-6)
    assert basis(points, 3, box, (3, 0)).tolist() == np.zeros((2, 9)).tolist()


def test_an_ordinary_equation_is_solved_to_rounding() -> None:
    problem = oscillator(domain=(0, 3))
    solution, misfit = solve_collocation(problem, 24)
    points = np.linspace(0, 3, 31)[:, None]
    assert solution.values(points)[0] == pytest.approx(np.sin(points[:, 0]), abs=1e-14)
    assert solution.values(points, (1,))[0] == pytest.approx(np.cos(points[:, 0]), abs=1e-12)
    assert misfit < 1e-12 and solution.tail < 1e-14


def test_more_polynomials_converge_faster_than_any_power() -> None:
    errors = []
    points = np.linspace(0, 3, 31)[:, None]
    for n in (6, 10, 14):
        solution, _ = solve_collocation(oscillator(domain=(0, 3)), n)
        errors.append(np.abs(solution.values(points)[0] - np.sin(points[:, 0])).max())
    assert errors[1] < 1e-3 * errors[0] and errors[2] < 1e-3 * errors[1]


def test_a_nonlinear_equation_needs_newton() -> None:
    problem = read_problem(sympy.Eq(SLOPE, y(x) ** 2), y(x), ics={y(0): 1}, domain=(0, 0.5))
    solution, _ = solve_collocation(problem, 48)
    assert solution.values(np.array([[0.5]]))[0] == pytest.approx([2.0], abs=1e-12)


def test_a_field_on_a_square() -> None:
    problem = laplace()
    solution, misfit = solve_collocation(problem, 5)
    points = np.random.default_rng(0).uniform(0, 1, (20, 2))
    assert solution.values(points)[0] == pytest.approx((points**2).sum(axis=1), abs=1e-13)
    assert misfit < 1e-12 and open_directions(problem, solution, 14) == 0


def test_a_condition_too_many_shows_as_a_misfit_and_one_too_few_as_an_open_direction() -> None:
    growth = sympy.Eq(SLOPE, y(x))
    _, misfit = solve_collocation(read_problem(growth, y(x), ics={y(0): 1, y(1): 5}), 12)
    assert misfit > 0.01
    free = read_problem(growth, y(x), domain=(0, 1))
    solution, _ = solve_collocation(free, 12)
    assert open_directions(free, solution, 14) == 1
