"""Malformed tables: each is read rightly, or ends with one line that names the place and the mend."""

from __future__ import annotations

import gzip
import io
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmeql import tables
from gmeql.cells import parse_number
from gmeql.tables import TableError
from gmeql.text_tables import sniff_delimiter, tidy_names


def utf16(text: str, mark: bool = True, big: bool = False) -> bytes:
    return (b"" if not mark else b"\xfe\xff" if big else b"\xff\xfe") + text.encode("utf-16-be" if big else "utf-16-le")


GOOD = "t,y\n0,1\n1,3\n2,6\n"
T, Y = [0.0, 1.0, 2.0], [1.0, 3.0, 6.0]
WIDE = (
    ",".join(f"c{i}" for i in range(10_000))
    + "\n"
    + "\n".join(",".join(str(i * j % 89) for i in range(10_000)) for j in range(4))
)

# name: (bytes, target, expected X columns by name, expected y, a code that must be among the notes)
READ: dict[str, tuple[bytes, str, dict[str, list[float]], list[float], str | None]] = {
    "plain": (GOOD.encode(), "y", {"t": T}, Y, None),
    "bom": (b"\xef\xbb\xbf" + GOOD.encode(), "y", {"t": T}, Y, None),
    "bom and target first": (b"\xef\xbb\xbfy,t\n1,0\n3,1\n6,2\n", "y", {"t": T}, Y, None),
    "utf-16 le": (utf16(GOOD), "y", {"t": T}, Y, "encoding"),
    "utf-16 be": (utf16(GOOD, big=True), "y", {"t": T}, Y, "encoding"),
    "utf-16 le without mark": (utf16(GOOD, mark=False), "y", {"t": T}, Y, "encoding"),
    "utf-16 be without mark": (utf16(GOOD, mark=False, big=True), "y", {"t": T}, Y, "encoding"),
    "utf-32": (GOOD.encode("utf-32"), "y", {"t": T}, Y, "encoding"),
    "latin-1 names": ("größe,y\n0,1\n1,3\n2,6\n".encode("latin-1"), "y", {"größe": T}, Y, "encoding"),
    "utf-8 names": ("größe,y\n0,1\n1,3\n2,6\n".encode(), "y", {"größe": T}, Y, None),
    "windows line ends": (GOOD.replace("\n", "\r\n").encode(), "y", {"t": T}, Y, None),
    "old mac line ends": (GOOD.replace("\n", "\r").encode(), "y", {"t": T}, Y, None),
    "mixed line ends": (b"t,y\r\n0,1\n1,3\r2,6", "y", {"t": T}, Y, None),
    "no newline at the end": (GOOD.rstrip().encode(), "y", {"t": T}, Y, None),
    "blank lines between": (b"\n\nt,y\n0,1\n\n1,3\n\n\n2,6\n\n", "y", {"t": T}, Y, None),
    "tabs": (GOOD.replace(",", "\t").encode(), "y", {"t": T}, Y, "delimiter"),
    "semicolons": (GOOD.replace(",", ";").encode(), "y", {"t": T}, Y, "delimiter"),
    "bars": (GOOD.replace(",", "|").encode(), "y", {"t": T}, Y, "delimiter"),
    "white space": (b"  t   y\n  0   1\n  1   3\n  2   6\n", "y", {"t": T}, Y, "delimiter"),
    "comma and space": (b"t, y\n0, 1\n1, 3\n2, 6\n", "y", {"t": T}, Y, None),
    "decimal comma, semicolon": (b"t;y\n0,5;1,25\n1,5;3\n", "y", {"t": [0.5, 1.5]}, [1.25, 3], "decimal"),
    "decimal comma, tab": (b"t\ty\n0,5\t1,25\n1,5\t3\n", "y", {"t": [0.5, 1.5]}, [1.25, 3], "decimal"),
    "decimal comma, quoted": (b't,y\n"0,5","1,25"\n"1,5",3\n', "y", {"t": [0.5, 1.5]}, [1.25, 3], "decimal"),
    "decimal comma, thousands point": (
        b"t;y\n1.234,5;1\n2.345,25;2\n",
        "y",
        {"t": [1234.5, 2345.25]},
        [1, 2],
        "decimal",
    ),
    "decimal comma, exponent": (b"t;y\n1,5e3;1\n2,5E-1;2\n", "y", {"t": [1500, 0.25]}, [1, 2], "decimal"),
    "decimal comma, three digits": (b"t;y\n0,125;1\n0,250;2\n", "y", {"t": [0.125, 0.25]}, [1, 2], "decimal"),
    "decimal comma, spaces": (b"t y\n0,5 1,25\n1,5 3,0\n", "y", {"t": [0.5, 1.5]}, [1.25, 3], "decimal"),
    "thousands comma, quoted": (
        b't,y\n"1,234.5",1\n"2,345.25",2\n',
        "y",
        {"t": [1234.5, 2345.25]},
        [1, 2],
        "thousands",
    ),
    "thousands comma in tabs": (
        b"t\ty\n1,234.5\t1\n12,345,678.25\t2\n",
        "y",
        {"t": [1234.5, 12345678.25]},
        [1, 2],
        "thousands",
    ),
    "thousands space": (
        "t,y\n1\u00a0234.5,1\n2\u202f345.5,2\n".encode(),
        "y",
        {"t": [1234.5, 2345.5]},
        [1, 2],
        "thousands",
    ),
    "thousands apostrophe": (b"t,y\n1'234.5,1\n2'345.5,2\n", "y", {"t": [1234.5, 2345.5]}, [1, 2], "thousands"),
    "fortran exponents": (b"t,y\n1.5D+03,1\n2.5d-1,2\n", "y", {"t": [1500, 0.25]}, [1, 2], None),
    "unicode minus": ("t,y\n\u22121.5,1\n2,2\n".encode(), "y", {"t": [-1.5, 2]}, [1, 2], None),
    "no-break spaces": ("t,y\n\u00a01.5,1\n2\u00a0,2\n".encode(), "y", {"t": [1.5, 2]}, [1, 2], None),
    "plus signs": (b"t,y\n+1.5,1\n+2,2\n", "y", {"t": [1.5, 2]}, [1, 2], None),
    "bare points": (b"t,y\n1.,1\n.5,2\n", "y", {"t": [1, 0.5]}, [1, 2], None),
    "percent": (b"t,y\n12%,1\n13.5 %,2\n", "y", {"t": [12, 13.5]}, [1, 2], "percent"),
    "quoted numbers": (b't,y\n"0","1"\n"1","3"\n"2","6"\n', "y", {"t": T}, Y, None),
    "quoted names with delimiter": (b'"t, s",y\n0,1\n1,3\n2,6\n', "y", {"t, s": T}, Y, None),
    "quoted name with newline": (b'"t\nin s",y\n0,1\n1,3\n2,6\n', "y", {"t in s": T}, Y, "changed_names"),
    "doubled quotes in name": (b'"t ""x""",y\n0,1\n1,3\n2,6\n', "y", {'t "x"': T}, Y, None),
    "html name": (b"<script>alert(1)</script>,y\n0,1\n1,3\n2,6\n", "y", {"<script>alert(1)</script>": T}, Y, None),
    "formula name": (b"=1+1,y\n0,1\n1,3\n2,6\n", "y", {"=1+1": T}, Y, None),
    "python name": (b"__import__('os'),y\n0,1\n1,3\n2,6\n", "y", {"__import__('os')": T}, Y, None),
    "escape codes in name": (b"\x1b[31mt,y\n0,1\n1,3\n2,6\n", "y", {"\ufffd[31mt": T}, Y, "changed_names"),
    "very long name": (b"t" * 500 + b",y\n0,1\n1,3\n2,6\n", "y", {"t" * 119 + "…": T}, Y, "changed_names"),
    "duplicate header": (b"t,t,y\n0,5,1\n1,4,3\n2,9,6\n", "y", {"t": T, "t_2": [5, 4, 9]}, Y, "duplicate_names"),
    "triple header": (
        b"t,t,t,y\n0,5,8,1\n1,4,7,3\n",
        "y",
        {"t": [0, 1], "t_2": [5, 4], "t_3": [8, 7]},
        [1, 3],
        "duplicate_names",
    ),
    "duplicate meets its number": (
        b"t,t_2,t,y\n0,5,8,1\n1,4,7,3\n",
        "y",
        {"t": [0, 1], "t_2": [5, 4], "t_3": [8, 7]},
        [1, 3],
        "duplicate_names",
    ),
    "empty header cell": (b"t,,y\n0,5,1\n1,4,3\n2,9,6\n", "y", {"t": T, "column2": [5, 4, 9]}, Y, "empty_names"),
    "blank header cell": (b"t,  ,y\n0,5,1\n1,4,3\n2,9,6\n", "y", {"t": T, "column2": [5, 4, 9]}, Y, "empty_names"),
    "padded names": (b"  t ,\ty \n0,1\n1,3\n2,6\n", "y", {"t": T}, Y, None),
    "no header": (b"0,1\n1,3\n2,6\n", "x2", {"x1": T}, Y, "header"),
    "no header, white space": (b"0 1\n1 3\n2 6\n", "x2", {"x1": T}, Y, "header"),
    "no header, missing in the first row": (
        b"NA,1,5\n0,1,4\n1,3,8\n2,6,2\n",
        "x2",
        {"x1": T, "x3": [4, 8, 2]},
        Y,
        "missing_rows",
    ),
    "header in a comment": (b"# t y\n0 1\n1 3\n2 6\n", "y", {"t": T}, Y, "comments"),
    "comments on top": (b"# made by a logger\n# in 1987\nt,y\n0,1\n1,3\n2,6\n", "y", {"t": T}, Y, "comments"),
    "comments below": (b"t,y\n0,1\n# pause\n1,3\n2,6\n", "y", {"t": T}, Y, "comments"),
    "latex comments": (b"% remark\nt,y\n0,1\n1,3\n2,6\n", "y", {"t": T}, Y, "comments"),
    "sep line": (b"sep=;\nt;y\n0;1\n1;3\n2;6\n", "y", {"t": T}, Y, None),
    "units row": (b"t,y\ns,m\n0,1\n1,3\n2,6\n", "y", {"t": T}, Y, "units_row"),
    "bracketed units row": (b"t;y\n(s);(m)\n0;1\n1;3\n2;6\n", "y", {"t": T}, Y, "units_row"),
    "row names": (b"t,y\na,0,1\nb,1,3\nc,2,6\n", "y", {"t": T}, Y, "row_names"),
    "trailing delimiters": (b"t,y,\n0,1,\n1,3,\n2,6,\n", "y", {"t": T}, Y, None),
    "trailing delimiters in rows only": (b"t,y\n0,1,\n1,3,\n2,6,\n", "y", {"t": T}, Y, None),
    "some trailing delimiters": (b"t,y\n0,1\n1,3,,\n2,6\n", "y", {"t": T}, Y, None),
    "rows of delimiters": (b"t,y\n0,1\n1,3\n,\n2,6\n,\n", "y", {"t": T}, Y, "missing_rows"),
    "missing cells": (b"t,y\n0,1\n,2\n1,3\n7,\n2,6\n", "y", {"t": T}, Y, "missing_rows"),
    "words for missing": (
        b"t,y\n0,1\nNA,2\n1,3\n7,n/a\n2,6\nnull,3\n?,4\n-,5\nNaN,5\n",
        "y",
        {"t": T},
        Y,
        "missing_rows",
    ),
    "spreadsheet errors": (b"t,y\n0,1\n#DIV/0!,2\n1,3\n7,#N/A\n2,6\n#REF!,2\n", "y", {"t": T}, Y, "missing_rows"),
    "infinite cells": (b"t,y\n0,1\ninf,2\n1,3\n-Infinity,5\n2,6\n", "y", {"t": T}, Y, "infinite_rows"),
    "overflow": (b"t,y\n0,1\n1e400,2\n1,3\n2,6\n", "y", {"t": T}, Y, "infinite_rows"),
    "underflow": (b"t,y\n1e-400,1\n1,3\n2,6\n", "y", {"t": T}, Y, None),
    "huge integer": (
        b"t,y\n123456789012345678901234567890,1\n1,3\n",
        "y",
        {"t": [1.2345678901234568e29, 1]},
        [1, 3],
        None,
    ),
    "text column": (b"who,t,y\nann,0,1\nbob,1,3\neve,2,6\n", "y", {"t": T}, Y, "text_columns"),
    "date column": (b"day,t,y\n2020-01-01,0,1\n2020-01-02,1,3\n2020-01-03,2,6\n", "y", {"t": T}, Y, "text_columns"),
    "clock column": (b"at,t,y\n10:01,0,1\n10:02,1,3\n10:03,2,6\n", "y", {"t": T}, Y, "text_columns"),
    "constant column": (b"c,t,y\n7,0,1\n7,1,3\n7,2,6\n", "y", {"t": T}, Y, "constant_columns"),
    "empty column": (b"c,t,y\n,0,1\n,1,3\n,2,6\n", "y", {"t": T}, Y, "empty_columns"),
    "only NaN column": (b"c,t,y\nnan,0,1\nnan,1,3\nnan,2,6\n", "y", {"t": T}, Y, "empty_columns"),
    "mostly empty column": (b"c,t,y\n4,0,1\n,1,3\n,2,6\n", "y", {"t": T}, Y, "mostly_empty_columns"),
    "column constant once rows fell": (b"c,t,y\n7,0,1\n7,1,3\n7,2,6\n8,,9\n", "y", {"t": T}, Y, "constant_columns"),
    "booleans": (b"b,t,y\ntrue,0,1\nFalse,1,3\nTRUE,2,6\n", "y", {"b": [1, 0, 1], "t": T}, Y, "booleans"),
    "copy of the target": (b"c,t,y\n1,0,1\n3,1,3\n6,2,6\n", "y", {"c": Y, "t": T}, Y, "copies_columns"),
    "two rows": (b"t,y\n0,1\n1,3\n", "y", {"t": [0, 1]}, [1, 3], None),
    "gzip": (gzip.compress(GOOD.encode()), "y", {"t": T}, Y, None),
    "emoji names": ("🌡,y\n0,1\n1,3\n2,6\n".encode(), "y", {"🌡": T}, Y, None),
    "right-to-left names": ("زمن,y\n0,1\n1,3\n2,6\n".encode(), "y", {"زمن": T}, Y, None),
    "target with spaces": (b"t,the yield (kg)\n0,1\n1,3\n2,6\n", "the yield (kg)", {"t": T}, Y, None),
    "numbers in e notation": (b"t,y\n0e0,1e0\n1E+0,3e0\n2e-0,6E0\n", "y", {"t": T}, Y, None),
    "many comment marks": (b"#\n#\n\n#\nt,y\n0,1\n1,3\n2,6\n#end\n", "y", {"t": T}, Y, "comments"),
}

