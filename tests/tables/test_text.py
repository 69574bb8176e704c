"""Bytes of a text table to columns of strings."""

from __future__ import annotations

import pytest

from gmeql.tables.cells import TableError
from gmeql.tables.text import read_text


def cells(data: bytes, **options) -> tuple[tuple[str, ...], list[list[str]], list[int]]:
    table = read_text(data, "t.csv", **options)
    return table.names, [column.to_list() for column in table.columns], table.rows.tolist()


def test_rows_keep_the_line_they_stand_on():
    names, columns, rows = cells(b"# measured today\n\na,b\n1,2\n\n# later\n3,4\n")
    assert (names, columns, rows) == (("a", "b"), [["1", "3"], ["2", "4"]], [4, 7])


def test_quoted_cells_may_hold_the_delimiter_and_line_ends():
    names, columns, rows = cells(b'a,"b, c"\n1,"x\ny"\n2,z\n')
    assert names == ("a", "b, c") and columns[1] == ["x\ny", "z"] and rows == [2, 4]


def test_the_plain_way_and_the_careful_way_read_the_same():
    plain = cells(b"a;b\n1;2\n3;4\n")
    assert plain == cells(b'"a";b\n1;2\n3;4\n')
    assert plain[:2] == cells(b"sep=;\na;b\n1;2\n3;4\n")[:2]


def test_header_units_and_names_in_a_comment():
    assert cells(b"a,b\nm,s\n1,2\n3,4\n5,6\n")[1] == [["1", "3", "5"], ["2", "4", "6"]]
    assert cells(b"# t y\n1 2\n3 4\n")[0] == ("t", "y")
    assert cells(b"1,2\n3,4\n")[0] == ("x1", "x2")
    assert cells(b"1,2\n3,4\n", header=True)[1] == [["3"], ["4"]]


def test_a_row_of_another_length_is_named_or_left_out():
    with pytest.raises(TableError, match="3 cells where the first row has 2") as caught:
        cells(b"a,b\n1,2\n3,4,5\n6,7\n")
    assert caught.value.row == 3
    table = read_text(b"a,b\n1,2\n3,4,5\n6,7\n", "t.csv", skip_bad_rows=True)
    assert table.rows.tolist() == [2, 4] and [n.count for n in table.notes if n.code == "bad_rows"] == [1]


def test_a_quotation_mark_that_is_never_closed_is_named():
    with pytest.raises(TableError, match="never closed") as caught:
        cells(b'a,b\n1,2\n3,"4\n5,6\n')
    assert caught.value.row == 3
