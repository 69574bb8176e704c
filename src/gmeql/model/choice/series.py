"""Rows that are a series: where errors and columns drift, the choice goes by what a formula says from one row to the next.

Two series that drift resemble each other by chance, and a sum of such columns explains half of a random walk (Granger and
Newbold 1974). The usual evidence counts every row as if it were new. If errors of neighbouring rows are alike,
`e_t = ρ e_(t-1) + u_t`, the likelihood is that of the `u` (Cochrane and Orcutt 1949). So the description lengths of the front
are compared once more with the spread of `u` in place of that of `e`, each formula with a `ρ` of its own. A law of drifting
columns says as much from row to row as over all rows. Columns that only drift along say nothing there, and a simpler formula
is chosen.

Columns that rise or fall all along, such as a time or a grid, do not drift: a trend that errors follow is left as it is.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.config import SearchConfig

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SeriesConfig:
    """From where on rows are a series."""

    least_rows: int = 30
    """Fewer rows show no drift."""
    alike: float = 0.5
    """Correlation of errors with those of the row before from which on they drift, ..."""
    columns_alike: float = 0.7
    """... and of a column that the formula has."""


SERIES = SeriesConfig()


def with_series(
    front: Front, X: FloatArray, y: FloatArray, weights: FloatArray | None, *, config: SearchConfig
) -> Front:
    """The front with the formula that is chosen by what it says from row to row, where the rows are a series that drifts."""
    best = front.select("best")
    if len(y) < SERIES.least_rows or not front.has_outlooks or best.is_settled or best.loss <= front.exact_level:
        return front
    if not config.is_plain:
        return front
    if (weights is not None and np.ptp(weights) > 0) or not _drifts(best, X, y):
        return front
    lengths = {m.index: _length_by_steps(front, m, X, y) for m in front if m.complexity <= best.complexity}
    chosen = min((front[k] for k in lengths), key=lambda m: (lengths[m.index], m.complexity))
    if chosen.index == best.index or not lengths[chosen.index] < lengths[best.index]:
        return front
    return replace(front, members=tuple(_marked(m, X, y, by_steps=m.index == chosen.index) for m in front))


def _marked(member: FrontMember, X: FloatArray, y: FloatArray, *, by_steps: bool) -> FrontMember:
    """The member with its error from row to row, by which formulas of a series are compared."""
    assert member.outlook is not None
    error = _step_loss(member, X, y)
    step_loss = error if math.isfinite(error) else None
    return replace(member, outlook=replace(member.outlook, by_steps=by_steps, step_loss=step_loss))


def nearest_to_rows(front: Front) -> FrontMember:
    """What would be chosen if the rows were no series."""
    plain = tuple(m if m.outlook is None else replace(m, outlook=replace(m.outlook, by_steps=False)) for m in front)
    return replace(front, members=plain).select("best")


def following(errors: FloatArray) -> float:
    """Correlation of each error [N] with that of the row before; 0 where all are equal."""
    largest = float(np.abs(errors).max())
    if not largest > 0:
        return 0.0
    scaled = errors / largest  # squares of huge ones overflow
    centred = scaled - scaled.mean()
    size = float(np.sum(centred**2))
    return float(np.sum(centred[1:] * centred[:-1])) / size if size > 0 else 0.0


def _drifts(best: FrontMember, X: FloatArray, y: FloatArray) -> bool:
    """Whether errors of the chosen formula drift, and columns of it that do not rise or fall all along."""
    with np.errstate(all="ignore"):
        errors = y - best.expression(X)
    if not np.isfinite(errors).all() or following(errors) < SERIES.alike:
        return False
    steps = [np.diff(X[:, k]) for k in best.expression.variables]
    if any((step >= 0).all() or (step <= 0).all() for step in steps):
        return False
    return any(following(X[:, k]) > SERIES.columns_alike for k in best.expression.variables)


def _length_by_steps(front: Front, member: FrontMember, X: FloatArray, y: FloatArray) -> float:
    """Nats of a member where each error follows the one before."""
    error = _step_loss(member, X, y)
    if not math.isfinite(error) or not member.loss > 0:
        return math.inf
    return front.description_length(member) + front.rows * (math.log(error) - math.log(member.loss))


def _step_loss(member: FrontMember, X: FloatArray, y: FloatArray) -> float:
    """Root mean square of `u` where each error follows the one before by a share of its own; infinite where it is nothing."""
    with np.errstate(all="ignore"):
        errors = y - member.expression(X)
    largest = float(np.abs(errors).max()) if np.isfinite(errors).all() else 0.0
    if not largest > 0:
        return math.inf
    errors = errors / largest  # squares of huge ones overflow
    before = float(np.sum(errors[:-1] ** 2))
    share = min(max(float(np.sum(errors[1:] * errors[:-1])) / before, 0.0), 1.0) if before > 0 else 0.0
    spread = largest * math.sqrt(float(np.mean((errors[1:] - share * errors[:-1]) ** 2)))
    return spread if spread > 0 else math.inf
