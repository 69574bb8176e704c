"""Waves of hundreds of thousands of turns: found among many columns, and none in noise or where something is explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.fast_waves import propose
from thinned import thinned


def proposed(given: DirectTable, functions: FunctionSet | None = None, seconds: float = 2.0) -> list:
    rng = np.random.default_rng(0)
    return list(propose(given, functions=functions or FunctionSet(), effort=Effort(seconds), rng=rng))


def table(frequency: float, power: float, noise: float = 0.0, columns: int = 3, rows: int = 600) -> DirectTable:
    rng = np.random.default_rng(int(1000 * frequency))
    X = rng.uniform(-50, 50, (rows, columns))
    y = 3 + 2 * np.cos(frequency * X[:, 1] ** power + 0.4)
    return DirectTable(X, y + noise * rng.standard_normal(rows), np.ones(rows))


WAVES = [(7.3, 3), (11.9, 3), (0.31, 3), (97.0, 2), (1234.5, 1)]


@pytest.mark.parametrize(
    ("frequency", "power", "noise"),
    thinned([(f, p, s) for f, p in WAVES for s in (0.0, 0.5)], quick=(0, 5, 7, 9)),
)
def test_a_fast_wave_is_found(frequency: float, power: float, noise: float) -> None:
    given = table(frequency, power, noise)
    (found,) = proposed(given)
    assert np.sqrt(np.mean((given.y - given.values(found)) ** 2)) < 1.1 * noise + 0.1


def test_none_in_noise_where_much_is_explained_or_where_waves_are_not_allowed() -> None:
    rng = np.random.default_rng(1)
    noise = DirectTable(rng.uniform(-50, 50, (600, 4)), rng.standard_normal(600), np.ones(600))
    assert proposed(noise) == []
    given = table(7.3, 3)
    assert proposed(replace(given, unexplained=0.5)) == []
    assert proposed(given, FunctionSet(["add", "mul", "exp"])) == []
    assert proposed(given, seconds=0.01) == []
