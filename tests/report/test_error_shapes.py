"""Errors of counts, growing errors and errors to one side: told where they are, and only there."""

from __future__ import annotations

import numpy as np

from gmeql.report.error_shapes import are_counts, errors_grow, one_sided, spread_as_counts


def test_counts_and_their_spread(rng: np.random.Generator) -> None:
    """Of 250 rows with two counts on average errors hardly grow, but are as large as those of counts."""
    expected = rng.uniform(0.5, 4, 250)
    told = 0
    for _ in range(20):
        y = rng.poisson(expected).astype(float)
        told += are_counts(y) and spread_as_counts(expected, y, expected - y)
    assert told >= 19
    ratings = rng.integers(1, 6, 250).astype(float)
    assert not spread_as_counts(np.full(250, 3.0) + 0.1 * expected, ratings, 3.0 - ratings)
    assert not are_counts(ratings + 0.5) and not are_counts(1000 + ratings)


def test_growing_errors(rng: np.random.Generator) -> None:
    predicted = np.exp(rng.uniform(0, 4, 200))
    y = predicted * np.exp(0.2 * rng.standard_normal(200))
    assert errors_grow(predicted, y, predicted - y)
    assert not errors_grow(predicted, predicted + 5 + rng.uniform(0, 1, 200), rng.standard_normal(200))


def test_errors_to_one_side_say_which(rng: np.random.Generator) -> None:
    errors = 1.0 - rng.exponential(size=200)  # prediction less target
    (sentence,) = one_sided(errors)
    assert "of the rows are below the formula, those far off are above it" in sentence and "absolute" in sentence
    (sentence,) = one_sided(-errors)
    assert "of the rows are above the formula, those far off are below it" in sentence
    assert not any(one_sided(rng.standard_normal(n)) for n in (20, 50, 100, 1000) for _ in range(50))
    assert one_sided(np.zeros(100)) == []


def test_a_heavy_tail_is_not_one_side(rng: np.random.Generator) -> None:
    """A few rows of a symmetric tail make a skewness of any size: 51 % of the rows "above the formula" is no side."""
    tables = [rng.standard_t(2.5, n) for n in (60, 300, 3000) for _ in range(40)]
    assert sum(bool(one_sided(errors)) for errors in tables) <= 8
