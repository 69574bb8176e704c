"""Column names: each different, none empty, none over two lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gmeql.tables.names import tidy_names


@given(st.lists(st.text(max_size=6), min_size=1, max_size=12))
def test_tidy_names_are_different_and_filled(raw):
    names, _, _ = tidy_names(raw)
    assert len(set(names)) == len(raw) and all(names) and all(name.isprintable() for name in names)


def test_changes_are_noted_and_counted():
    names, duplicated, notes = tidy_names(["a", "", "a", "a_2", "b\x00", None])
    assert names == ("a", "column2", "a_3", "a_2", "b\ufffd", "column6")
    assert duplicated == {"a"}
    assert {note.code: note.count for note in notes} == {"empty_names": 2, "duplicate_names": 1, "changed_names": 1}


def test_good_names_stay():
    assert tidy_names(["flow rate", "T [K]"]) == (("flow rate", "T [K]"), frozenset(), [])
