"""How likely the best formula of a front predicts unseen rows better than its rivals.

Two formulas are compared row by row: `z` is the mean difference of their squared errors with each row left out
(`search/judging/soundness.py`), divided by its standard error. If the two had been chosen beforehand, the better one would be
better on unseen rows with probability Φ(z). But the search kept the luckiest of thousands. So the errors of each are raised by
what its luck is expected to be (`luck_factor` in `search/judging/outlook.py`). What `z` is worth then was measured
(`Calibration`) and checked on simulated tables with known laws (docs/trust.md).

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.rows.far_rows import rows_far_away
from gmeql.search.judging.outlook import left_out_costs, paired_z
from gmeql.search.judging.soundness import SQUARED
from gmeql.search.losses.losses import Loss
from gmeql.search.losses.robust import scale_of

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """The chance of the best formula against a rival, Φ(offset + slope z), against a longer one times what is stated of
    such at most; checked by benchmarks/calibration.py.

    Between what fits of messy tables ask for, most of which follow no law that a formula could state, and what simulated
    tables with known laws do (docs/trust.md): where the law is within reach the best formula does better than this.
    """

    simpler_offset: float = -0.2
    simpler_slope: float = 0.6
    """Against a simpler rival: the gain over it is partly luck. Laws alone: Φ(0.62 z + 0.25)."""
    longer_offset: float = 0.5
    longer_slope: float = 1.0
    """Against a longer rival, which says more than the rows do. Laws alone: 0.956 Φ(1.41 z + 0.6), messy tables 0.98
    Φ(0.37 z - 0.19)."""
    longer_most: float = 0.955
    """... of which, however large z is, some are right: a term that the rows hardly show is better than none."""
    largest_z: float = 8.0
    """Beyond this z counts as this: hardly any were met there."""
    tables: int = 218
    """Tables that could tell a chance near 0 or 1: none is stated nearer than they could. The numbers were measured on 1,132
    others, of which messy ones gave no reason to say more."""

    def chance(self, z: float, *, longer: bool) -> float:
        """The chance that the best formula predicts unseen rows better than a rival with paired difference `z`.

        >>> Calibration().chance(2.0, longer=False) < 0.98  # what the plain normal distribution says
        True
        """
        z = min(max(z, -self.largest_z), self.largest_z)
        offset, slope = (self.longer_offset, self.longer_slope) if longer else (self.simpler_offset, self.simpler_slope)
        chance = (self.longer_most if longer else 1.0) * 0.5 * math.erfc(-(offset + slope * z) / math.sqrt(2.0))
        least = 0.5 / self.tables
        return min(max(chance, least), 1.0 - least)


CALIBRATION = Calibration()
SAME = 0.05
"""Formulas that differ by less than this share of the typical error, such as x**2.0003 beside x**2, say the same. A quarter
of it would be enough for a term that 200 rows are sure of."""
LEAST_WEIGHT = 0.1
"""Formulas below this weight are not alternatives."""


@dataclass(frozen=True)
class Rival:
    """A formula of the front that says something else than the best one."""

    index: int
    z: float
    """Mean difference of squared errors of rows left out, its own less the best one's, over its standard error."""
    longer: bool
    """Whether it is more complex than the best one."""
    chance: float
    """The chance that the best formula predicts unseen rows better than this one."""


def rivals(
    front: Front,
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    *,
    among: tuple[int, ...] | None = None,
    loss: Loss = SQUARED,
    calibration: Calibration = CALIBRATION,
) -> tuple[Rival, ...]:
    """The rivals of the front's best formula on the rows `X`, `y` that it was fitted to, the hardest to beat first.

    Formulas with a pole among the rows, and such as say the same, are no rivals; that a constant says nearly the same
    is worth knowing, so it is one. They are compared by the squared errors of rows left out, or by a `loss` that has a
    value of its own. `among` names the members to look at; None looks at all. A front whose outlook nobody
    looked at has none. Beside a formula that outliers do not move, rows far from it count nothing; where its level is
    that of all rows, levels count nothing either.
    """
    best = front.select("best")
    if not front.has_outlooks:
        return ()
    weights = np.ones(len(y)) if weights is None else weights / weights.mean()
    with np.errstate(all="ignore"):
        if best.is_unmoved:
            weights = np.where(rows_far_away(best.expression(X) - y), 0.0, weights)
            weights = weights / weights.mean()
        asked = _asked(best, best, X, y, weights)
        values, squares = best.expression(X), left_out_errors(best, X, asked, weights, loss)
        if not np.isfinite(squares).all():
            return ()
        found = []
        typical = 1.0 if loss.link is not None else scale_of(np.sqrt(weights) * (values - y), y)
        typical = min(best.loss, typical) if loss.value is None else typical  # a few rows far off make it large
        for member in front if among is None else [front[k] for k in among]:
            if member.index == best.index or (member.outlook is not None and member.outlook.pole):
                continue
            both = bool(member.expression.variables) == bool(best.expression.variables)
            if both and says_the_same(member.expression(X), values, typical, weights):
                continue
            asked = _asked(best, member, X, y, weights)
            z = paired_z(left_out_errors(member, X, asked, weights, loss), squares, weights)
            longer = member.complexity > best.complexity
            found.append(Rival(member.index, z, longer, calibration.chance(z, longer=longer)))
    return tuple(sorted(found, key=lambda rival: (rival.chance, front[rival.index].outlook.error)))  # type: ignore[union-attr]


def _asked(best: FrontMember, member: FrontMember, X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """The target [N] that a member is held against: at its own level where the best formula has that of all rows."""
    if best.outlook is None or not best.outlook.levelled:
        return y
    return np.asarray(y - np.average(y - member.expression(X), weights=weights))


def left_out_errors(
    member: FrontMember, X: FloatArray, y: FloatArray, weights: FloatArray, loss: Loss = SQUARED
) -> FloatArray:
    """What each row [N] costs a formula that is the luckiest of many, with that row left out (`luck_factor`).

    Of factors drawn towards 0 the leverage of each row is not kept: all errors are larger by what they are on average.
    """
    luck = 1.0 if member.outlook is None else member.outlook.luck
    if member.is_shrunk:
        assert member.outlook is not None
        squares = (member.expression(X) - y) ** 2
        costs = squares * (member.outlook.left_out**2 / float(np.average(squares, weights=weights)))
    else:
        costs = left_out_costs(member.expression.root, X, y, weights, loss)
    return np.asarray(costs * (luck**2 if loss.value is None else luck))


def says_the_same(one: FloatArray, other: FloatArray, loss: float, weights: FloatArray | None = None) -> bool:
    """Whether two formulas' values [N] differ by less than a part of the typical error `loss`."""
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.average((one - other) ** 2, weights=weights))) < SAME * loss


def alternative_weights(front: Front, found: tuple[Rival, ...]) -> dict[int, float]:
    """Index to weight, summing to one: the best formula and those alternatives that may well be better.

    Each rival weighs as much as its odds against the best formula, which weighs one before all are normalised.
    """
    odds = {front.select("best").index: 1.0} | {rival.index: (1.0 - rival.chance) / rival.chance for rival in found}
    total = sum(odds.values())
    kept = {index: value for index, value in odds.items() if value / total >= LEAST_WEIGHT or value == 1.0}
    return {index: value / sum(kept.values()) for index, value in sorted(kept.items(), key=lambda item: -item[1])}
