"""Formulas beyond the front that are another one over again, written another way.

Where the columns of 0 and 1 of a category add up to 1, `a*bonn + 2*a` and `3*a - a*ulm` are one function of the rows; so are a
product and the sum that it makes multiplied out. Each would be listed with a share of the evidence, as if there were two.

Two formulas are one where they have about the same values on the rows, and one of them, with its constants fitted to the values
of the other, has these to rounding.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.losses.converging import SQUARES, converged
from gmeql.search.polish.config import POLISH

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RepeatsConfig:
    """When two formulas are one."""

    most_rows: int = 5000
    """Rows, evenly spread over the table, by which they are compared."""
    same: float = 1e-6
    """Root of the mean squared difference after the fit, in units of the error, that is rounding."""


REPEATS = RepeatsConfig()


def without_repeats(front: Front, X: FloatArray) -> Front:
    """The front with only those of the others that are no member, and none of the others before them, over again."""
    if not front.others or front.has_own_loss:
        return front
    X = X[:: -(-len(X) // REPEATS.most_rows)]
    seen = [(m, _values(m, X)) for m in front.members]
    kept: list[FrontMember] = []
    for other in front.others:
        values = _values(other, X)
        if not any(_is_repeated(m, known, other, values, front, X) for m, known in seen):
            seen.append((other, values))
            kept.append(other)
    return replace(front, others=tuple(kept))


def _is_repeated(
    known: FrontMember, known_values: FloatArray, other: FrontMember, values: FloatArray, front: Front, X: FloatArray
) -> bool:
    """Whether the `known` formula, of no more constants, is the other one."""
    # constants rounded to the digits that the rows know cost a share of 1/N of the squared error, in each of the two
    near = 2.0 * math.sqrt(POLISH.known_share / front.rows) * other.loss
    if abs(known.loss - other.loss) > near or front.n_fitted(known) > front.n_fitted(other):
        return False
    if not _distance(known_values, values) <= near:
        return False
    root = converged(known.expression.root, X, values, np.ones(len(X)), SQUARES)[0]
    return _distance(known.expression.with_root(root)(X), values) <= REPEATS.same * other.loss


def _distance(first: FloatArray, second: FloatArray) -> float:
    with np.errstate(all="ignore"):
        return math.sqrt(float(np.mean((first - second) ** 2)))


def _values(member: FrontMember, X: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(member.expression(X))
