"""Rows far from a formula, in sentences: outliers, the tail of its errors, a target that varies by factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gmeql.model.rows.far_rows import are_gross
from gmeql.model.rows.weighing import CountedRows
from gmeql.report.numbers import percent_text, three_digits

if TYPE_CHECKING:
    from gmeql.model.pareto.member import FrontMember
    from gmeql.model.rows.outliers import OtherRows, Outliers

_ADVICE = "loss='robust' (--loss robust) gives {} no weight"
UNSURE = "as outliers do or errors with a heavy tail: the rows do not tell which"
_CLEARLY = 0.7
"""Share of the error of the other rows from the formula below which their own describes them clearly better."""


def forgotten(far: np.ndarray, counted: CountedRows) -> list[str]:
    """Rows [N] far from a formula whose loss makes less of them."""
    count = int(far.sum())
    if count == 0:
        return []
    share = counted.share(far)
    weight = "no weight" if share == 0 else f"{percent_text(100 * share)} of the weight"
    return [f"{_rows_lie(count)} far from it; the loss gives {_them(count)} {weight}."]


def without_outliers(member: FrontMember, residuals: np.ndarray, kept: np.ndarray, outliers: Outliers) -> list[str]:
    """What a formula follows that outliers do not move: the rows `kept` [N], with their own level or that of all rows."""
    assert member.outlook is not None
    count, rest = int(np.sum(~kept)), int(kept.sum())
    levelled = member.outlook.levelled
    if not are_gross(residuals, ~kept):
        follow = f"Its constants follow the other {rest:,}, which tell them better" + ", but for its level" * levelled
        sentences = [f"{_rows_lie(count)} far from it, {UNSURE}. {follow}."]
    elif levelled:
        level = "Its level is the mean of all rows, which squared errors ask for; everything else follows those."
        sentences = [_outliers(count, outliers.others), level]
    else:
        error = math.sqrt(float(np.mean(residuals[kept] ** 2)))
        more = f"; a search with {_ADVICE.format(_them(count))}, and may find more of what they follow."
        if member.outlook.searched_without:
            more = f"; a part of the search left {_them(count)} out."
        sentences = [
            f"{_rows_lie(count)} far from the others: outliers? Its constants follow the other {rest:,}, where its typical "
            f"error is {three_digits(error)}{more}"
        ]
    return [*sentences, "Its prediction intervals expect such rows among fresh ones as often as here."]


def far_away(residuals: np.ndarray, far: np.ndarray, others: OtherRows | None) -> list[str]:
    """Rows `far` [N] from the formula, or which pull it so far that they no longer are: which formula the others follow, and
    which loss would forget them. Of rows that the tail of its errors may reach, the formula only if it is clearly better."""
    count = int(far.sum())
    if are_gross(residuals, far) if others is None else others.gross:
        return [_outliers(count, others)]
    sentences = [f"{_rows_lie(count)} far from it, {UNSURE}, so fresh rows may lie further off than stated."] * (
        count > 0
    )
    if others is not None and others.expression.variables:
        error = math.sqrt(float(np.mean(residuals[others.kept] ** 2)))
        if others.error < _CLEARLY * error:
            well = f"far better, with a typical error of {three_digits(others.error)}"
            faulty = "other is a fault" if others.far == 1 else f"other {others.far:,} are faults"
            sentences.append(
                f"{others.expression} fits {others.rest:,} rows {well}: if the {faulty}, {_ADVICE.format(_them(others.far))}."
            )
    return sentences


def _outliers(count: int, others: OtherRows | None) -> str:
    advice = _ADVICE.format(_them(count))
    if others is None:
        return f"{_rows_lie(count)} far from it: outliers? {advice}."
    said = f"{others.expression} fits the other {others.rest:,}, with a typical error of {three_digits(others.error)}"
    return f"{_rows_lie(others.far)} far from the others: outliers? {said}; a search with {advice}."


def by_factors(count: int) -> str:
    """Rows that lie far from a positive formula as large factors do."""
    return (
        f"{_rows_lie(count)} far from it; perhaps the target varies by factors: try its logarithm as the target, or "
        f"loss='robust' (--loss robust) if {'it is a fault' if count == 1 else 'they are faults'}."
    )


def _rows_lie(count: int) -> str:
    return "1 row lies" if count == 1 else f"{count:,} rows lie"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"
