"""The smooth fit by linear algebra: its left-out residuals and slopes."""

import numpy as np
import pytest

from gmeql.search.symmetries.smooth import _orthogonal, fit_smooth


def table(*ranges, rows=400, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(low, high, rows) for low, high in ranges])


def test_a_product_of_powers_is_met_exactly():
    X = table((1, 5), (1, 5), (2, 3))
    y = -3 * X[:, 0] ** 2.5 / X[:, 1] ** 4 * np.sqrt(X[:, 2])
    fit = fit_smooth(X, np.ones(len(y)), y)
    assert np.abs(fit.values - y).max() < 1e-6 * np.abs(y).max()


@pytest.mark.parametrize("low", [1.0, -4.0], ids=["one sign", "both signs"])
def test_slopes_are_those_of_the_target_over_the_factor(low):
    X = table((low, 4), (1, 3))
    a, b = X.T
    factors = b**2
    fit = fit_smooth(X, factors, factors * (a * b + np.cos(a / 2)), with_slopes=True)
    expected = np.column_stack([b - np.sin(a / 2) / 2, a])
    assert np.abs(fit.slopes - expected).max() < 1e-2


def test_left_out_residuals_are_those_of_fits_without_the_row():
    X = table((-1, 1), rows=60)
    x, y = X[:, 0], X[:, 0] ** 3 + 0.1 * np.random.default_rng(1).standard_normal(60)
    fit = fit_smooth(X, np.ones(60), y)
    n_terms = np.sum(1 - (y - fit.values) / fit.residuals)  # the leverages' sum
    assert n_terms == pytest.approx(round(n_terms))
    for row in (0, 17, 41):
        others = np.arange(60) != row
        solved = np.polynomial.Polynomial.fit(x[others], y[others], round(n_terms) - 1)
        assert fit.residuals[row] == pytest.approx(y[row] - solved(x[row]), rel=1e-6)


def test_noise_is_what_is_left_of_a_smooth_law():
    X = table((1, 5), (1, 5), (1, 5), rows=1000)
    clean = X[:, 0] * np.tanh(X[:, 1] / X[:, 2])
    y = clean + 0.1 * np.random.default_rng(1).standard_normal(1000)
    fit = fit_smooth(X, np.ones(1000), y)
    assert 0.009 < fit.error < 0.0115
    assert np.std(fit.values - clean) < 0.04


def test_what_is_not_finite_has_no_fit():
    X = table((1, 5), (1, 5))
    X[3, 0] = np.inf
    assert fit_smooth(X, np.ones(len(X)), X[:, 1]) is None
    assert fit_smooth(X[:, 1:], np.full(len(X), np.nan), X[:, 1]) is None


@pytest.mark.parametrize("apart", [1.0, 1e-7, 0.0])
def test_columns_are_made_orthonormal_however_much_alike_they_are(apart):
    rng = np.random.default_rng(5)
    columns = rng.normal(size=(200, 3)) * [1e-3, 1.0, 1e6]
    columns[:, 2] = columns[:, 1] + apart * columns[:, 2]
    Q, R = _orthogonal(columns)
    np.testing.assert_allclose(Q @ R, columns, rtol=0, atol=1e-12 * np.abs(columns).max())
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-7)
