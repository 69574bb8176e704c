"""One column: what is said of it in lists, and the columns of 0 and 1 that stand in for words."""

from __future__ import annotations

import numpy as np

from gmeql.tables.cells import Note
from gmeql.tables.column import TableColumn, with_indicators


def test_a_summary_says_what_it_holds() -> None:
    assert TableColumn("a", np.array([1.0, 2.0, np.nan]), "number", missing=1).summary == "1 to 2, 1 missing"
    assert TableColumn("a", np.array([3.0, 3.0]), "number").summary == "constant 3"
    assert TableColumn("a", np.array([-16657.2, 20251117.0]), "number").summary == "-16657 to 2.025e+07"
    assert TableColumn("a", np.full(2, np.nan), "text").summary == "text"


def test_words_become_columns_and_a_note_tells() -> None:
    labels = np.array(["x", "y"] * 5, dtype=object)
    text = TableColumn("kind", np.full(10, np.nan), "text", labels=labels)
    number = TableColumn("t", np.arange(10.0), "number")
    notes: list[Note] = []
    found = with_indicators([number, text], notes)
    assert [column.name for column in found] == ["t", "kind=x", "kind=y"]
    assert found[1].values.tolist() == [1.0, 0.0] * 5
    assert len(notes) == 1 and notes[0].count == 2
