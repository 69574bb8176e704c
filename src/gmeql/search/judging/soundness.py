"""What a formula is likely to do on rows it was not fitted to: errors with each row left out, values between the rows.

A search tries thousands of formulas, so one of them goes through the few rows that stick out: by a pole beside them, a
high power, or a term that one row pays for. Two figures show it.

- The error of each row with that row left out of the fit, in closed form from the fit's own slopes: with the hat matrix
  `H = J (JᵀWJ)⁻¹ JᵀW` of the linearised fit it is `rᵢ / (1 - hᵢᵢ)` (Cook and Weisberg, Residuals and Influence in
  Regression, 1982). A row that one constant exists for has `hᵢᵢ` near 1. If it is 1 to rounding, nothing but that row says what
  happens there, and its error is taken as that of the others' mean. If a column has a long tail, the next row may lie as far
  beyond the last as that lies beyond the others. So for a formula that bends, the rows `B` of the tail are left out together
  too, with errors `(I - H_BB)⁻¹ r_B`.
- The values at rows that could have been: columns of two rows mixed, and points on the line between two rows, kept if they are
  no further from a row than rows are from each other; and rows just beyond the ends. Values far outside the range of the target
  count as error there. A denominator that takes both signs has a zero in between, so the formula has a pole.

Legend: `N` rows, `V` columns, `K` constants, `S` points between the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gmeql.formula.calculus import constant_slopes
from gmeql.formula.nodes import Call, Constant, Node, calls, evaluate, exponent_of, used_columns
from gmeql.formula.products import split_terms
from gmeql.search.judging.between import DISCRETE, run_to_zero
from gmeql.search.judging.structure import linear_columns
from gmeql.search.losses.losses import LOSSES, Loss
from gmeql.search.losses.magnitudes import magnitudes

ALLOWANCE = 4.0
"""Multiple of the target's range by which values between the rows may leave it: a product of powers grows that fast."""
MOST_ROWS = 20_000
"""Rows on which leverage is looked at, and poles are looked for."""
LARGEST_LEVERAGE = 1.0 - 1e-6
"""A row of more leverage stands alone; where the target runs over many magnitudes, the largest ones do so by right."""
SQUARED = LOSSES["squared"]
TAIL_ROWS, TAIL_SHARE = 5, 0.05
"""Rows at the end of a column, or their share of all where that is less, that make a long tail ..."""
TAIL_WEIGHT = 0.25
"""Weight of their errors left out together, beside those with each left out alone: the fit does know them, and a cube over a
normal column is known by them alone."""
LONG_TAIL = 0.25
"""... where they take up more than this share of its range: of rows that lie alike a twentieth does, of normal ones a sixth."""
NEAREST_ROWS = 10
"""Rows nearest to a pole by which it is seen whether the target has it too, or a fifth of the rows if those are fewer, ..."""
LEAST_NEAREST = 3
"""... but no fewer than these, ..."""
POLE_EXPLAINS = 0.95
"""... and the share of their squares beside every formula without a pole that one with it must explain there."""
DETERMINED = 1e-9
"""Directions of the constants whose singular value is below this share of the largest are not determined at all."""


def unseen_loss(
    root: Node,
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    points: np.ndarray,
    *,
    pole_price: float,
    rivals: Sequence[Node] | None = None,
) -> float:
    """Mean squared error to expect on other rows: of rows left out, of values between the rows, of poles among them.

    A formula with a pole has no finite error to expect; its error counts `pole_price` times, so that it is chosen only
    where it explains nearly everything, as a law with a pole does. A pole that the rows nearest to it follow is the
    target's own (`squares_at_poles`): it has no price, and values beside it leave any range. That it is must show beside
    the mean and `rivals`, and is not asked without these.
    """
    inside = np.vstack([X[:MOST_ROWS], points])
    pole, strays = has_pole(root, inside), excursion(root, points, y)
    if (pole or (strays > 0 and runs_to_pole(root, X))) and rivals is not None:
        with np.errstate(all="ignore"):
            found = [(y - _values(one, X)) ** 2 for one in rivals if not has_pole(one, inside)]
        plain = [(y - np.average(y, weights=weights)) ** 2, *(each for each in found if np.isfinite(each).all())]
        at_poles = squares_at_poles(root, X, weights, inside, y, plain)
        if at_poles is not None:
            return float(np.average(at_poles, weights=weights))
    loss = float(np.average(left_out_squares(root, X, y, weights), weights=weights)) + strays
    return loss * pole_price if pole else loss


