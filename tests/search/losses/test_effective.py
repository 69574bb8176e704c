"""Errors of inputs: effective variances against differences, and constants that a noisy input does not pull to zero."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.search.config import SearchConfig
from gmeql.search.losses.effective import (
    InputErrors,
    least_effective,
    least_effective_values,
    scaled_residual,
    scaled_slopes,
)
from gmeql.search.search import Search


def line(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, InputErrors]:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 3, n)
    x, y = t + 0.5 * rng.standard_normal(n), 1.5 * t + 0.7 + 0.2 * rng.standard_normal(n)
    return x[:, None], y, InputErrors(np.full((n, 1), 0.5), np.full(n, 0.2))


def test_variances_are_slopes_times_errors() -> None:
    rng = np.random.default_rng(0)
    X, errors = rng.uniform(1, 2, (50, 2)), InputErrors(rng.uniform(0, 0.3, (50, 2)), rng.uniform(0.1, 0.2, 50))
    root = parse_tree("exp(a)*b**2 + 3", ["a", "b"])
    a, b = X.T
    expected = errors.y**2 + (np.exp(a) * b**2 * errors.x[:, 0]) ** 2 + (2 * np.exp(a) * b * errors.x[:, 1]) ** 2
    np.testing.assert_allclose(errors.variances(root, X), expected)
    np.testing.assert_allclose(errors.shares(root, X), errors.y**2 / expected)
    expression = Expression(root, ("a", "b"))
    residual = scaled_residual(expression, X, np.zeros(50), errors)
    np.testing.assert_allclose(residual, expression(X) * np.sqrt(errors.shares(root, X)))


def test_a_noisy_input_does_not_flatten_a_line() -> None:
    """Deming's regression in closed form; least squares would give a slope of about 1.1."""
    X, y, errors = line(2000, 1)
    fitted = Expression(least_effective(parse_tree("1.1*x + 1", ["x"]), X, y, np.ones(2000), errors), ("x",))
    ratio = (0.2 / 0.5) ** 2
    (sxx, sxy), (_, syy) = np.cov(X[:, 0], y)
    slope = (syy - ratio * sxx + np.sqrt((syy - ratio * sxx) ** 2 + 4 * ratio * sxy**2)) / (2 * sxy)
    assert fitted.constants[0] == pytest.approx(slope, rel=1e-4)
    assert abs(slope - 1.5) < 0.1


def test_slopes_of_scaled_residuals_are_those_of_the_formula_written_out() -> None:
    """r/sqrt(1 + (a cos(a x) k s_x/s)²) for f = k sin(a x), differentiated by hand."""
    rng = np.random.default_rng(0)
    x, k, y = rng.uniform(0, 2, 40), rng.uniform(1, 2, 40), rng.uniform(0, 1, 40)
    errors, a = InputErrors(np.full((40, 1), 0.3), np.full(40, 0.2)), 1.7
    X = np.column_stack([x, k])
    residual, by_constant, by_own = scaled_slopes(parse_tree("k*sin(1.7*x)", ["x", "k"]), X, y, errors, (1,))
    r, slope = k * np.sin(a * x) - y, k * a * np.cos(a * x)
    spread = np.sqrt(1 + (slope * 1.5) ** 2)
    np.testing.assert_allclose(residual, r / spread)
    np.testing.assert_allclose(
        by_own[:, 0], np.sin(a * x) / spread - r * 2.25 * slope * a * np.cos(a * x) / spread**3, rtol=1e-6, atol=1e-8
    )
    moved = k * np.cos(a * x) - k * a * x * np.sin(a * x)
    np.testing.assert_allclose(
        by_constant[:, 0], k * x * np.cos(a * x) / spread - r * 2.25 * slope * moved / spread**3, rtol=1e-6, atol=1e-8
    )


def test_held_constants_and_bounds_stay() -> None:
    X, y, errors = line(300, 3)
    held = least_effective(parse_tree("1.1*x + 0.5", ["x"]), X, y, np.ones(300), errors, held={1})
    slope, shift = Expression(held, ("x",)).constants
    assert shift == 0.5 and slope != 1.1
    steepest = least_effective_values(
        lambda values: parse_tree(f"{float(values[0])!r}*x + {float(values[1])!r}", ["x"]),
        np.array([1.1, 1.0]),
        X,
        y,
        np.ones(300),
        errors,
        bounds=(np.full(2, -np.inf), np.array([1.3, np.inf])),
    )
    assert steepest[0] == pytest.approx(1.3, rel=1e-6)


def test_where_a_formula_has_no_slope_the_targets_error_is_left() -> None:
    errors = InputErrors(np.ones((3, 1)), np.full(3, 0.5))
    np.testing.assert_allclose(
        errors.variances(parse_tree("sqrt(x)", ["x"]), np.array([[-1.0], [0.0], [4.0]]))[:2], 0.25
    )


def test_a_search_weighs_rows_by_it_and_goes_on_from_its_state() -> None:
    X, y, errors = line(150, 2)
    config = SearchConfig(max_candidates=300, n_jobs=1)
    search = Search(X, y, config=config, errors=errors)
    for _ in search.run():
        pass
    assert search._state.rows.is_reweighed
    slope = {m.complexity: m.expression for m in search.front}[5].constants[0]
    assert abs(slope - 1.5) < 0.2
    again = Search.from_state(search.state(), X, y, config=config, errors=errors)
    np.testing.assert_array_equal(again._state.rows.weights, search._state.rows.weights)