# name: (bytes, target, words that the message must hold, row, column)
REFUSED: dict[str, tuple[bytes, str, str, int | None, str | None]] = {
    "no bytes": (b"", "y", "empty", None, None),
    "only blanks": (b"  \n\n \t\n", "y", "empty", None, None),
    "only a mark": (b"\xef\xbb\xbf", "y", "no rows", None, None),
    "only NUL": (b"\0" * 100, "y", "empty", None, None),
    "only comments": (b"# a\n# b\n", "y", "no rows", None, None),
    "header only": (b"t,y\n", "y", "no rows", None, None),
    "one row": (b"t,y\n0,1\n", "y", "only 1 row", None, None),
    "one column": (b"y\n1\n2\n3\n", "y", "only one column", None, None),
    "one column of decimal commas": (b"y\n1,5\n2,5\n", "y", "only one column", None, None),
    "one cell": (b"7", "x1", "only one column", None, None),
    "NUL inside": (b"t,y\n0,1\n1,\x003\n2,6\n", "y", "NUL", 3, None),
    "NUL in utf-16": (utf16("t,y\n0,1\n1,\0\n"), "y", "NUL", 3, None),
    "damaged utf-16": (b"\xff\xfet\0,\0y\0\n\0\x00\xd8\n\0", "y", "damaged", None, None),
    "odd utf-16": (utf16(GOOD) + b"1", "y", "damaged", None, None),
    "long row": (b"t,y\n0,1\n1,3,9\n2,6\n", "y", "3 cells where the first row has 2", 3, None),
    "short row": (b"a,t,y\n5,0,1\n1,3\n6,2,6\n", "y", "2 cells", 3, None),
    "cut off": (b"a,t,y\n5,0,1\n6,1,3\n7,2", "y", "cut off", 4, None),
    "ragged with comments above": (b"# c\n\nt,y\n0,1\n\n1,3,9\n", "y", "3 cells", 6, None),
    "ragged with quoted lines above": (b't,"y\nz",u\n0,1,5\n1,3\n', "u", "2 cells", 4, None),
    "open quote": (b't,y\n0,1\n1,"3\n2,6\n', "y", "never closed", 3, None),
    "text after quote": (b't,y\n0,1\n"1"x,3\n2,6\n', "y", "quotation marks", 3, None),
    "text among numbers": (b"t,y\n0,1\none,3\n2,6\n", "y", "'one' is not a number", 3, "t"),
    "text among targets": (b"t,y\n0,1\n1,three\n2,6\n", "y", "'three' is not a number", 3, "y"),
    "unit in a cell": (b"t,y\n0,1\n1 s,3\n2,6\n", "y", "'1 s' is not a number", 3, "t"),
    "two points": (b"t,y\n0,1\n1.2.3,3\n2,6\n", "y", "'1.2.3' is not a number", 3, "t"),
    "hex": (b"t,y\n0,1\n0x1F,3\n2,6\n", "y", "not a number", 3, "t"),
    "letter O": (b"t,y\n0,1\n1O,3\n2,6\n", "y", "'1O' is not a number", 3, "t"),
    "arabic digits": ("t,y\n0,1\n١,3\n2,6\n".encode(), "y", "not a number", 3, "t"),
    "escape codes in a cell": (b"t,y\n0,1\n\x1b[2J,3\n2,6\n", "y", "not a number", 3, "t"),
    "formula in a cell": (b"t,y\n0,1\n=A1+1,3\n2,6\n", "y", "'=A1+1' is not a number", 3, "t"),
    "very long cell": (b"t,y\n0,1\n" + b"9" * 5000 + b"x,3\n2,6\n", "y", "not a number", 3, "t"),
    "target is text": (b"t,y\n0,a\n1,b\n2,c\n", "y", "holds text", None, "y"),
    "target is dates": (b"t,y\n0,2020-01-01\n1,2020-01-02\n", "y", "holds text", None, "y"),
    "target missing": (GOOD.encode(), "z", "no such column", None, "z"),
    "target in another case": (GOOD.encode(), "Y", "did you mean 'y'", None, "Y"),
    "target misspelt": (b"time,yield\n0,1\n1,3\n", "yeild", "did you mean 'yield'", None, "yeild"),
    "target given twice": (b"t,y,y\n0,1,2\n1,3,4\n", "y", "two columns", None, "y"),
    "target constant": (b"t,y\n0,5\n1,5\n2,5\n", "y", "the same in every row", None, "y"),
    "target constant where complete": (b"t,y\n0,5\n1,5\n,6\n", "y", "5 in every usable row", None, "y"),
    "target only NaN": (b"t,y\n0,nan\n1,nan\n2,NaN\n", "y", "empty", None, "y"),
    "target only infinite": (b"t,y\n0,inf\n1,-inf\n2,inf\n", "y", "no finite number", None, "y"),
    "all NaN": (b"t,y\nnan,nan\nnan,nan\n", "y", "empty", None, "y"),
    "no complete row": (b"t,y\n0,\n1,\n,3\n,6\n", "y", "0 of 4 rows", None, None),
    "one complete row": (b"t,y\n0,1\n1,\n,6\n", "y", "1 of 3 rows", None, None),
    "features all text": (b"a,y\nu,1\nv,3\n", "y", "no column of numbers", None, None),
    "features all constant": (b"a,y\n2,1\n2,3\n", "y", "no column is left", None, "y"),
    "pdf": (b"%PDF-1.7 ...", "y", "not a table", None, None),
    "png": (b"\x89PNG\r\n\x1a\n....", "y", "not a table", None, None),
    "numpy": (b"\x93NUMPY\x01\0", "y", "not a table", None, None),
    "broken gzip": (gzip.compress(GOOD.encode())[:20], "y", "gzip", None, None),
    "broken parquet": (b"PAR1" + b"\x01" * 60 + b"PAR1", "y", "damaged", None, None),
    "broken arrow": (b"ARROW1\0\0" + b"\x07" * 60, "y", "damaged", None, None),
    "not a workbook": (b"PK\x03\x04" + b"\x00" * 60, "y", "Excel|workbook", None, None),
    "prose": (b"Dear reader,\nthis is a letter.\nYours, A.\n", "y", "", None, None),
    "html page": (
        b"<!doctype html>\n<html><body><table><tr><td>1</td></tr></table></body></html>\n",
        "y",
        "",
        None,
        None,
    ),
    "json": (b'{"t": [1, 2], "y": [3, 4]}\n', "y", "", None, None),
    "random bytes": (bytes(np.random.default_rng(0).integers(1, 256, 3000, dtype=np.uint8)), "y", "", None, None),
}


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


