"""A problem: a table to learn from, drawn from a formula or given as rows."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gmeql.evaluation.problems.columns import InputColumn
from gmeql.formula.canonical import evaluate
from gmeql.formula.parsing import parse_formula

if TYPE_CHECKING:
    import sympy

MAX_ROWS = 10_000_000
CASE_LENGTH = (2.0, 3)
"""A solution may have 2 x the truth's operations + 3: public formulas are often factored, solutions multiplied out."""


def _unit(values: np.ndarray) -> float:
    """A power of two near the largest magnitude: dividing by it changes no digit and keeps squares in range."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if math.isfinite(largest) else 1.0


def root_mean_square(values: np.ndarray) -> float:
    """sqrt(mean(v²)), also where v² leaves the range of floating point numbers."""
    unit = _unit(values)
    return unit * float(np.sqrt(np.mean((values / unit) ** 2)))


def standard_deviation(values: np.ndarray) -> float:
    """`np.std`, also where squares leave the range of floating point numbers."""
    unit = _unit(values)
    return unit * float(np.std(values / unit))


@dataclass(frozen=True, eq=False)
class Problem:
    """A table to learn from, drawn from a formula or given as rows. N rows, V columns.

    `formula_text` is None where nobody knows the truth. With `rows_X` [N, V] and `rows_y` [N] the training and test
    rows are taken from those; fresh points for judging always come from the columns' ranges.
    """

    name: str
    columns: tuple[InputColumn, ...]
    formula_text: str | None
    n_train: int
    n_test: int
    suite: str = ""
    test_columns: tuple[InputColumn, ...] = ()
    rows_X: np.ndarray | None = field(default=None, repr=False)
    rows_y: np.ndarray | None = field(default=None, repr=False)
    target: str = "y"
    allowed_length: tuple[float, int] = CASE_LENGTH

    def __post_init__(self) -> None:
        names = self.names
        if not names or len(set(names)) != len(names):
            raise ValueError(f"problem {self.name!r} has columns {list(names)}; names must be there and differ")
        if self.test_columns and tuple(c.name for c in self.test_columns) != names:
            raise ValueError(f"problem {self.name!r}: test_variables must name the same columns as variables, in order")
        if self.formula_text is None and self.rows_X is None:
            raise ValueError(f"problem {self.name!r} has neither a formula nor data rows; give one")
        if not (0 < self.n_train <= MAX_ROWS and 0 <= self.n_test <= MAX_ROWS):
            raise ValueError(f"problem {self.name!r} has n_train {self.n_train}, n_test {self.n_test}; give row counts")
        if self.rows_X is not None and self.n_train + self.n_test > len(self.rows_X):
            raise ValueError(
                f"problem {self.name!r} wants {self.n_train} + {self.n_test} rows but holds {len(self.rows_X)}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def formula(self) -> sympy.Expr | None:
        """The truth as a SymPy object, or None."""
        return None if self.formula_text is None else parse_formula(self.formula_text, self.names)

    @cached_property
    def noise_in_rows(self) -> float:
        """Root mean square distance of the given rows from the formula; 0 where they agree to rounding."""
        if self.rows_X is None or self.rows_y is None or self.formula is None:
            return 0.0
        residual = self.rows_y - self.evaluate(self.rows_X)
        rms = root_mean_square(residual)
        return rms if rms > 1e-9 * standard_deviation(self.rows_y) else 0.0

    def generator(self, seed: int, purpose: str) -> np.random.Generator:
        """The random numbers of one problem, seed and purpose ("train", "test", "judge"), apart from all others."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode()), zlib.crc32(purpose.encode())])

    def evaluate(self, X: np.ndarray) -> np.ndarray:
        """The truth's numbers [N] for X [N, V]; nan or inf out of its domain."""
        if self.formula is None:
            raise ValueError(f"problem {self.name!r} has no formula")
        return np.broadcast_to(evaluate(self.formula, dict(zip(self.names, np.asarray(X).T))), len(X)).copy()

    def sample(self, rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Fresh noise-free points of the columns' ranges; points where the truth is not finite are redrawn."""
        return self._draw(self.columns, rng, rows, lambda column, n: column.draw(rng, n))

    def train(
        self, rng: np.random.Generator, *, rows: int | None = None, noise: float = 0.0, noise_std: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Training rows; Gaussian noise of `noise` x RMS(y), or of `noise_std` in y's units, falls on y alone."""
        if noise < 0 or noise_std < 0 or (noise and noise_std):
            raise ValueError(f"noise={noise}, noise_std={noise_std}: give one of them, not negative")
        if rows is not None and rows < 1:
            raise ValueError(f"rows={rows}: at least one training row is needed")
        if self.rows_X is not None and self.rows_y is not None:
            chosen = rng.permutation(len(self.rows_X))[: min(rows or self.n_train, self.n_train)]
            X, y = self.rows_X[chosen], self.rows_y[chosen]
        else:
            X, y = self._table(self.columns, rng, rows or self.n_train, exact_grid=rows is None)
        scale = noise_std or noise * root_mean_square(y)
        return (X, y + scale * rng.standard_normal(len(y))) if scale else (X, y)

    def test(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Noise-free test rows. Of given rows, pass the generator state of `train`: those left over (all, if none)."""
        if self.rows_X is not None and self.rows_y is not None:
            order = rng.permutation(len(self.rows_X))
            chosen = order[self.n_train : self.n_train + self.n_test] if self.n_test else order
            return self.rows_X[chosen], self.rows_y[chosen]
        return self._table(self.test_columns or self.columns, rng, self.n_test or self.n_train, exact_grid=True)

    def _table(
        self, columns: Sequence[InputColumn], rng: np.random.Generator, rows: int, *, exact_grid: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        if exact_grid and all(column.dist == "grid" for column in columns):
            axes = [column.grid() for column in columns]
            X = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
            y = self.evaluate(X)
            finite = np.isfinite(y)
            return X[finite], y[finite]

        def draw(column: InputColumn, n: int) -> np.ndarray:
            if column.dist == "grid" and exact_grid:
                return rng.choice(column.grid(), n)
            return column.draw(rng, n)

        return self._draw(columns, rng, rows, draw)

    def _draw(
        self,
        columns: Sequence[InputColumn],
        rng: np.random.Generator,
        rows: int,
        draw: Callable[[InputColumn, int], np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        X, y = np.empty((0, len(columns))), np.empty(0)
        for _ in range(100):
            missing = rows - len(y)
            if missing <= 0:
                return X[:rows], y[:rows]
            fresh = np.stack([draw(column, missing) for column in columns], axis=1)
            values = self.evaluate(fresh)
            finite = np.isfinite(values)
            X, y = np.concatenate([X, fresh[finite]]), np.concatenate([y, values[finite]])
        raise ValueError(
            f"problem {self.name!r}: {self.formula_text} is finite at only {len(y)} of the points; check its ranges"
        )
