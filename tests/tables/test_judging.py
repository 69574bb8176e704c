"""Columns of strings: what their cells mean, and what is said of it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gmeql.tables.cells import Note
from gmeql.tables.column import TableColumn
from gmeql.tables.judging import SLOW_CELLS, judged
from gmeql.tables.table import Table


def column_of(*cells: str | None, decimal: str = ".") -> tuple[TableColumn, list[str]]:
    """The cells as a column from row 2 on, and the codes of its notes."""
    notes: list[Note] = []
    series = pl.Series("x", list(cells), dtype=pl.String)
    return judged("x", series, decimal, np.arange(2, 2 + len(cells)), notes), [note.code for note in notes]


def test_numbers_missing_cells_and_text_are_counted() -> None:
    column, notes = column_of("1", "n/a", "2.5", None, "high")
    assert (column.kind, column.missing, column.texts, column.first_text) == ("broken", 2, 1, (6, "high"))
    assert np.array_equal(column.values, [1.0, np.nan, 2.5, np.nan, np.nan], equal_nan=True)
    assert notes == []


@pytest.mark.parametrize(
    ("cells", "values", "note"),
    [
        (("12%", "13.5 %"), [12.0, 13.5], ["percent"]),
        (("1'234", "2"), [1234.0, 2.0], ["thousands"]),
        (("TRUE", "false"), [1.0, 0.0], ["booleans"]),
        (("1.5D+03", "-Infinity"), [1500.0, -np.inf], []),
        (("2.5 kg", "10 kg", "-1e3 kg"), [2.5, 10.0, -1000.0], ["units"]),
        (("$1,234", "$ 5"), [1234.0, 5.0], ["units"]),
    ],
)
def test_marks_are_taken_off_and_told(cells: tuple[str, ...], values: list[float], note: list[str]) -> None:
    column, notes = column_of(*cells)
    assert column.kind == "number" and column.values.tolist() == values and notes == note


def test_decimal_commas_and_grouping_points() -> None:
    column, notes = column_of("0,5", "1.234,5", decimal=",")
    assert column.values.tolist() == [0.5, 1234.5] and notes == ["thousands"]


def test_flags_beside_other_words_or_numbers_are_text() -> None:
    assert column_of("true", "false", "maybe")[0].kind == "text"
    assert column_of("true", "1", "2", "3")[0].kind == "broken"


def test_words_are_kept_as_labels_and_long_lists_of_them_are_not_looked_at() -> None:
    words = [f"word {i}" for i in range(SLOW_CELLS + 5)]
    column, _ = column_of(*words)
    assert column.kind == "text" and column.labels is not None and column.labels.tolist() == words
    assert column.texts == len(words) and column.first_text == (2, "word 0")


def test_units_that_differ_or_are_not_on_every_cell_are_left_alone() -> None:
    assert column_of("2.5 kg", "300 g")[0].kind == "text"
    assert column_of("2.5 kg", "3", "4")[0].kind == "broken"
    assert column_of("P1", "P2", "P3")[0].kind == "text"
    column, notes = column_of("2 h", "n/a", "3 h")
    assert (column.kind, column.missing, notes) == ("number", 1, ["units"])


def test_a_category_with_a_number_in_it_is_still_known_by_its_words() -> None:
    """Models that were fitted to its words predict."""
    column, _ = column_of("4 doors", "2 doors", "4 doors")
    table = Table((column,), np.arange(2, 5), "cars.csv")
    assert table.matrix(["x=4 doors", "x"]).tolist() == [[1.0, 4.0], [0.0, 2.0], [1.0, 4.0]]