def test_bad_rows_and_text_are_left_out_only_when_asked_and_counted():
    table = tables.read(b"t,y\n0,1\n1,3,9\n1,3\nx,5\n2,6\n", skip_bad_rows=True)
    training = table.select("y", text_as_missing=True)
    assert training.X.ravel().tolist() == T and training.rows.tolist() == [2, 4, 6]
    counts = {note.code: note.count for note in training.notes}
    assert counts["bad_rows"] == 1 and counts["missing_rows"] == 1 and counts["text_cells"] == 1


def test_columns_are_chosen_dropped_and_weigh():
    table = tables.read(b"a,b,c,w,y\n1,2,5,1,3\n2,4,7,2,5\n3,9,6,0,9\n")
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
        tables.read(b"a,w,y\n1,1,3\n2,-1,5\n").select("y", weights="w")
    assert caught.value.row == 3


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


def test_excel_is_read_like_any_other_table():
    training = tables.read(workbook(), name="book.xlsx").select("y")
    assert training.names == ("t",) and training.X.ravel().tolist() == T and training.rows.tolist() == [2, 3, 5]
    assert {note.code for note in training.notes} == {"text_columns", "missing_rows"}
    assert tables.read(workbook(), name="book.xlsx", sheet="more").names == ("a", "b")
    with pytest.raises(TableError, match="check --sheet"):
        tables.read(workbook(), name="book.xlsx", sheet="none")


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


