"""Solutions of a template: constants fitted together, shared between the places of a function, within bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import least_squares

from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.templates import read_template
from gmeql.search.losses.effective import InputErrors
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.templates.solutions import (
    OpenSolution,
    Solution,
    least_effective_solution,
    plain_function,
    random_values,
    refit_solutions,
)

NAMES = ("x", "y")


def rows(function: str) -> JudgedRows:
    X = np.random.default_rng(0).uniform(0.5, 2, (80, 2))
    from gmeql.formula.expression import Expression

    return JudgedRows.of(X, Expression(parse_tree(function, NAMES), NAMES)(X), None, NAMES)


def test_one_function_in_two_places_has_one_set_of_constants() -> None:
    template = read_template("f(x) + a*f(y)", NAMES)
    start = Solution(template, (parse_tree("1*sin(1.9*u)", ["u"]),), (1.0,))
    data = rows("1.5*sin(2.3*x) - 2*1.5*sin(2.3*y)")
    (found,) = refit_solutions([start], data, max_steps=60)
    assert found.loss < 1e-20 and found.values[0] == pytest.approx(-2)
    assert OpenSolution.of(found).starts == pytest.approx((-2, 1.5, 2.3))
    assert str(found.root).count("sin") == 2


def test_effective_variance_moves_a_function_in_all_its_places() -> None:
    """Against a general solver on the residuals written out; a factor of 1 stays."""
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 2, (200, 2))
    X = t + 0.2 * rng.standard_normal((200, 2))
    y = np.exp(-0.8 * t[:, 0]) + 2 * np.exp(-0.8 * t[:, 1]) + 0.05 * rng.standard_normal(200)
    errors = InputErrors(np.full((200, 2), 0.2), np.full(200, 0.05))
    start = Solution(read_template("f(x) + a*f(y)", NAMES), (parse_tree("1*exp(-0.6*u)", ["u"]),), (1.5,))
    found = least_effective_solution(start, X, y, np.ones(200), errors)

    def residuals(theta: np.ndarray) -> np.ndarray:
        one, two = np.exp(theta[1] * X[:, 0]), theta[0] * np.exp(theta[1] * X[:, 1])
        return (one + two - y) / np.sqrt(0.05**2 + theta[1] ** 2 * (one**2 + two**2) * 0.2**2)

    best = least_squares(residuals, np.array([1.5, -0.6]), xtol=1e-14, ftol=1e-14)
    assert OpenSolution.of(found).starts == pytest.approx((best.x[0], 1.0, best.x[1]), rel=1e-4)


def test_constants_stay_within_their_bounds() -> None:
    data = rows("3*x + y")
    free = Solution(read_template("a*x + b*y", NAMES), (), (1.0, 0.5))
    bounded = Solution(read_template("a*x + b*y", NAMES, {"a": (0, 2)}), (), (1.0, 0.5))
    one, two = (refit_solutions([s], data, max_steps=40)[0] for s in (free, bounded))
    assert one.values == pytest.approx((3, 1)) and two.values[0] == 2.0 and two.loss > one.loss
    # the other constant is the best beside it
    x, y = data.X.T
    assert two.values[1] == pytest.approx(float(y @ (3 * x + y - 2 * x) / (y @ y)))


def test_numbers_of_the_text_and_fixed_parameters_stay() -> None:
    data = rows("3*x + y")
    (found,) = refit_solutions([Solution(read_template("2*x + b*y", NAMES), (), (0.5,))], data, max_steps=40)
    assert "2.0" in str(found.root) and found.values[0] != 0.5
    (held,) = refit_solutions([found], data, max_steps=40, fixed=[[0]])
    assert held.values == found.values


def test_what_cannot_be_fitted_has_no_loss() -> None:
    data = rows("x")
    (found,) = refit_solutions([Solution(read_template("log(a - 9*x)", NAMES), (), (0.0,))], data, max_steps=5)
    assert math.isinf(found.loss)


def test_random_starts_keep_the_bounds_and_the_seed() -> None:
    template = read_template("a*x + b*y + c", NAMES, {"a": (2, 3), "b": (0, None)})
    drawn = np.array([random_values(template, np.random.default_rng(s)) for s in range(50)])
    assert (drawn[:, 0] >= 2).all() and (drawn[:, 0] <= 3).all() and (drawn[:, 1] >= 0).all()
    assert (drawn[:, 2] < 0).any() and (drawn[:, 2] > 0).any()
    assert plain_function(3, np.random.default_rng(1)) == plain_function(3, np.random.default_rng(1))
