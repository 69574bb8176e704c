"""One or two functions of a column that stand before several known ones of another: y = e(z) + f1(x) H(z) c1 + f2(x) H(z) c2.

Of A exp(-0.093 t) + A**2 exp(-0.075 t)/(1 + 0.5 A) what stands before A, before 1/(A + 2) and alone are sums of the same two
falls, each known to few digits by itself. So all are looked for at once: of all pairs of functions on a fine grid what they
explain before every H follows from products of columns made once, and the best of each two kinds is the start of a damped fit.

Legend: `N` rows, `M` functions of x, `K` known functions of z, H.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.curve_pairs import ALONE, is_seen
from gmeql.search.direct.sums.settling import settled
from gmeql.search.direct.terms.library import library
from gmeql.search.direct.terms.term_sums import beside

FloatArray = NDArray[np.float64]
OutOfTime = Callable[[], bool]


@dataclass(frozen=True)
class SharedConfig:
    """Numbers of the method."""

    rows: int = 240  # by which functions are compared
    singles: int = 8  # functions that are fitted by themselves, those that leave least,
    pairs: int = 16  # and pairs of kinds
    independent: float = 1e-7  # share of a column that must be left beside all else
    ridge: float = 1e-9  # added to the normal equations of two functions that are much alike


SHARED = SharedConfig()


class SharedFunctions:
    """Functions of x [N] before known ones H [N, K], beside an orthonormal basis [N, Q] of whatever else there may be."""

    def __init__(
        self,
        x: FloatArray,
        known: FloatArray,
        target: FloatArray,
        basis: FloatArray,
        functions: FunctionSet,
        *,
        allowed: float,
    ) -> None:
        self.X, self.known, self.target, self.basis, self.allowed = x[:, None], known, target, basis, allowed
        n = min(len(x), SHARED.rows)
        self.terms = library(self.X[:n], functions.allows, numbers=ALONE)
        numbers = np.flatnonzero(self.terms.tuned | self.terms.plain)
        self.numbers = numbers[np.argsort(self.terms.kinds[numbers], kind="stable")]
        few = np.linalg.qr(basis[:n])[0]
        self.rest = beside(few, target[:n])
        self.blocks = self._blocks(few, known[:n])

    def _blocks(self, basis: FloatArray, known: FloatArray) -> FloatArray:
        """For every function a basis of what it is before each H, beside all else, [M, N, K]; no column where that is nothing."""
        values = self.terms.values[self.numbers]
        blocks = np.zeros((len(values), len(known), known.shape[1]))
        for block, one in zip(blocks, values, strict=True):
            columns = one[:, None] * known
            sizes = np.linalg.norm(columns, axis=0)
            left = beside(basis, columns / np.where(sizes > 0, sizes, 1.0))
            span, singular, _ = np.linalg.svd(left, full_matrices=False)
            block[:] = np.where(singular > SHARED.independent, span, 0.0)
        return blocks

    def found(self, out_of_time: OutOfTime) -> list[Node] | None:
        """The one function, or the two, that leave next to nothing; None where there are none."""
        if not len(self.numbers):
            return None
        for places in [*self._singles(), *self._pairs()]:
            if out_of_time():
                return None
            nodes, _, error = settled(
                [self.terms.node(int(self.numbers[i])) for i in places],
                self.X, self.target, self.basis, before=self.known, is_damped=True,
            )  # fmt: skip
            if error < self.allowed and all(is_seen(node, self.X) for node in nodes):
                return nodes
        return None

    def _along(self) -> FloatArray:
        """What is left of the target along every block, [M, K]."""
        return np.asarray(np.einsum("mnk,n->mk", self.blocks, self.rest))

    def _singles(self) -> list[tuple[int, ...]]:
        """Functions that explain most by themselves, one of a kind."""
        chosen: dict[int, int] = {}
        for place in np.argsort(-np.sum(self._along() ** 2, axis=1), kind="stable"):
            chosen.setdefault(int(self.terms.kinds[self.numbers[place]]), int(place))
        return [(place,) for place in list(chosen.values())[: SHARED.singles]]

    def _pairs(self) -> list[tuple[int, ...]]:
        """Of the pairs of kinds that explain most, the two functions that do."""
        explained = self._explained()
        kinds = self.terms.kinds[self.numbers]
        firsts = np.flatnonzero(np.diff(kinds, prepend=-1))
        ends = [*firsts[1:], len(kinds)]
        most = np.maximum.reduceat(np.maximum.reduceat(explained, firsts, axis=0), firsts, axis=1)
        above = np.triu_indices(len(most))
        chosen: list[tuple[int, ...]] = []
        for k in np.argsort(-most[above], kind="stable")[: SHARED.pairs]:
            a, b = int(above[0][k]), int(above[1][k])
            some = explained[firsts[a] : ends[a], firsts[b] : ends[b]]
            i, j = np.unravel_index(int(np.argmax(some)), some.shape)
            chosen.append((int(firsts[a] + i), int(firsts[b] + j)))
        return chosen

    def _explained(self) -> FloatArray:
        """The squares that every two functions explain together, [M, M]: with blocks P and Q, P'P = Q'Q = 1 and C = P'Q,
        those along P and what (1 - C'C) makes of those along Q less C' times those along P."""
        m, n, k = self.blocks.shape
        flat = self.blocks.transpose(0, 2, 1).reshape(m * k, n)
        across = (flat @ flat.T).reshape(m, k, m, k).transpose(0, 2, 1, 3)  # [M, M, K, K]
        along = self._along()
        left = along[None, :, :] - np.einsum("abkl,ak->abl", across, along)
        free = np.eye(k) * (1.0 + SHARED.ridge) - np.einsum("abkl,abkm->ablm", across, across)
        more = np.einsum("abl,abl->ab", left, np.linalg.solve(free, left[..., None])[..., 0])
        whole = float(self.rest @ self.rest)
        return np.asarray(np.minimum(np.sum(along**2, axis=1)[:, None] + np.where(more > 0, more, 0.0), whole))
