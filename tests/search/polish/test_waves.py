"""Waves that the rows can know: dense rows, or a wave that noise would hardly have."""

from __future__ import annotations

import numpy as np

from gmeql.formula.parsing import parse_tree
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.polish.waves import are_waves_known, stands_out


def waves_known(frequency: float, noise: float, n_rows: int = 60) -> bool:
    """Whether a fitted wave over some rows is known, where the truth is that wave (or, with much noise, nothing)."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (n_rows, 1))
    target = np.sin(frequency * x[:, 0]) + noise * rng.standard_normal(n_rows)
    rows = JudgedRows.of(x, target, None, ("x",))
    root = parse_tree(f"sin({frequency}*x)", ("x",))
    loss = float(np.mean((np.sin(frequency * x[:, 0]) - target) ** 2))
    return are_waves_known(root, loss, rows, n_rows=n_rows)


def test_a_wave_with_two_rows_to_a_half_turn_is_known() -> None:
    assert waves_known(20.0, noise=3.0)


def test_a_faster_wave_is_known_only_where_noise_has_none_like_it() -> None:
    assert waves_known(1e4, noise=0.0) and waves_known(1e4, noise=0.3)
    assert not waves_known(1e4, noise=3.0)


def test_false_alarms_in_noise_are_rare() -> None:
    """The strongest of many frequencies in noise never stands out."""
    rng = np.random.default_rng(8)
    x, frequencies = rng.uniform(0, 1, 100), 2 * np.pi * np.arange(1, 2000)
    waves = np.exp(1j * np.outer(frequencies, x))
    for _ in range(50):
        noise = rng.standard_normal(100)
        share = float((np.abs(waves @ noise) ** 2).max()) * 2 / (100 * float(noise @ noise))
        assert not stands_out(share, 97, len(frequencies))
