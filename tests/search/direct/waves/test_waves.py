"""Waves read off periodograms: against a slow scan of frequencies, recovered laws, and none in noise or smooth data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves import waves
from gmeql.search.direct.waves.waves import propose, strongest
from gmeql.search.polish.scoring import JudgedRows, refit
from thinned import thinned


def table(f: Callable[..., np.ndarray], low: float, high: float, rows: int, noise: float = 0.0) -> DirectTable:
    rng = np.random.default_rng(4)
    X = rng.uniform(low, high, (rows, f.__code__.co_argcount))
    y = f(*X.T)
    return DirectTable(X, y + noise * rng.standard_normal(rows), np.ones(rows))


def proposed(given: DirectTable, functions: FunctionSet | None = None, seconds: float = 0.3) -> list:
    rng = np.random.default_rng(0)
    return list(propose(given, functions=functions or FunctionSet(), effort=Effort(seconds), rng=rng))


def least_error(given: DirectTable) -> float:
    """Of the proposals with their constants refitted, as the search does it."""
    rows = JudgedRows.of(given.X, given.y, None, [f"x{i}" for i in range(given.n_columns)])
    fitted = refit(proposed(given), rows, keep_recognised=False, max_steps=60)
    return min((given.error(scored.root) for scored in fitted), default=np.inf)


@pytest.mark.parametrize(
    ("f", "low", "high", "rows"),
    thinned([
        (lambda x: np.cos(2.5 * x**3), -20, 20, 120),
        (lambda x: np.cos(31 * x) * np.sin(7.3 * x), 0, 50, 300),
        (lambda x: np.cos(310 * x) * np.sin(73 * x), 0, 50, 300),
        (lambda x: x + 5 * np.sin(3 * x**2), -20, 20, 200),
        (lambda x: np.sin(40 / x), 0.05, 1, 200),
        (lambda x, z: z * np.cos(40 * x) + 2, 0, 10, 200),
        (lambda x, z: np.cos(14.03 * x) * np.cos(5 * z), -10, 10, 250),
        (lambda x, z: 2 - 1.7 * np.cos(11.2 * x) * np.sin(1.9 * z), -40, 40, 500),
        (lambda x, z: x * z - 2 * np.cos(4.03 * x + z), -10, 10, 250),
        (lambda x: x + np.cos(1.7 * x**2 - 4.1 * x), -10, 10, 250),
        (lambda x, y, z: y * (np.sin(x**2 + z - 2 * x) - z), -10, 10, 300),
        (lambda x, y, z: np.sqrt(900 + y * (x + np.cos(x * z + 2.31 * y))), -10, 10, 400),
    ], quick=(0, 1, 3, 4, 5, 8)),
)  # fmt: skip
def test_waves_of_many_turns(f: Callable[..., np.ndarray], low: float, high: float, rows: int) -> None:
    assert least_error(table(f, low, high, rows)) < 1e-9


def test_of_waves_that_even_steps_do_not_tell_apart_the_slowest_is_found() -> None:
    """Of 15 minutes each, a day's wave was one of 193 turns a day."""
    rng = np.random.default_rng(0)
    for phase in np.linspace(0, 3, 7):
        days = np.arange(400.0)[:, None] / 96
        residual = np.sin(2 * np.pi * days[:, 0] + phase) + 0.1 * rng.standard_normal(400)
        assert strongest(days, residual, 1 << 14)[0][0] == pytest.approx(2 * np.pi, rel=0.2)
    lattice = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=2).reshape(-1, 2)
    found, _ = strongest(lattice, np.sin(0.9 * lattice[:, 0] - 0.5 * lattice[:, 1]), 1 << 9)
    np.testing.assert_allclose(found * np.sign(found[0]), [0.9, -0.5], atol=0.1)


def test_a_wave_under_noise() -> None:
    given = table(lambda x: np.cos(700 * x), -10, 10, 300, noise=0.4)
    assert least_error(given) < 1.1 * 0.4 / given.spread


def test_no_waves_in_noise_or_beside_a_parabola() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        noise = DirectTable(rng.uniform(0, 1, (200, 2)), rng.standard_t(3, 200), np.ones(200))
        assert proposed(noise, seconds=0.5) == []
    for smooth in (lambda x: 3 * x**2 - x, lambda x, z: x * z + 2 * z**2):
        assert proposed(table(smooth, 1, 10, 200), seconds=0.5) == []


def test_nothing_where_waves_are_not_allowed_or_rows_are_few() -> None:
    given = table(lambda x: np.cos(31 * x), 0, 50, 200)
    assert proposed(given, FunctionSet(["add", "mul", "exp"])) == []
    assert proposed(table(lambda x: np.cos(31 * x), 0, 50, 12)) == []
    assert proposed(given, seconds=1e-9) == []


@pytest.mark.parametrize("columns", [1, 2])
def test_the_transform_finds_what_a_slow_scan_finds(columns: int) -> None:
    rng = np.random.default_rng(5)
    values, grid = rng.uniform(0, 2 * np.pi, (80, columns)), 64
    residual = np.sin(values @ np.array([5.0, 3.0])[:columns] + 0.3) + 0.1 * rng.standard_normal(80)
    steps = np.arange(0, 8.01, 0.1)
    trials = np.stack(np.meshgrid(*[np.r_[-steps[::-1], steps] if d == 0 else steps for d in range(columns)]), -1)
    power = np.abs(np.exp(1j * (trials.reshape(-1, columns) @ values.T)) @ residual)
    slow = trials.reshape(-1, columns)[int(np.argmax(power))]
    found, _ = strongest(values, residual, grid)
    assert min(np.abs(found - slow).max(), np.abs(found + slow).max()) < 0.6  # half a frequency step of the grid


def test_a_random_walk_is_no_trail() -> None:
    """It is nearly two slow waves beside a trend, but no sum of powers with them comes nearer."""
    rng = np.random.default_rng(3)
    X = rng.permutation(np.linspace(0, 10, 600))[:, None]
    walk = np.cumsum(rng.standard_normal(600))[np.argsort(np.argsort(X[:, 0]))]
    given = DirectTable(X, walk, np.ones(600))
    careful: list[object] = []

    class Watched(waves.TermChoice):
        def __init__(self, *parts: Any, **options: Any) -> None:
            super().__init__(*parts, **options)
            careful.append(options["beams"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves, "TermChoice", Watched)
        proposed(given)
        assert len(careful) == 1
        proposed(replace(given, unexplained=0.05))
        assert len(careful) == 1  # others came nearer already
