"""With what weight the rows count when a front is judged: the given weights, times those of the loss.

A front that was fitted with a robust loss is judged with the same weights: rows that did not count in the fit say nothing
about how well it fits.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import SELECTION
from gmeql.search.losses.losses import find_loss, working

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CountedRows:
    """How much each row counts."""

    given: FloatArray
    """[N], the weights that the user gave, of mean one."""
    weights: FloatArray
    """[N], those times what the loss makes of the rows, of mean one."""
    loss: str = "squared"
    """The loss, by its name in `search.config.LOSSES`."""

    @property
    def by_the_loss(self) -> bool:
        """Whether the loss counts some rows more than others."""
        return bool(np.any(self.weights != self.given))

    @property
    def left_out(self) -> int:
        """How many rows the loss gives no weight at all."""
        return int(np.sum((self.weights == 0) & (self.given > 0)))

    def share(self, rows: NDArray[np.bool_]) -> float:
        """The share of all weight that `rows` [N] have."""
        return float(self.weights[rows].sum() / self.weights.sum())


def counted_rows(
    front: Front, X: FloatArray, y: FloatArray, given: FloatArray | None = None, *, loss: str = "squared"
) -> CountedRows:
    """How much each row counts under `loss` (a name of `search.losses.LOSSES`), by the residuals of the formula of
    `front` that promises the least error on unseen rows, as at the end of a search (`Leaderboard.closest`).
    """
    given = np.ones(len(y)) if given is None else np.asarray(given, float) / np.mean(given)
    closest = min(front, key=_promised).expression
    if find_loss(loss).value is not None:  # it is told as it is, not as the squares that stood for it
        return CountedRows(given, given, loss)
    with np.errstate(all="ignore"):
        factors = working(loss, closest(X), y, explained=bool(closest.variables))[1]
    weights = given * factors
    if np.all(factors == 1.0) or not weights.sum() > 0:
        return CountedRows(given, given, loss)
    return CountedRows(given, weights / weights.mean(), loss)


def _promised(member: FrontMember) -> float:
    """The error to expect on unseen rows, a pole priced as in the search; on the rows where nobody looked further."""
    if member.outlook is None:
        return member.loss
    return member.outlook.left_out * (math.sqrt(SELECTION.pole_price) if member.outlook.doubtful_pole else 1.0)
