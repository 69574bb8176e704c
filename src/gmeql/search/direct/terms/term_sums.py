"""Sums of terms of a library: the formula, its factors by least squares, its inner constants by a fit.

All factors of the terms enter linearly; tuned terms have constants inside besides.

Legend: `N` rows, `K` constants of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters import fit
from gmeql.fitters.programs import ProgramTooLong, from_expression, replace_constants
from gmeql.formula.calculus import constant_slopes
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, leaves, row_values
from gmeql.search.direct.terms.library import Library
from gmeql.search.polish.scoring import JudgedRows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """A summand without its factor: the formula, its number in the library, whether constants inside are fitted."""

    node: Node
    number: int
    tuned: bool


@dataclass(frozen=True)
class TermSum:
    """A sum of terms with their factors, the offset last, and its loss (weighted mean squared error)."""

    terms: tuple[Term, ...]
    factors: tuple[float, ...]
    loss: float

    @property
    def n_tuned(self) -> int:
        """Terms with inner constants to fit."""
        return sum(term.tuned for term in self.terms)

    @cached_property
    def root(self) -> Node:
        """The formula; every factor stands as a constant of its own."""
        offset = Constant(self.factors[-1])
        if not self.terms:
            return offset
        parts = [Call("mul", (Constant(c), t.node)) for c, t in zip(self.factors[:-1], self.terms, strict=True)]
        return Call("add", (*parts, offset))

    def fixed(self) -> set[int]:
        """Numbers of the constants that are no more than part of a plain term."""
        found, place = set(), 0
        for term in self.terms:
            inner = sum(isinstance(leaf, Constant) for leaf in leaves(term.node))
            if not term.tuned:
                found |= set(range(place + 1, place + 1 + inner))
            place += 1 + inner
        return found

    def without(self, i: int) -> TermSum:
        """The sum with one term less."""
        terms, factors = self.terms[:i] + self.terms[i + 1 :], self.factors[:i] + self.factors[i + 1 :]
        return TermSum(terms, factors, math.inf)


@dataclass(frozen=True)
class SumFits:
    """Fits of sums of a library's terms to some rows."""

    terms: Library
    rows: JudgedRows
    tolerance: float
    """Gain of a step below which a fit ends."""
    spanned: float
    """Singular values below this share of the largest span nothing."""

    @cached_property
    def roots(self) -> FloatArray:
        """Square roots of the rows' weights, [N]."""
        return np.asarray(np.sqrt(self.rows.weights))

    @cached_property
    def weight(self) -> float:
        """The sum of all weights."""
        return float(np.sum(self.rows.weights))

    def columns(self, each: TermSum) -> FloatArray:
        """The terms on the rows and 1, [N, terms + 1]; a term whose constants were not fitted has its values from the library."""
        columns = [
            row_values(term.node, self.rows.names, self.rows.X)
            if term.tuned and term.node is not self.terms.node(term.number)
            else self.terms.values[term.number]
            for term in each.terms
        ]
        return np.stack([*columns, np.ones(len(self.rows.target))], axis=1)

    def solved(self, each: TermSum) -> TermSum | None:
        """A sum with the factors of least squares; None where a term is not finite."""
        rows, table = self.rows, self.columns(each)
        with np.errstate(all="ignore"):
            sizes = np.sqrt(np.mean(table**2, axis=0))
        if not np.isfinite(sizes).all() or not (sizes > 0).all():
            return None
        scaled = np.linalg.lstsq(self.roots[:, None] * table / sizes, self.roots * rows.target, rcond=1e-14)[0]
        factors = scaled / sizes
        loss = float(rows.weights @ (rows.target - table @ factors) ** 2) / self.weight
        return replace(each, factors=tuple(factors.tolist()), loss=loss) if math.isfinite(loss) else None

    def fitted(self, sums: Sequence[TermSum], steps: int) -> list[TermSum]:
        """The sums with factors solved for, and the inner constants of tuned terms fitted with them."""
        rows, result, written = self.rows, [], []
        for each in map(self.solved, sums):
            if each is None:
                continue
            if not each.n_tuned:
                result.append(each)
                continue
            try:
                written.append((each, from_expression(each.root, rows.n_variables, each.fixed())))
            except ProgramTooLong:
                continue
        if written:
            programs = [program for _, program in written]
            fits = fit(
                programs, None, rows.inputs, rows.target, rows.weights, max_steps=steps,
                tolerance=self.tolerance, n_threads=rows.n_threads,
            )  # fmt: skip
            for (each, program), constants, loss in zip(written, fits.constants, fits.losses, strict=True):
                if math.isfinite(loss) and np.isfinite(constants[: len(program.start)]).all():
                    root = replace_constants(Expression(each.root, rows.names), program, constants).root
                    result.append(_read(each, root, float(loss)))
        return result

    def beside(self, each: TermSum) -> tuple[FloatArray, FloatArray]:
        """A basis [N, K'] of the slopes of a sum by all its constants, and what is left of the target beside it [N]."""
        if each.n_tuned:
            values, slopes = constant_slopes(each.root, self.rows.X)
            slopes = slopes[:, [k for k in range(slopes.shape[1]) if k not in each.fixed()]]
        else:
            slopes = self.columns(each)
            values = slopes @ np.array(each.factors)
        basis = orthonormal(self.roots[:, None] * slopes, self.spanned)
        residual = self.roots * (self.rows.target - values)
        return basis, residual - basis @ (basis.T @ residual)


def _read(each: TermSum, root: Node, loss: float) -> TermSum:
    """A sum with the constants that its refitted formula has."""
    assert isinstance(root, Call)  # as `TermSum.root` wrote it
    factors, terms = [], []
    for part, term in zip(root.args[:-1], each.terms, strict=True):
        assert isinstance(part, Call) and isinstance(part.args[0], Constant)
        factors.append(part.args[0].value)
        terms.append(Term(part.args[1], term.number, term.tuned))
    offset = root.args[-1]
    assert isinstance(offset, Constant)
    return TermSum(tuple(terms), (*factors, offset.value), loss)


def orthonormal(columns: FloatArray, spanned: float) -> FloatArray:
    """A basis [N, K'] of the space that columns [N, K] span; those that are not finite span nothing."""
    peaks = np.abs(columns).max(axis=0)
    used = np.isfinite(peaks) & (peaks > 0)
    if not used.any():
        return np.zeros((len(columns), 0))
    left, singular, _ = np.linalg.svd(columns[:, used] / peaks[used], full_matrices=False)
    return np.asarray(left[:, singular > spanned * singular[0]])


def beside(basis: FloatArray, columns: FloatArray) -> FloatArray:
    """What is left of columns [N] or [N, K] beside a basis; projected twice, since once rounds."""
    for _ in range(2):
        columns = columns - basis @ (basis.T @ columns)
    return np.asarray(columns)
