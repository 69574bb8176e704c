"""Constants that hide a column: 2.9*cos(k*x)*sin(w*t) where the law has A*cos(k*x)*sin(w*t), under noise too.

What would have to stand at a place (`holes.py`) is known exactly without noise alone. But whether a constant c of a formula
should vary with a column is a sum over all rows: the residual is compared with the formula's slope by c times the column's
logarithm, beside the slopes by all constants (a score test; Rao 1948). All constants of the leading formulas, and the factor 1
before each, are asked for all columns at once. The clearest are fitted with a plain power of the column in the constant's
place, the best goes on, and is asked again.

Legend: `N` rows, `K` constants, `C` columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.calculus import constant_slopes, constants_of
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, fold
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.term_sums import orthonormal
from gmeql.search.polish.scoring import JudgedRows, Scored, refit

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class GrownConfig:
    """Numbers of the method."""

    rows: int = 500
    few_rows: int = 40
    max_columns: int = 10
    formulas: int = 8  # leading ones that are asked
    rounds: int = 4  # columns that one may gain
    clear: float = 25.0  # square of the standard errors of a gain: chance reaches 20 in one of ten thousand tests
    tried: int = 4  # of the clearest that are fitted
    powers: tuple[float, ...] = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
    powers_tried: int = 2  # of these, those nearest to what the residual says
    spanned: float = 1e-10  # singular values below this share of the largest span nothing
    independent: float = 1e-6  # share of a direction's square that must be left beside the slopes
    seconds_per_formula: float = 0.003  # and round, of one core (measured)


GROWN = GrownConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Leading formulas with columns in the place of constants that come nearer than anything so far. Draws nothing."""
    n = min(len(table.y), GROWN.rows)
    if not table.found or not 1 <= table.n_columns <= GROWN.max_columns or n < GROWN.few_rows:
        return
    if not functions.allows({"mul", "div"}):
        return
    rows = JudgedRows.of(table.X[:n], table.y[:n], table.weights[:n], [f"x{i}" for i in range(table.n_columns)])
    most = int(effort.seconds / GROWN.seconds_per_formula)
    for root in table.found[: GROWN.formulas]:
        fitted = best = next(iter(refit([root], rows, keep_recognised=False)), None)
        for _ in range(GROWN.rounds):
            most -= 1
            if best is None or most < 0 or effort.out_of_time():
                break
            longer = min(
                refit(_grown(best, rows), rows, keep_recognised=False), key=lambda one: one.length, default=None
            )
            if longer is None or not longer.length < best.length:
                break
            best = longer
        if best is not None and best is not fitted and table.error(best.root) < table.unexplained:
            yield best.root


def _grown(one: Scored, rows: JudgedRows) -> list[Node]:
    """A formula with a power of a column beside one of its constants, for those that the residual speaks for most."""
    root, roots_of_weights = Call("mul", (Constant(1.0), one.root)), np.sqrt(rows.weights)
    values, slopes = constant_slopes(root, rows.X)
    residual = roots_of_weights * (rows.target - values)
    constants = constants_of(root)
    with np.errstate(all="ignore"):
        tangents = roots_of_weights[:, None] * slopes
        sizes = np.linalg.norm(tangents, axis=0)
    if not (np.isfinite(residual).all() and np.isfinite(sizes).all()):
        return []
    basis = orthonormal(tangents[:, sizes > 0] / sizes[sizes > 0], GROWN.spanned)
    residual = residual - basis @ (basis.T @ residual)
    scale = float(residual @ residual) / len(residual)
    logs, positive = _logarithms(rows.X)
    found = []
    for k in np.flatnonzero(sizes > 0):
        along = (tangents[:, [k]] * constants[k]) * logs  # [N, C]
        beside = along - basis @ (basis.T @ along)
        squares, whole = np.einsum("nc,nc->c", beside, beside), np.einsum("nc,nc->c", along, along)
        shares = residual @ beside
        free = squares > GROWN.independent * np.maximum(whole, 1e-300)
        gains = np.where(free, shares**2 / np.where(free, squares, 1.0), 0.0) / scale
        found += [
            (float(gains[j]), int(k), int(j), float(shares[j] / squares[j]))
            for j in np.flatnonzero(gains > GROWN.clear)
        ]
    found.sort(key=lambda gain: -gain[0])
    return [
        _with_power(root, k, j, power, rows.X)
        for _, k, j, slope in found[: GROWN.tried]
        for power in (_powers(slope) if positive[j] else (1.0,))
    ]


def _powers(slope: float) -> list[float]:
    """Plain powers nearest to an estimate."""
    return sorted(GROWN.powers, key=lambda power: abs(power - slope))[: GROWN.powers_tried]


def _logarithms(X: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Logarithms of positive columns [N, C], the others as they are in their size; and which are positive."""
    positive = np.asarray((X > 0).all(axis=0))
    sizes = np.maximum(np.abs(X).max(axis=0), 1e-300)
    return np.where(positive, np.log(np.where(positive, X, 1.0)), X / sizes), positive


def _with_power(root: Node, place: int, column: int, power: float, X: FloatArray) -> Node:
    """A formula with a constant times a power of a column in the place of the constant, as large as that in the middle."""
    middle = float(np.median(np.abs(X[:, column]) ** power))
    places = count()

    def leaf(node: Node) -> Node:
        if not isinstance(node, Constant) or next(places) != place:
            return node
        factor = Constant(node.value / middle if middle > 0 else node.value)
        return build("mul", factor, build("pow", Variable(column), Constant(power)))

    return fold(root, leaf, lambda call, args: build(call.operator, *args))
