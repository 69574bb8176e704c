"""A formula for a spreadsheet's cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, ClassVar

from gmeql.formula.messages import listing, short
from gmeql.formula.nodes import used_columns
from gmeql.formula.printing.code import ARITHMETIC, Code
from gmeql.formula.printing.notation import Formula, number_text
from gmeql.formula.printing.writing import ATOM, POWER, Written, write
from gmeql.tables.categories import indicator_name
from gmeql.tables.dates import first_day

SPREADSHEET_LENGTH = 8192
"""Longest formula that spreadsheets take, in characters."""
SPREADSHEET_NESTING = 64
"""Deepest nesting that spreadsheets take."""
SPREADSHEET_COLUMNS = 16384
"""Widest table that spreadsheets take."""


class _Spreadsheet(Code):
    language = "a spreadsheet formula"
    longest_chain = None
    functions: ClassVar = {"log": "LN"} | {
        name: name.upper() for name in ("sin", "cos", "sqrt", "exp", "tanh", "asin", "acos", "atan", "abs")
    }
    primitives: ClassVar = (
        {name: template.replace(" ", "") for name, template in ARITHMETIC.items()}
        | {name: f"{name.upper()}({{0}})" for name in ("sin", "cos", "tan", "sqrt", "exp", "tanh", "sinh", "cosh")}
        | {name: f"{name.upper()}({{0}})" for name in ("asin", "acos", "atan", "abs", "sign")}
        | {
            "log": "LN({0})",
            "log1p": "LN(1+{0})",
            "expm1": "(EXP({0})-1)",
            "pow": "({0}^{1})",
            "where": "IF({0},{1},{2})",
            "and": "AND({0},{1})",
            "or": "OR({0},{1})",
            "not": "NOT({0})",
            "minimum": "MIN({0},{1})",
            "maximum": "MAX({0},{1})",
        }
    )
    not_finite = ("NA()", "(1/0)")

    def number(self, value: float) -> Written:
        piece = super().number(value)
        return replace(piece, text=number_text(abs(value)).upper()) if math.isfinite(value) else piece

    def sign(self, negative: bool) -> str:
        return "-" if negative else "+"

    def minus(self, piece: Written) -> str:
        """Spreadsheets read -a^b as (-a)^b, so only an atom takes a bare sign."""
        return f"-{piece.text}" if piece.level == ATOM else f"-({piece.text})"

    def raised(self, base: Written, exponent: Written) -> Written:
        return Written(super().raised(base, exponent).text.replace("**", "^"), POWER)

    def function(self, operator: str, args: Sequence[Written]) -> Written:
        piece = super().function(operator, args)
        return replace(piece, text=f"{self.functions[operator]}({','.join(map(self.render, args))})")

    def helper(self, name: str, traced: Any, args: Sequence[Written]) -> Written:
        """Spreadsheets have no functions of our own: what was traced is written out in place."""
        text = self.emit(traced, [self.render(arg, ATOM) for arg in args])
        if len(text) > SPREADSHEET_LENGTH:
            raise ValueError(_TOO_LONG.format(length=len(text)))
        return Written(text)


_TOO_LONG = (
    f"the formula is too long for a spreadsheet ({{length}} characters, at most {SPREADSHEET_LENGTH}); "
    "choose a simpler one from the front or export('python')"
)


def _cell(index: int) -> str:
    """Cell of the first data row in column `index`: A2, B2, ..., AA2."""
    letters = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}2"


def cells_used(expression: Formula, columns: Sequence[str] | None = None) -> dict[str, str]:
    """Which cell of the first data row stands for which column that the formula uses: {"B2": "speed", ...}.

    `columns` are all columns of the sheet, in its order; without them those of the formula itself. Of a category or a date
    the column that it is read from is named.
    """
    names = expression.names if columns is None else columns
    return {_cell(place): names[place] for place, _ in _places(expression, columns).values()}


def _places(expression: Formula, columns: Sequence[str] | None) -> dict[int, tuple[int, str]]:
    """Where each column that the formula uses stands on the sheet, and what is written for it."""
    used = used_columns(expression.root)
    if columns is None:
        return {index: (index, _cell(index)) for index in used}
    columns, found = list(columns), {}
    for index in used:
        name = expression.names[index]
        count = columns.count(name)
        place = (columns.index(name), _cell(columns.index(name))) if count == 1 else _read_from(name, columns)
        if count > 1 or place is None:
            problem = "has no column" if count == 0 else f"has {count} columns of the name"
            raise ValueError(
                f"the sheet {problem} {short(name)}, which the formula uses; its columns are {listing(columns)}"
            )
        found[index] = place
    return found


def _read_from(name: str, columns: Sequence[str]) -> tuple[int, str] | None:
    """The column that days or the 0 and 1 of a category are read from (`tables/`), and how; None where there is none.

    >>> _read_from("day since 2024-01-31", ["y", "day"]), _read_from("city=Ulm", ["city"])
    ((1, '(B2-DATE(2024,1,31))'), (0, 'N(A2="Ulm")'))
    """
    for place, column in enumerate(columns):
        first = first_day(column, name)
        if first is not None:
            day = date(1970, 1, 1) + timedelta(days=first)
            return place, f"({_cell(place)}-DATE({day.year},{day.month},{day.day}))"
        if name.startswith(indicator_name(column, "")):
            word = name.removeprefix(indicator_name(column, "")).replace('"', '""')  # as text it can do nothing
            return place, f'N({_cell(place)}="{word}")'
    return None


def to_spreadsheet(expression: Formula, columns: Sequence[str] | None = None) -> str:
    """A spreadsheet formula for row 2, the sheet's columns standing in A, B, C, ... under a row of headings.

    `columns` are all columns of the sheet, in its order, as `cells_used` takes them. Functions and separators are those
    of English spreadsheets. Column names are not part of it, and words of categories are quoted, so that nothing in them
    can act as a formula.

    >>> from gmeql.formula.expression import Expression
    >>> from gmeql.formula.nodes import Call, Constant, Variable
    >>> to_spreadsheet(Expression(Call("mul", (Constant(0.5), Call("square", (Variable(1),))))))
    '=0.5*B2^2'
    >>> to_spreadsheet(Expression(Call("square", (Variable(1),)), ("a", "b")), ["date", "a", "target", "b"])
    '=D2^2'
    """
    places = _places(expression, columns)
    if max((place for place, _ in places.values()), default=0) >= SPREADSHEET_COLUMNS:
        raise ValueError(f"a spreadsheet has at most {SPREADSHEET_COLUMNS} columns; export('python') has no such limit")
    unused = (0, _cell(0))
    notation = _Spreadsheet(tuple(places.get(index, unused)[1] for index in range(max(places, default=-1) + 1)))
    text = "=" + write(expression.root, notation)
    if len(text) > SPREADSHEET_LENGTH:
        raise ValueError(_TOO_LONG.format(length=len(text)))
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > SPREADSHEET_NESTING:
        raise ValueError(
            f"the formula is nested too deeply for a spreadsheet ({deepest} levels, at most {SPREADSHEET_NESTING}); "
            "choose a simpler one from the front or export('python')"
        )
    return text
