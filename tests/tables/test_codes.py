"""Numbers that stand for a missing value, in a file and in an array."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.tables.codes import codes, codes_in_words
from gmeql.tables.read import read

ROOMS = np.linspace(18.0, 24.0, 40)


@pytest.mark.parametrize("code", [-99.0, -999.0, 9999.0, 999.99, -999.25, -32768.0, 1e20, 9.96921e36])
def test_what_loggers_write_for_a_gap_is_one(code: float) -> None:
    assert codes(np.append(ROOMS, [code, code])) == {code: 2}


@pytest.mark.parametrize(
    "values",
    [
        np.append(ROOMS, [-100.0, -100.0]),  # far off, but no code by its look
        np.append(np.arange(90.0), [99.0, 99.0]),  # looks like one, but the others come near it
        np.append(np.arange(-50.0, 50.0), [-99.0, -99.0]),  # the same below
        np.append(np.arange(30.0), [99.0]),  # a single large number
        np.array([1.0, 2.0, 3.0, 999.0, 999.0]),  # too few others to tell
        np.full(30, 9999.0),
        np.array([np.nan, np.inf] * 10),
    ],
)
def test_other_numbers_are_not(values: np.ndarray) -> None:
    assert codes(values) == {}


def test_several_codes_are_told_from_what_is_measured_not_from_each_other() -> None:
    assert codes(np.append(ROOMS, [-999.0, -99.0, 9999.0])) == {-999.0: 1, -99.0: 1, 9999.0: 1}


@pytest.mark.parametrize("column", ["temp", "load"])
def test_rows_with_codes_are_left_out_of_a_fit_and_told(column: str) -> None:
    """In a column, and in the target."""
    table = read(_log(column))
    training = table.select("load")
    assert len(training.y) == 38
    assert training.X.min() > -1.0 and training.y.min() > -1.0
    told = [str(note) for note in training.notes]
    assert told == [
        f"column '{column}' has 2 cells of -999, far from all others: they count as missing (--keep-codes keeps such numbers)",
        f"2 of 40 rows left out: a value is missing (2 in '{column}')",
    ]
    kept = table.select("load", keep_codes=True)
    assert len(kept.y) == 40 and min(kept.X.min(), kept.y.min()) == -999.0 and not kept.notes


def test_codes_of_a_column_that_is_not_used_are_not_spoken_of() -> None:
    assert not read(_log("temp")).select("load", columns=["hour"]).notes


def test_arrays_are_spoken_of_in_one_line() -> None:
    columns = {"a": np.append(ROOMS, -999.0), "b": np.append(ROOMS, 1.0), "c": np.append(ROOMS, 9999.0)}
    assert codes_in_words({"b": columns["b"]}.items()) is None
    assert codes_in_words(columns.items()) == (
        "'a' holds -999, 'c' holds 9999, far from all other values: if that stands for a missing one, leave such rows out"
    )


def _log(column: str) -> bytes:
    """40 hours of a log in which that column has two gaps."""
    lines = ["hour,temp,load"]
    for i, temp in enumerate(ROOMS):
        row = {"hour": str(i), "temp": f"{temp:.3f}", "load": f"{3 * temp + i % 5:.3f}"}
        if i in (7, 21):
            row[column] = "-999"
        lines.append(",".join(row.values()))
    return "\n".join(lines).encode()
