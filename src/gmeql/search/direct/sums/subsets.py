"""Sums of a few powers of columns under noise: which ones, by their normal equations alone.

Powers of one column are much alike on any range: 0.8 x**4 + 1.4 x is nearly 0.0034 (2.1 x + 1)**5 + 1.2 x, and what a
greedy choice takes first is often none of them. The sums of products of all terms with each other and with the target are a
small matrix, made once; what a sum of k terms leaves then takes k**3 multiplications, however many rows there are, so that
thousands of sums of each length are compared (Furnival and Wilson 1974), with hundreds of the best extended by every term.

Legend: `N` rows, `M` terms, `S` sums, `k` terms of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node
from gmeql.network.families import FunctionSet
from gmeql.search.direct.comparing import COMPARING
from gmeql.search.direct.sums.vocabulary import sum_of
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.column_functions import LibraryConfig
from gmeql.search.direct.terms.library import library
from gmeql.search.polish.scoring import JudgedRows, description_length

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class SubsetsConfig:
    """Numbers of the method."""

    few_rows: int = 20
    max_columns: int = 10
    max_terms: int = 6
    extended: int = 200  # sums of each length that are extended by every term, where
    compared: int = 6000  # no more are compared than so many
    fewest: int = 500
    ridge: float = 1e-11  # added to the normal equations: powers are much alike
    proposed: int = 2
    seconds_per_sum: float = 4e-7  # of a sum that is compared, for each of its terms (measured)


SUBSETS = SubsetsConfig()
POWERS_OF_COLUMNS = LibraryConfig(
    powers=(1, 2, 3, 4, 5, 6, -1, -2), roots=(0.5,), mixed=(1,), exponents=(), rates=(), offsets=(), turns=0, bumps=0,
    most_terms=120,
)  # fmt: skip
"""Powers of columns, and products of two columns."""


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """The sums of least description length that fit as well as the best formula so far. Draws nothing at random."""
    n = len(table.y)
    if not 1 <= table.n_columns <= SUBSETS.max_columns or n < SUBSETS.few_rows or not functions.allows({"add", "mul"}):
        return
    if not np.isfinite(table.X).all() or not np.ptp(table.y) > 0:
        return
    per_sum = SUBSETS.seconds_per_sum * sum(range(2, SUBSETS.max_terms + 1))
    n_compared = min(SUBSETS.compared, int(effort.seconds / per_sum))
    if n_compared < SUBSETS.fewest or effort.out_of_time():
        return
    terms = library(table.X, functions.allows, numbers=POWERS_OF_COLUMNS)
    used = np.flatnonzero(~terms.plain & ~terms.tuned)
    nodes = [Constant(1.0), *(terms.node(int(m)) for m in used)]
    values = np.vstack([np.ones(n), terms.values[used]])
    rows = JudgedRows.of(table.X, table.y, table.weights, [f"x{i}" for i in range(table.n_columns)])
    found: list[tuple[float, Node]] = []
    for numbers, factors, loss in best_subsets(values, table.y, table.weights, n_compared):
        root = sum_of([(float(c), nodes[m]) for c, m in zip(factors, numbers, strict=True)])
        length = description_length(root, loss, rows) + len(numbers) * math.log(len(nodes))
        if table.error(root) < COMPARING.gain * table.unexplained:
            found.append((length, root))
        if effort.out_of_time():
            break
    longest = description_length(Constant(0.0), rows.spread**2, rows)
    ranked = sorted((one for one in found if one[0] < longest), key=lambda one: one[0])
    yield from (root for _, root in ranked[: SUBSETS.proposed])


def best_subsets(
    values: FloatArray, y: FloatArray, weights: FloatArray, n_compared: int
) -> Iterator[tuple[IntArray, FloatArray, float]]:
    """The best sum of one of the terms [M, N], of two, and so on: which they are, their factors, and the loss."""
    roots = np.sqrt(weights / weights.sum())
    columns, target = values * roots, y * roots
    sizes = np.sqrt(np.einsum("mn,mn->m", columns, columns))
    usable = np.flatnonzero(sizes > 0)
    columns = columns[usable] / sizes[usable, None]
    products, towards, m = columns @ columns.T, columns @ target, len(usable)
    sums: IntArray = np.zeros((1, 0), np.int64)
    for _ in range(min(SUBSETS.max_terms, m)):
        kept = sums[: max(1, min(SUBSETS.extended, n_compared // m))]
        longer = np.hstack([np.repeat(kept, m, axis=0), np.tile(np.arange(m), len(kept))[:, None]])
        longer = np.sort(longer, axis=1)
        longer = longer[(np.diff(longer, axis=1) > 0).all(axis=1)]
        numbers = longer @ m ** np.arange(longer.shape[1])[::-1]  # a sum as one number, in the order of its terms
        longer = longer[np.unique(numbers, return_index=True)[1]]
        sums = longer[np.argsort(-_explained(products, towards, longer), kind="stable")]
        factors = np.linalg.lstsq(columns[sums[0]].T, target, rcond=None)[0]
        rest = target - columns[sums[0]].T @ factors
        best = usable[sums[0]]
        yield best, factors / sizes[best], float(rest @ rest)


def _explained(products: FloatArray, towards: FloatArray, sums: IntArray) -> FloatArray:
    """Squares of the target that sums [S, k] explain, given products [M, M] of terms of size 1 and with the target [M]."""
    k = sums.shape[1]
    matrices = products[sums[:, :, None], sums[:, None, :]]
    matrices[:, range(k), range(k)] += SUBSETS.ridge
    sides = towards[sums]
    return np.asarray(np.einsum("sk,sk->s", sides, np.linalg.solve(matrices, sides[:, :, None])[:, :, 0]))
