"""Rows far from a formula: as many as there are, where they matter and are no factors."""

from __future__ import annotations

import numpy as np

from gmeql.model.far_rows import rows_far_away, size_grows, varies_by_factors


def test_outliers_are_counted_where_they_matter(rng: np.random.Generator) -> None:
    residuals = rng.standard_normal(300)
    assert rows_far_away(residuals).sum() == 0
    residuals[:5] = 100.0
    assert rows_far_away(residuals).sum() == 5
    residuals[:140] = 100.0
    assert rows_far_away(residuals).sum() == 0


def test_outliers_on_one_side_are_seen_behind_the_mean_they_pull(rng: np.random.Generator) -> None:
    y = 2 * rng.uniform(0, 5, 200) + 1
    y[:20] += 40
    assert rows_far_away(y - y.mean()).sum() == 20


def test_errors_that_are_factors_are_no_outliers_and_grow_with_the_prediction(rng: np.random.Generator) -> None:
    predicted = rng.uniform(1, 100, 300)
    y = predicted * np.exp(rng.standard_normal(300))
    far = rows_far_away(y - predicted)
    assert far.any() and varies_by_factors(predicted, y, far) and size_grows(predicted, y - predicted)
    slipped = np.where(np.arange(300) == 7, -5.0, y)
    assert not varies_by_factors(predicted, slipped, far)
    assert not size_grows(predicted, rng.standard_normal(300))
