"""What a text table does not say and a sample of its rows does: delimiter, decimal mark, header, units."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from gmeql.tables.cells import clean_cell, is_missing, parse_number, without_unit

SAMPLE_ROWS = 200  # rows that the guesses of delimiter, decimal mark and header look at
SAMPLE_CELLS = 20_000  # and no more cells than this, for very wide tables
DELIMITERS = (
    "\t",
    ";",
    ",",
    "|",
    " ",
)  # preferred first when two explain the sample equally well; " " is any whitespace


def split_records(lines: Sequence[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
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


def sample_records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The first records, up to the first broken one."""
    found: list[list[str]] = []
    count = 0
    try:
        for _, cells in split_records(lines, delimiter):
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
        rows = sample_records(lines, delimiter)
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


def is_one_decimal_column(rows: list[list[str]]) -> bool:
    """A single column of decimal commas looks like two comma-separated ones; its one-word header gives it away."""
    return len(rows) > 1 and len(rows[0]) == 1 and all(len(cells) == 2 for cells in rows[1:])


def sniff_decimal(cells: Sequence[str], delimiter: str) -> str:
    """The decimal mark of a sample of cells.

    A comma decides for itself unless it could group thousands; points or exponents beside it decide the rest.

    >>> sniff_decimal(["0,5", "12,25"], ";"), sniff_decimal(["1,234", "2.5"], ";"), sniff_decimal(["1.5", "2"], ",")
    (',', '.', '.')
    >>> sniff_decimal(["23,40 €", "1.234,50 €"], ";")
    ','
    """
    comma = point = grouped = 0
    for cell in cells:
        text = without_unit(cell)
        if re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+", text) and not re.match(r"[+-]?0,", text):
            grouped += 1
        elif re.fullmatch(r"[+-]?(?:\d{1,3}(?:[. '’]\d{3})+|\d*),\d*(?:[eE][+-]?\d+)?", text) and text != ",":
            comma += 1
        elif re.fullmatch(r"[+-]?(?:\d{1,3}(?:[, '’]\d{3})+|\d*)\.\d*(?:[eE][+-]?\d+)?", text) and text != ".":
            point += 1
    if comma > point:
        return ","
    return "," if grouped and not point and delimiter != "," else "."


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


def is_units_row(body: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the row below the header holds words where the rows below it hold numbers."""

    def numeric(row: Sequence[str]) -> list[bool]:
        return [parse_number(cell, decimal) is not None for cell in row]

    below = [numeric(row) for row in body[1:SAMPLE_ROWS]]
    mostly = [sum(column) * 2 > len(below) for column in zip(*below, strict=True)]
    first = numeric(body[0])
    words = [not is_missing(cell) for cell in body[0]]
    return any(mostly) and not any(first) and sum(w and m for w, m in zip(words, mostly, strict=True)) * 2 > sum(mostly)
