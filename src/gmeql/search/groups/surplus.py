"""Own constants that the rows of a group cannot tell apart: where one is multiplied by a number, others make up for it.

All constants above and below a line may be multiplied by the same number, or one in front of a bracket and divided out
inside it. A fit to every group by itself leaves such constants anywhere: none of them looks shared, and the digits of one
cancel those of another. In every group they are multiplied so that one of them is 1.

Slopes by the logarithms of the constants, c ∂f/∂c, have a null vector w there, and c_f λ^w_f has the same values for every
λ where w are whole numbers.

Legend: `N` rows of a group, `V` columns, `G` groups, `F` fitted constants of the formula, `K` own constants.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.calculus import row_slopes
from gmeql.formula.nodes import Node
from gmeql.search.groups.config import GROUPS
from gmeql.search.groups.table import own_columns

FloatArray = NDArray[np.float64]


def scaled_to_one(slopes: FloatArray, values: FloatArray, group: int) -> tuple[FloatArray, int] | None:
    """Values [G, F] of the same formulas in which one constant is 1 in every group, and which one; None where each constant
    is known by itself. `slopes` [N, F] are those of the rows of one group.

    >>> of_a_fraction = np.outer([1.0, 2.0, 3.0], [1 / 4, -2 / 16])  # (2*x)/4 by what stands above and below
    >>> scaled_to_one(of_a_fraction, np.array([[2.0, 4.0], [6.0, 3.0]]), 0)[0].tolist()
    [[1.0, 2.0], [1.0, 0.5]]
    """
    may_be_one = np.isfinite(values).all(axis=0) & (values != 0).all(axis=0)
    for exponents in _whole_null_vectors(slopes * values[group], may_be_one):
        places = np.flatnonzero((np.abs(exponents) == 1) & may_be_one).tolist()
        ways = [(_scaled(values, exponents, f), f) for f in places]
        ways = [(moved, f) for moved, f in ways if np.isfinite(moved).all()]
        if ways:
            return min(ways, key=lambda way: _differences(way[0][:, exponents != 0]))
    return None


def is_surplus(root: Node, own: FloatArray, X: FloatArray, codes: NDArray[np.int64]) -> bool:
    """Whether the rows X [N, V] of the largest group leave some of a formula's own constants [G, K] open."""
    group = int(np.bincount(codes).argmax())
    rows = X[codes == group]
    used = [k for k in own_columns(root, X.shape[1]) if own[group, k] != 0]
    extended = np.hstack([rows, np.broadcast_to(own[group], (len(rows), own.shape[1]))])
    with np.errstate(all="ignore"):
        slopes = row_slopes(root, extended, [X.shape[1] + k for k in used])[2] * own[group, used]
    return len(_null_space(slopes)[0]) > 0


def _scaled(values: FloatArray, exponents: FloatArray, f: int) -> FloatArray:
    """Values [G, F] with constant `f` at 1; its exponent is 1 or -1."""
    with np.errstate(all="ignore"):
        moved: FloatArray = values * (values[:, f] ** -exponents[f])[:, None] ** exponents[None, :]
    moved[:, f] = 1.0
    return moved


def _differences(values: FloatArray) -> float:
    """How much constants differ between the groups, as the sum of the logarithms."""
    spread = np.std(values, axis=0) / np.maximum(np.abs(np.median(values, axis=0)), 1e-300)
    return float(np.log(np.maximum(spread, GROUPS.alike)).sum())


def _null_space(slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Null vectors [D, F] of slopes [N, F] whose columns are made equally large, and the sizes of these."""
    nothing = np.empty((0, slopes.shape[1]))
    if not np.isfinite(slopes).all() or len(slopes) < slopes.shape[1]:
        return nothing, np.ones(slopes.shape[1])
    sizes = np.sqrt(np.mean(slopes**2, axis=0))
    if slopes.size == 0 or not (sizes > 0).all():
        return nothing, np.ones(slopes.shape[1])
    try:
        _, singular, vectors = np.linalg.svd(np.linalg.qr(slopes / sizes, mode="r"))
    except np.linalg.LinAlgError:
        return nothing, sizes
    return vectors[singular <= GROUPS.surplus * singular[0]], sizes


def _whole_null_vectors(slopes: FloatArray, may_lead: NDArray[np.bool_]) -> list[FloatArray]:
    """Null vectors [F] of slopes by logarithms, in reduced form with 1 at a column that may lead, as far as they are whole."""
    vectors, sizes = _null_space(slopes)
    reduced = vectors / sizes
    for row in range(len(reduced)):
        places = np.flatnonzero(may_lead)
        f = places[np.argmax(np.abs(reduced[row] * sizes)[places])] if len(places) else 0
        if not len(places) or abs(reduced[row, f] * sizes[f]) < GROUPS.whole:
            return []
        reduced[row] /= reduced[row, f]
        others = np.arange(len(reduced)) != row
        reduced[others] -= np.outer(reduced[others, f], reduced[row])
    counted = np.where(np.abs(reduced) > GROUPS.whole, np.abs(reduced), np.inf)
    reduced /= counted.min(axis=1, keepdims=True, initial=np.inf)
    whole = np.round(reduced)
    is_whole = (np.abs(reduced - whole) < GROUPS.whole).all(axis=1) & (
        np.abs(whole).max(axis=1) <= GROUPS.most_exponent
    )
    return list(whole[is_whole])
