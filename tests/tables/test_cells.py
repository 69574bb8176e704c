"""One cell: missing, a number, or text; and the lines that speak of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.tables.cells import MISSING, TableError, clean_cell, is_missing, one_line, parse_number, show

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(numbers)
def test_parse_number_agrees_with_python(value):
    assert parse_number(repr(value)) == value
    assert parse_number(repr(value).replace(".", ","), ",") == value


@given(st.text(max_size=20))
def test_parse_number_accepts_nothing_that_is_no_number(text):
    value = parse_number(text)
    if value is not None and math.isfinite(value):
        assert any(c.isascii() and c.isdigit() for c in text)


@pytest.mark.parametrize(
    ("cell", "decimal", "value"),
    [
        ("1,234.5", ".", 1234.5),
        ("1.234,5", ",", 1234.5),
        ("1 234", ".", 1234.0),
        ("12 %", ".", 12.0),
        ("\u22123", ".", -3.0),
        ("1.5D+03", ".", 1500.0),
        ("-inf", ".", -math.inf),
        ("1,2", ".", None),
        ("12,34", ".", None),
        ("0x10", ".", None),
        ("1_000", ".", None),
        ("9" * 401, ".", None),
    ],
)
def test_numbers_as_people_write_them(cell, decimal, value):
    assert parse_number(cell, decimal) == value


def test_every_word_for_missing_is_known_in_any_case_and_none_is_a_number():
    for word in MISSING:
        assert is_missing(f" {word.upper()} ") and parse_number(word) is None
    assert is_missing("k.A.")
    assert is_missing(None) and not is_missing("0") and not is_missing("nah")


def test_messages_are_one_line_without_control_characters():
    assert one_line("a\nb\x1b[31m") == "a b\ufffd[31m"
    assert len(one_line("x" * 500)) == 200 and one_line("x" * 500).endswith("…")
    assert show("a\tb") == "'a b'" and clean_cell("\u00a0 x\u200b") == "x"


def test_an_error_names_place_problem_and_mend():
    error = TableError("t.csv", "is wrong", mend="mend it", row=3, column="a\nb")
    assert str(error) == "t.csv, row 3, column 'a b': is wrong; mend it"
    assert (error.row, error.column, error.mend) == (3, "a\nb", "mend it")
