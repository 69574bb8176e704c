"""Dates as days since the first, in the table that is fitted and in the one that is predicted."""

from __future__ import annotations

import io

import numpy as np
import pytest

from gmeql.tables.dates import day_number, day_numbers, first_day, since_name
from gmeql.tables.read import TableError, read

TABLE = b"date,temp,sales\n2024-01-01,3,5\n2024-01-02,4,6\nNA,4,6\n2024-01-11 12:00,1,9\n"


def test_dates_count_the_days_since_the_first() -> None:
    training = read(TABLE).select("sales")
    assert training.names == ("date since 2024-01-01", "temp")
    assert training.X[:, 0].tolist() == [0.0, 1.0, 10.5]
    assert [column.explains for column in read(TABLE).columns] == [True, True, True]
    assert not read(b"a,b\nfree text,1\nmore of it,2\n").columns[0].explains
    notes = [note.message for note in training.notes]
    assert "column 'date' holds dates: 'date since 2024-01-01' counts the days" in notes


def test_another_table_is_counted_from_the_same_day() -> None:
    later = read(b"date,temp\n2024-03-01,3\n2023-12-31,4\n")
    assert later.knows("date since 2024-01-01")
    assert later.matrix(["date since 2024-01-01"])[:, 0].tolist() == [60.0, -1.0]
    assert not later.knows("date since yesterday")


def test_only_what_means_one_day_is_a_date() -> None:
    assert day_number("31.12.1970") == day_number("1970/12/31") == 364.0
    for text in ("01/02/2024", "2024-13-01", "2024", "1.5", "monday", "2024-01-01" + 50 * " x"):
        assert day_number(text) is None
    assert day_numbers(np.array(["2024-01-01", "soon"], dtype=object)) is None
    assert day_numbers(np.array(["2024-01-01", "2024-01-01"], dtype=object)) is None
    assert first_day("day", since_name("date", 3.0)) is None


def test_dates_of_parquet_files() -> None:
    import datetime

    import polars as pl

    days = [datetime.date(2024, 1, day) for day in (1, 2, 5)]
    stored = io.BytesIO()
    pl.DataFrame(
        {"day": days, "at": [datetime.datetime(2024, 1, d.day, 6) for d in days], "y": [1.0, 2, 3]}
    ).write_parquet(stored)
    training = read(stored.getvalue()).select("y")
    assert training.names == ("day since 2024-01-01", "at since 2024-01-01")
    assert training.X.tolist() == [[0.0, 0.25], [1.0, 1.25], [4.0, 4.25]]


def test_a_target_of_dates_is_refused() -> None:
    with pytest.raises(TableError, match="the target holds dates"):
        read(b"x,date\n1,2024-01-01\n2,2024-01-02\n3,2024-01-04\n").select("date")
