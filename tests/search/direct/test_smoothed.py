"""What a smooth fit says of a table that a direct method is given."""

import math

import numpy as np
import pytest

from gmeql.search.direct.smoothed import smooth_error, smooth_values
from gmeql.search.direct.table import DirectTable


def test_what_is_left_is_the_noise_whatever_the_weights():
    """A view divided the target by a factor: rows count by its square, and there noise is the same on every row."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (1000, 1))
    factor = rng.uniform(1, 4, 1000)
    clean = np.tanh(X[:, 0])
    y = clean + 0.1 * rng.standard_normal(1000) / factor
    table = DirectTable(X, y, factor**2 / np.mean(factor**2))
    noise = 0.1 / math.sqrt(np.mean(factor**2)) / table.spread
    assert smooth_error(table) == pytest.approx(noise, rel=0.1)
    assert np.abs(smooth_values(table) - clean).max() < 0.05


def test_a_table_that_is_not_finite_says_nothing():
    X = np.array([[1.0], [np.inf], [2.0]])
    table = DirectTable(X, np.arange(3.0), np.ones(3))
    assert smooth_values(table) is None and smooth_error(table) == math.inf
