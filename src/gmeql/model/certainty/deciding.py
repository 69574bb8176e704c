"""Which rows decide about a formula, and the intervals that follow from them.

The constants of a formula that outliers do not move (`unmoved.py`) were fitted to the rows that do not lie far off, so their
intervals are those of these rows. By all rows, a slope that is known to 1 % could not be told from 0. If its level is the mean
of all rows, all rows decide about the level.

A new row may be an outlier as well, as often as a row of the table was. Its error is then one of the errors of the rows far
off, and otherwise like those of the other rows. A prediction interval leaves the same share of this mixture beyond each end. It
is narrow if outliers are rarer than what the interval may miss, and reaches out to them if they are not.

Legend: `N` rows, `K` free constants of one expression.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.model.certainty.intervals import MOST_FAR, ConstantInterval, PredictionBasis, constant_intervals
from gmeql.model.certainty.linearised import FittedRows, linearised, slopes_at
from gmeql.model.pareto.member import FrontMember
from gmeql.model.rows.far_rows import are_gross, rows_far_away
from gmeql.search.judging.outlook import mean_and_error
from gmeql.search.losses.effective import InputErrors
from gmeql.search.losses.magnitudes import magnitudes

FloatArray = NDArray[np.float64]


def deciding_rows(
    member: FrontMember, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """Which rows [N] decide about the constants of `member`: those with weight, but outliers that do not move it."""
    y = np.asarray(y, dtype=float)
    given = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    if not member.is_unmoved:
        return np.asarray(given > 0)
    with np.errstate(all="ignore"):
        residuals = y - member.expression(np.asarray(X, dtype=float))
    return np.asarray(~rows_far_away(residuals * np.sqrt(given / given.mean())) & (given > 0))


def intervals_of(
    member: FrontMember,
    expression: Expression,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    errors: InputErrors | None = None,
    loss: Any = "squared",
    **options: Any,
) -> tuple[ConstantInterval, ...]:
    """Intervals of the constants of `member`, whose formula is `expression` once groups' constants are written out, by the
    rows that decide about it; `options` are those of `constant_intervals`."""
    if not member.is_unmoved:
        return constant_intervals(expression, X, y, sample_weight=sample_weight, errors=errors, loss=loss, **options)
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    given = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    kept = deciding_rows(member, X, y, given)
    levelled = member.outlook is not None and member.outlook.levelled
    level = _level_constant(expression, X) if levelled else None
    if level is None:
        return constant_intervals(expression, X[kept], y[kept], sample_weight=given[kept], errors=None, **options)
    shift = float(np.average(y[kept] - expression(X[kept]), weights=given[kept]))
    found = constant_intervals(expression, X[kept], y[kept] - shift, sample_weight=given[kept], errors=None, **options)
    error = _level_error(expression, level, X, y, given, kept, shift)
    return tuple(_around(item, error) if item.position == level else item for item in found)


def basis_of(
    member: FrontMember,
    expression: Expression,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    loss: Any,
    errors: InputErrors | None = None,
) -> PredictionBasis | str:
    """What prediction intervals of `member` need, or the reason why it has none."""
    if member.is_shrunk and errors is None:
        return _of_shrunk(member, expression, y)
    by_size = magnitudes(np.asarray(y, dtype=float)) is not None
    if not member.is_unmoved or by_size:
        found = PredictionBasis.or_reason(expression, X, y, sample_weight, loss, errors)
        mixed = not by_size and not isinstance(found, str) and loss == "squared" and errors is None
        return _beside_outliers(found, X, y, sample_weight) if mixed else found  # type: ignore[arg-type]
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    given = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    kept = deciding_rows(member, X, y, given)
    with np.errstate(all="ignore"):
        residuals = y - expression(X)
    levelled = member.outlook is not None and member.outlook.levelled
    shift = float(np.average(residuals[kept], weights=given[kept])) if levelled else 0.0
    found = PredictionBasis.or_reason(expression, X[kept], y[kept] - shift, given[kept], loss)
    far = residuals[~kept & (given > 0)]
    return found if isinstance(found, str) or not len(far) else _mixed(found, far, int(kept.sum()), shift)


def _of_shrunk(member: FrontMember, expression: Expression, y: ArrayLike) -> PredictionBasis:
    """The basis of factors drawn towards 0, of which there may be more than rows: errors are those on rows left out, which hold
    what is not known of the factors."""
    assert member.outlook is not None
    return PredictionBasis(expression, (), member.outlook.left_out, max(len(np.asarray(y)) - 1, 1), np.zeros((0, 0)))


def _beside_outliers(
    basis: PredictionBasis, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> PredictionBasis:
    """The basis of a formula that all rows decide about, outliers too: errors are those of the others, around their own mean, or
    the outliers' own. Together they are far from normal: of 10 % outliers, all lie beyond twice the spread of all rows."""
    y = np.asarray(y, dtype=float)
    given = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    with np.errstate(all="ignore"):
        residuals = y - basis.expression(np.asarray(X, dtype=float))
    scaled = residuals * np.sqrt(given / given.mean())
    far = rows_far_away(scaled)
    kept = ~far & (given > 0)
    freedom = int(kept.sum()) - len(basis.free)
    if freedom < 1 or not are_gross(scaled, far):
        return basis
    weights = given[kept] / given[kept].mean()
    shift = float(np.average(residuals[kept], weights=weights))
    errors = residuals[kept] - shift
    largest = float(np.abs(errors).max())  # in units of it all have squares
    if not largest > 0:
        return basis
    spread = largest * math.sqrt(float(np.sum(weights * (errors / largest) ** 2)) / freedom)
    others = replace(basis, spread=spread, freedom=freedom, root=basis.root * (basis.spread / spread))
    return _mixed(others, residuals[far & (given > 0)], int(kept.sum()), shift)


