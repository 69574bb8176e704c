"""How many digits of a formula's constants are shown: as many as the rows know, and as its values need.

By least squares each constant costs unseen rows 1/N of the squared error, since it is known no better. Rounding it for people
may cost a small share of that (`POLISH.known_share`). With slopes `J` of the formula's values by its constants on the rows,
moving constant `k` by `d` moves the values by `J_k d`, so its last digit is worth at most

    unit_k = 2 sqrt(share) s / |J_k|,

with the spread `s` of the errors. That is finer than the constant's own interval if others make up for it, as a slope over a
year makes up for its level: the text that people see must predict what the formula does. No constant gets more digits than it
had. Predictions, files and code keep all digits.

Legend: `N` rows, `K` constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.constants import exponents, free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, is_plain_exponent
from gmeql.formula.printing.notation import ALL_DIGITS, round_constant
from gmeql.model.certainty.alternatives import alternatives
from gmeql.model.certainty.deciding import deciding_rows
from gmeql.model.certainty.linearised import FittedRows, by_constants, slopes_at
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.judging.deferred import Deferred, carried
from gmeql.search.losses.effective import InputErrors
from gmeql.search.losses.losses import find_loss
from gmeql.search.polish.config import POLISH

FloatArray = NDArray[np.float64]
MOST_ROWS = 5000
"""Rows, evenly spread over the table, by which slopes are looked at."""
MOST_ALTERNATIVES = 50
"""Formulas beside the chosen one that are shown so."""
LEAST_SHOWN = 2
"""Digits of a constant that the rows hardly know."""
MORE_DIGITS = 2
"""More of them that tell a factor from 1, or an exponent from a plain one."""
KEPT_WHOLE = 3
"""A constant of no more digits was chosen so."""


def with_shown_digits(
    front: Front,
    X: FloatArray,
    y: FloatArray,
    weight: FloatArray | None,
    *,
    loss: Any = "squared",
    errors: InputErrors | None = None,
    late: bool = False,
) -> Front:
    """The front with formulas that are shown to as many digits as the rows `X`, `y` know of each, and so the others that are
    ever listed; as `late` as somebody asks where that is said."""

    def rows_of(one: FrontMember) -> _LookedAt:
        return _LookedAt.of(one, X, y, weight, errors)

    shared = Deferred(lambda: rows_of(front.members[0]))
    listed = Deferred(lambda: _listed(front))

    def digits(one: FrontMember, rows: _LookedAt) -> tuple[int, ...] | None:
        return _digits(one.expression, rows, loss)

    def digits_if_listed(one: FrontMember, rows: _LookedAt) -> tuple[int, ...] | None:
        return digits(one, rows) if one.expression.root in listed.get() else None

    def shown(one: FrontMember, told: Callable[[FrontMember, _LookedAt], tuple[int, ...] | None]) -> FrontMember:
        rows = shared.get() if one.is_unmoved == front.members[0].is_unmoved else rows_of(one)
        if late:
            return replace(
                one, expression=one.expression.with_late_digits(partial(told, one, rows)), outlook=carried(one)
            )
        found = told(one, rows)
        return (
            one if found is None else replace(one, expression=one.expression.with_digits(found), outlook=carried(one))
        )

    return replace(
        front,
        members=tuple(shown(one, digits) for one in front.members),
        others=tuple(shown(one, digits_if_listed) for one in front.others),
    )


def _listed(front: Front) -> set[Node]:
    """Formulas that are listed beside the chosen one."""
    return set() if front.has_own_loss else {one.expression.root for one in alternatives(front, MOST_ALTERNATIVES)}


def shown_digits(
    member: FrontMember,
    X: FloatArray,
    y: FloatArray,
    weight: FloatArray | None = None,
    *,
    loss: Any = "squared",
    errors: InputErrors | None = None,
) -> tuple[int, ...] | None:
    """To how many digits each constant of a formula is shown; None where the rows say nothing about it."""
    return _digits(member.expression, _LookedAt.of(member, X, y, weight, errors), loss)


@dataclass(frozen=True, eq=False)
class _LookedAt:
    """The rows by which slopes of a formula are looked at, of so many that decide about it."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray | None
    errors: InputErrors | None
    n_deciding: int

    @classmethod
    def of(
        cls,
        member: FrontMember,
        X: FloatArray,
        y: FloatArray,
        weight: FloatArray | None,
        errors: InputErrors | None,
    ) -> _LookedAt:
        """Copies of them: they may be looked at when somebody has changed the table."""
        deciding = np.flatnonzero(deciding_rows(member, X, y, weight))
        rows = deciding[:: max(-(-len(deciding) // MOST_ROWS), 1)]
        given = None if weight is None else np.asarray(weight, dtype=float)[rows]
        return cls(X[rows], y[rows], given, None if errors is None else errors.take(rows), len(deciding))


def _digits(expression: Expression, looked_at: _LookedAt, loss: Any) -> tuple[int, ...] | None:
    """To how many digits each constant of a formula is shown; None where the rows say nothing about it."""
    values, n_deciding = expression.constants, looked_at.n_deciding
    free = np.flatnonzero(free_constants(expression))
    if not len(free) or n_deciding <= len(free):
        return None
    weighed = _weighed(expression, looked_at, loss)
    if weighed is None:
        return None
    rows, counts, spread = weighed
    model = by_constants(expression, free, rows.X, rows)
    with np.errstate(all="ignore"):
        before, slopes = slopes_at(expression, free, rows.X, rows)
        sizes = np.sqrt(np.sum(counts[:, None] * slopes**2, axis=0) * (n_deciding / len(looked_at.y)))
        units = 2.0 * math.sqrt(POLISH.known_share) * spread / sizes
    most, powers = [_digits_today(value) for value in values], exponents(expression)
    digits = list(most)
    for k, unit in zip(free, units, strict=True):
        digits[k] = _worth(values[k], float(unit), most[k], is_exponent=int(k) in powers)
    allowed = len(free) * POLISH.known_share * spread**2 * len(looked_at.y) / n_deciding
    while digits != most:
        shown = np.array([_rounded(values[k], digits[k]) for k in free])
        with np.errstate(all="ignore"):
            moved = float(np.sum(counts * (model(shown) - before) ** 2))
        if moved <= allowed:
            break
        digits = [min(one + 1, limit) for one, limit in zip(digits, most, strict=True)]  # it bends, or roundings add up
    return tuple(digits)


def _weighed(expression: Expression, looked_at: _LookedAt, loss: Any) -> tuple[FittedRows, FloatArray, float] | None:
    """The rows that count, how much the square of each one's change counts [N], and the spread of the errors in these; None
    where the formula has no finite value on one of them.

    Around its values a loss of slope `g` and second derivative `h` is the square `h/2 (f - z)²`, of spread `mean(g²)/mean(h)`.
    """
    entry = find_loss(loss)
    table = looked_at.X, looked_at.y, looked_at.weight
    rows = FittedRows.of(expression, *table, "squared" if entry.value is not None else loss, looked_at.errors)
    with np.errstate(all="ignore"):
        if entry.value is None or entry.slope is None:
            model = by_constants(expression, np.arange(len(expression.constants)), rows.X, rows)
            slope, second = model(np.array(expression.constants)) - rows.y, np.ones(len(rows.y))
        else:
            values, bends = expression(rows.X), entry.second or entry.curvature
            assert bends is not None
            slope, second = entry.slope(values, rows.y), np.maximum(bends(values, rows.y), 0.0)
        counts = rows.weight * second
        squares = float(np.sum(rows.weight * slope**2)) / float(np.sum(counts))
    usable = len(rows.y) > 0 and np.isfinite(counts).all() and math.isfinite(squares)
    return (rows, counts, math.sqrt(squares)) if usable else None


def _worth(value: float, unit: float, most: int, *, is_exponent: bool) -> int:
    """Digits of a constant whose last one may be worth `unit`, `most` of them at most. A factor near 1 does not vanish and an
    exponent is not shown as one that somebody chose, where a few digits more tell them apart."""
    if not unit > 0 or most <= KEPT_WHOLE:
        return most
    first = math.floor(math.log10(abs(value)))
    last = math.floor(math.log10(unit)) if math.isfinite(unit) else first
    fewest = max(first - last + 1, LEAST_SHOWN)
    for digits in range(fewest, min(fewest + MORE_DIGITS, most) + 1):
        shown = _rounded(value, digits)
        if abs(shown) != 1.0 and not (is_exponent and is_plain_exponent(Constant(shown))):
            return digits
    return min(fewest, most)


def _digits_today(value: float) -> int:
    """Digits that a constant has where nobody knows what it is worth."""
    shown = round_constant(value)
    return next(digits for digits in range(1, ALL_DIGITS + 1) if _rounded(shown, digits) == shown)


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
