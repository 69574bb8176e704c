"""Malformed tables: each is read rightly, or ends with one line that names the place and the mend."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.tables import read as tables
from gmeql.tables.read import TableError
from thinned import examples
from malformed_tables import GOOD, READ, REFUSED, WIDE, T, Y


def test_there_are_enough_malformed_tables():
    assert len(READ) + len(REFUSED) >= 100


@pytest.mark.parametrize("case", READ)
def test_is_read_rightly(case: str):
    data, target, features, y, code = READ[case]
    training = tables.read(data, name="table.csv").select(target)
    assert training.names == tuple(features)
    np.testing.assert_array_equal(training.X.T, np.array(list(features.values()), dtype=float))
    np.testing.assert_array_equal(training.y, y)
    if code is not None:
        assert code in {note.code for note in training.notes}


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused_in_one_line(case: str):
    data, target, words, row, column = REFUSED[case]
    with pytest.raises(TableError) as caught:
        tables.read(data, name="table.csv").select(target)
    message = str(caught.value)
    assert any(word in message for word in words.split("|"))
    assert message.startswith("table.csv") and "\n" not in message and "\x1b" not in message and len(message) < 600
    assert caught.value.mend and message.endswith(caught.value.mend)
    if row is not None:
        assert caught.value.row == row and f"row {row}" in message
    if column is not None:
        assert caught.value.column == column and column in message


def test_ten_thousand_columns():
    training = tables.read(WIDE.encode()).select("c1")
    constant = next(note.count for note in training.notes if note.code == "constant_columns")
    assert training.X.shape == (4, 9999 - constant)
    assert all(len(str(note)) < 300 for note in training.notes)


def test_options_override_what_would_be_found():
    assert tables.read(b"1990,1991,y\n1,2,3\n4,5,9\n", header=True).names == ("1990", "1991", "y")
    assert tables.read(b"a,b\n1,2\n3,4\n", header=False).columns[0].kind == "broken"
    table = tables.read(b"a;b\n1,5;2\n2,5;3\n", decimal=".", delimiter=";")
    assert table.columns[0].kind == "text"
    assert tables.read("é,b\n1,2\n".encode("cp437"), encoding="cp437").names == ("é", "b")
    for wrong in ({"delimiter": "ab"}, {"decimal": "x"}, {"decimal": ",", "delimiter": ","}, {"encoding": "klingon"}):
        with pytest.raises(TableError):
            tables.read(GOOD.encode(), **wrong)


def test_parquet_keeps_numbers_and_types():
    frame = pl.DataFrame(
        {
            "t": T,
            "i": [1, 2, None],
            "flag": [True, False, True],
            "who": ["a", "b", "c"],
            "y": Y,
            "odd": [[1], [2], [3]],
            "text": ["1.5", "2", "x"],
        }
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    table = tables.read(buffer.getvalue(), name="t.parquet")
    assert [c.kind for c in table.columns] == ["number", "number", "number", "text", "number", "text", "broken"]
    training = table.select("y", drop=["text"])
    assert training.names == ("t", "i", "flag") or training.names == ("t", "i")
    assert next(note.count for note in training.notes if note.code == "missing_rows") == 1


def workbook() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["t", "who", "y"], [0, "ann", 1], [1, "bob", 3], [None, "eve", 4], [2, "dan", 6]):
        book.active.append(row)
    book.create_sheet("more").append(["a", "b"])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def test_numbers_of_a_workbook_keep_all_their_digits():
    """The reader writes cells beside a heading with nine decimals: Planck's constant was read as 0."""
    import openpyxl

    values = [6.62607015e-34, 1 / 3, 1.2e20, 3.0, -12345.678901234567]
    book = openpyxl.Workbook()
    book.active.append(["x", "y", "word"])
    for value, word in zip(values, ("a", "1,5", "7.25", None, "true"), strict=True):
        book.active.append([value, 2.0 * value, word])
    data = io.BytesIO()
    book.save(data)
    table = tables.read(data.getvalue(), name="book.xlsx")
    assert table.column("x", "").values.tolist() == pytest.approx(values, rel=1e-15)
    assert table.column("y", "").values.tolist() == pytest.approx([2.0 * value for value in values], rel=1e-15)
    assert table.preview[0][2] == "a" and table.preview[1][2] == "1,5" and table.preview[4][2] == "true"


