"""The sum of many columns with factors drawn towards 0: what they say together where the rows know none of them well.

Least squares over many columns and few rows follows the noise, and over columns that resemble each other its factors run
away in opposite directions. Ridge regression (Hoerl and Kennard 1970) holds them back: of columns in units of their
spread it minimises `Σ wᵢ rᵢ² + λ Σ bⱼ²`. With the singular values `d` of the columns it has `1 + Σ d²/(d² + λ)` constants'
worth of freedom, and the error of a row left out is `rᵢ / (1 - hᵢᵢ)` here too. λ is the one with which those are least;
where shrinking gains next to nothing, least squares stays.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ShrinkingConfig:
    """Numbers of the method."""

    weakest: float = 1e-5
    strongest: float = 1e2
    """λ/N from the weakest to the strongest: from factors of least squares to nearly none."""
    tried: int = 29
    """Four for each power of ten: errors on rows left out change by little from one to the next."""
    least_gain: float = 0.01
    """Share of the squared error on rows left out that shrinking must save: less is no reason to leave least squares."""
    independent: float = 1e-6
    """Singular values below this share of the largest are none: the columns follow from each other."""
    least_freedom: float = 1.5
    """A sum worth fewer constants than this is the mean and little else."""


SHRINKING = ShrinkingConfig()


@dataclass(frozen=True, eq=False)
class ShrunkSum:
    """A sum of columns, its errors [N] with each row left out, how many freely fitted constants it is worth (None where
    least squares stayed), and the nats that stating its columns takes: all of them are one choice."""

    root: Node
    errors: FloatArray
    freedom: float | None
    nats: float


def shrunk_sum(X: FloatArray, y: FloatArray, weights: FloatArray, *, most_columns: int) -> ShrunkSum | None:
    """The sum of all columns, or of the `most_columns` that count most; None where that is the mean and little else."""
    columns = np.flatnonzero(np.ptp(X, axis=0) > 0)
    if most_columns < 1 or not len(columns) or len(y) < 3:
        return None
    varying = len(columns)
    found = _Ridge.of(X[:, columns], y, weights)
    if varying > most_columns:
        kept = np.sort(np.argsort(-np.abs(found.factors(found.best())), kind="stable")[:most_columns])
        columns = columns[kept]
        found = _Ridge.of(X[:, columns], y, weights)
    penalty = found.best()
    freedom = None if penalty == 0.0 else found.freedom(penalty)
    if freedom is not None and freedom < SHRINKING.least_freedom:
        return None
    slopes = found.factors(penalty) / found.spreads
    offset = found.mean - float(slopes @ found.centre)
    terms = [build("mul", Constant(float(b)), Variable(int(c))) for b, c in zip(slopes, columns, strict=True)]
    errors = found.left_out(penalty) / np.sqrt(np.where(weights > 0, weights, 1.0))
    nats = math.log(varying + 1) + math.log(math.comb(varying, len(columns)))
    return ShrunkSum(build("add", Constant(offset), *terms), errors, freedom, nats)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """Columns in units of their spread, taken apart: one decomposition serves every penalty."""

    centre: FloatArray
    spreads: FloatArray
    mean: float
    left: FloatArray
    singular: FloatArray
    right: FloatArray
    target: FloatArray
    leverage: FloatArray
    """Of the rows [N] on the mean alone."""

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, weights: FloatArray) -> _Ridge:
        root = np.sqrt(weights)
        centre, mean = np.average(X, axis=0, weights=weights), float(np.average(y, weights=weights))
        spreads = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weights))
        spreads = np.where(spreads > 0, spreads, 1.0)
        parts = np.linalg.svd((X - centre) / spreads * root[:, None], full_matrices=False)
        return cls(centre, spreads, mean, *parts, (y - mean) * root, weights / weights.sum())

    def best(self) -> float:
        """The penalty with least error on rows left out; 0, least squares, where that is nearly as good."""
        penalties = len(self.target) * np.geomspace(SHRINKING.weakest, SHRINKING.strongest, SHRINKING.tried)
        squares = [float(np.sum(self.left_out(penalty) ** 2)) for penalty in penalties]
        best = int(np.argmin(squares))
        determined = self.singular[-1] > SHRINKING.independent * self.singular[0]
        if determined and len(self.singular) + 2 < len(self.target):
            plain = float(np.sum(self.left_out(0.0) ** 2))
            if plain * (1.0 - SHRINKING.least_gain) <= squares[best]:
                return 0.0
        return float(penalties[best])

    def factors(self, penalty: float) -> FloatArray:
        """Of the columns in units of their spread [V]."""
        return np.asarray(self.right.T @ (self._shares(penalty) / self._divisors * (self.left.T @ self.target)))

    def left_out(self, penalty: float) -> FloatArray:
        """Errors of the rows [N] with each left out, times the roots of their weights."""
        shares = self._shares(penalty)
        residual = self.target - self.left @ (shares * (self.left.T @ self.target))
        leverage = self.leverage + self.left**2 @ shares
        return np.asarray(residual / np.maximum(1.0 - leverage, math.sqrt(np.finfo(float).eps)))

    def freedom(self, penalty: float) -> float:
        """How many freely fitted constants the sum is worth, the one that stands alone among them."""
        return 1.0 + float(self._shares(penalty).sum())

    def _shares(self, penalty: float) -> FloatArray:
        """How much of each direction is left by a penalty, 0 to 1."""
        squares = self.singular**2
        return np.asarray(squares / np.maximum(squares + penalty, np.finfo(float).tiny))

    @property
    def _divisors(self) -> FloatArray:
        return np.maximum(self.singular, np.finfo(float).tiny)
