"""Waves of sums: the sum of products that is a wave's angle, and the factor before the wave, are read off the rows."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import row_values
from gmeql.search.direct.waves.angles import amplitudes_of, likely_amplitudes, products_of, strongest_sum

ROWS = 300


def columns(n: int) -> np.ndarray:
    return np.random.default_rng(2).uniform(-8, 8, (ROWS, n))


def values_of(nodes: list, X: np.ndarray) -> np.ndarray:
    return np.stack([row_values(node, [str(j) for j in range(X.shape[1])], X) * np.ones(ROWS) for node in nodes])


def test_products_are_all_of_up_to_three_columns() -> None:
    assert len(products_of(4)) == 4 + 6 + 4 + 4 + 4
    assert len(set(products_of(4))) == len(products_of(4))


def test_the_factor_before_a_wave_is_likely() -> None:
    X = columns(3)
    residual = X[:, 0] * X[:, 2] * np.sin(40 * X[:, 1])
    nodes = amplitudes_of(3)
    best = likely_amplitudes(residual, values_of(nodes, X))[0]
    assert np.allclose(np.abs(values_of(nodes, X)[best]), np.abs(X[:, 0] * X[:, 2]))


@pytest.mark.parametrize(
    ("factors", "tolerance"),
    [
        ({"x1**2": 1, "x0": 1, "x2": -1}, 0.05),
        ({"x0*x1": 1, "x1": -3}, 0.05),
        ({"x0*x1*x2": 1, "x2**2": 2, "x1": -1, "x0": 1}, 0.05),
        ({"x0*x1": 1, "x2": 1, "x1": 2.63}, 2.0),
    ],
)
def test_the_strongest_sum_is_the_angle(factors: dict[str, float], tolerance: float) -> None:
    X = columns(3)
    x0, x1, x2 = X.T
    named = {"x0": x0, "x1": x1, "x2": x2, "x1**2": x1**2, "x2**2": x2**2, "x0*x1": x0 * x1, "x0*x1*x2": x0 * x1 * x2}
    angle = sum(factor * named[name] for name, factor in factors.items())
    products = values_of(products_of(3), X)
    found, tried, _ = strongest_sum(products, np.sin(angle + 0.7), np.ones(ROWS), 5.0, lambda: False)
    assert found is not None and found.share > 0.7 and tried > 1e4
    seen = np.array(found.factors) @ products[list(found.products)]
    assert min(np.abs(seen - angle).max(), np.abs(seen + angle).max()) <= tolerance


def test_noise_has_no_strong_sum() -> None:
    X = columns(3)
    noise = np.random.default_rng(5).normal(size=ROWS)
    found, _, _ = strongest_sum(values_of(products_of(3), X), noise, np.ones(ROWS), 5.0, lambda: False)
    assert found is not None and found.share < 0.3
