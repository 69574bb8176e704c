"""Tables of tried structures: counts, growth, and the same table from the same list."""

from __future__ import annotations

import numpy as np

from gmeql.search.islands.tried import IslandTried, TriedStructures


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


def test_tries_made_elsewhere_raise_the_counts_and_never_lower_them() -> None:
    table = TriedStructures(4)
    table.add(np.array([3, 3, 5], np.uint64))
    table.merge(np.array([3, 5, 7], np.uint64), np.array([1, 4, 2], np.uint8))
    assert dict(zip(*(array.tolist() for array in table.known()), strict=True)) == {3: 2, 5: 4, 7: 2}


def test_a_table_that_is_nearly_full_takes_no_more_from_elsewhere() -> None:
    table = TriedStructures(4)
    table.merge(np.arange(1, 61, 2, dtype=np.uint64), np.ones(30, np.uint8))
    assert len(table.known()[0]) == 12
    table.merge(np.array([1, 101], np.uint64), np.array([9, 9], np.uint8))
    assert dict(zip(*(array.tolist() for array in table.known()), strict=True))[1] == 9 and len(table.known()[0]) == 12


def test_a_table_takes_no_memory_before_a_structure_comes() -> None:
    table = TriedStructures(60)  # which no machine has room for
    assert not {"keys", "counts"} & set(vars(table))
    table = TriedStructures(4)
    assert len(table.keys) == len(table.counts) == 16 and not len(table.known()[0])
