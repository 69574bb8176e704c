"""Squares of sums that change their sign, with a plain term beside them: y = p ± S², as in x + z - (sin(x) - 1.1*x*z)**2.

The root of y - p is |S|, and S is no root of anything where it is below zero. But S² is linear in the products of pairs of
its terms, so a fit over all pairs of the plainest terms gives S up to its sign wherever |S| is large ("lifting", Candès,
Strohmer and Voroninski 2013: the leading eigenvector of the fitted matrix). Fits with ever more terms, each to |S| with the
signs of the one before, mend the signs near its zeros (Gerchberg and Saxton 1972). If S is a sum of plain terms it is met
exactly on the rows of large |S|, whose signs are certain.

Legend: `N` rows, `K` dimensions of a span.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.fractions.polynomials import monomials, power_product, values
from gmeql.search.direct.steps.robust import robust_choice
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, sum_of
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.library import brief_vocabulary
from gmeql.search.direct.terms.term_sums import orthonormal

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SquaresConfig:
    """Numbers of the method, chosen on random formulas of two to seven columns."""

    max_columns: int = 8
    few_rows: int = 150
    rows: int = 1000
    near: float = 0.03  # share of the median of |S| below which there are
    least_near: float = 0.01  # so many of the rows: where a sum changes its sign |S| has no gap at zero
    rows_per_pair: float = 1.5  # of products of columns, in the first fit
    spans: tuple[int, ...] = (30, 60, 140)  # terms of the fits after that,
    rounds: int = 12  # each repeated with the signs of the one before,
    choices: int = 4  # and choices of a few
    terms: int = 700  # of so many after these
    met: float = 0.5  # error of the first fit, relative to the size of S², from which on its signs tell nothing
    promising: float = 0.05  # error of the last, relative to the size of |S|, from which on they do,
    settled: float = 1e-6  # and from which on nothing else is tried
    certain: float = 5.0  # times the middle error of the last choice is a size whose sign is right,
    rounding: float = 1e-9
    uncertain: float = 0.15  # share of the rows, those of least |S|, whose signs are not relied on even so
    changing: float = 0.02  # share of these rows that either sign has
    tried: int = 2  # terms p beside the square that are looked at
    seconds_to_ask: float = 0.03  # of one core (measured),
    seconds_to_begin: float = 0.15
    seconds_per_term: float = 0.2  # and for each of them


SQUARES = SquaresConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A plain term with the square of a sum that is the target on all rows. Draws nothing at random."""
    n = min(len(table.y), SQUARES.rows)
    if not 2 <= table.n_columns <= SQUARES.max_columns or n < SQUARES.few_rows:
        return
    if not functions.allows({"add", "mul", "square"}) or not np.isfinite(table.X).all() or not np.ptp(table.y) > 0:
        return
    if effort.seconds < SQUARES.seconds_to_ask or effort.out_of_time():
        return
    X, y = table.X[:n], table.y[:n]
    found = sorted(_beside_squares(X, y, functions), key=lambda one: one[0])[: SQUARES.tried]
    effort = effort.on_trail() if found else effort
    most = int((effort.seconds - SQUARES.seconds_to_begin) / SQUARES.seconds_per_term)
    roots: _Roots | None = None
    for _, beside, sign in found[: max(most, 0)]:
        if effort.out_of_time():
            return
        roots = roots or _Roots(X, functions)
        ahead = np.zeros(n) if beside is None else table.values(beside)[:n]
        sizes = np.sqrt(np.maximum(sign * (y - ahead), 0.0))
        for root in roots.of(sizes, effort):
            square = build("mul", Constant(sign), build("square", root))
            whole = square if beside is None else build("add", beside, square)
            if table.error(whole) < VOCABULARY.verified:
                yield whole
                return


def _beside_squares(X: FloatArray, y: FloatArray, functions: FunctionSet) -> Iterator[tuple[float, Node | None, float]]:
    """Terms p for which y - p or p - y is positive and comes near to zero as a square does, with how near; and the sign.

    Columns, their sums and differences, plain functions of one column, and none.
    """
    terms = brief_vocabulary(X, functions.allows, most_terms=1 + 20 * X.shape[1])
    alone: list[tuple[Node | None, FloatArray]] = [(None, np.zeros(len(y)))]
    alone += [(terms.node(m), x) for m, x in enumerate(terms.values) if np.isfinite(x).all() and np.ptp(x) > 0]
    columns: list[tuple[Node, FloatArray]] = [(Variable(j), x) for j, x in enumerate(X.T)]
    alone += [
        (build(name, a, b), x + z if name == "add" else x - z)
        for i, (a, x) in enumerate(columns)
        for j, (b, z) in enumerate(columns)
        for name in ("add", "sub")
        if i < j or (name == "sub" and i != j)
    ]
    every = [*alone, *((build("neg", node), -x) for node, x in alone if node is not None)]
    for node, ahead in every:
        for sign in (1.0, -1.0):
            rest = sign * (y - ahead)
            if (rest >= 0).all():
                sizes = np.sqrt(rest)
                middle = float(np.median(sizes))
                if float(np.mean(sizes < SQUARES.near * middle)) > SQUARES.least_near:
                    yield float(sizes.min()) / middle, node, sign


