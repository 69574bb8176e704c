"""Rule "validation": the simplest formula within a standard error of the best on rows kept from the search."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import SELECTION
from gmeql.search.losses.losses import Loss


def simplest_valid(
    members: Sequence[FrontMember],
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    loss: Loss,
    rounding: float,
) -> FrontMember:
    """The first of `members`, simplest first, whose loss on the rows is within a standard error of the best one's, or
    below what `rounding` leaves."""
    w = np.ones(len(y)) if sample_weight is None else sample_weight
    w = w / w.sum()
    scale = max(float(np.max(np.abs(y), initial=0.0)), np.finfo(float).tiny)
    means, errors = [], []
    for m in members:
        with np.errstate(all="ignore"):
            values = m.expression(X)
            squares = loss.value(values, y) if loss.value else ((values - y) / scale) ** 2
            mean = float(np.sum(w * squares))
            error = float(np.sqrt(np.sum(w**2 * (squares - mean) ** 2)))
        means.append(mean if math.isfinite(mean) else math.inf)
        errors.append(error if math.isfinite(error) else 0.0)
    best = int(np.argmin(means))
    if not math.isfinite(means[best]):
        raise ValueError("no member of the front is finite on the validation rows; take rows of the training domain")
    allowed = max(means[best] + SELECTION.standard_errors * errors[best], (rounding / scale) ** 2)
    return next(m for m, mean in zip(members, means, strict=True) if mean <= allowed)
