"""Shared and own constants fitted together, against a general solver on all of them at once."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from gmeql.formula.nodes import Constant, leaves
from gmeql.formula.parsing import parse_tree
from gmeql.search.losses.effective import InputErrors
from gmeql.search.groups.joint import GroupedTable, fit_jointly, refit_jointly


def table(seed: int = 0, noise: float = 0.05) -> tuple[GroupedTable, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, 120)
    x, own = rng.uniform(0, 2, 120), np.array([[0.5], [1.0], [1.5], [2.0]])
    y = own[codes, 0] * np.exp(-0.7 * x) + 0.3 + noise * rng.standard_normal(120)
    return GroupedTable.of(x[:, None], y, rng.uniform(0.5, 1.5, 120), codes), own


def test_it_is_the_least_squares_fit_of_all_constants() -> None:
    rows, own = table()
    root = parse_tree("k*exp(-0.9*x) + 0.1", ["x", "k"])
    fitted = fit_jointly(root, np.ones_like(own), rows, free=np.ones(2, dtype=bool))

    def residuals(theta: np.ndarray) -> np.ndarray:
        values = theta[2:][rows.codes] * np.exp(theta[0] * rows.X[:, 0]) + theta[1]
        return np.sqrt(rows.weights) * (values - rows.y)

    best = least_squares(residuals, np.array([-0.9, 0.1, 1, 1, 1, 1]), xtol=1e-12, ftol=1e-12)
    constants = [leaf.value for leaf in leaves(fitted.root) if isinstance(leaf, Constant)]
    np.testing.assert_allclose(constants, best.x[:2], rtol=1e-4)
    np.testing.assert_allclose(fitted.own[:, 0], best.x[2:], rtol=1e-4)
    np.testing.assert_allclose(fitted.loss, 2 * best.cost / rows.weights.sum(), rtol=1e-8)


def test_with_errors_of_inputs_it_is_the_least_effective_variance() -> None:
    """Against a general solver on residuals over the root of the variance, written out with each group's own slope."""
    rng = np.random.default_rng(0)
    codes, own = rng.integers(0, 3, 150), np.array([[0.5], [1.2], [2.0]])
    t = rng.uniform(0, 2, 150)
    y = own[codes, 0] * np.exp(-0.7 * t) + 0.3 + 0.05 * rng.standard_normal(150)
    seen = t + 0.2 * rng.standard_normal(150)
    rows = GroupedTable.of(
        seen[:, None], y, np.ones(150), codes, InputErrors(np.full((150, 1), 0.2), np.full(150, 0.05))
    )

    def residuals(theta: np.ndarray) -> np.ndarray:
        fading = theta[2:][rows.codes] * np.exp(theta[0] * rows.X[:, 0])
        return (fading + theta[1] - rows.y) / np.sqrt(0.05**2 + (theta[0] * fading * 0.2) ** 2)

    best = least_squares(residuals, np.array([-0.7, 0.3, 0.5, 1.2, 2]), xtol=1e-14, ftol=1e-14)
    root, found = refit_jointly(parse_tree("k*exp(-0.6*x) + 0.2", ["x", "k"]), np.ones_like(own), rows)
    constants = [leaf.value for leaf in leaves(root) if isinstance(leaf, Constant)]
    np.testing.assert_allclose(constants, best.x[:2], rtol=1e-3)
    assert found is not None
    np.testing.assert_allclose(found[:, 0], best.x[2:], rtol=1e-3)


def test_a_refit_leaves_factors_of_one_whole_exponents_and_held_constants() -> None:
    rows, own = table()
    root, found = refit_jointly(parse_tree("k*1*exp(-0.9*x**2) + 0.1", ["x", "k"]), np.ones_like(own), rows, held={3})
    constants = [leaf.value for leaf in leaves(root) if isinstance(leaf, Constant)]
    assert [constants[0], *constants[2:]] == [1.0, 2.0, 0.1] and constants[1] != -0.9
    assert found is not None and not np.allclose(found, 1)
    assert refit_jointly(parse_tree("2*x", ["x"]), None, rows)[1] is None


def test_constants_that_are_not_free_stay() -> None:
    rows, own = table()
    root = parse_tree("k*exp(-0.9*x) + 0.1", ["x", "k"])
    fitted = fit_jointly(root, np.ones_like(own), rows, free=np.array([False, True]))
    first = next(leaf for leaf in leaves(fitted.root) if isinstance(leaf, Constant))
    assert first.value == -0.9


def test_a_constant_that_a_group_cannot_tell_leaves_the_others_fitted() -> None:
    rows, own = table(noise=0.0)
    x = np.where(rows.codes == 0, 0.0, rows.X[:, 0])[:, None]
    still = GroupedTable(x, own[rows.codes, 0] * np.exp(-0.7 * x[:, 0]), rows.weights, rows.codes, rows.first)
    start = np.column_stack([np.ones(4), np.full(4, -0.6)])
    root = parse_tree("a*exp(b*x)", ["x", "a", "b"])
    fitted = fit_jointly(root, start, still, free=np.zeros(0, dtype=bool))
    assert fitted.loss < 1e-18
    np.testing.assert_allclose(fitted.own[1:, 1], -0.7, rtol=1e-6)


def test_a_formula_without_value_has_an_infinite_loss() -> None:
    rows, own = table()
    root = parse_tree("k*log(x - 5)", ["x", "k"])
    assert fit_jointly(root, np.ones_like(own), rows, free=np.ones(1, dtype=bool)).loss == np.inf