def left_out_squares(root: Node, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The squared error of each row [N] with that row left out of the fit; infinite where there is none.

    Of a large table the leverage is looked at on the first rows only: with N rows it is K/N on average.
    """
    few = left_out_errors(root, X[:MOST_ROWS], y[:MOST_ROWS], weights[:MOST_ROWS], n_rows=len(y))
    if len(y) <= MOST_ROWS:
        return few**2
    with np.errstate(all="ignore"):
        rest = y[MOST_ROWS:] - _values(root, X[MOST_ROWS:])
    return np.concatenate([few, np.where(np.isfinite(rest), rest, math.inf)]) ** 2


def left_out_errors(
    root: Node,
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    *,
    n_rows: int | None = None,
    fitted: np.ndarray | None = None,
) -> np.ndarray:
    """The error of each row [N] with that row left out of the fit; infinite where the formula has no slope.

    Where the rows are a sample of `n_rows` that were fitted, each had that much less leverage. Which constants [K] were
    `fitted` may be told: all of them, where nobody does, exponents too.
    """
    values, slopes = constant_slopes(root, X)
    slopes = slopes if fitted is None else slopes[:, fitted]
    residual = y - values
    if slopes.shape[1] == 0 or not np.isfinite(residual).all():
        return np.where(np.isfinite(residual), residual, math.inf)
    if not np.isfinite(slopes).all():
        return np.full(len(y), math.inf)
    directions, share = _directions(slopes, weights), len(y) / (n_rows or len(y))
    leverage = np.minimum(share * np.sum(directions**2, axis=1), LARGEST_LEVERAGE)
    errors = residual / (1.0 - leverage)
    if magnitudes(y) is not None:
        return np.asarray(errors)
    for rows in () if linear_columns(root) is not None else long_ends(X, used_columns(root)):
        together = _left_out_together(residual[rows], math.sqrt(share) * directions[rows], np.sqrt(weights[rows]))
        both = np.sqrt(TAIL_WEIGHT * together**2 + (1.0 - TAIL_WEIGHT) * errors[rows] ** 2)
        errors[rows] = np.where(np.abs(together) > np.abs(errors[rows]), np.copysign(both, together), errors[rows])
    alone = _stand_alone(leverage)
    if alone.all() or not alone.any():
        return np.asarray(errors)
    unknown = y - np.average(y[~alone], weights=weights[~alone])
    return np.asarray(np.where(alone & (np.abs(errors) < np.abs(unknown)), unknown, errors))


def left_out_losses(root: Node, X: np.ndarray, y: np.ndarray, weights: np.ndarray, loss: Loss) -> np.ndarray:
    """The loss of each row [N] with that row left out of the fit; infinite where there is none.

    Around the values `f` a loss is the square `h/2 (f' - z)²` with `z = f - g/h` (`losses/losses.py`), so that leaving a row out
    moves its value by `g/h` times its leverage over one less that; the loss itself is then taken there.
    """
    assert loss.value is not None and loss.slope is not None and loss.curvature is not None
    values, slopes = constant_slopes(root, X[:MOST_ROWS])
    with np.errstate(all="ignore"):
        rest = _values(root, X[MOST_ROWS:])
        if slopes.shape[1] and np.isfinite(values).all():
            steepness, curvature = loss.slope(values, y[:MOST_ROWS]), loss.curvature(values, y[:MOST_ROWS])
            if not np.isfinite(slopes).all() or not np.isfinite(curvature).all():
                return np.full(len(y), math.inf)
            leverage = _leverage(slopes, weights[:MOST_ROWS] * curvature, len(y))
            values = values + steepness / curvature * leverage / (1.0 - leverage)
        found = loss.value(np.concatenate([values, rest]), y)
    return np.where(np.isfinite(found), found, math.inf)


def _leverage(slopes: np.ndarray, weights: np.ndarray, n_rows: int) -> np.ndarray:
    """Of each row [N] in the linearised fit, where the rows are a sample of `n_rows`; just below 1 at most."""
    leverage = np.sum(_directions(slopes, weights) ** 2, axis=1)
    return np.asarray(np.minimum(leverage * (len(slopes) / n_rows), LARGEST_LEVERAGE))


def _directions(slopes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Orthonormal directions [N, D] that the fit of the constants explains, so that `H = Q Qᵀ` for rows times the roots of their
    weights."""
    weighted = slopes * np.sqrt(weights)[:, None]
    peaks = np.abs(weighted).max(axis=0)
    left, singular, _ = np.linalg.svd(weighted / np.where(peaks > 0, peaks, 1.0), full_matrices=False)
    return np.asarray(left[:, singular > DETERMINED * max(float(singular[0]), 1e-300)])


def _left_out_together(residual: np.ndarray, directions: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Errors of some rows [R] with all of them left out of the fit; `scale` are the roots of their weights."""
    sizes, ways = np.linalg.eigh(np.eye(len(residual)) - directions @ directions.T)
    known = np.maximum(sizes, 1.0 - LARGEST_LEVERAGE)
    return np.asarray(ways @ ((ways.T @ (scale * residual)) / known) / scale)


def long_ends(X: np.ndarray, columns: Sequence[int]) -> list[np.ndarray]:
    """The rows at each end of a continuous column that has a long tail there, [R] each: the next row may lie far beyond."""
    count = min(TAIL_ROWS, int(len(X) * TAIL_SHARE))
    if count < 2:
        return []
    found = []
    for column in columns:
        values = X[:, column]
        reach = LONG_TAIL * float(np.ptp(values))
        low, high = np.argpartition(values, count)[: count + 1], np.argpartition(values, -count - 1)[-count - 1 :]
        for rows in (low, high):
            inner = rows[np.argmax(values[rows])] if rows is low else rows[np.argmin(values[rows])]
            if np.ptp(values[rows]) > reach and len(np.unique(values)) > DISCRETE:
                found.append(rows[rows != inner])
    return found


def _stand_alone(leverage: np.ndarray) -> np.ndarray:
    """Of which rows [N] nothing is known without them."""
    return leverage >= LARGEST_LEVERAGE


def excursion(root: Node, points: np.ndarray, y: np.ndarray, loss: Loss = SQUARED) -> float:
    """Mean squared distance of the values at `points` [S, V] from the target's range with its allowance, or what another
    loss makes of that distance; where values are no predictions, only one that is none counts.

    A law whose values run over many magnitudes leaves any range between the rows; there too only that counts.
    """
    if len(points) == 0:
        return 0.0
    low, high = float(y.min()), float(y.max())
    allowance = ALLOWANCE * (high - low)
    with np.errstate(all="ignore"):
        values = _values(root, points)
        if loss.link is not None:
            return 0.0 if np.isfinite(values).all() else math.inf
        if loss.value is None:
            beyond = np.maximum(np.maximum(low - allowance - values, values - high - allowance), 0.0)
            costs = np.where(np.isfinite(beyond), beyond, math.inf) ** 2
        else:
            allowed = np.clip(values, low - allowance if low < 0 else min(low, 0.0), high + allowance)
            costs = np.where(values == allowed, 0.0, loss.value(values, allowed))
        mean = float(np.mean(np.where(np.isfinite(costs), costs, math.inf)))
    return 0.0 if 0.0 < mean < math.inf and magnitudes(y) is not None else mean


def runs_to_pole(root: Node, X: np.ndarray) -> bool:
    """Whether some denominator runs down to zero on the rows [N, V], so that the next may lie beside a pole."""
    return any(_comes_near_zero(part, X) for part in denominators(root))


def has_pole(root: Node, points: np.ndarray) -> bool:
    """Whether some denominator takes both signs, or is zero, at `points` [S, V]: a pole lies among them."""
    return any(_changes_sign(part, points) for part in denominators(root))


def squares_at_poles(
    root: Node, X: np.ndarray, weights: np.ndarray, points: np.ndarray, y: np.ndarray, without: Sequence[np.ndarray]
) -> np.ndarray | None:
    """The squared error of each row [N], each left out, of a formula whose poles among `points` [S, V] are the target's own;
    None where they are not.

    They are where the rows nearest to each pole follow it: there the formula errs by a small part of what every one
    `without` a pole does (squares [N] of each), and of what its other terms do by themselves, the largest error of that one
    not counted. So a pole that was put beside one row, or beside none, is not the target's. Of the row next to the pole the
    others know nothing but that it lies there: it counts with the error that it has.
    """
    rows = min(len(X), MOST_ROWS)
    values, slopes = constant_slopes(root, X[:rows])
    if not np.isfinite(values).all() or not np.isfinite(slopes).all():
        return None
    leverage = _leverage(slopes, weights[:rows], len(X)) if slopes.shape[1] else np.zeros(rows)
    with np.errstate(all="ignore"):
        residual = y - _values(root, X)
    residual[:rows] = np.where(_stand_alone(leverage), y[:rows] - values, (y[:rows] - values) / (1.0 - leverage))
    square = np.where(np.isfinite(residual), residual, math.inf) ** 2
    met = np.flatnonzero(~_stand_alone(leverage))
    few = min(max(min(NEAREST_ROWS, len(X) // 5), LEAST_NEAREST), len(met))
    if few < LEAST_NEAREST or not without:
        return None
    without = [*without, *_without_poles(root, X, y, weights, points, met)]
    for part in denominators(root):
        if not _is_pole(part, X, points):
            continue
        with np.errstate(all="ignore"):
            distance = np.abs(_values(part, X[met]))
        nearest = met[np.argsort(distance, kind="stable")[:few]]
        others = min(float(np.sort(each[nearest])[:-1].sum()) for each in without)
        if not float(square[nearest].sum()) < (1.0 - POLE_EXPLAINS) * others:
            return None
    return square


def _without_poles(
    root: Node, X: np.ndarray, y: np.ndarray, weights: np.ndarray, points: np.ndarray, met: np.ndarray
) -> list[np.ndarray]:
    """The squares [N] of a sum without the terms that have poles, the others and a level fitted to the rows `met`; none where
    all terms have one, or none."""
    terms = [term for _, term in split_terms(root)]
    kept = [term for term in terms if not any(_is_pole(part, X, points) for part in denominators(term))]
    with np.errstate(all="ignore"):
        table = np.column_stack([np.ones(len(X)), *(_values(term, X) for term in kept)])
    if len(kept) in (0, len(terms)) or not np.isfinite(table).all():
        return []
    scale = np.sqrt(weights[met])
    factors = np.linalg.lstsq(table[met] * scale[:, None], y[met] * scale, rcond=None)[0]
    return [np.asarray(y - table @ factors) ** 2]


def _is_pole(part: Node, X: np.ndarray, points: np.ndarray) -> bool:
    """Whether a denominator is zero somewhere among `points` [S, V], or runs down to it on the rows."""
    return _changes_sign(part, points) or _comes_near_zero(part, X)


def denominators(root: Node) -> list[Node]:
    """What a formula divides by: divisors, and what is raised to a negative power."""
    found = []
    for call in calls(root):
        if call.operator == "div":
            found.append(call.args[1])
        elif call.operator == "inv":
            found.append(call.args[0])
        elif call.operator == "pow" and isinstance(call.args[1], Constant) and call.args[1].value < 0:
            found.append(call.args[0])
    return found


def _comes_near_zero(part: Node, X: np.ndarray) -> bool:
    """Whether a denominator runs down to zero; a root of something does so where that does, though its values fall slower."""
    if isinstance(part, Call) and (exponent_of(part.operator, part.args) or 0.0) > 0:
        return _comes_near_zero(part.args[0], X)
    with np.errstate(all="ignore"):
        values = _values(part, X)
    return bool(np.isfinite(values).all()) and bool(run_to_zero(values[:, None])[0])


def _changes_sign(part: Node, points: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        values = _values(part, points)
    values = values[np.isfinite(values)]
    return len(values) > 0 and float(values.min()) <= 0.0 <= float(values.max())


def _values(root: Node, points: np.ndarray) -> np.ndarray:
    return np.broadcast_to(evaluate(root, lambda index: points[:, index], np.float64, np), (len(points),))
