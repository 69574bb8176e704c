"""With what weight the rows count when a front is judged: the given weights, times those of the loss.

A front that was fitted with a robust loss is judged with the same weights: rows that did not count in the fit say nothing
about how well it fits.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import SELECTION
from gmeql.search.losses.losses import find_loss, working
from gmeql.search.losses.magnitudes import magnitudes, weights_by_size

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
    sizes: FloatArray | None = None
    """[N], the sizes by which rows of a target over many magnitudes count (`losses/magnitudes.py`); `given` holds that then."""

    @property
    def by_the_loss(self) -> bool:
        """Whether the loss counts some rows more than others."""
        return bool(np.any(self.weights != self.given))

    @property
    def unit(self) -> float:
        """Where rows count by their own size, the loss that is an error as large as each row itself; else 1."""
        return 1.0 if self.sizes is None else math.sqrt(float(np.average(self.sizes**2, weights=self.given)))

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

    Where the fit let rows of a target over many magnitudes count by their own size, they count so here too: the largest row
    was then small in its eyes.
    """
    given = np.ones(len(y)) if given is None else np.asarray(given, float) / np.mean(given)
    if find_loss(loss).value is None and front.target_largest < float(np.abs(y).max()):
        by_size, sizes = weights_by_size(y, given), magnitudes(y)
        if by_size is not None and sizes is not None:
            sizes = sizes * float(np.abs(y).max())
            return replace(_counted(front, X, y, by_size, loss), sizes=sizes)
    return _counted(front, X, y, given, loss)


def _counted(front: Front, X: FloatArray, y: FloatArray, given: FloatArray, loss: str) -> CountedRows:
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
