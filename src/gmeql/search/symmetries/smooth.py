"""A smooth fit by linear algebra: a product of real powers times a polynomial, with its error on left-out rows.

y = F(x) · exp(a·z) · P(z), where F is the factor of a view and z are its columns, by their logarithms where they are
positive. It takes milliseconds, and its left-out residuals are those of the target itself whatever the view: so two
views are compared row by row, and noise that hides a slope does not hide which of them predicts better.

Legend: `N` rows, `D` columns of a view, `K` terms of a polynomial.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gmeql.search.symmetries.config import SYMMETRIES

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SmoothFit:
    """What a smooth fit says: residuals [N] of rows left out, values [N], and slopes [N, D] by the table's columns."""

    residuals: FloatArray
    values: FloatArray
    slopes: FloatArray

    @cached_property
    def error(self) -> float:
        """Mean square of the residuals."""
        return float(self.residuals @ self.residuals) / len(self.residuals)


def fit_smooth(table: FloatArray, factors: FloatArray, y: FloatArray, *, with_slopes: bool = False) -> SmoothFit | None:
    """The fit of y [N] over a table [N, D] with a factor [N] before it, of the degree that predicts best.

    None where something is not finite. Slopes are those of y/factor, computed where they are asked for.
    """
    Z, inner = _coordinates(table)
    if not (np.isfinite(Z).all() and np.isfinite(factors).all()):
        return None
    n_rows, n_columns = Z.shape
    degrees = SYMMETRIES.smooth_degrees
    polynomials = _Polynomials.of(Z, degrees[min(n_columns, len(degrees)) - 1])
    exponents = _power_law(Z, factors, y)
    scale = factors * np.exp(Z @ exponents)
    scale = scale / np.sqrt(np.mean(scale**2))
    if not np.isfinite(scale).all():
        return None
    Q, R = _orthogonal(polynomials.values * scale[:, None])
    along = Q.T @ y
    leverage, values, done = np.zeros(n_rows), np.zeros(n_rows), 0
    best, n_terms = SmoothFit(np.full(n_rows, np.inf), values, np.empty((0, n_columns))), 0
    for terms in polynomials.ends:
        if terms > n_rows / SYMMETRIES.rows_per_term:
            break
        part = Q[:, done:terms]
        leverage, values, done = leverage + (part**2).sum(axis=1), values + part @ along[done:terms], terms
        fit = SmoothFit((y - values) / np.maximum(1 - leverage, SYMMETRIES.least_left_out), values, best.slopes)
        if fit.error < best.error:
            best, n_terms = fit, terms
    if not n_terms or not with_slopes:
        return best if n_terms else None
    coefficients = np.asarray(np.linalg.lstsq(R[:n_terms, :n_terms], along[:n_terms], rcond=None)[0], np.float64)
    own = polynomials.slopes(coefficients) + (polynomials.values[:, :n_terms] @ coefficients)[:, None] * exponents
    return replace(best, slopes=own * (scale / factors)[:, None] * inner)


