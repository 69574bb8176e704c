"""From the bytes of a text table to columns of strings: encoding, delimiter, rows, header.

Nothing here knows about numbers beyond "does this cell look like one"; `gmeql.tables.read` turns the strings into numbers.
Every guess is reported as a `Note`, every failure is a `TableError` that says where and how to mend it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gmeql.tables.cells import Note, TableError, parse_number, show
from gmeql.tables.decoding import decode
from gmeql.tables.guessing import (
    SAMPLE_CELLS,
    SAMPLE_ROWS,
    is_one_decimal_column,
    is_units_row,
    looks_like_header,
    sample_records,
    sniff_decimal,
    sniff_delimiter,
    split_records,
)
from gmeql.tables.names import tidy_names

if TYPE_CHECKING:
    import polars

DELIMITER_NAMES = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "vertical bar", " ": "white space", "": "none"}
COMMENT_MARKS = ("#", "%", "//", "!")


@dataclass(frozen=True)
class TextTable:
    """Columns of cells as strings. `rows[i]` is the line of the file that data row i stands on."""

    names: tuple[str, ...]
    columns: tuple[polars.Series, ...]
    rows: np.ndarray
    decimal: str
    duplicated: frozenset[str]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Grid:
    """A rectangle of cells, header and all: columns of strings, and the line of the file that each row stands on."""

    columns: tuple[polars.Series, ...]
    rows: np.ndarray

    def head(self) -> list[list[str]]:
        """The first rows, for guesses."""
        count = max(3, min(SAMPLE_ROWS + 2, SAMPLE_CELLS // len(self.columns)))
        return [
            [cell or "" for cell in row] for row in zip(*(c.head(count).to_list() for c in self.columns), strict=True)
        ]

    def after(self, start: int) -> Grid:
        return Grid(tuple(column.slice(start) for column in self.columns), self.rows[start:])


def read_text(
    data: bytes,
    source: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    skip_bad_rows: bool = False,
) -> TextTable:
    """Columns of strings from the bytes of a text table; each option given is taken, each left out is found."""
    text, notes = decode(data, source, encoding)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines, first_line, comment_header, comment_notes = _skip_preamble(lines)
    notes += comment_notes
    if lines and (match := re.fullmatch(r"\s*sep=(.)\s*", lines[0], re.IGNORECASE)):
        delimiter, lines, first_line = delimiter or match[1], lines[1:], first_line + 1
    if not any(line.strip() for line in lines):
        raise TableError(source, "the file has no rows", mend="give a table with a header and at least two rows")
    if delimiter is None:
        delimiter = sniff_delimiter(lines)
        if delimiter == "," and is_one_decimal_column(sample_records(lines, ",")):
            delimiter = ""
        if delimiter not in (",", ""):
            notes.append(Note("delimiter", f"delimiter: {DELIMITER_NAMES.get(delimiter, show(delimiter))}"))
    grid = _regular_grid(lines, delimiter, first_line)
    if grid is None:
        grid, ragged_notes = _quoted_grid(lines, delimiter, source, first_line, skip_bad_rows)
        notes += ragged_notes
    return name_columns(grid, notes, delimiter=delimiter, decimal=decimal, header=header, comment_header=comment_header)


def name_columns(
    grid: Grid,
    notes: Sequence[Note],
    *,
    delimiter: str = "",
    decimal: str | None = None,
    header: bool | None = None,
    comment_header: str | None = None,
) -> TextTable:
    """Find the decimal mark and the header of a grid of strings."""
    notes = list(notes)
    sample = grid.head()
    if decimal is None:
        decimal = sniff_decimal([cell for record in sample[1:] or sample for cell in record], delimiter)
        if decimal == ",":
            notes.append(Note("decimal", "decimal mark: comma"))
    width = len(grid.columns)
    raw: list[str] | None = None
    start = 0
    if header or (header is None and looks_like_header(sample, decimal)):
        raw, start = sample[0], 1
        if len(sample) > 2 and is_units_row(sample[1:], decimal):
            start = 2
            notes.append(Note("units_row", f"row {grid.rows[1]} holds units or remarks: left out", 1))
    elif header is None and comment_header is not None:
        cells = [cell for cell in re.split(r"[,;|\t]|\s+", comment_header.strip()) if cell]
        if len(cells) == width and not any(parse_number(cell) is not None for cell in cells):
            raw = cells
            notes.append(Note("header", "column names taken from the comment above the numbers"))
    if raw is None:
        raw = [f"x{i}" for i in range(1, width + 1)]
        notes.append(
            Note(
                "header",
                f"no header: columns are named x1 to x{width}" if width > 1 else "no header: the column is named x1",
            )
        )
    names, duplicated, name_notes = tidy_names(raw)
    body = grid.after(start)
    return TextTable(names, body.columns, body.rows, decimal, duplicated, (*notes, *name_notes))


def _skip_preamble(lines: list[str]) -> tuple[list[str], int, str | None, list[Note]]:
    """Leading comment and blank lines off; a comment right above the numbers may be the header (as NumPy writes it)."""
    start, last_comment = 0, None
    while start < len(lines) and (not lines[start].strip() or lines[start].lstrip().startswith(COMMENT_MARKS)):
        if lines[start].strip():
            last_comment = lines[start].lstrip().lstrip("#%/! \t")
        start += 1
    later = [i for i in range(start, len(lines)) if lines[i].startswith("#")]
    for i in later:  # blanked, not removed: line numbers stay
        lines[i] = ""
    count = len(later) + sum(bool(line.strip()) for line in lines[:start])
    notes = [Note("comments", f"{count} comment line{'s' * (count > 1)} skipped", count)] if count else []
    return lines[start:], start + 1, last_comment, notes


def _regular_grid(lines: Sequence[str], delimiter: str, first_line: int) -> Grid | None:
    """The fast way, for tables without quotation marks whose rows all have the same number of cells; else None."""
    import polars as pl

    if len(delimiter) != 1 or delimiter in ' "':
        return None
    text = pl.Series("lines", lines, dtype=pl.String)
    kept = text.str.strip_chars() != ""
    text = text.filter(kept)
    if text.str.contains('"', literal=True).any() or text.str.count_matches(delimiter, literal=True).n_unique() != 1:
        return None
    frame = pl.read_csv(
        "\n".join(text).encode(),
        has_header=False,
        separator=delimiter,
        quote_char=None,
        infer_schema=False,
        empty_string_is_null=False,
    )
    rows = np.flatnonzero(kept.to_numpy()) + first_line
    if frame.height != len(rows):
        return None
    return Grid(tuple(frame.get_columns()), rows)


def _quoted_grid(
    lines: Sequence[str], delimiter: str, source: str, first_line: int, skip_bad_rows: bool
) -> tuple[Grid, list[Note]]:
    """The careful way: quoted cells, white space as delimiter, and rows that differ in length."""
    import polars as pl

    rows: list[int] = []
    records: list[list[str]] = []
    try:
        for line, cells in split_records(lines, delimiter):
            rows.append(line + first_line - 1)
            records.append(cells)
    except csv.Error as error:
        problem = (
            "a quotation mark opened there is never closed"
            if "end of data" in str(error)
            else f"the quotation marks are broken ({error})"
        )
        raise TableError(
            source, problem, row=(rows[-1] + 1 if rows else first_line), mend="close or remove it"
        ) from None
    notes: list[Note] = []
    width = len(records[0])
    below = Counter(map(len, records[1:]))
    if set(below) == {width + 1}:
        if all(not cells[-1].strip() for cells in records[1:]):
            records[1:] = [cells[:-1] for cells in records[1:]]
        else:
            records[0] = ["", *records[0]]
            width += 1
            notes.append(
                Note(
                    "row_names", "the header has one cell fewer than the rows: the first column is taken for row names"
                )
            )
    records = [_trim(cells, width) for cells in records]
    bad = [i for i, cells in enumerate(records) if len(cells) != width]
    if bad and not skip_bad_rows:
        i = bad[0]
        count = len(records[i])
        cut_off = i == len(records) - 1 and count < width
        raise TableError(
            source,
            f"{count} cell{'s' * (count != 1)} where the first row has {width}"
            + (" (is the file cut off?)" if cut_off else "")
            + (f", and {len(bad) - 1} more such rows" if len(bad) > 1 else ""),
            row=rows[i],
            mend="mend the row, quote cells that hold the delimiter, or leave such rows out with --skip-bad-rows",
        )
    if bad:
        notes.append(
            Note("bad_rows", f"{len(bad)} row{'s' * (len(bad) > 1)} with the wrong number of cells left out", len(bad))
        )
        drop = set(bad)
        rows = [row for i, row in enumerate(rows) if i not in drop]
        records = [cells for i, cells in enumerate(records) if i not in drop]
    columns = tuple(
        pl.Series(f"column_{i}", column, dtype=pl.String) for i, column in enumerate(zip(*records, strict=True))
    )
    return Grid(columns, np.asarray(rows, dtype=np.int64)), notes


def _trim(cells: list[str], width: int) -> list[str]:
    """Empty cells beyond the header's width carry nothing (spreadsheets write them)."""
    return cells[:width] if len(cells) > width and not any(cell.strip() for cell in cells[width:]) else cells
