"""Polynomials with a root beside them, y = L(x) ± sqrt(Q(x)), by linear algebra: y² = 2 L y + (Q - L²).

All coefficients of L and of Q - L² enter linearly, so that one least squares fit of y² by monomials and monomials times y
tells whether there are such polynomials, and which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gmeql.formula.nodes import Node, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.fractions.polynomials import Monomial, Polynomial, monomials, values, written
from gmeql.search.direct.table import DirectTable, Effort, FloatArray


@dataclass(frozen=True)
class RootsConfig:
    """Numbers of the method."""

    max_columns: int = 8
    degrees: tuple[int, ...] = (1, 2, 3)  # of L; Q has up to twice as much
    rows_per_unknown: float = 1.2
    spare_rows: int = 20
    seconds_per_product: float = 1e-9  # of a row with two unknowns, on one core (measured)
    exact: float = 1e-9  # error relative to the target's spread that is taken for exact before constants are refitted
    dropped: float = 1e-7  # share of the largest term below which a coefficient is rounding


ROOTS = RootsConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A sum of a polynomial and a root of one that is the target on all rows. Draws nothing at random."""
    if not 1 <= table.n_columns <= ROOTS.max_columns or not functions.allows({"add", "mul", "sqrt"}):
        return
    sizes = np.abs(table.X).max(axis=0)
    size = float(np.abs(table.y).max())
    if not (np.isfinite(sizes).all() and (sizes > 0).all() and size > 0):
        return
    X, y = table.X / sizes, table.y / size
    left = effort.seconds
    for degree in ROOTS.degrees:
        before = monomials(table.n_columns, degree)
        under = monomials(table.n_columns, 2 * degree)
        unknowns = len(before) + len(under)
        left -= ROOTS.seconds_per_product * len(y) * unknowns**2
        if left < 0 or len(y) < ROOTS.rows_per_unknown * unknowns + ROOTS.spare_rows or effort.out_of_time():
            return
        found = _solved(before, under, X, y)
        if found is None:
            continue
        polynomial, inside, sign = found
        root = build("sqrt", written(_unscaled(inside, sizes, size**2)))
        yield build("add", written(_unscaled(polynomial, sizes, size)), root if sign > 0 else build("neg", root))
        return


def _solved(
    before: list[Monomial], under: list[Monomial], X: FloatArray, y: FloatArray
) -> tuple[Polynomial, Polynomial, float] | None:
    """L, Q and the sign of the root; None where they are not the target, or where there is no root."""
    columns, beside = values(under, X), values(before, X)
    table = np.hstack([columns, beside * y[:, None]])
    heights = np.sqrt(np.mean(table**2, axis=0))
    heights = np.where(heights > 0, heights, 1.0)  # the product of two categories is 0 on every row
    solved = np.linalg.lstsq(table / heights, y**2, rcond=1e-14)[0] / heights
    rest = y**2 - table @ solved
    if math.sqrt(float(np.mean(rest**2))) > ROOTS.exact * float(np.std(y**2)):
        return None
    polynomial = _kept(before, solved[len(under) :] / 2, beside)
    inside = dict(zip(under, solved[: len(under)].tolist(), strict=True))
    for a, c in polynomial.items():
        for b, d in polynomial.items():
            place = tuple(e + f for e, f in zip(a, b, strict=True))
            inside[place] += c * d
    inside = _kept(under, np.array([inside[m] for m in under]), columns)
    if not polynomial or not any(any(m) for m in inside):
        return None
    ahead = values(list(polynomial), X) @ np.array(list(polynomial.values()))
    square = values(list(inside), X) @ np.array(list(inside.values()))
    root = np.sqrt(np.maximum(square, 0.0))
    sign = 1.0 if np.mean(y - ahead) >= 0 else -1.0
    error = math.sqrt(float(np.mean((ahead + sign * root - y) ** 2)))
    return (polynomial, inside, sign) if error < 1e3 * ROOTS.exact * float(np.std(y)) else None


def _kept(terms: list[Monomial], coefficients: FloatArray, columns: FloatArray) -> Polynomial:
    """The polynomial without terms that are rounding."""
    heights = np.abs(coefficients) * np.sqrt(np.mean(columns**2, axis=0))
    kept = heights > ROOTS.dropped * heights.max() if heights.max() > 0 else heights > 0
    return {m: c for m, c, k in zip(terms, coefficients.tolist(), kept, strict=True) if k}


def _unscaled(polynomial: Polynomial, sizes: FloatArray, size: float) -> Polynomial:
    """Over the columns in their own sizes, for a target in its own; the last digits are rounding."""
    found = {
        m: size * c / math.prod(float(s) ** e for s, e in zip(sizes, m, strict=True)) for m, c in polynomial.items()
    }
    return {m: float(f"{c:.11g}") for m, c in found.items()}
