"""Random numbers against SplitMix64's published sequence and against their distributions."""

from __future__ import annotations

import numpy as np
from scipy import stats

from gmeql.search.sampling.random import next_bits, normal, pick, scramble, uniform


def test_the_published_sequence() -> None:
    """The first outputs of SplitMix64 for seed 1234567 (Vigna's reference implementation)."""
    state = np.array([1234567], np.uint64)
    drawn = [int(next_bits(state)) for _ in range(5)]
    assert drawn == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


def test_distributions() -> None:
    state = np.array([3], np.uint64)
    flat = np.array([uniform(state) for _ in range(20_000)])
    bell = np.array([normal(state) for _ in range(20_000)])
    assert flat.min() >= 0.0 and flat.max() < 1.0
    assert stats.kstest(flat, "uniform").pvalue > 0.01 and stats.kstest(bell, "norm").pvalue > 0.01


def test_scrambling_is_one_to_one_and_changes_half_of_the_bits() -> None:
    values = np.arange(1, 4001, dtype=np.uint64)
    scrambled = np.array([scramble(value) for value in values], np.uint64)
    assert len(set(scrambled.tolist())) == len(values)
    flipped = [
        bin(int(a) ^ int(scramble(v ^ np.uint64(1 << 40)))).count("1") for a, v in zip(scrambled, values, strict=True)
    ]
    assert abs(np.mean(flipped) - 32) < 1


def test_picks_follow_the_weights() -> None:
    weights = np.array([0.5, 0.0, 2.0, 1.5, 9.0])
    cumulative = np.cumsum(weights)
    for u in np.linspace(0, 0.9999, 57):
        picked = pick(cumulative, 4, u)  # the last weight is not among the first four
        assert picked == np.searchsorted(cumulative[:4], u * 4.0, side="right") and weights[picked] > 0