def _mixed(basis: PredictionBasis, far: FloatArray, n_others: int, shift: float) -> PredictionBasis:
    """The basis of the others with errors of outliers `far` as often as they are.

    Of more than a file keeps these are as many, evenly spread over their order.
    """
    ranks = np.linspace(0, len(far) - 1, min(len(far), MOST_FAR)).round().astype(int)
    share = len(far) / (len(far) + n_others)
    return replace(basis, shift=shift, far_share=share, far=tuple(map(float, np.sort(far)[ranks])))


def _level_constant(expression: Expression, X: FloatArray) -> int | None:
    """The index of the constant that stands by itself in a sum; None where there is none."""
    free = np.flatnonzero(free_constants(expression))
    if not len(free):
        return None
    slopes = slopes_at(expression, free, X)[1]
    alone = np.flatnonzero(np.all(slopes == 1.0, axis=0))
    return int(free[alone[0]]) if len(alone) else None


def _level_error(
    expression: Expression,
    level: int,
    X: FloatArray,
    y: FloatArray,
    given: FloatArray,
    kept: NDArray[np.bool_],
    shift: float,
) -> float:
    """Standard error of a level that is the mean of all rows beside what the other constants say: that of the mean error, and
    what is not known of the others at the middle of the rows."""
    with np.errstate(all="ignore"):
        alone = mean_and_error(y - expression(X), given / given.mean())[1]
    free = np.flatnonzero(free_constants(expression))
    others = free[free != level]
    if not len(others):
        return alone
    rows = FittedRows.of(expression, X[kept], y[kept] - shift, given[kept], "squared")
    fitted = linearised(expression, free, rows)
    middle = np.average(slopes_at(expression, free, X)[1], axis=0, weights=given)
    middle[free == level] = 0.0
    return math.hypot(alone, fitted.spread * float(np.linalg.norm(fitted.root @ middle)))


def _around(item: ConstantInterval, error: float) -> ConstantInterval:
    """The interval with another standard error, around the constant itself."""
    half = 0.5 * (item.high - item.low) * error / item.standard_error if item.standard_error > 0 else 0.0
    return replace(item, standard_error=error, low=item.value - half, high=item.value + half)
