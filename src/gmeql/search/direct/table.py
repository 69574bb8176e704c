"""What a direct method is given: a table, and how much work it may do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.waiting import moment
from gmeql.formula.nodes import Node, row_values
from gmeql.network.families import FunctionSet

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DirectTable:
    """Columns X [N, V], target y [N] and weights [N] of mean 1, in a random order of rows.

    `unexplained` is the error (root mean square, relative to the target's spread) that the best formula so far leaves:
    noise cannot be larger. Formulas are proposed over the columns as they stand here, `Variable(0)` being the first.
    """

    X: FloatArray
    y: FloatArray
    weights: FloatArray
    unexplained: float = 1.0
    explained: FloatArray | None = None
    """Values [N] of the best formula so far, or of a smooth fit that is closer."""
    found: tuple[Node, ...] = ()
    """Formulas found so far, the best first."""

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of, for another process. What was worked out since stays: another thread may be adding to that."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return int(self.X.shape[1])

    @cached_property
    def has_values(self) -> bool:
        """Whether all columns are finite, none of them is 0 on every row, and the target varies."""
        return bool(np.isfinite(self.X).all() and (np.abs(self.X).max(axis=0) > 0).all() and np.ptp(self.y) > 0)

    @cached_property
    def varies(self) -> bool:
        """Whether all columns are finite, and they and the target vary."""
        return bool(np.isfinite(self.X).all() and (np.ptp(self.X, axis=0) > 0).all() and np.ptp(self.y) > 0)

    @cached_property
    def spread(self) -> float:
        """Weighted standard deviation of the target, 1 where it is constant."""
        mean = np.average(self.y, weights=self.weights)
        return math.sqrt(float(np.average((self.y - mean) ** 2, weights=self.weights))) or 1.0

    def values(self, root: Node) -> FloatArray:
        """A formula's value on every row [N]."""
        return row_values(root, tuple(f"x{i}" for i in range(self.n_columns)), self.X)

    def error(self, root: Node) -> float:
        """Root mean square error of a formula relative to the target's spread; infinite where it has no value."""
        return self.error_of(self.values(root))

    def error_of(self, values: FloatArray) -> float:
        """The same of values [N]."""
        with np.errstate(all="ignore"):
            squares = ((values - self.y) / self.spread) ** 2
        error = math.sqrt(float(np.average(squares, weights=self.weights)))
        return error if math.isfinite(error) else math.inf


MOST_STRETCHED = 3.0
"""How many times its share of the time a method may take where other programs have the processor."""


def worked() -> float:
    """Processor seconds of this thread: where other programs have a part of the machine, a method still sees as much."""
    return time.thread_time()


@dataclass(frozen=True)
class Effort:
    """How much work a method may do: `seconds` of one idle core, which it turns into counts of its own.

    Counts make a run with a candidate budget the same everywhere. `out_of_time` is the clock's veto where time is the
    budget: it is asked between pieces of work, and what was proposed until then counts. `more` is what is kept for a
    method that has seen part of a formula. Where it `is_quick`, only what is exact and seen at once is asked for: whatever
    takes longer, or may be anything, is asked for later.
    """

    seconds: float
    out_of_time: Callable[[], bool] = lambda: False
    more: Callable[[], Effort | None] = lambda: None
    is_quick: bool = False

    @classmethod
    def timed(
        cls,
        seconds: float,
        *,
        until: float,
        is_interrupted: Callable[[], bool] = lambda: False,
        more: Callable[[], Effort | None] = lambda: None,
    ) -> Effort:
        """Work worth so many seconds that ends at the moment `until` of `worked`, or when far more time went by."""
        latest = moment() + MOST_STRETCHED * seconds
        return cls(seconds, lambda: worked() > until or moment() > latest or is_interrupted(), more)

    def on_trail(self) -> Effort:
        """What a method may do that has seen part of a formula, from now on: more, where some is kept for that."""
        return self.more() or self


class DirectMethod(Protocol):
    """Proposes formulas for the target over the table's columns, the most promising first; each may be inexact.

    What it proposes is made of the functions that the user allows. Readings of the target may bring their inverse in.
    """

    def __call__(
        self, table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator
    ) -> Iterator[Node]: ...
