"""The constants of a formula as the report shows them: marked in the formula, with their intervals in a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gmeql.formula.printing.notation import number_text, round_constant
from gmeql.model.certainty.deciding import intervals_of
from gmeql.model.certainty.intervals import constant_intervals
from gmeql.report.numbers import percent_text, with_same_decimals
from gmeql.search.losses.effective import InputErrors

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.model.certainty.intervals import ConstantInterval
    from gmeql.model.pareto.member import FrontMember
    from gmeql.tables.training import Training

CIRCLED = ((1, 0x2460, 20), (21, 0x3251, 15), (36, 0x32B1, 15))  # first number, its character, how many follow


def constant_rows(
    expression: Expression, training: Training, *, loss: str = "squared", member: FrontMember | None = None
) -> tuple[list[dict[str, str]], str]:
    """The free constants with their intervals, or the reason why there are none; `place` is the index of the constant,
    `mark` what stands under it in the formula, `loss` what the formula was fitted by, `member` the one of a front that it is of,
    where it is: which rows decide about it."""
    given: dict[str, Any] = {"sample_weight": training.weights, "errors": errors_of(training), "loss": loss}
    try:
        if member is None:
            intervals = constant_intervals(expression, training.X, training.y, **given)
        else:
            intervals = intervals_of(member, expression, training.X, training.y, **given)
    except ValueError as error:
        return [], str(error)[:1].upper() + str(error)[1:] + "."
    rows = [_row(item, circled(number)) for number, item in enumerate(intervals, start=1)]
    return rows, "This formula has no fitted constant."


def errors_of(training: Training) -> InputErrors | None:
    """Errors of a table's columns, where they were measured with some."""
    if training.x_errors is None or training.y_errors is None:
        return None
    return InputErrors(training.x_errors, training.y_errors)


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
