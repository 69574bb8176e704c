"""From the bytes of a text table to columns of strings: encoding, delimiter, rows, header.

Nothing here knows about numbers beyond "does this cell look like one"; `gmeql.tables.read` turns the strings into numbers.
Every guess is reported as a `Note`, every failure is a `TableError` that says where and how to mend it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gmeql.tables.cells import Note, TableError, clean_cell, is_missing, one_line, parse_number, show

if TYPE_CHECKING:
    import polars

SAMPLE_ROWS = 200  # rows that the guesses of delimiter, decimal mark and header look at
SAMPLE_CELLS = 20_000  # and no more cells than this, for very wide tables
DELIMITERS = (
    "\t",
    ";",
    ",",
    "|",
    " ",
)  # preferred first when two explain the sample equally well; " " is any whitespace
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


# ------------------------------------------------------------------------------------------------- bytes to text


def decode(data: bytes, source: str, encoding: str | None = None) -> tuple[str, list[Note]]:
    """Text of the file; the encoding from its byte-order mark, else UTF-8, else what the byte pattern says."""
    if encoding is not None:
        try:
            return _no_nul(data.decode(encoding).removeprefix("\ufeff"), source), []
        except LookupError:
            raise TableError(
                source, f"unknown encoding {show(encoding)}", mend="try utf-8, utf-16 or latin-1"
            ) from None
        except UnicodeError as error:
            raise TableError(
                source,
                f"is not {encoding} text ({error.reason if hasattr(error, 'reason') else error})",
                mend="leave the encoding out, so that it is found",
            ) from None
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe\x00\x00", "utf-32"),
        (b"\x00\x00\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if data.startswith(mark):
            return _decode_as(data, "utf-8-sig" if name == "utf-8" else name, source), (
                [] if name == "utf-8" else [Note("encoding", f"read as {name.upper()}")]
            )
    if guess := _utf16_without_mark(data):
        return _decode_as(data, guess, source), [Note("encoding", f"read as {guess.upper()} without a byte-order mark")]
    try:
        return _no_nul(data.decode("utf-8"), source), []
    except UnicodeDecodeError:
        pass
    try:
        text, name = data.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        text, name = data.decode("latin-1"), "Latin-1"
    return _no_nul(text, source), [Note("encoding", f"not UTF-8: read as {name}")]


def _decode_as(data: bytes, encoding: str, source: str) -> str:
    try:
        return _no_nul(data.decode(encoding), source)
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise TableError(
            source,
            f"the text is damaged: its mark says {encoding}, byte {error.start} is not",
            row=row,
            mend="save it again as UTF-8",
        ) from None


def _utf16_without_mark(data: bytes) -> str | None:
    head = data[:4096]
    if len(head) < 4:
        return None
    even, odd = head[0::2].count(0) / len(head[0::2]), head[1::2].count(0) / len(head[1::2])
    if odd > 0.6 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.6 and odd < 0.1 else None


def _no_nul(text: str, source: str) -> str:
    position = text.find("\0")
    if position < 0:
        return text
    raise TableError(
        source,
        "a NUL byte stands there: the file is damaged or not a text table",
        row=text.count("\n", 0, position) + 1,
        mend="save it again as CSV, or remove the NUL bytes",
    )


# ------------------------------------------------------------------------------------------------- text to records


def _records(lines: Sequence[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of each record that is not blank. Raises `csv.Error` for broken quoting."""
    if delimiter == "":
        yield from ((i, [line]) for i, line in enumerate(lines, 1) if line.strip())
        return
    if delimiter == " ":
        squeezed = (" ".join(line.split()) + "\n" for line in lines)
        reader = csv.reader(squeezed, delimiter=" ", strict=True)
    else:
        reader = csv.reader(
            (line + "\n" for line in lines), delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t"
        )
    start = 1
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield start, cells
        start = reader.line_num + 1


