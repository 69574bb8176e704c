"""Scale and offset in closed form, against a plain fit."""

from __future__ import annotations

import numpy as np

from gmeql.search.direct.least_squares import with_second


def test_the_screen_is_least_squares() -> None:
    """Factor, offset and what is left are those of a plain weighted fit."""
    rng = np.random.default_rng(3)
    x, w = rng.uniform(0.5, 3.0, 60), np.linspace(0.5, 1.5, 60)
    y = np.cos(x) + 2 + 0.1 * rng.standard_normal(60)
    f = x**2 * np.exp(-x)

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.array([[np.sum(w * a * b)]])

    for g in (np.ones(60), x**2):
        found = with_second(
            float(np.sum(w * y * y)), product(y, f), product(f, f), product(y, g), product(g, g), product(f, g)
        )
        columns = np.column_stack([f, g]) * np.sqrt(w)[:, None]
        expected, squares, *_ = np.linalg.lstsq(columns, np.sqrt(w) * y, rcond=None)
        np.testing.assert_allclose([found.factor[0, 0], found.offset[0, 0]], expected, rtol=1e-8)
        np.testing.assert_allclose(found.squares[0, 0], squares[0], rtol=1e-8)