class _Roots:
    """Sums S over columns X [N, V] of which only |S| is known."""

    def __init__(self, X: FloatArray, functions: FunctionSet) -> None:
        more = brief_vocabulary(X, functions.allows, most_terms=SQUARES.terms)
        products = monomials(X.shape[1], 2)
        first = [
            (power_product(powers), column) for powers, column in zip(products, values(products, X).T, strict=True)
        ]
        every = [*first, *((more.node(m), x) for m, x in enumerate(more.values))][: SQUARES.terms]
        every = [(node, x) for node, x in every if np.isfinite(x).all() and np.abs(x).max() > 0]
        self.nodes, self.values = [node for node, _ in every], np.stack([x for _, x in every])
        most = min(int(math.sqrt(2 * len(X) / SQUARES.rows_per_pair)), len(every))
        self.lifted = sorted({min(len(first), most), most})
        self.bases = [self._basis(k) for k in SQUARES.spans if k <= len(every)]

    def _basis(self, k: int) -> FloatArray:
        columns = self.values[:k].T
        return orthonormal(columns / np.sqrt(np.mean(columns**2, axis=0)), VOCABULARY.spanned)

    def of(self, sizes: FloatArray, effort: Effort) -> Iterator[Node]:
        """Sums with the sizes |S| [N]."""
        best, error = sizes, math.inf
        for n_terms in self.lifted:
            signed = self._signed(sizes, n_terms)
            own = math.inf if signed is None else _error(signed, sizes)
            best, error = (signed, own) if signed is not None and own < error else (best, error)
            if error < SQUARES.settled or effort.out_of_time():
                break
        slack = SQUARES.certain * max(error, SQUARES.rounding) * float(np.median(sizes))
        certain = (sizes > max(np.quantile(sizes, SQUARES.uncertain), slack)) & (np.abs(np.abs(best) - sizes) < slack)
        if effort.out_of_time() or error > SQUARES.promising or certain.sum() < SQUARES.few_rows:
            return
        target = np.where(best < 0, -sizes, sizes)[certain]
        if min(float(np.mean(target < 0)), float(np.mean(target > 0))) < SQUARES.changing:
            return  # its root is a sum that keeps its sign: others see it
        some = int((len(target) - VOCABULARY.spare_rows) / VOCABULARY.rows_per_term)
        found = Span(self.values[:some, certain], lambda m: self.nodes[m]).sparse(target)
        if found is not None:
            yield sum_of(found)

    def _signed(self, sizes: FloatArray, n_terms: int) -> FloatArray | None:
        """S [N] nearly, beginning with the pairs of so many terms."""
        signed = self._lifted(sizes, n_terms)
        if signed is None:
            return None
        for basis in self.bases:
            for _ in range(SQUARES.rounds):
                fitted = basis @ (basis.T @ np.where(signed < 0, -sizes, sizes))
                has_settled = bool(((fitted < 0) == (signed < 0)).all())
                signed = fitted
                if has_settled:
                    break
        error = _error(signed, sizes)
        for _ in range(SQUARES.choices):  # wrong signs are outliers to it
            numbers, factors, _ = robust_choice(self.values, np.where(signed < 0, -sizes, sizes))
            chosen = np.asarray(factors[-1] + np.asarray(factors[:-1]) @ self.values[numbers])
            if not _error(chosen, sizes) < error:
                break
            signed, error = chosen, _error(chosen, sizes)
        return signed

    def _lifted(self, sizes: FloatArray, n_terms: int) -> FloatArray | None:
        """S [N] roughly: the leading part of the fit of S² by products of pairs of terms."""
        basis = self._basis(n_terms)
        k = basis.shape[1]
        i, j = np.triu_indices(k)
        squares = sizes**2
        # every row counts by its own size: else the few of largest S² are all that is fitted
        weights = 1.0 / (sizes + float(np.median(sizes)))
        products = basis[:, i] * basis[:, j] * len(sizes)
        factors, *_ = np.linalg.lstsq(products * weights[:, None], squares * weights, rcond=1e-10)
        rest = (products @ factors - squares) * weights
        if not np.sqrt(np.mean(rest**2)) < SQUARES.met * np.sqrt(np.mean((squares * weights) ** 2)):
            return None
        matrix = np.zeros((k, k))
        matrix[i, j] += factors / 2
        matrix[j, i] += factors / 2
        return np.asarray(basis @ np.linalg.eigh(matrix)[1][:, -1])


def _error(fitted: FloatArray, sizes: FloatArray) -> float:
    """How far a sum [N] is from its sizes, relative to these: the middle of rows, whose signs are right."""
    return float(np.median(np.abs(np.abs(fitted) - sizes)) / np.median(sizes))
