"""One input column of a problem: its range, and how values are drawn from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

RANDOM = ("uniform", "log", "integer")
"""Distributions that values are drawn from."""
DISTRIBUTIONS = (*RANDOM, "grid", "data", "trajectory")


@dataclass(frozen=True)
class InputColumn:
    """One input column: its range, and how training values lie in it.

    Attributes:
        dist: `"uniform"`; `"log"`, uniform in the logarithm; `"integer"`, whole numbers with both ends; `"grid"`, `n`
            equally spaced values; `"data"` and `"trajectory"`, the values of given rows.
        n: number of values on a grid.
        signed: half of the drawn values, at random, get a minus.
    """

    name: str
    low: float
    high: float
    dist: str = "uniform"
    n: int | None = None
    signed: bool = False

    def __post_init__(self) -> None:
        if self.dist not in DISTRIBUTIONS:
            raise ValueError(f"column {self.name!r} has dist {self.dist!r}; allowed are {', '.join(DISTRIBUTIONS)}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"column {self.name!r} has range {self.low}..{self.high}; give finite low <= high")
        if self.dist == "grid" and (self.n is None or self.n < 1):
            raise ValueError(f"column {self.name!r} lies on a grid but has n = {self.n!r}; give the number of values")
        if self.dist == "log" and self.low <= 0:
            raise ValueError(
                f"column {self.name!r} has dist 'log' and low {self.low}; a logarithm needs low > 0 (for values of both "
                'signs add "signed": true)'
            )
        if self.dist == "integer" and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise ValueError(
                f"column {self.name!r} has dist 'integer' and range {self.low}..{self.high}; give whole low and high"
            )
        if self.signed and self.dist not in RANDOM:
            raise ValueError(
                f"column {self.name!r} is signed but has dist {self.dist!r}; only {', '.join(RANDOM)} can be"
            )

    def draw(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Random values [rows] of the range; grids and given rows count as uniform."""
        if self.dist == "log":
            values = np.exp(rng.uniform(math.log(self.low), math.log(self.high), rows))
        elif self.dist == "integer":
            values = rng.integers(int(self.low), int(self.high), rows, endpoint=True).astype(np.float64)
        else:
            values = rng.uniform(self.low, self.high, rows)
        return values * rng.choice([-1.0, 1.0], rows) if self.signed else values

    def grid(self) -> np.ndarray:
        """The values [n] of a column that lies on a grid."""
        return np.linspace(self.low, self.high, self.n or 1)
