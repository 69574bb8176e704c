"""Delimiter, decimal mark, header and units, guessed from a sample."""

from __future__ import annotations

import csv

import pytest

from gmeql.tables.guessing import (
    is_one_decimal_column,
    is_units_row,
    looks_like_header,
    sample_records,
    sniff_decimal,
    sniff_delimiter,
    split_records,
)


def test_sniffed_delimiters():
    assert sniff_delimiter(["a,b;c", "1,5;2", "2,5;3"]) == ";"
    assert sniff_delimiter(["a b,c d", "1,2", "3,4"]) == ","
    assert sniff_delimiter(["1 2", "3 4"]) == " "
    assert sniff_delimiter(["word"]) == ""


@pytest.mark.parametrize(
    ("cells", "delimiter", "mark"),
    [
        (["0,5", "12,25"], ";", ","),
        (["1,234", "2,345"], ";", ","),
        (["1,234", "2,345"], ",", "."),
        (["1,234", "2.5"], ";", "."),
        (["1.5", "2"], ",", "."),
        (["0,123"], ";", ","),
        (["23,40 €", "1.234,50 €"], ";", ","),  # prices made the target text
        (["$ 1,234.50", "$ 3.10"], ";", "."),
        (["12,5 %", "3 %"], ";", ","),
        (["2,5 kg", "1,25 kg"], ";", ","),
        (["12, Main Street", "2.5"], ";", "."),
        ([], ";", "."),
    ],
)
def test_sniffed_decimal_marks(cells, delimiter, mark):
    assert sniff_decimal(cells, delimiter) == mark


def test_records_know_the_line_they_start_on():
    lines = ["a,b", "", '1,"x', 'y"', "2,3"]
    assert list(split_records(lines, ",")) == [(1, ["a", "b"]), (3, ["1", "x\ny"]), (5, ["2", "3"])]
    assert list(split_records(["a  b", "  1 2 "], " ")) == [(1, ["a", "b"]), (2, ["1", "2"])]
    assert list(split_records(["a,b", " "], "")) == [(1, ["a,b"])]
    with pytest.raises(csv.Error):
        list(split_records(['"open'], ","))
    assert sample_records(["a,b", '"open'], ",") == [["a", "b"]]


@pytest.mark.parametrize(
    ("records", "header"),
    [
        ([["t", "y"], ["1", "2"]], True),
        ([["1", "2"], ["3", "4"]], False),
        ([["", ""], ["1", "2"]], False),
        ([["t", "1990", "1991"], ["1", "2", "3"]], False),
        ([["a", "b"], ["c", "d"]], True),
    ],
)
def test_the_first_row_is_a_header_where_it_differs_from_those_below(records, header):
    assert looks_like_header(records, ".") is header


def test_a_row_of_units_is_words_over_numbers():
    assert is_units_row([["m", "s"], ["1", "2"], ["3", "4"]], ".")
    assert not is_units_row([["1", "2"], ["1", "2"], ["3", "4"]], ".")
    assert not is_units_row([["", ""], ["1", "2"], ["3", "4"]], ".")


def test_one_column_of_decimal_commas_is_no_table_of_two():
    assert is_one_decimal_column([["y"], ["1", "5"], ["2", "5"]])
    assert not is_one_decimal_column([["a", "b"], ["1", "5"]])