def test_fingerprint_follows_the_numbers_not_the_file():
    first = tables.read(GOOD.encode()).select("y")
    same = tables.read(utf16(GOOD.replace(",", ";"))).select("y")
    other = tables.read(GOOD.replace("6", "7").encode()).select("y")
    assert first.fingerprint == same.fingerprint != other.fingerprint


def test_matrix_for_prediction_keeps_every_row():
    table = tables.read(b"b,a\n1,2\n,3\n5,6\n")
    np.testing.assert_array_equal(table.matrix(["a", "b"]), [[2, 1], [3, np.nan], [6, 5]])
    with pytest.raises(TableError, match="no such column"):
        table.matrix(["q"])


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


@settings(max_examples=150, deadline=None)
@given(sheets())
def test_any_way_to_write_a_table_reads_the_same_numbers(sheet):
    names, values, data, decimal = sheet
    table = tables.read(data, decimal=decimal)
    usual = [name.lower() not in {"na", "nan", "null", "none", "nil", "missing", "inf", "infinity"} for name in names]
    if all(usual):
        assert list(table.names) == [" ".join(name.split()) for name in names]
        np.testing.assert_array_equal(table.matrix(table.names), values)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_end_in_a_table_or_in_one_line(data, skip):
    try:
        table = tables.read(data, name="any", skip_bad_rows=skip)
        table.select(table.names[-1])
    except TableError as error:
        assert "\n" not in str(error)


@settings(max_examples=200, deadline=None)
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


@given(numbers)
def test_parse_number_agrees_with_python(value):
    assert parse_number(repr(value)) == value
    assert parse_number(repr(value).replace(".", ","), ",") == value


@given(st.text(max_size=20))
def test_parse_number_accepts_nothing_that_is_no_number(text):
    value = parse_number(text)
    if value is not None and math.isfinite(value):
        assert any(c.isascii() and c.isdigit() for c in text)


@given(st.lists(st.text(max_size=6), min_size=1, max_size=12))
def test_tidy_names_are_different_and_filled(raw):
    names, _, _ = tidy_names(raw)
    assert len(set(names)) == len(raw) and all(names) and all(name.isprintable() for name in names)


def test_sniffed_delimiters():
    assert sniff_delimiter(["a,b;c", "1,5;2", "2,5;3"]) == ";"
    assert sniff_delimiter(["a b,c d", "1,2", "3,4"]) == ","
    assert sniff_delimiter(["1 2", "3 4"]) == " "
    assert sniff_delimiter(["word"]) == ""
