"""Counts of tries in a table of open addressing."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gmeql.search.sampling.tried import MOST, PROBES, count_one, count_tries


def table(bits: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, np.uint8)


def test_counts_are_those_of_a_dictionary() -> None:
    keys, counts = table(12)
    hashes = np.random.default_rng(0).integers(0, 300, 2000).astype(np.uint64) * np.uint64(2)
    count_tries(keys, counts, hashes)
    expected = Counter(hashes.tolist())
    assert {h: count_one(keys, counts, np.uint64(h), 0) for h in expected} == expected
    assert count_one(keys, counts, np.uint64(10_000), 0) == 0  # asking adds nothing
    assert int(counts.sum()) == len(hashes) and int((keys != 0).sum()) == len(expected)


def test_counts_end_where_a_byte_would() -> None:
    keys, counts = table(4)
    count_tries(keys, counts, np.full(MOST + 50, 8, np.uint64))
    assert count_one(keys, counts, np.uint64(8), 1) == MOST


def test_a_full_table_forgets_and_harms_nothing() -> None:
    keys, counts = table(4)
    count_tries(keys, counts, np.arange(2, 2 + 2 * 40, 2, dtype=np.uint64))
    assert len(keys) < PROBES and (keys != 0).all() and counts.sum() == len(keys)
    assert count_one(keys, counts, np.uint64(1000), 1) == 0
