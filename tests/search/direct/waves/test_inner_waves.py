"""Sines and cosines of waves are known by the wave that they nearly are."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.search.direct.waves.inner_waves import inner_waves


@pytest.mark.parametrize(
    ("f", "seen"),
    [
        (lambda u: np.sin(np.cos(u)), 1.0),
        (lambda u: 2.7 * np.sin(1.8 * np.sin(u + 0.3)), 1.0),
        (lambda u: np.cos(np.sin(u)), 2.0),  # even: the wave that shows is of twice the angle
        (lambda u: 0.4 - 3 * np.cos(2.1 * np.cos(u)), 2.0),
    ],
)
def test_all_constants_follow_from_a_wave_nearby(f, seen: float) -> None:
    rng = np.random.default_rng(0)
    columns = rng.uniform(-10, 10, (300, 2))
    found = inner_waves(columns, f(columns @ [1.0, 0.62]), seen * np.array([1.0003, 0.6196]), ["sin", "cos"])
    assert found is not None and found.error < 1e-12
    assert np.allclose(np.abs(found.factors), [1.0, 0.62])


def test_what_is_no_such_function_is_not_met() -> None:
    x = np.random.default_rng(0).uniform(-10, 10, (300, 1))
    found = inner_waves(x, np.sin(x[:, 0]) ** 3 + 0.1 * x[:, 0], [1.0], ["sin", "cos"])
    assert found is None or found.error > 1e-3
