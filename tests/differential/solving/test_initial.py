"""Initial values followed along every branch."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from differential_problems import SLOPE, oscillator, w, x, y

from gmeql.differential.solving.initial import HighestDerivatives, initial_values, state_jets, trajectories
from gmeql.differential.solving.reading import read_problem


def test_initial_values_are_the_whole_state_at_one_point() -> None:
    start = initial_values(oscillator())
    assert start is not None and start.point == 0.0 and start.state.tolist() == [0.0, 1.0]
    boundary = read_problem(sympy.Eq(y(x).diff(x, 2), -y(x)), y(x), ics={y(0): 0, y(1): 1})
    assert initial_values(boundary) is None
    assert len(state_jets(boundary)) == 2


def test_an_implicit_equation_has_a_trajectory_for_each_branch() -> None:
    problem = read_problem(sympy.Eq(SLOPE**2, 4 * y(x)), y(x), ics={y(1): 1}, domain=(1, 1.5))
    start = initial_values(problem)
    assert start is not None
    assert [float(b[0]) for b in HighestDerivatives(problem).branches(start.point, start.state)] == pytest.approx(
        [2, -2]
    )
    ends = [t.values(np.array([[1.5]]))[0, 0] for t in trajectories(problem, start)]
    assert ends == pytest.approx([1.5**2, 0.5**2], abs=1e-10)


def test_both_sides_of_the_initial_point_are_followed() -> None:
    problem = read_problem(sympy.Eq(SLOPE, y(x)), y(x), ics={y(0): 1}, domain=(-1, 1))
    start = initial_values(problem)
    assert start is not None
    (trajectory,) = trajectories(problem, start)
    assert trajectory.values(np.array([[-1.0], [1.0]]))[0] == pytest.approx([1 / np.e, np.e], rel=1e-11)


def test_a_pole_shortens_the_trajectory() -> None:
    problem = read_problem(sympy.Eq(SLOPE, 1 + y(x) ** 2), y(x), ics={y(0): 0}, domain=(0, 2))
    start = initial_values(problem)
    assert start is not None
    (trajectory,) = trajectories(problem, start)
    assert 1.3 < trajectory.high < np.pi / 2


def test_systems_have_their_functions_at_the_right_places_of_the_state() -> None:
    equations = [sympy.Eq(y(x).diff(x, 2), -y(x)), sympy.Eq(w(x).diff(x), y(x))]
    at_zero = {y(0): 0, y(x).diff(x).subs(x, 0): 1, w(0): 0}
    problem = read_problem(equations, [y(x), w(x)], ics=at_zero, domain=(0, 1))
    start = initial_values(problem)
    assert start is not None
    (trajectory,) = trajectories(problem, start)
    assert trajectory.values(np.array([[1.0]]))[:, 0] == pytest.approx([np.sin(1), 1 - np.cos(1)], abs=1e-11)
