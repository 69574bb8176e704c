"""Tables of tried structures: counts, growth, and the same table from the same list."""

from __future__ import annotations

import numpy as np

from gmeql.search.tried import IslandTried, TriedStructures


def test_tries_are_counted() -> None:
    table = TriedStructures(10)
    fingerprints = np.random.default_rng(0).integers(1, 2**62, 300).astype(np.uint64) * np.uint64(2) + np.uint64(
        1
    )  # the lowest bit is the table's
    table.add(fingerprints)
    table.add(fingerprints[:100])
    counts = dict(zip(table.keys[table.keys > 0].tolist(), table.counts[table.keys > 0].tolist(), strict=True))
    assert counts == {int(f): 2 if i < 100 else 1 for i, f in enumerate(fingerprints)}


def test_a_read_only_list_is_taken() -> None:
    fingerprints = np.arange(1, 17, 2, dtype=np.uint64)
    fingerprints.flags.writeable = False
    table = TriedStructures(4)
    table.add(fingerprints)
    assert set(table.keys[table.keys > 0].tolist()) == set(range(1, 17, 2))


def test_an_islands_table_grows_and_keeps_its_order() -> None:
    drawn = np.random.default_rng(0).integers(1, 2**63, 5000).astype(np.uint64)
    drawn = np.concatenate([drawn, drawn[:700]])
    grown = IslandTried()
    small = len(grown.keys)
    for part in np.array_split(drawn, 40):
        grown.make_room(len(part))
        grown.add(part)
        assert len(grown.keys) >= 4 * len(grown.fingerprints)
    assert len(grown.keys) > small
    made = IslandTried(drawn)
    for table in (made, TriedStructures.from_dict(made.to_dict(), len(made.keys).bit_length() - 1)):
        np.testing.assert_array_equal(table.keys, grown.keys)
        np.testing.assert_array_equal(table.counts, grown.counts)
    assert grown.counts.max() == 2 and (grown.counts == 2).sum() >= 690
    np.testing.assert_array_equal(grown.fingerprints, drawn)
