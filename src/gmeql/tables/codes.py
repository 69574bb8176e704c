"""Numbers that stand for "no value here", such as -999.

Loggers and surveys write them, and one of them among temperatures decides a formula. A number counts as such a code where it
is one by its look, nothing but nines or the filling of a known format, and stands apart from all other cells of its column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gmeql.tables.cells import Note, show
from gmeql.tables.column import TableColumn

NINES = re.compile(r"-?9{2,}(\.9+)?")
FILLINGS = (-999.25, -32768.0, -2147483648.0, 1e20, -1e20, 1e30, -1e30, 9.969209968386869e36)
"""What well logs, 16 and 32 bits, climate models and netCDF files fill gaps with."""
FEWEST_OTHERS = 10
"""Fewer other cells do not tell what is far from them."""
APART = 2.0
"""Spans of the other cells between them and a code that stands in several rows, ..."""
FAR_APART = 10.0
"""... and one that stands in a single row, where it may be a large number as well."""


def codes(values: np.ndarray) -> dict[float, int]:
    """Which of the values [N] stand for a missing one, with the number of their rows.

    >>> codes(np.array([*range(20), -999.0, 99.0, 99.0])), codes(np.array([*range(90), 99.0, 99.0]))
    ({-999.0: 1, 99.0: 2}, {})
    """
    finite = values[np.isfinite(values)]
    suspects, counts = np.unique(finite[(np.abs(finite) >= 99.0)], return_counts=True)
    looks = np.array([_looks_like_one(value) for value in suspects], dtype=bool)
    suspects, counts = suspects[looks], counts[looks]
    others = finite[~np.isin(finite, suspects)]
    if not len(suspects) or len(others) < FEWEST_OTHERS:
        return {}
    low, high = float(others.min()), float(others.max())
    found = {}
    for value, count in zip(suspects.tolist(), counts.tolist(), strict=True):
        gap = max(low - value, value - high)
        spans = APART if count > 1 else FAR_APART
        if gap > spans * (high - low) or (value < 0.0 <= low):
            found[value] = count
    return found


def codes_beyond(values: np.ndarray, low: float, high: float) -> dict[float, int]:
    """Which of the values [N] stand for a missing one beside those from `low` to `high` that a formula was fitted to, with the
    number of their rows: of a new table no row decides about another.

    >>> codes_beyond(np.array([3.0, -999.0, 40.0]), 0.0, 10.0)
    {-999.0: 1}
    """
    values, counts = np.unique(values[np.isfinite(values) & (np.abs(values) >= 99.0)], return_counts=True)
    gaps = np.maximum(low - values, values - high)
    far = (gaps > FAR_APART * (high - low)) | ((values < 0.0) & (low >= 0.0))
    return {
        float(value): int(count)
        for value, count in zip(values[far], counts[far], strict=True)
        if _looks_like_one(float(value))
    }


def _looks_like_one(value: float) -> bool:
    return NINES.fullmatch(f"{value:.12g}") is not None or bool(np.isclose(value, FILLINGS, rtol=1e-6, atol=0.0).any())


def without_codes(column: TableColumn, notes: list[Note]) -> TableColumn:
    """The column with codes as missing cells, which a note tells."""
    found = codes(column.values) if column.kind in ("number", "broken") else {}
    if not found:
        return column
    count = sum(found.values())
    notes.append(Note("codes", told(column.name, found, "all others"), count))
    values = np.where(np.isin(column.values, list(found)), np.nan, column.values)
    return replace(column, values=values, missing=column.missing + count)


def told(name: str, found: dict[float, int], others: str) -> str:
    """What is said of a column with codes, far from the others."""
    count = sum(found.values())
    cells = f"{count} cell{'s' * (count > 1)} of {_listed(found)}, far from {others}"
    counts = "they count" if count > 1 else "it counts"
    return f"column {show(name)} has {cells}: {counts} as missing (--keep-codes keeps such numbers)"


def _listed(found: Iterable[float]) -> str:
    return " and ".join(f"{value:.12g}" for value in found)


def codes_in_words(columns: Iterable[tuple[str, np.ndarray]]) -> str | None:
    """One line about columns that hold codes, by name and values [N], for those who give no file; None without any."""
    said = [f"{show(name)} holds {_listed(found)}" for name, values in columns if (found := codes(values))]
    if not said:
        return None
    return f"{', '.join(said)}, far from all other values: if that stands for a missing one, leave such rows out"
