"""One cell of a text table: is it missing, is it a number; and the words in which tables are spoken of.

`TableError` is what cannot be used, `Note` what was done; both are one line for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

MISSING = frozenset(
    {
        "",
        "na",
        "n/a",
        "n.a.",
        "n. a.",
        "n.d.",
        "n.v.",
        "k.a.",
        "k. a.",
        "nan",
        "-nan",
        "null",
        "none",
        "nil",
        "missing",
        "-",
        "--",
        "?",
        ".",
        "..",
        "…",
    }
    | {"#n/a", "#na", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!", "<na>", "(null)"}
)
DECIMAL_MARKS = (".", ",")
SPACES = "\u00a0\u202f\u2009\u2007\ufeff\u200b"
_STRIP = str.maketrans({"\u2212": "-", "\u2013": "-", **dict.fromkeys(SPACES, " ")})
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?(?:inf|infinity|∞)", re.IGNORECASE)
_GROUPED = {
    ".": re.compile(r"[+-]?\d{1,3}(?:([, '’])\d{3})(?:\1\d{3})*(?:\.\d+)?", re.ASCII),
    ",": re.compile(r"[+-]?\d{1,3}(?:([. '’])\d{3})(?:\1\d{3})*(?:,\d+)?", re.ASCII),
}
CURRENCIES = "$€£¥₹"
_MEASURED = re.compile(
    rf"(?P<before>[{CURRENCIES}]?)\s*(?P<number>[+-]?[\d.,][\d., '’]*(?:[eE][+-]?\d+)?)\s*"
    rf"(?P<after>[{CURRENCIES}]?|(?:[^\W\d_]|[°′″])(?:[^\W\d_]|[°/·*^⁻²³ -])*[23]?)"
)
_FORTRAN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))[dD]([+-]?\d+)", re.ASCII)


class TableError(ValueError):
    """A table that cannot be used: where, what is wrong and the mend, in one line."""

    def __init__(self, source: str, problem: str, *, mend: str, row: int | None = None, column: str | None = None):
        place = [one_line(source)]
        if row is not None:
            place.append(f"row {row}")
        if column is not None:
            place.append(f"column {show(column)}")
        self.source, self.row, self.column, self.problem, self.mend = source, row, column, problem, mend
        super().__init__(f"{', '.join(place)}: {problem}; {mend}")


@dataclass(frozen=True)
class Note:
    """One thing that was done to, or found in, the table: a stable code, a sentence, how many rows or columns."""

    code: str
    message: str
    count: int = 0

    def __str__(self) -> str:
        return self.message


def one_line(text: object, limit: int = 200) -> str:
    """Text without control characters, cut to `limit`: safe in a one-line message and in a terminal."""
    line = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(str(text).split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def show(text: object, limit: int = 60) -> str:
    """A name or a cell in quotes, for messages."""
    return f"'{one_line(text, limit)}'"


def clean_cell(cell: str | None) -> str:
    """The cell without outer white space (no-break spaces included) and with a plain minus."""
    return "" if cell is None else cell.translate(_STRIP).strip()


def is_missing(cell: str | None) -> bool:
    """Whether the cell says "no value here".

    >>> is_missing("N/A"), is_missing("  "), is_missing("0")
    (True, True, False)
    """
    return clean_cell(cell).lower() in MISSING


def parse_number(cell: str | None, decimal: str = ".") -> float | None:
    """The number in a cell, or None. Thousands marks, Fortran's D exponents, percent signs and infinities are known.

    >>> parse_number("1,5", decimal=","), parse_number("1 234.5"), parse_number("1.5D+03"), parse_number("abc")
    (1.5, 1234.5, 1500.0, None)
    """
    text = clean_cell(cell)
    if not text or len(text) > 400:
        return None
    if text.endswith("%"):
        text = text[:-1].rstrip()
    if decimal == "." or "," not in text:
        match = _PLAIN.fullmatch(text) if decimal == "." or "." not in text else None
    else:
        match = _PLAIN.fullmatch(text.replace(",", ".")) if "." not in text else None
    if match:
        return float(match.group())
    if _INFINITE.fullmatch(text):
        return -np.inf if text.startswith("-") else np.inf
    if _GROUPED[decimal].fullmatch(text):
        kept = re.sub(r"[ '’]", "", text).replace("," if decimal == "." else ".", "")
        return float(kept.replace(",", "."))
    if match := _FORTRAN.fullmatch(text.replace(",", ".") if decimal == "," else text):
        return float(f"{match[1]}e{match[2]}")
    # A plain decimal point in a table whose other numbers carry commas: the point cannot group three digits here.
    if decimal == "," and (match := _PLAIN.fullmatch(text)):
        return float(match.group())
    return None


def without_unit(cell: str | None) -> str:
    """The cell without the unit, the currency or the percent sign of its number; any other cell as it is.

    >>> without_unit("1.234,5 €"), without_unit("12,5 %"), without_unit("12, Main Street")
    ('1.234,5', '12,5', '12, Main Street')
    """
    text = clean_cell(cell)
    match = _MEASURED.fullmatch(text.removesuffix("%"))
    number = match["number"].rstrip() if match is not None else ""
    return number if number[-1:].isdigit() else text


def split_measured(cell: str | None, decimal: str = ".") -> tuple[str, float] | None:
    """The unit or currency of a cell that holds a number with one, and the number; None for any other cell.

    >>> split_measured("2.5 kg"), split_measured("1,234 €"), split_measured("$ 3"), split_measured("9.81 m/s2")
    (('kg', 2.5), ('€', 1234.0), ('$', 3.0), ('m/s2', 9.81))
    >>> split_measured("P17"), split_measured("10:15"), split_measured("2.5"), split_measured("0x1F")
    (None, None, None, None)
    """
    match = _MEASURED.fullmatch(clean_cell(cell))
    if match is None or bool(match["before"]) == bool(match["after"]):
        return None
    number = parse_number(match["number"], decimal)
    return None if number is None else (match["before"] or match["after"], number)
