"""A judged table: columns chosen, dropped, weighed; rows left out are counted."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.tables.cells import TableError
from gmeql.tables.read import read
from gmeql.tables.column import TableColumn
from malformed_tables import T


def test_bad_rows_and_text_are_left_out_only_when_asked_and_counted():
    table = read(b"t,y\n0,1\n1,3,9\n1,3\nx,5\n2,6\n", skip_bad_rows=True)
    training = table.select("y", text_as_missing=True)
    assert training.X.ravel().tolist() == T and training.rows.tolist() == [2, 4, 6]
    counts = {note.code: note.count for note in training.notes}
    assert counts["bad_rows"] == 1 and counts["missing_rows"] == 1 and counts["text_cells"] == 1


def test_rows_left_out_name_the_columns_that_lack_a_value():
    table = read(b"a,b,g,y\n1,2,u,3\n,4,u,5\n3,,u,9\n,7,v,\n5,inf,v,1\n6,2,,4\n7,7,v,2\n")
    notes = {note.code: note for note in table.select("y", groups="g").notes}
    assert notes["missing_rows"].message == (
        "4 of 7 rows left out: a value is missing (2 in 'a', 1 in 'b', 1 in 'y', 1 in 'g')"
    )
    assert notes["infinite_rows"].message == "1 of 7 rows left out: a value is infinite (1 in 'b')"
    assert (notes["missing_rows"].count, notes["infinite_rows"].count) == (4, 1)


@pytest.mark.parametrize(
    ("text", "options", "problem", "mend"),
    [
        ("a,y\n1,2\n2,3\n3,x\n4,5\n", {}, "'x' is not a number", "or choose another --target"),
        ("a,y\n1,2024-01-01\n2,2024-01-03\n3,2024-02-01\n", {}, "holds dates", "a column of numbers"),
        ("a,w,y\n1,2,1\n2,x,3\n3,1,4\n", {"weights": "w"}, "'x' is not a number", "or choose other --weights"),
        ("a,b,y\n1,2,1\n2,1,3\n", {"errors": ["s"]}, "no such column", "--y-error or --x-error takes one of"),
    ],
)
def test_the_mend_is_that_of_the_column(text: str, options: dict, problem: str, mend: str) -> None:
    with pytest.raises(TableError, match=problem) as caught:
        read(text.encode()).select("y", **options)
    assert mend in caught.value.mend


def test_columns_are_chosen_dropped_and_weigh():
    table = read(b"a,b,c,w,y\n1,2,5,1,3\n2,4,7,2,5\n3,9,6,0,9\n")
    assert table.select("y", columns=["b", "a"]).names == ("b", "a")
    assert table.select("y", drop=["b", "w"]).names == ("a", "c")
    weighted = table.select("y", weights="w")
    assert weighted.names == ("a", "b", "c") and weighted.weights.tolist() == [1, 2, 0]
    for wrong, words in (
        ({"columns": ["q"]}, "no such column"),
        ({"drop": ["q"]}, "no such column"),
        ({"columns": ["y"]}, "explain itself"),
        ({"weights": "q"}, "no such column"),
        ({"drop": ["a", "b", "c", "w"]}, "no column of numbers"),
    ):
        with pytest.raises(TableError, match=words):
            table.select("y", **wrong)
    with pytest.raises(TableError, match="a weight of -1") as caught:
        read(b"a,w,y\n1,1,3\n2,-1,5\n").select("y", weights="w")
    assert caught.value.row == 3


def test_columns_that_are_left_out_are_named_where_none_is_left():
    """Dates as 01/02/2024 were text, and who had no other column was told that there was none."""
    days = b"".join(b"%02d/05/2024,%d\n" % (1 + i % 12, i) for i in range(30))
    with pytest.raises(TableError, match="column 'date' is written as 01/02/2024, which may be two days: left out"):
        read(b"date,y\n" + days).select("y")


def test_matrix_for_prediction_keeps_every_row():
    table = read(b"b,a\n1,2\n,3\n5,6\n")
    np.testing.assert_array_equal(table.matrix(["a", "b"]), [[2, 1], [3, np.nan], [6, 5]])
    with pytest.raises(TableError, match="no such column"):
        table.matrix(["q"])


@pytest.mark.parametrize(
    ("column", "summary"),
    [
        (TableColumn("a", np.array([1.0, 2.5, np.nan]), "number", missing=1), "1 to 2.5, 1 missing"),
        (TableColumn("a", np.array([3.0, 3.0]), "number"), "constant 3"),
        (TableColumn("a", np.array([np.nan, 4.0]), "broken", texts=1), "4 to 4, 1 cell is text"),
        (TableColumn("a", np.array([np.inf]), "number"), "no finite number"),
        (TableColumn("a", np.array([np.nan]), "text", texts=1), "text"),
        (TableColumn("a", np.array([np.nan]), "empty", missing=1), "empty"),
    ],
)
def test_a_column_in_a_few_words(column, summary):
    assert column.summary == summary


def test_a_target_of_class_labels_says_that_they_are_no_numbers():
    table = read(b"a,kind\n1,cat\n2,dog\n3,cat\n", name="t.csv")
    with pytest.raises(
        TableError, match="the target holds text; .*class labels are not numbers: gmeql classify"
    ) as caught:
        table.select("kind")
    assert caught.value.column == "kind" and caught.value.row == 2


def test_near_names_are_offered():
    table = read(b"mass,speed,y\n1,2,3\n2,3,5\n")
    with pytest.raises(TableError, match="did you mean 'mass'"):
        table.select("y", columns=["masss"])
    with pytest.raises(TableError, match="--columns takes one of 'mass', 'speed', 'y'"):
        table.select("y", columns=["q"])
