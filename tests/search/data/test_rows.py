"""Which rows a search sees: nested samples in one order, more of them, other weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gmeql.formula.nodes import Constant, Variable, build
from gmeql.search.config import SearchConfig
from gmeql.search.data.rows import SearchRows
from gmeql.search.search import Search


def table(n: int = 1000, **options: Any) -> SearchRows:
    X = np.random.default_rng(0).uniform(1, 2, (n, 3))
    weights = np.random.default_rng(1).uniform(0.5, 3.0, n)
    config = SearchConfig(search_rows=50, max_search_rows=300, polish_rows=400, **options)
    return SearchRows.of(X, 3 * X[:, 0], sample_weight=weights, config=config, seed=7)


def test_fewer_rows_are_the_first_of_more() -> None:
    rows = table()
    X, y, weights = rows.fitted
    assert X.shape == (50, 3) and rows.light.X.shape == (50, 3) and rows.polished.X.shape == (400, 3)
    np.testing.assert_array_equal(X, rows.light.X)
    np.testing.assert_array_equal(X, rows.polished.X[:50])
    np.testing.assert_array_equal(rows.whole().polished.X, rows.X[rows.order])
    assert not rows.whole().is_sampled and table(400).whole().n_judged == 400
    assert rows.is_sampled and not table(400).is_sampled
    np.testing.assert_array_equal(y, 3 * X[:, 0])
    for judged in (rows.light, rows.polished, rows.whole().polished):
        assert judged.weights.mean() == pytest.approx(1.0)
    assert len(np.unique(rows.order)) == 1000 and (rows.order[:-1] > rows.order[1:]).any()


def test_the_order_depends_on_the_seed_alone() -> None:
    X, y = np.ones((30, 1)), np.arange(30.0)
    one, two, other = (SearchRows.of(X, y, config=SearchConfig(), seed=seed).order for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


def test_rows_grow_to_the_limit_and_no_further() -> None:
    seen = [rows := table()]
    while (rows := rows.grown()) is not seen[-1]:
        seen.append(rows)
    assert [rows.n_fitted for rows in seen] == [50, 100, 200, 300]
    assert len(seen[-1].fitted[0]) == 300
    assert [rows.n_fitted for rows in (table(70), table(70).grown())] == [50, 70]


def test_names_and_weights_have_defaults() -> None:
    rows = SearchRows.of(np.ones((4, 2)), np.arange(4.0), config=SearchConfig())
    assert rows.names == ("x1", "x2") and rows.weights.tolist() == [1.0] * 4
    doubled = SearchRows.of(np.ones((4, 2)), np.arange(4.0), sample_weight=np.full(4, 9.0), config=SearchConfig())
    assert doubled.weights.tolist() == [1.0] * 4


def test_outliers_count_less_under_hubers_loss() -> None:
    """Weight 1 within 1.345 standard deviations, in proportion to 1/|residual| beyond; then of mean 1."""
    n = 2001
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (n, 1))
    noise = rng.standard_normal(n)
    rows = SearchRows.of(X, 3 * X[:, 0] + noise, config=SearchConfig(loss="huber"))
    new = rows.reweighted(build("mul", Constant(3.0), Variable(0)))
    relative = new.weights / new.weights.max()
    deviation = 1.4826 * np.median(np.abs(noise))
    expected = [1.0 if abs(r) <= 1.345 * deviation else 1.345 * deviation / abs(r) for r in noise]
    np.testing.assert_allclose(relative, expected, rtol=1e-9)
    assert new.weights.mean() == pytest.approx(1.0) and 0.1 < np.mean(relative < 1) < 0.25  # 17.9 % of a normal's
    # from the given weights each time, not from those of the last formula
    again = new.reweighted(build("mul", Constant(3.0), Variable(0)))
    np.testing.assert_array_equal(again.weights, new.weights)


def test_weights_stay_where_there_is_nothing_to_weigh() -> None:
    rows = table()
    assert rows.reweighted(Constant(1.0)) is rows  # squared loss
    weighed = table(loss="huber").reweighted(build("mul", Constant(3.0), Variable(0)))
    assert weighed.weights == pytest.approx(weighed.given_weights)  # no residuals: every row counts as given
    assert weighed.reweighted(build("mul", Constant(3.0), Variable(0))) is weighed


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones(5), np.ones(5), r"X must be \[rows, columns\]"),
        (np.ones((5, 2)), np.ones(4), r"got \(5, 2\) and \(4,\)"),
        (np.ones((0, 2)), np.ones(0), "got"),
        (np.array([[np.nan], [1.0]]), np.ones(2), "finite"),
        (np.ones((2, 1)), np.array([1.0, np.inf]), "finite"),
    ],
)
def test_bad_data_are_refused(X: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Search(X, y)


@pytest.mark.parametrize("scale", [1e160, 1e-160])
def test_a_target_whose_squares_no_number_holds_is_refused_in_words(scale: float) -> None:
    X = np.random.default_rng(0).uniform(1, 2, (50, 2))
    with pytest.raises(ValueError, match="y reaches .*; divide y by a power of ten"):
        Search(X, scale * X[:, 0], config=SearchConfig(max_candidates=100))


def test_rows_of_hardly_any_weight_may_be_of_any_size() -> None:
    X = np.random.default_rng(0).uniform(1, 2, (50, 2))
    y = np.where(X[:, 0] > 1.5, 1e170, 1.0) * X[:, 1]
    rows = SearchRows.of(X, y, sample_weight=1 / y**1.5, config=SearchConfig())
    assert np.isfinite(rows.y).all()