def _sample(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    found: list[list[str]] = []
    count = 0
    try:
        for _, cells in _records(lines, delimiter):
            found.append(cells)
            count += len(cells)
            if len(found) == SAMPLE_ROWS or count > SAMPLE_CELLS:
                break
    except csv.Error:
        pass
    return found


def sniff_delimiter(lines: Sequence[str]) -> str:
    """The delimiter under which the sample's rows have equally many cells and most cells are numbers.

    >>> sniff_delimiter(["t;y", "0,5;1,25", "1,0;2,5"])
    ';'
    """
    best, best_score = "", 0.0
    for delimiter in DELIMITERS:
        rows = _sample(lines, delimiter)
        body = rows[1:] or rows
        width, agreeing = Counter(len(cells) for cells in rows).most_common(1)[0] if rows else (1, 0)
        if width < 2:
            continue
        cells = [cell for row in body for cell in row]
        numbers = sum(
            is_missing(c) or parse_number(c, ".") is not None or parse_number(c, ",") is not None for c in cells
        )
        filled = sum(not is_missing(c) for c in cells)
        header_fits = abs(len(rows[0]) - width) <= 1 and len(rows[0]) > 1
        score = agreeing / len(rows) + 2 * numbers / len(cells) + (1 if header_fits else 0) + filled / len(cells)
        if score > best_score + 1e-9:
            best, best_score = delimiter, score
    return best


def _whole_decimal_commas(rows: list[list[str]]) -> bool:
    """A single column of decimal commas looks like two comma-separated ones; its one-word header gives it away."""
    return len(rows) > 1 and len(rows[0]) == 1 and all(len(cells) == 2 for cells in rows[1:])


def sniff_decimal(cells: Sequence[str], delimiter: str) -> str:
    """The decimal mark of a sample of cells.

    A comma decides for itself unless it could group thousands; points or exponents beside it decide the rest.

    >>> sniff_decimal(["0,5", "12,25"], ";"), sniff_decimal(["1,234", "2.5"], ";"), sniff_decimal(["1.5", "2"], ",")
    (',', '.', '.')
    """
    comma = point = grouped = 0
    for cell in cells:
        text = clean_cell(cell)
        if re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+", text) and not re.match(r"[+-]?0,", text):
            grouped += 1
        elif re.fullmatch(r"[+-]?(?:\d{1,3}(?:[. '’]\d{3})+|\d*),\d*(?:[eE][+-]?\d+)?%?", text) and text != ",":
            comma += 1
        elif re.fullmatch(r"[+-]?(?:\d{1,3}(?:[, '’]\d{3})+|\d*)\.\d*(?:[eE][+-]?\d+)?%?", text) and text != ".":
            point += 1
    if comma > point:
        return ","
    return "," if grouped and not point and delimiter != "," else "."


# ------------------------------------------------------------------------------------------------- the whole way


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
        if delimiter == "," and _whole_decimal_commas(_sample(lines, ",")):
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
        if len(sample) > 2 and _is_units_row(sample[1:], decimal):
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
        for line, cells in _records(lines, delimiter):
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


def looks_like_header(records: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first row names the columns.

    It does when most of its filled cells are words, and some column is words on top and numbers below, or all cells are
    different words.
    """
    first = [clean_cell(cell) for cell in records[0]]
    words = [bool(cell) and not is_missing(cell) and parse_number(cell, decimal) is None for cell in first]
    numbers = sum(parse_number(cell, decimal) is not None for cell in first)
    if not any(words) or numbers > sum(words):
        return False
    below = records[1 : SAMPLE_ROWS + 1]
    for i, word in enumerate(words):
        column = [row[i] for row in below if not is_missing(row[i])]
        if word and column and sum(parse_number(cell, decimal) is not None for cell in column) * 2 >= len(column):
            return True
    return numbers == 0


def _is_units_row(body: Sequence[Sequence[str]], decimal: str) -> bool:
    def numeric(row: Sequence[str]) -> list[bool]:
        return [parse_number(cell, decimal) is not None for cell in row]

    below = [numeric(row) for row in body[1:SAMPLE_ROWS]]
    mostly = [sum(column) * 2 > len(below) for column in zip(*below, strict=True)]
    first = numeric(body[0])
    words = [not is_missing(cell) for cell in body[0]]
    return any(mostly) and not any(first) and sum(w and m for w, m in zip(words, mostly, strict=True)) * 2 > sum(mostly)


def tidy_names(raw: Sequence[str | None]) -> tuple[tuple[str, ...], frozenset[str], list[Note]]:
    """Names that are one line, not empty and different, what was given twice, and notes of the changes.

    >>> tidy_names(["a", "", "a"])[0]
    ('a', 'column2', 'a_2')
    """
    names: list[str] = []
    taken = {one_line(clean_cell(name)) for name in raw}
    empty = changed = 0
    duplicated: list[str] = []
    seen: set[str] = set()
    for i, cell in enumerate(raw, 1):
        name = one_line(clean_cell(cell), 120)
        if name != clean_cell(cell):
            changed += 1
        if not name:
            empty += 1
            name = _free(f"column{i}", taken)
        elif name in seen:
            duplicated.append(name)
            name = _free(f"{name}_2", taken)
        taken.add(name)
        seen.add(name)
        names.append(name)
    notes = []
    if empty:
        notes.append(
            Note(
                "empty_names",
                f"{empty} column{'s' * (empty > 1)} without a name: called by position, as in column1",
                empty,
            )
        )
    if duplicated:
        shown = ", ".join(show(name) for name in list(dict.fromkeys(duplicated))[:3])
        notes.append(
            Note(
                "duplicate_names",
                f"names given twice ({shown}): the later ones carry a number, as in x_2",
                len(duplicated),
            )
        )
    if changed:
        notes.append(
            Note(
                "changed_names",
                f"{changed} name{'s' * (changed > 1)} shortened or freed of control characters",
                changed,
            )
        )
    return tuple(names), frozenset(duplicated), notes


def _free(name: str, taken: set[str]) -> str:
    stem, number = (name[:-2], 2) if name.endswith("_2") else (name, 1)
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name
