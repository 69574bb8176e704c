"""The constants of a formula as the report shows them: marked in the formula, with their intervals in a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gmeql.formula.printing.notation import number_text, round_constant
from gmeql.model.intervals import constant_intervals

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.model.intervals import ConstantInterval
    from gmeql.tables.read import Training

MOST_DIGITS = 7  # of a constant that the data determine to rounding
PLAIN = (1e-4, 1e6)  # sizes written without a power of ten
CIRCLED = ((1, 0x2460, 20), (21, 0x3251, 15), (36, 0x32B1, 15))  # first number, its character, how many follow


def constant_rows(expression: Expression, training: Training) -> tuple[list[dict[str, str]], str]:
    """The free constants with their intervals, or the reason why there are none; `place` is the index of the constant,
    `mark` what stands under it in the formula."""
    try:
        intervals = constant_intervals(expression, training.X, training.y, sample_weight=training.weights)
    except ValueError as error:
        return [], str(error)[:1].upper() + str(error)[1:] + "."
    rows = [_row(item, circled(number)) for number, item in enumerate(intervals, start=1)]
    return rows, "This formula has no fitted constant."


def _row(item: ConstantInterval, mark: str) -> dict[str, str]:
    row = {"mark": mark, "place": str(item.position)}
    if not math.isfinite(item.standard_error):
        value = number_text(round_constant(item.value))
        return row | {"value": value, "low": "not determined", "high": "not determined", "relative": ""}
    half = (item.high - item.low) / 2
    value, low, high = with_same_decimals((item.value, item.low, item.high), half)
    relative = 100 * abs(half / item.value) if item.value else math.inf
    return row | {"value": value, "low": low, "high": high, "relative": percent_text(relative)}


def circled(number: int) -> str:
    """A number in a circle, where there is such a character.

    >>> circled(1), circled(21), circled(99)
    ('①', '㉑', '(99)')
    """
    for first, code, many in CIRCLED:
        if first <= number < first + many:
            return chr(code + number - first)
    return f"({number})"


def with_same_decimals(values: Sequence[float], uncertainty: float) -> list[str]:
    """Numbers with the digits that their uncertainty justifies, two of its own, and all with equally many decimals.

    >>> with_same_decimals((19988.3, 19852.8, 20123.2), 135.2)
    ['19990', '19850', '20120']
    >>> with_same_decimals((0.3, 0.296634, 0.303366), 0.003366)
    ['0.3000', '0.2966', '0.3034']
    >>> with_same_decimals((8.785e-11, 8.1e-11, 9.4e-11), 0.65e-11)
    ['8.79e-11', '8.10e-11', '9.40e-11']
    """
    largest = max(map(abs, values))
    power = _power(largest)
    last = power - MOST_DIGITS + 1 if uncertainty <= 0 else max(_power(uncertainty) - 1, power - MOST_DIGITS + 1)
    last = min(last, power)
    if largest == 0 or PLAIN[0] <= largest < PLAIN[1]:
        return [f"{round(value, -last) + 0.0:.{max(0, -last)}f}" for value in values]
    return [f"{value / 10.0**power + 0.0:.{power - last}f}e{power:+03d}" for value in values]


def _power(value: float) -> int:
    """The power of ten of a number's first digit."""
    return int(f"{value:e}".partition("e")[2])


def percent_text(percent: float) -> str:
    """
    >>> percent_text(0.678), percent_text(123.4), percent_text(1e-12), percent_text(1e9)
    ('0.68 %', '123 %', 'under 0.0001 %', '')
    """
    if percent > 1e4:
        return ""
    if percent < 1e-4:
        return "under 0.0001 %"
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"
