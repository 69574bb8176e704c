"""Waves that the rows can know: dense rows, or a wave that noise would hardly have."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.parsing import parse_tree
from gmeql.search.polish.scoring import JudgedRows, refit
from gmeql.search.polish.waves import are_waves_known, rows_rested_on, stands_out


def waves_known(frequency: float, noise: float, n_rows: int = 60) -> bool:
    """Whether a fitted wave over some rows is known, where the truth is that wave (or, with much noise, nothing)."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (n_rows, 1))
    target = np.sin(frequency * x[:, 0]) + noise * rng.standard_normal(n_rows)
    rows = JudgedRows.of(x, target, None, ("x",))
    root = parse_tree(f"sin({frequency}*x)", ("x",))
    loss = float(np.mean((np.sin(frequency * x[:, 0]) - target) ** 2))
    return are_waves_known(root, loss, rows, n_rows=n_rows)


def test_a_slow_wave_is_a_curve_like_any_other() -> None:
    assert waves_known(5.0, noise=3.0)


def test_dense_rows_do_not_excuse_a_wave_of_many_turns_in_noise() -> None:
    """Two hundred rows have more than two to each half-turn, and a wave that noise alone makes as good."""
    assert not waves_known(100.0, noise=5.0, n_rows=200)
    assert waves_known(100.0, noise=1.0, n_rows=200)


def test_a_faster_wave_is_known_only_where_noise_has_none_like_it() -> None:
    assert waves_known(1e4, noise=0.0) and waves_known(1e4, noise=0.3)
    assert not waves_known(1e4, noise=3.0)


def test_no_wave_is_known_through_the_few_values_of_a_code() -> None:
    """Four machines by their numbers: a wave through four effects exists for any numbers and any effects."""
    rng = np.random.default_rng(5)
    code = rng.choice([101.0, 204.0, 305.0, 411.0], 250)
    for x, known in ((code, False), (rng.uniform(101, 411, 250), True)):
        target = -8 * np.cos(1.0232 * x) + 0.5 * rng.standard_normal(250)
        rows = JudgedRows.of(x[:, None], target, None, ("x",))
        root = parse_tree("-8.001*cos(1.0232*x)", ("x",))
        assert are_waves_known(root, 0.25, rows, n_rows=250) == known


def test_false_alarms_in_noise_are_rare() -> None:
    """The strongest of many frequencies in noise never stands out."""
    rng = np.random.default_rng(8)
    x, frequencies = rng.uniform(0, 1, 100), 2 * np.pi * np.arange(1, 2000)
    waves = np.exp(1j * np.outer(frequencies, x))
    for _ in range(50):
        noise = rng.standard_normal(100)
        share = float((np.abs(waves @ noise) ** 2).max()) * 2 / (100 * float(noise @ noise))
        assert not stands_out(share, 97, len(frequencies))


def test_what_grows_with_the_errors_rests_on_few_rows() -> None:
    rng = np.random.default_rng(9)
    even, errors = np.ones(4000), rng.standard_normal(4000)
    size = rng.uniform(0, 1, 4000) ** 6
    assert rows_rested_on(even, errors, even) == pytest.approx(4000)
    assert rows_rested_on(size, rng.standard_normal(4000), even) == pytest.approx(4000, rel=0.15)
    assert rows_rested_on(size, size * errors, even) < 800
    one = np.where(np.arange(4000) == 7, 1.0, 0.0)
    assert rows_rested_on(one, one, even) == pytest.approx(1.0)
    assert rows_rested_on(2 * size, size * errors, even / 4) == pytest.approx(rows_rested_on(size, size * errors, even))


def test_a_wave_through_the_largest_of_growing_errors_is_not_known() -> None:
    """Sizes over three orders, errors in proportion: the best of many fast waves times x**2 gains more than 18 nats in
    the rows' number, but meets three large rows and no others."""
    rng = np.random.default_rng(3)
    x = np.exp(rng.normal(0, 1.2, (200, 1)))
    y = x[:, 0] + 0.4 * x[:, 0] * rng.standard_normal(200)
    rows = JudgedRows.of(x, y, None, ("x",))
    roots = [parse_tree(f"1.123*x + 0.0123*x**2*cos({f}*x)", ("x",)) for f in np.linspace(20, 40, 400)]
    found = min(refit(roots, rows), key=lambda scored: scored.loss)
    plain = refit([parse_tree("1.1*x", ("x",))], rows)[0]
    assert stands_out(1 - found.loss / plain.loss, 196, 300.0)
    assert not are_waves_known(found.root, found.loss, rows, n_rows=200)


def test_a_wave_may_keep_what_stands_under_a_root_above_zero() -> None:
    """Without the wave the root has no value on some rows: the others tell."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (600, 2))
    under = 1.3 * X[:, 1] + np.sin(40 * X[:, 0])
    X, under = X[under > 0], under[under > 0]
    root = parse_tree("sqrt(1.3*z + sin(40*x))", ("x", "z"))
    assert (X[:, 1] < 0).any()
    for target, known in ((np.sqrt(under), True), (np.sqrt(under) + 9 * rng.standard_normal(len(under)), False)):
        loss = float(np.mean((np.sqrt(under) - target) ** 2))
        rows = JudgedRows.of(X, target, None, ("x", "z"))
        assert are_waves_known(root, loss, rows, n_rows=len(target)) == known
