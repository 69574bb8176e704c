"""Which rows lie far from a formula, and whether they lie further off than the tail of its errors reaches.

"Far" is measured by the middle half of the errors, which rows far off do not move.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FarConfig:
    """From where on a row is an outlier."""

    least_told: int = 8
    """Fewer rows have no middle half by which one of them is told from the others."""
    far: float = 6.0
    """Robust standard deviations beyond which a row lies far from the formula: one normal row in 500 million does."""
    most_far: float = 0.4
    """A larger share of such rows is no share of outliers."""
    robust_share: float = 0.5
    """Outliers matter where the robust standard deviation is below this share of the RMSE."""
    orders: float = 5.0
    """A positive target whose 95 % quantile is this multiple of its 5 % quantile spans orders."""
    growing: float = 3.0
    """Rank correlation of sizes of errors with the prediction, in its standard errors, that counts as growth, ..."""
    least_growth: float = 0.3
    """... and the least correlation that matters, ..."""
    least_rows: int = 10
    """... of as many rows at least."""
    tails: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
    """Degrees of freedom of Student's t that a heavy tail may have."""
    gross: float = 4.0
    """Nats by which normal errors beside outliers must describe the rows more briefly than such a tail. Of 264 tables of 12 to 60
    rows with t (1 and 2 degrees) and log-normal errors 12 have outliers by that, 118 without it; of 201 with outliers 181."""
    gap: float = 4.0
    """Nats of a gap between them and the others that no tail leaves: of rows without outliers fewer than `exp(-4)` have such a
    one, whatever their tail, up to that of Student's t with one degree of freedom."""
    tail_share: float = 0.4
    """Share of the rows below a gap, the furthest of them, that tell how fast the tail falls, ..."""
    most_in_tail: int = 20
    """... so many at most, since further in it falls more slowly, ..."""
    steepest: float = 5.0
    """... and by no higher power of the size: of rounded errors many are equal."""
    narrow: float = 1.9
    """The same of a gap behind which rows may well be outliers, where no more than a part of a search goes without them.
    Of rows without outliers some have one, the more the heavier their tail: that costs them this part."""
    neighbours: int = 3
    """Rows nearest to one far off that tell whether it lies so alone, ..."""
    near: float = 0.25
    """... the share of its own error above which their middle one lies there with it, ..."""
    alone: float = 0.8
    """... and the share of rows far off that must lie alone."""
    least_level: float = 1e-4
    """Share of the largest prediction that the least error may be as if it had, ..."""
    levels: int = 13
    """... and how many levels between this and all of it are looked at."""
    tail_rows: int = 5000
    """Rows by which a tail is told, evenly spread over the order of the errors."""
    tail_steps: int = 40
    """Steps in which its scale is found."""


FAR = FarConfig()
NORMAL_MEDIAN = 1.4826  # standard deviation over median absolute deviation, of a normal distribution


def rows_far_away(residuals: np.ndarray) -> np.ndarray:
    """Which residuals [N] are outliers; none where they are too many for that or do not matter, or most are equal.

    Centre and scale are those of the middle half, `s = 1.4826 median |r - median r|`, which outliers do not move: on one
    side of a fit they pull it towards themselves.
    """
    if len(residuals) < FAR.least_told:
        return np.zeros(len(residuals), bool)
    residuals = _near_one(residuals)
    sizes = np.abs(residuals - np.median(residuals))
    scale = NORMAL_MEDIAN * float(np.median(sizes))
    if not 0 < scale < FAR.robust_share * math.sqrt(float(np.mean(sizes**2))):
        return np.zeros(len(residuals), bool)
    far = sizes > FAR.far * scale
    return far if far.sum() < FAR.most_far * len(residuals) else np.zeros(len(residuals), bool)


