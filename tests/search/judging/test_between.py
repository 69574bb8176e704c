"""Rows that could have been: near rows that are, with the signs and the values that columns have."""

from __future__ import annotations

import numpy as np

from gmeql.search.judging.between import points_between


def test_points_between_stay_near_rows_and_respect_discrete_columns(rng: np.random.Generator) -> None:
    t = rng.uniform(0, 1, 400)
    X = np.stack([t, t + 0.01 * rng.standard_normal(400), rng.integers(0, 2, 400).astype(float)], axis=1)
    points = points_between(X, np.random.default_rng(0), 2000)
    assert len(points) > 500
    assert set(np.unique(points[:, 2])) == {0.0, 1.0}
    inside = (points[:, 0] >= t.min()) & (points[:, 0] <= t.max()) & (points[:, 1] >= X[:, 1].min())
    assert np.quantile(np.abs(points[inside, 0] - points[inside, 1]), 0.9) < 0.1  # the two columns stay together
    assert points[:, 0].min() < t.min() and points[:, 0].max() > t.max()  # and the ends are passed a little
    assert points[:, 0].min() > t.min() - 3 / 400 and points[:, 0].max() < t.max() + 3 / 400
    np.testing.assert_array_equal(points, points_between(X, np.random.default_rng(0), 2000))


def test_beyond_an_end_that_one_row_has_to_itself_only_that_row_is_moved(rng: np.random.Generator) -> None:
    """Nothing is known of a small share in a district as large as the largest: x1/x2 there is not held against a formula."""
    X = np.stack([rng.uniform(0, 1, 200), rng.uniform(0.01, 1, 200)], axis=1)
    X[7] = [50.0, 0.5]
    points = points_between(X, np.random.default_rng(0), 2000)
    large = points[points[:, 0] > 25]
    assert len(large) and (large[:, 0] >= 50.0 * 0.9).all() and (np.abs(large[:, 1] - 0.5) < 0.2).all()


def test_two_rows_have_nothing_between_them() -> None:
    X = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(points_between(X, np.random.default_rng(0)), X)


def test_rows_to_come_keep_the_sign_of_a_column() -> None:
    """A root of times from 0 on is defined on every row that can come; a column of both signs goes on either way."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 3, 300), -rng.uniform(0, 3, 300), rng.uniform(-1, 1, 300)])
    points = points_between(X, np.random.default_rng(1))
    assert (points[:, 0] > 0).all() and (points[:, 1] < 0).all()
    assert points[:, 0].max() > X[:, 0].max()
    assert points[:, 2].min() < X[:, 2].min()
