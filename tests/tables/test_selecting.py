"""Columns and rows that can explain a target, one rule at a time."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.tables.cells import Note, TableError
from gmeql.tables.column import TableColumn
from gmeql.tables.selecting import check_target, check_weights, copies, usable, varying, whole_rows


def column(name: str, *values: float) -> TableColumn:
    return TableColumn(name, np.array(values), "number")


EMPTY = TableColumn("e", np.full(3, np.nan), "empty", missing=3)
SPARSE = TableColumn("s", np.array([1.0, np.nan, np.nan]), "number", missing=2)
A, B = column("a", 1.0, 2.0, 3.0), column("b", 1.0, 1.0, np.inf)


def test_empty_columns_are_left_out_and_sparse_ones_only_beside_others() -> None:
    notes: list[Note] = []
    assert usable("t", [EMPTY, A, SPARSE], notes, explicit=False, text_as_missing=False) == [A]
    assert [note.code for note in notes] == ["empty_columns", "mostly_empty_columns"]
    assert usable("t", [EMPTY, SPARSE], [], explicit=False, text_as_missing=False) == [SPARSE]
    with pytest.raises(TableError, match="has no number; take it out of --columns"):
        usable("t", [EMPTY, A], [], explicit=True, text_as_missing=False)


def test_rows_are_whole_where_every_column_has_a_finite_value() -> None:
    notes: list[Note] = []
    found = whole_rows("t", [A, B], notes, groups=("g", ["u", "v", "v"]))
    assert found.tolist() == [True, True, False] and notes[0].code == "infinite_rows"
    with pytest.raises(TableError, match="1 of 3 rows are complete; this column lacks 2 values"):
        whole_rows("t", [A, SPARSE], [], groups=None)


def test_constant_columns_are_left_out_unless_somebody_named_them() -> None:
    X, y, notes = np.array([[1.0, 5.0], [2.0, 5.0]]), np.array([1.0, 2.0]), list[Note]()
    features = [column("a", 1.0, 2.0), column("c", 5.0, 5.0)]
    assert varying("t", features, X, "y", y, notes, explicit=False) == [0] and notes[0].count == 1
    assert varying("t", features, X, "y", y, [], explicit=True) == [0, 1]
    assert copies(X, ["a", "c"], y)[0].message.startswith("column 'a' is equal to the target")
    assert copies(X, ["a", "c"], -y) == []
    with pytest.raises(TableError, match="the target is 3 in every usable row"):
        varying("t", features, X, "y", np.array([3.0, 3.0]), [], explicit=False)


def test_targets_and_weights_are_numbers() -> None:
    check_target("t", A, 3, text_as_missing=False)
    with pytest.raises(TableError, match="no rows"):
        check_target("t", A, 0, text_as_missing=False)
    with pytest.raises(TableError, match="the target is empty"):
        check_target("t", EMPTY, 3, text_as_missing=False)
    with pytest.raises(TableError, match="row 3, column 'w': a weight of -1"):
        check_weights("t", column("w", 1.0, -1.0), np.array([2, 3]))
