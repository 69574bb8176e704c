"""Angles with factors of any value are read off products of two matrices."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.search.direct.waves.any_factors import AngleTerms, refined_on_more, sums_of


def terms_of(X: np.ndarray) -> AngleTerms:
    """Two columns, their product and their fraction, and sines of them."""
    a, b = X
    return AngleTerms(np.stack([a, b, a * b, a / b, np.sin(a), np.sin(b)]), n_columns=2, n_functions=2)


@pytest.mark.parametrize(
    ("factors", "are_rarer"),
    [
        ({3: -11.74}, False),  # a fraction, huge on a few rows
        ({0: 0.22, 5: 1.0}, False),  # a whole multiple of another term beside any of a column
        ({2: 2.3, 4: 1.37}, False),
        ({2: 0.43, 1: 1.91}, True),
        ({2: 0.87, 4: 2.4, 1: 1.0}, True),
    ],
)
def test_the_strongest_sum_is_the_angle(factors: dict[int, float], are_rarer: bool) -> None:
    X = np.random.default_rng(1).uniform(-10, 10, (2, 500))
    terms = terms_of(X)
    numbers, true = list(factors), np.array(list(factors.values()))
    target = 1.7 * np.sin(true @ terms.values[numbers] + 0.4)
    near = [
        found
        for found in sums_of(terms, target, 9.0, lambda: False, are_rarer=are_rarer)
        if set(found.products) == set(numbers)
    ]
    columns = terms.values[list(near[0].products)].T
    refined = dict(zip(near[0].products, refined_on_more(columns, target, near[0].factors), strict=True))
    sign = np.sign(refined[numbers[0]] * true[0])  # the wave of an angle and of one less it are the same
    assert np.allclose([sign * refined[m] for m in numbers], true, rtol=1e-9)


def test_noise_has_no_waves_and_no_time_gives_none() -> None:
    rng = np.random.default_rng(2)
    terms = terms_of(rng.uniform(-10, 10, (2, 500)))
    assert list(sums_of(terms, rng.normal(size=500), 9.0, lambda: False)) == []
    assert list(sums_of(terms, np.sin(terms.values[2]), 9.0, lambda: True)) == []