def are_gross(residuals: np.ndarray, far: np.ndarray) -> bool:
    """Whether rows `far` [N] with these residuals lie further off than a heavy tail of the errors reaches: behind a gap, or since
    the others have no tail.

    Outliers are told by naming them, `log C(N, k)` nats, and each within the range of all residuals; the others take `log s + 1/2
    log 2 pi e` each. A tail takes what all rows do under Student's t around their median, at its best scale.
    """
    count = int(far.sum())
    if count == 0:
        return False
    if _gap_nats(residuals, count) > FAR.gap:
        return True
    order = np.argsort(residuals, kind="stable")[:: len(residuals) // FAR.tail_rows + 1]
    residuals, far = _near_one(residuals[order]), far[order]
    told = _told_nats(residuals, far)
    tails = (_tail_nats(residuals - np.median(residuals), freedom) for freedom in FAR.tails)
    return math.isinf(told) or told + FAR.gross < min(tails)


def grow_with_size(predicted: np.ndarray, y: np.ndarray, residuals: np.ndarray, far: np.ndarray) -> bool:
    """Whether rows `far` [N] with these residuals are no outliers: large factors, or errors that grow with the prediction."""
    return varies_by_factors(predicted, y, far) or spread_grows(predicted, residuals, far)


def spread_grows(predicted: np.ndarray, residuals: np.ndarray, far: np.ndarray) -> bool:
    """Whether rows `far` [N] with these residuals are no outliers, since errors in proportion to the size of the prediction,
    or to that and a level, describe all rows as briefly.

    Where a rate of reaction runs over magnitudes and is measured to 10 %, its largest values lie ten times further off than
    the middle half of all rows does.
    """
    if not far.any() or len(residuals) < FAR.least_rows:
        return False
    residuals, sizes = _near_one(residuals), np.abs(_near_one(predicted))
    levels = np.geomspace(1.0, FAR.least_level, FAR.levels) * float(sizes.max())
    return min(_growing_nats(residuals, level + sizes) for level in levels) < _told_nats(residuals, far) + FAR.gross


def _told_nats(residuals: np.ndarray, far: np.ndarray) -> float:
    """Nats of residuals [N] with the rows `far` [N] named and told one by one; -inf where the others have none to tell."""
    rest, n_rows, count = residuals[~far], len(far), int(far.sum())
    scale = math.sqrt(float(np.mean((rest - np.median(rest)) ** 2)))
    if not scale > 0 or count == 0:
        return -math.inf
    named = math.lgamma(n_rows + 1) - math.lgamma(count + 1) - math.lgamma(len(rest) + 1)
    told = named + count * math.log(float(np.ptp(residuals)))
    return told + len(rest) * (math.log(scale) + 0.5 * math.log(2.0 * math.pi * math.e))


def _growing_nats(residuals: np.ndarray, spread: np.ndarray) -> float:
    """Nats of normal residuals [N] with a spread in proportion to `spread` [N], and of the level in that."""
    n_rows = len(residuals)
    variance = max(float(np.mean((residuals / spread) ** 2)), np.finfo(float).tiny)
    nats = 0.5 * n_rows * (math.log(variance) + math.log(2.0 * math.pi * math.e)) + float(np.sum(np.log(spread)))
    return nats + 0.5 * math.log(n_rows)


def _gap_nats(residuals: np.ndarray, count: int) -> float:
    """Nats of the widest gap beyond which one to `count` of the residuals [N] lie.

    Of a tail that falls as `size**-a`, the `k` largest lie beyond `c` times the next one with a chance of `c**(-a k)`, and all
    gaps below are independent of that (Rényi 1953). No tail falls more slowly than `a = 1`, which gives `k log c` nats. If the
    `m` gaps below, the j-th largest row taken `j` times, are `h` nats in the mean, they tell `a`: then the chance is
    `(1 + k log c/(m h))**-m`. As many gaps as rows are looked at.
    """
    below = min(count + FAR.most_in_tail, len(residuals) - 1)
    nats = _gaps(residuals, below)[0]
    tails = (_tail_power_nats(nats, k, len(residuals)) for k in range(1, count + 1))
    return max(max(nats[:count], default=0.0), *tails) - math.log(count)


def _tail_power_nats(nats: np.ndarray, k: int, n_rows: int) -> float:
    """Nats of the gap below the `k` largest of `n_rows`, given how fast the tail below it falls; `nats` are those of all gaps."""
    below = min(int(FAR.tail_share * (n_rows - k)), FAR.most_in_tail)
    steps = nats[k : k + below]
    if len(steps) < below or below == 0 or not np.isfinite(steps).all():
        return 0.0
    return below * math.log1p(float(nats[k - 1]) / (below * max(float(steps.mean()), 1.0 / FAR.steepest)))


def _gaps(residuals: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nats of the gaps below the `count` residuals [N] that lie furthest off, and the places of these, the furthest first.

    That is `k log c` of the gap below the k-th, which is `c` times as large as the next one.
    """
    sizes = np.abs(residuals - np.median(residuals))
    order = np.argsort(-sizes, kind="stable")[: count + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        nats = np.arange(1, len(order)) * np.log(sizes[order[:-1]] / sizes[order[1:]])
    return nats, order


def behind_gaps(residuals: np.ndarray, far: np.ndarray) -> list[np.ndarray]:
    """Which of the rows `far` [N] lie beyond a gap between them and the others, for each that is not narrow, the widest first.

    It may be narrower than one that no tail leaves: around a formula that is not the law the others lie widely.
    """
    nats, order = _gaps(residuals, int(far.sum()))
    widest = [k for k in np.argsort(-nats, kind="stable") if nats[k] > FAR.narrow]
    return [np.isin(np.arange(len(far)), order[: k + 1]) for k in widest]


def lie_alone(X: np.ndarray, residuals: np.ndarray, far: np.ndarray) -> bool:
    """Whether most rows `far` [N] lie there each by itself: those nearest to it, in columns X [N, V] of equal spread, do not.

    Where a law is steep a formula that is not it leaves several neighbours far off, to the same side.
    """
    spread = X.std(axis=0)
    table = X[:, spread > 0] / spread[spread > 0]
    centred = residuals - np.median(residuals)
    places, alone = np.flatnonzero(far), 0
    for place in places:
        distances = np.sum((table - table[place]) ** 2, axis=1)
        distances[place] = np.inf
        nearest = np.argsort(distances, kind="stable")[: FAR.neighbours]
        alone += float(np.median(centred[nearest])) / float(centred[place]) <= FAR.near
    return alone >= FAR.alone * len(places)


def _near_one(residuals: np.ndarray) -> np.ndarray:
    """Residuals in units of a power of two in which the largest is at most 1, so that all have squares."""
    return np.asarray(np.ldexp(residuals, -math.frexp(float(np.abs(residuals).max()))[1]))


def _tail_nats(residuals: np.ndarray, freedom: float) -> float:
    """Nats of residuals [N] under Student's t of so many degrees of freedom, its scale by expectation and maximisation (Lange,
    Little and Taylor 1989)."""
    square = residuals**2
    variance = float(np.median(square))
    for _ in range(FAR.tail_steps if variance > 0 else 0):
        variance = float(np.mean((freedom + 1.0) * square / (freedom + square / variance)))
    if not variance > 0:
        return -math.inf
    level = (
        math.lgamma(0.5 * (freedom + 1.0)) - math.lgamma(0.5 * freedom) - 0.5 * math.log(freedom * math.pi * variance)
    )
    return float(0.5 * (freedom + 1.0) * np.sum(np.log1p(square / (freedom * variance)))) - len(residuals) * level


def varies_by_factors(predicted: np.ndarray, y: np.ndarray, far: np.ndarray) -> bool:
    """Whether rows `far` [N] from a positive prediction are no outliers once errors are counted as factors.

    Either all lie above it, or errors on both sides grow with it.
    """
    if not far.any() or float(y.min()) <= 0 or float(predicted.min()) <= 0:
        return False
    if (y < predicted)[far].any() and not size_grows(predicted, y - predicted):
        return False
    factors = np.log(y / predicted)
    sizes = np.abs(factors - np.median(factors))
    beyond = sizes > FAR.far * NORMAL_MEDIAN * float(np.median(sizes))
    return not beyond.any() and float(np.ptp(factors)) > math.log(FAR.orders)


def size_grows(predicted: np.ndarray, residuals: np.ndarray, least: float = FAR.least_growth) -> bool:
    """Whether the sizes of errors rise with the prediction, by a rank correlation of more than `least`."""
    if len(predicted) < FAR.least_rows or np.ptp(predicted) == 0:
        return False
    ranks = [np.argsort(np.argsort(values, kind="stable")) for values in (predicted, np.abs(residuals))]
    correlation = float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    return correlation > max(least, FAR.growing / math.sqrt(len(predicted)))
