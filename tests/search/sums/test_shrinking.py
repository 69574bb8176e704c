"""Sums with factors drawn towards 0: against plain ridge regression, rows really left out, and when it keeps away."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import tree_complexity, used_columns
from gmeql.search.losses.losses import LOSSES, sigmoid
from gmeql.search.sums.shrinking import SHRINKING, ShrunkSum, _Likelihood, _Ridge
from gmeql.search.sums.shrinking import chance_of_shrunk, saved_by_all, shrunk_likelihood_sum, shrunk_sum
from gmeql.search.judging.soundness import left_out_errors
from gmeql.search.judging.structure import linear_columns


def correlated(rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns that resemble each other, of different sizes, each of which says a little."""
    X = rng.standard_normal((rows, 1)) + 0.5 * rng.standard_normal((rows, columns))
    X = 3.0 + X * np.geomspace(0.1, 100.0, columns)
    return X, (X / X.std(axis=0)).mean(axis=1) + rng.standard_normal(rows)


def values(found: ShrunkSum, X: np.ndarray) -> np.ndarray:
    return Expression(found.root, tuple(f"x{i + 1}" for i in range(X.shape[1])))(X)


def test_it_is_ridge_regression_and_its_errors_are_those_of_rows_left_out(rng: np.random.Generator) -> None:
    X, y = correlated(rng, 25, 8)
    weights = rng.uniform(0.5, 2.0, 25)
    weights /= weights.mean()
    penalty = 4.0
    ridge = _Ridge.of(X, y, weights)

    def plain(kept: np.ndarray) -> np.ndarray:
        # centre and units stay those of all rows: the penalty then means the same without one
        A = (
            np.column_stack([np.ones(len(kept)), (X[kept] - ridge.centre) / ridge.spreads])
            * np.sqrt(weights[kept])[:, None]
        )
        held = penalty * np.diag([0.0] + [1.0] * X.shape[1])
        return np.linalg.solve(A.T @ A + held, A.T @ (y[kept] * np.sqrt(weights[kept])))

    rows = np.arange(25)
    assert_allclose(ridge.factors(penalty), plain(rows)[1:], rtol=1e-9)
    left_out = []
    for i in rows:
        fitted = plain(rows[rows != i])
        left_out.append(y[i] - fitted[0] - fitted[1:] @ ((X[i] - ridge.centre) / ridge.spreads))
    assert_allclose(ridge.left_out(penalty) / np.sqrt(weights), left_out, rtol=1e-8)
    assert 1.0 < ridge.freedom(penalty) < ridge.freedom(0.0) == pytest.approx(9.0)


def test_on_few_rows_it_predicts_others_better_than_least_squares(rng: np.random.Generator) -> None:
    gains = []
    for _ in range(20):
        X, y = correlated(rng, 20 + 500, 10)
        found = shrunk_sum(X[:20], y[:20], np.ones(20), most_columns=14)
        assert found is not None and linear_columns(found.root) == frozenset(range(10))
        A = np.column_stack([np.ones(520), X])
        plain = A[20:] @ np.linalg.lstsq(A[:20], y[:20], rcond=None)[0]
        gains.append(np.mean((plain - y[20:]) ** 2) / np.mean((values(found, X[20:]) - y[20:]) ** 2))
    assert np.median(gains) > 1.3


def test_least_squares_stays_where_the_rows_know_the_factors(rng: np.random.Generator) -> None:
    X = rng.standard_normal((200, 3))
    y = X @ [1.0, -2.0, 3.0] + 0.1 * rng.standard_normal(200)
    found = shrunk_sum(X, y, np.ones(200), most_columns=14)
    assert found is not None and found.freedom is None and found.nats == pytest.approx(math.log(4))
    A = np.column_stack([np.ones(200), X])
    assert_allclose(values(found, X), A @ np.linalg.lstsq(A, y, rcond=None)[0], rtol=1e-9, atol=1e-9)
    assert_allclose(found.costs, left_out_errors(found.root, X, y, np.ones(200)) ** 2, rtol=1e-6)


def test_of_too_many_columns_those_that_count_stay(rng: np.random.Generator) -> None:
    X = rng.standard_normal((30, 12))
    X[:, 5] = 1.0  # a column that says nothing is none
    X[:, 9] = X[:, 2] + 0.1 * X[:, 9]
    y = 2 * X[:, 2] + 2 * X[:, 9] + 2.0 * rng.standard_normal(30)
    found = shrunk_sum(X, y, np.ones(30), most_columns=4)
    assert found is not None and {2, 9} <= (linear_columns(found.root) or set()) and 5 not in linear_columns(found.root)
    assert tree_complexity(found.root) == 17
    assert found.nats == pytest.approx(math.log(12) + math.log(math.comb(11, 4)))


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_fewer_rows_than_columns_and_equal_columns_are_no_trouble(rng: np.random.Generator, rows: int) -> None:
    X = np.repeat(rng.standard_normal((rows, 1)), 5, axis=1)
    found = shrunk_sum(X, X[:, 0] + 0.3 * rng.standard_normal(rows), np.ones(rows), most_columns=14)
    assert found is None or (np.isfinite(found.costs).all() and (found.freedom or 0.0) <= 2.0 + 1e-9)
    assert SHRINKING.weakest < SHRINKING.strongest


def test_nothing_is_said_about_nothing(rng: np.random.Generator) -> None:
    X = rng.standard_normal((40, 3))
    assert shrunk_sum(np.ones((40, 2)), X[:, 0], np.ones(40), most_columns=14) is None
    assert shrunk_sum(X, X[:, 0], np.ones(40), most_columns=0) is None


