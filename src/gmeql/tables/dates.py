"""Dates: a column of them becomes the days since the first.

A formula explains numbers; how long ago is one. The name of the new column holds the day it counts from, as in
`date since 2024-01-01`, so that the same column of another table is read alike.
"""

from __future__ import annotations

import re
from datetime import datetime, UTC

import numpy as np

from gmeql.tables.cells import is_missing

MARK = " since "
"""Between the name of a column and the day that it is counted from."""
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(.*)", re.ASCII | re.DOTALL)
_YEAR_FIRST = re.compile(r"\d{4}[-/]\d{2}[-/]\d{2}.*", re.ASCII | re.DOTALL)
_SLASHED = re.compile(r"\d{1,2}/\d{1,2}/(\d{4}|\d{2})\b", re.ASCII)
_SECONDS = 86_400.0
LONGEST = 40
"""Characters of the longest cell that is looked at."""


def day_number(cell: str) -> float | None:
    """Days from 1970 to a date, parts of a day after the point; None where the cell is none.

    2024-01-31, 2024/01/31 and 31.01.2024 are known, with or without a time of day. 01/02/2024 is left alone: it means
    two days.

    >>> day_number("1970-01-02"), day_number("3.1.1970 12:00"), day_number("01/02/2024"), day_number("7.5")
    (1.0, 2.5, None, None)
    """
    text = cell.strip()
    if len(text) > LONGEST:
        return None
    if match := _DAY_FIRST.fullmatch(text):
        text = f"{match[3]}-{match[2]:0>2}-{match[1]:0>2}{match[4]}"
    if not _YEAR_FIRST.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / _SECONDS


def is_unclear(cell: str) -> bool:
    """Whether a cell is a date of which nobody can tell the day from the month.

    >>> is_unclear("01/02/2024"), is_unclear("3/14/24 10:15"), is_unclear("2024/01/02"), is_unclear("1/2")
    (True, True, False, False)
    """
    return _SLASHED.match(cell.strip()) is not None


def day_numbers(labels: np.ndarray | None) -> np.ndarray | None:
    """The days of a column of dates [N], NaN where a cell is missing; None where a cell is no date, or all are one day."""
    if labels is None:
        return None
    known: dict[str, float] = {}
    for label in labels.tolist():
        if label not in known:
            day = np.nan if is_missing(label) else day_number(label)
            if day is None:
                return None
            known[label] = day
    days = np.array([known[label] for label in labels.tolist()], dtype=np.float64)
    seen = days[np.isfinite(days)]
    return days if len(seen) and seen.min() < seen.max() else None


def since_name(column: str, first: float) -> str:
    """What the column of days since the day number `first` is called."""
    day = datetime.fromtimestamp(first * _SECONDS, tz=UTC).date()
    return f"{column}{MARK}{day.isoformat()}"


def first_day(column: str, name: str) -> float | None:
    """The day number that a column called `name` counts from, if it is made of the dates of `column`; else None.

    >>> first_day("date", since_name("date", 366.0))
    366.0
    """
    start = f"{column}{MARK}"
    return day_number(name.removeprefix(start)) if name.startswith(start) else None