def test_excel_is_read_like_any_other_table():
    training = tables.read(workbook(), name="book.xlsx").select("y")
    assert training.names == ("t",) and training.X.ravel().tolist() == T and training.rows.tolist() == [2, 3, 5]
    assert {note.code for note in training.notes} == {"text_columns", "missing_rows", "other_sheets"}
    more = tables.read(workbook(), name="book.xlsx", sheet="more")
    assert more.names == ("a", "b") and not more.notes
    with pytest.raises(TableError, match="no such column.*first sheet is read; --sheet takes another, such as 'more'"):
        tables.read(workbook(), name="book.xlsx").column("price", "--target")
    with pytest.raises(TableError, match="book.xlsx: has no sheet 'none'; --sheet takes one of 'Sheet', 'more'"):
        tables.read(workbook(), name="book.xlsx", sheet="none")


def parquet() -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame({"t": T, "y": [1.0, 3.0, 6.0]}).write_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("data", [b"t,y\n0,1\n1,3\n2,6\n", parquet()], ids=["text", "parquet"])
def test_a_sheet_of_what_is_no_workbook_is_refused(data):
    """It was ignored: somebody who names a sheet believes to read another file."""
    with pytest.raises(TableError, match="table: has no sheet 'more': it is no workbook; leave --sheet out"):
        tables.read(data, sheet="more")


def test_options_of_text_that_other_files_do_not_need_are_noted():
    told = {"delimiter": ";", "encoding": "latin-1", "decimal": ",", "header": False}
    notes = tables.read(parquet(), **told).select("y").notes
    assert "not used, the file is no text: --delimiter, --encoding, --decimal, --header" in map(str, notes)
    notes = tables.read(workbook(), **told).notes
    assert "not used, the file is no text: --delimiter, --encoding" in map(str, notes)
    notes = tables.read(workbook(), decimal=",", header=True).notes
    assert [note.code for note in notes] == ["other_sheets"]


def test_excel_without_a_reader_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TableError, match="pip install fastexcel"):
        tables.read(workbook(), name="book.xlsx")


def test_reading_from_paths(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text(GOOD)
    assert tables.read(path).source == str(path)
    with pytest.raises(TableError, match="did you mean .*measured.csv"):
        tables.read(tmp_path / "mesured.csv")
    with pytest.raises(TableError, match="folder"):
        tables.read(tmp_path)
    with pytest.raises(TableError, match="no such file"):
        tables.read(tmp_path / "no" / "way.csv")
    with pytest.raises(TableError):
        tables.read("a\0b")


# ------------------------------------------------------------------------------------------------- generated tables

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
plain_names = st.text(st.characters(categories=["L"]), min_size=1, max_size=8)


@st.composite
def sheets(draw):
    """A table of numbers and one way to write it: delimiter, decimal mark, encoding, line ends."""
    width, height = draw(st.integers(2, 5)), draw(st.integers(2, 8))
    names = draw(st.lists(plain_names, min_size=width, max_size=width, unique=True))
    values = draw(st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=height, max_size=height))
    decimal = draw(st.sampled_from([".", ","]))
    delimiter = draw(st.sampled_from(["\t", ";", "|"] + ([","] if decimal == "." else [])))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    rows = [delimiter.join(names)] + [delimiter.join(repr(v).replace(".", decimal) for v in row) for row in values]
    return names, np.array(values), newline.join(rows).encode(encoding), decimal


@examples(60)
@given(sheets())
def test_any_way_to_write_a_table_reads_the_same_numbers(sheet):
    names, values, data, decimal = sheet
    table = tables.read(data, decimal=decimal)
    usual = [name.lower() not in {"na", "nan", "null", "none", "nil", "missing", "inf", "infinity"} for name in names]
    if all(usual):
        assert list(table.names) == [" ".join(name.split()) for name in names]
        np.testing.assert_array_equal(table.matrix(table.names), values)


@examples(200)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_end_in_a_table_or_in_one_line(data, skip):
    try:
        table = tables.read(data, name="any", skip_bad_rows=skip)
        table.select(table.names[-1])
    except TableError as error:
        assert "\n" not in str(error)


@examples(200)
@given(st.text(alphabet="ab1.,;\t|\"\n\r -+e#%NA'", max_size=200))
def test_any_almost_table_ends_in_a_table_or_in_one_line(text):
    try:
        table = tables.read(text.encode(), name="any")
        training = table.select(table.names[-1])
        assert (
            np.isfinite(training.X).all()
            and np.isfinite(training.y).all()
            and len(training.y) == len(training.X) == len(training.rows)
        )
    except TableError as error:
        assert "\n" not in str(error)
