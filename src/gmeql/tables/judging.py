"""A column of strings, judged: which cells are numbers, which say that there is none, which are text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmeql.tables.cells import Note, clean_cell, is_missing, parse_number, show, split_measured
from gmeql.tables.column import Kind, TableColumn

if TYPE_CHECKING:
    import polars

SLOW_CELLS = 2000
"""Distinct odd cells that are looked at one by one before a column counts as text."""
FLAGS = {"true": 1.0, "false": 0.0}

Meanings = dict[str, float | None]
"""What odd cells mean: a number, NaN where they say that there is none, None for text."""


def judged(name: str, cells: polars.Series, decimal: str, rows: np.ndarray, notes: list[Note]) -> TableColumn:
    """A column of strings, from those rows of the file; what was done to its cells is added to `notes`.

    Plain numbers go through Polars at once; only odd cells are looked at one by one.
    """
    import polars as pl

    if decimal == ".":
        numbers_at_once = cells.cast(pl.Float64, strict=False).to_numpy()
        if not np.isnan(numbers_at_once).any():  # each further call for a column costs a wide table seconds
            return TableColumn(name, numbers_at_once.astype(np.float64, copy=True), "number")
    text = cells.fill_null("").str.strip_chars()
    values = _plain_numbers(text, decimal)
    odd = np.flatnonzero(np.isnan(values))
    if not len(odd):
        return TableColumn(name, values, "number")
    odd_cells = text.gather(odd)
    distinct = odd_cells.unique(maintain_order=True).to_list()
    alike = (_as_flags(distinct) or _as_measured(distinct, decimal)) if len(odd) == len(values) else None
    meanings = alike[1] if alike else _meanings(distinct, decimal)
    missing = texts = 0
    first_text: tuple[int, str] | None = None
    for i, cell in zip(odd.tolist(), odd_cells.to_list(), strict=True):
        value = meanings.get(cell)
        if value is None:
            texts += 1
            first_text = first_text or (int(rows[i]), cell)
        else:
            values[i] = value
            missing += int(np.isnan(value))
    if alike:
        notes.append(Note(alike[0].code, f"{show(name)}: {alike[0].message}"))
    else:
        _note_marks(name, [cell for cell, value in meanings.items() if value is not None], decimal, notes)
    kind = _kind(len(values) - missing - texts, texts)
    if kind == "text":
        values = np.full(len(values), np.nan)
    # a category such as "4 doors" is known by its words, too
    has_words = kind == "text" or (alike is not None and alike[0].code == "units")
    labels = np.array(text.to_list(), dtype=object) if has_words else None
    return TableColumn(name, values, kind, missing, texts, first_text, labels)


def _plain_numbers(text: polars.Series, decimal: str) -> np.ndarray:
    """The cells as numbers [N]; NaN for those that a library does not read as such."""
    import polars as pl

    if decimal != ".":  # a point in such a table groups thousands, or is no decimal mark
        has_point = text.str.contains(".", literal=True)
        with_point = text.str.replace(decimal, ".", literal=True)
        text = pl.select(pl.when(has_point).then(pl.lit("?")).otherwise(with_point)).to_series()
    return np.array(text.cast(pl.Float64, strict=False).to_numpy(), dtype=np.float64)


def _meanings(distinct: list[str], decimal: str) -> Meanings:
    sample = distinct[:SLOW_CELLS]
    if len(distinct) > SLOW_CELLS and not any(
        is_missing(cell) or parse_number(cell, decimal) is not None for cell in sample
    ):
        return {}  # free text: no use in looking at every cell
    return {cell: np.nan if is_missing(cell) else parse_number(cell, decimal) for cell in distinct}


def _as_flags(distinct: list[str]) -> tuple[Note, Meanings] | None:
    """Cells as 1 and 0, where all of them say true, false or nothing, with a note on it; else None."""
    words = [cell.lower() for cell in distinct[:SLOW_CELLS] if not is_missing(cell)]
    if not words or not all(word in FLAGS for word in words):
        return None
    return Note("booleans", "true and false count as 1 and 0"), {
        cell: FLAGS.get(cell.lower(), np.nan) for cell in distinct
    }


def _as_measured(distinct: list[str], decimal: str) -> tuple[Note, Meanings] | None:
    """Cells without the one unit or currency that all of them carry, with a note on it; None where they carry none."""
    meanings: Meanings = {}
    units = set()
    for cell in distinct:
        found = None if is_missing(cell) else split_measured(cell, decimal)
        if found is not None:
            units.add(found[0])
        elif not is_missing(cell):
            return None
        if len(units) > 1:
            return None
        meanings[cell] = np.nan if found is None else found[1]
    if not units:
        return None
    return Note("units", f"{show(units.pop())} taken off every cell, the numbers stay"), meanings


def _note_marks(name: str, cells: list[str], decimal: str, notes: list[Note]) -> None:
    """Tell what was taken off cells that became numbers."""
    cells = [clean_cell(cell) for cell in cells if not is_missing(cell)]
    if any(cell.endswith("%") for cell in cells):
        notes.append(Note("percent", f"{show(name)}: percent signs taken off, the numbers stay (12% is 12)"))
    group_marks = " '’" + ("," if decimal == "." else ".")
    if any(mark in cell.rstrip("% ") for cell in cells for mark in group_marks):
        notes.append(Note("thousands", f"{show(name)}: thousands marks taken off"))


def _kind(numbers: int, texts: int) -> Kind:
    if not numbers:
        return "text" if texts else "empty"
    if not texts:
        return "number"
    return "broken" if numbers >= texts else "text"