def _orthogonal(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Q [N, K] with orthonormal columns and the triangle R [K, K] that makes the columns of them: from normal equations, in a
    third of the time, where none of them is nearly a sum of those before it."""
    from scipy.linalg.blas import dtrsm
    from scipy.linalg.lapack import dpotrf

    sizes = np.sqrt(np.einsum("nk,nk->k", columns, columns))
    if (sizes > 0).all():
        sized = np.asfortranarray(columns / sizes)
        triangle, failed = dpotrf(sized.T @ sized)
        if not failed and np.diag(triangle).min() > SYMMETRIES.least_apart:
            return np.asarray(dtrsm(1.0, triangle, sized, side=1)), np.triu(triangle) * sizes
    Q, R = np.linalg.qr(columns)
    return Q, R


def fit_plane(X: FloatArray, y: FloatArray) -> SmoothFit:
    """A sum of the columns X [N, D] and a constant, fitted to y [N]."""
    Q = np.linalg.qr(np.column_stack([np.ones(len(y)), X]))[0]
    values = Q @ (Q.T @ y)
    left = np.maximum(1 - (Q**2).sum(axis=1), SYMMETRIES.least_left_out)
    return SmoothFit((y - values) / left, values, np.empty((0, X.shape[1])))


def _coordinates(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns between -1 and 1, by their logarithm where they are positive, and the slope of that to the column."""
    positive = (table > 0).all(axis=0)
    with np.errstate(all="ignore"):
        positive &= table.max(axis=0) < SYMMETRIES.largest_ratio * table.min(axis=0)
        coordinates = np.where(positive, np.log(np.where(positive, table, 1.0)), table)
        inner = np.where(positive, 1 / np.where(positive, table, 1.0), 1.0)
        low, high = coordinates.min(axis=0), coordinates.max(axis=0)
        half = np.where(high > low, (high - low) / 2, 1.0)
        return (coordinates - (low + high) / 2) / half, inner / half


def _power_law(Z: FloatArray, factors: FloatArray, y: FloatArray) -> FloatArray:
    """Exponents [D] of the product of powers that fits y best, which stands before the polynomial.

    They are found by Gauss-Newton steps from a weighted plane through log y; 0 where y changes its sign on many rows.
    """
    n_rows, n_columns = Z.shape
    none = np.zeros(n_columns)
    target = y / factors
    if (target < 0).mean() > (target > 0).mean():
        target, y = -target, -y
    told = target > 0
    if told.mean() < SYMMETRIES.least_one_sign:
        return none
    plane = np.column_stack([np.ones(n_rows), Z])
    # a row's logarithm is known the better the larger its target, but no few rows decide
    weights = np.abs(y[told])
    weights = np.minimum(weights, 10 * weights.mean())
    solved = np.linalg.lstsq(plane[told] * weights[:, None], np.log(target[told]) * weights, rcond=None)[0]
    with np.errstate(all="ignore"):
        values = factors * np.exp(plane @ solved)
        loss, damping = float(np.sum((y - values) ** 2)), 1e-3
        for _ in range(SYMMETRIES.power_steps):
            slopes = values[:, None] * plane
            normal = slopes.T @ slopes
            if not np.isfinite(normal).all():
                return none
            normal[np.diag_indices_from(normal)] *= 1 + damping
            step = np.linalg.lstsq(normal, slopes.T @ (y - values), rcond=None)[0]
            tried = factors * np.exp(plane @ (solved + step))
            squares = float(np.sum((y - tried) ** 2))
            if not squares < loss:
                damping = 10 * damping
                continue
            is_settled = loss - squares < SYMMETRIES.power_gain * loss
            solved, values, loss, damping = solved + step, tried, squares, 0.1 * damping
            if is_settled:
                break
    return solved[1:] if np.isfinite(solved).all() else none


@dataclass(frozen=True, eq=False)
class _Polynomials:
    """Products of Chebyshev polynomials of rising total degree: `values` [N, K] and where each degree `ends`."""

    Z: FloatArray
    exponents: NDArray[np.int64]
    ends: tuple[int, ...]
    single: FloatArray
    """Values [degree + 1, D, N] of each polynomial of each coordinate,"""
    values: FloatArray

    @classmethod
    def of(cls, Z: FloatArray, degree: int) -> _Polynomials:
        exponents, ends = _exponents(Z.shape[1], degree)
        single = np.empty((degree + 1, Z.shape[1], len(Z)))
        single[0] = 1.0
        single[1] = Z.T
        for k in range(2, degree + 1):
            single[k] = 2 * Z.T * single[k - 1] - single[k - 2]
        values = single[exponents[:, 0], 0]
        for j in range(1, Z.shape[1]):
            values = values * single[exponents[:, j], j]
        return cls(Z, exponents, ends, single, values.T)

    def slopes(self, coefficients: FloatArray) -> FloatArray:
        """Slopes [N, D] of the sum of the first terms with these coefficients."""
        rise = np.zeros_like(self.single)
        rise[1] = 1.0
        for k in range(2, len(rise)):
            rise[k] = 2 * self.single[k - 1] + 2 * self.Z.T * rise[k - 1] - rise[k - 2]
        exponents, slopes = self.exponents[: len(coefficients)], np.empty_like(self.Z)
        for j in range(self.Z.shape[1]):
            product = rise[exponents[:, j], j]
            for i in range(self.Z.shape[1]):
                if i != j:
                    product = product * self.single[exponents[:, i], i]
            slopes[:, j] = coefficients @ product
        return slopes


@functools.cache
def _exponents(n_columns: int, degree: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Exponents [K, D] of all products up to a total degree, by rising degree, and how many there are up to each."""
    found = []
    for total in range(degree + 1):
        for chosen in itertools.combinations_with_replacement(range(n_columns), total):
            found.append([chosen.count(j) for j in range(n_columns)])
    exponents = np.array(found, np.int64)
    totals = exponents.sum(axis=1)
    return exponents, tuple(int((totals <= total).sum()) for total in range(1, degree + 1))