def logits(rng: np.random.Generator, rows: int, columns: int, size: float) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((rows, columns))
    return X, (rng.random(rows) < sigmoid(size * X.sum(axis=1) + 0.3)).astype(float)


def test_under_a_likelihood_it_is_penalised_logistic_regression(rng: np.random.Generator) -> None:
    X, y = logits(rng, 120, 6, 0.4)
    found = _Likelihood(X, y, np.full(120, 1 / 120), LOSSES["logistic"])
    everyone = np.ones(120, dtype=bool)
    for penalty, factors in zip(found.penalties, found.path(everyone), strict=True):
        chances = sigmoid(found.table @ factors)
        slope = found.table.T @ (chances - y) / 120 + penalty * np.r_[0.0, factors[1:]]
        assert_allclose(slope, 0.0, atol=1e-4)
    worth = [found.freedom(f, p) for f, p in zip(found.path(everyone), found.penalties, strict=True)]
    assert np.all(np.diff(worth) > 0) and 1.0 <= worth[0] < 1.2 and 6.9 < worth[-1] <= 7.0 + 1e-9


def test_a_likelihood_s_costs_are_of_rows_that_the_fit_has_not_seen(rng: np.random.Generator) -> None:
    X, y = logits(rng, 150, 20, 0.3)
    found = shrunk_likelihood_sum(X, y, np.ones(150), LOSSES["logistic"], most_columns=20)
    assert found is not None and 1.5 <= found.freedom < 20
    fresh, classes = logits(rng, 4000, 20, 0.3)
    values = Expression(found.root, tuple(f"x{i}" for i in range(20)))(fresh)
    unseen = float(np.mean(LOSSES["logistic"].value(values, classes)))
    assert abs(found.costs.mean() - unseen) < 0.15


def test_a_plane_that_parts_two_classes_has_finite_factors(rng: np.random.Generator) -> None:
    X = rng.standard_normal((80, 3))
    found = shrunk_likelihood_sum(X, (X[:, 0] > 0).astype(float), np.ones(80), LOSSES["logistic"], most_columns=2)
    assert found is not None and found.costs.mean() < 0.2 and len(used_columns(found.root)) == 2


def test_no_sum_of_noise_and_none_where_folds_have_no_rows(rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((200, 5)), (rng.random(200) < 0.5).astype(float)
    noise = shrunk_likelihood_sum(X, y, np.ones(200), LOSSES["logistic"], most_columns=5)
    assert noise is None or noise.freedom < 3
    assert shrunk_likelihood_sum(X[:8], y[:8], np.ones(8), LOSSES["logistic"], most_columns=5) is None
    assert shrunk_likelihood_sum(np.ones((40, 2)), y[:40], np.ones(40), LOSSES["logistic"], most_columns=2) is None


@pytest.mark.parametrize("most_columns", [3, 6])
def test_chance_does_as_well_on_noise_in_any_share_of_shuffles(most_columns: int) -> None:
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(12):
        X, y, weights = rng.standard_normal((20, 6)), rng.standard_normal(20), np.repeat([0.5, 1.5], 10)
        y /= np.sqrt(weights)
        found = shrunk_sum(X, y, weights, most_columns=most_columns)
        saved = 0.0 if found is None or found.saved is None else found.saved
        shares.append(chance_of_shrunk(X, y, weights, saved, most_columns=most_columns))
    assert sum(share <= 0.5 for share in shares) <= 11 and min(shares) < 0.6
    assert chance_of_shrunk(X, y, weights, 8.0, most_columns=most_columns) <= 0.05


def test_what_all_columns_save_is_the_ratio_of_likelihoods(rng: np.random.Generator) -> None:
    """Of rows whose factors are normal numbers, the size of all errors left open, beside the mean alone."""
    X = rng.standard_normal((12, 4))
    y = X @ np.ones(4) + 2.0 * rng.standard_normal(12)
    units = (X - X.mean(axis=0)) / X.std(axis=0)
    basis = np.linalg.svd(np.ones((12, 1)))[0][:, 1:]  # all directions but the mean's

    def nats(penalty: float) -> float:
        of_rows = basis.T @ (np.eye(12) + units @ units.T / penalty) @ basis
        along = basis.T @ y
        fit = -0.5 * 11 * math.log(along @ np.linalg.solve(of_rows, along))
        return fit - 0.5 * np.linalg.slogdet(of_rows)[1] + 0.5 * 11 * math.log(along @ along)

    saved = max(map(nats, 12 * np.geomspace(1e-5, 1e2, 29)))
    assert saved > 0.1 and saved_by_all(X, np.stack([y, 3.0 * y - 1.0], axis=1)) == pytest.approx([saved, saved])
    assert saved_by_all(np.ones((12, 2)), y[:, None]) == [0.0]


def test_of_noise_on_few_rows_little_is_believed() -> None:
    """Errors on rows left out are least by luck with factors of twice the noise's size; the likelihood holds them back."""
    rng = np.random.default_rng(7)
    spreads = []
    for _ in range(40):
        X, y = rng.standard_normal((25, 20)), rng.standard_normal(25)
        found = shrunk_sum(X, y, np.ones(25), most_columns=20)
        if found is not None:
            values = Expression(found.root, tuple(f"x{i}" for i in range(20)))(rng.standard_normal((2000, 20)))
            spreads.append(float(values.std()))
    assert max(spreads) < 1.0
