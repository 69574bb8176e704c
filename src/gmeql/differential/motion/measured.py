"""What is known of a motion before any equation: curves, integral form and pieces, over one set of columns.

The columns of every equation are the states, then the inputs, then the time where equations may depend on it. A system
of second order has twice as many states: each measured one and its slope, which is the first one's equation.

Legend: `S` measured states, `Z` all states, `E` equations that are looked for, `V` columns.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.shapes import scaled_terms
from gmeql.differential.motion.shooting import Pieces, cut
from gmeql.differential.motion.smoothing import Curve, smooth
from gmeql.differential.motion.terms import monomials, single_functions
from gmeql.differential.motion.trajectories import Trajectories
from gmeql.differential.motion.weak import WeakRows, weak_rows
from gmeql.formula.nodes import Node, Variable
from gmeql.model.fit.inputs import TrainingRows

FloatArray = NDArray[np.float64]
SLOPE = "_dot"
"""What the slope of a state is called in a system of second order: y and y_dot."""


@dataclass(frozen=True)
class Columns:
    """The columns of the equations, in order."""

    measured: tuple[str, ...]
    inputs: tuple[str, ...]
    order: int
    with_time: bool

    @property
    def states(self) -> tuple[str, ...]:
        """All states: the measured ones, and in a system of second order their slopes."""
        return self.measured if self.order == 1 else (*self.measured, *(name + SLOPE for name in self.measured))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.states, *self.inputs, *((self.time,) if self.with_time else ()))

    @property
    def time(self) -> str:
        """What the time is called."""
        return "t" if "t" not in (*self.states, *self.inputs) else "time"

    def whole(self, equations: tuple[Node, ...]) -> tuple[Node, ...]:
        """Right sides for all states: in a system of second order those of the measured states are known."""
        if self.order == 1:
            return equations
        return (*(Variable(len(self.measured) + j) for j in range(len(self.measured))), *equations)


@dataclass(frozen=True)
class Motion:
    """Measured trajectories, prepared for the search for their equations."""

    trajectories: Trajectories
    columns: Columns
    curves: tuple[Curve, ...]
    rows: WeakRows
    pieces: Pieces
    whole: Pieces
    """Trajectories in one piece each."""
    library: tuple[Node, ...]
    """Terms that any equation may have: products of columns, and simple functions of one."""
    scaled: tuple[Node, ...]
    """... and terms with constants inside."""

    @property
    def n_equations(self) -> int:
        return len(self.columns.measured)

    @property
    def relative_noise(self) -> FloatArray:
        """[S] typical noise of each measured state, relative to its spread."""
        return self.pieces.tie[: self.n_equations] / self.trajectories.spread

    @cached_property
    def measured_range(self) -> tuple[FloatArray, FloatArray]:
        """The least and the largest value of each state [Z] along the curves."""
        states = self.rows.X[:, : len(self.columns.states)]
        return states.min(axis=0), states.max(axis=0)

    @cached_property
    def surroundings(self) -> FloatArray:
        """[V, 2] the range of each column, of states with what lies around it; what was always positive stays so."""
        low, high = self.rows.X.min(axis=0), self.rows.X.max(axis=0)
        Z = len(self.columns.states)
        beyond = np.concatenate([MOTION.system.beyond * (high - low)[:Z], np.zeros(len(low) - Z)])
        least = np.where((low > 0) & (beyond > 0), np.maximum(low - beyond, 0.5 * low), low - beyond)
        return np.column_stack([least, high + beyond])

    @property
    def is_exact(self) -> bool:
        """Whether the measurements show no noise."""
        return bool((self.relative_noise <= MOTION.smoothing.exact).all())

    def target_rows(self, j: int) -> TrainingRows:
        """Equation `j` as a table: columns along the curves, how fast its state changes, and how far that is known."""
        slopes = np.concatenate([_targets(curve, self.columns.order)[:, j] for curve in self.curves])
        error = np.concatenate([curve.slope_errors[:, j] for curve in self.curves])
        measured = [piece.slopes for piece in self.trajectories]
        X, thin = self.rows.X, max(len(slopes) // MOTION.system.search_rows, 1)
        if all(known is not None for known in measured) and self.columns.order == 1:
            slopes = np.concatenate(
                [
                    np.interp(curve.t, piece.t, piece.slopes[:, j])  # type: ignore[index]
                    for curve, piece in zip(self.curves, self.trajectories, strict=True)
                ]
            )
            error = np.zeros(len(slopes))
        typical = float(np.median(error))
        weight = np.ones(len(slopes)) if typical == 0 else 1.0 / (error**2 + (0.3 * typical) ** 2)
        for first, last in self._ends():  # the ends of a curve are its least certain part
            weight[first : first + MOTION.smoothing.grid] *= 0.1
            weight[last - MOTION.smoothing.grid : last] *= 0.1
        return TrainingRows(X[::thin], slopes[::thin, None], weight[::thin] / weight.mean())

    def _ends(self) -> list[tuple[int, int]]:
        edges = np.cumsum([0, *(len(curve.t) for curve in self.curves)]).tolist()
        return list(pairwise(edges))


def _targets(curve: Curve, order: int) -> FloatArray:
    return curve.slopes if order == 1 else curve.bends


def measure(
    trajectories: Trajectories,
    *,
    order: int = 1,
    with_time: bool = False,
    functions: Collection[str] | None = None,
) -> Motion:
    """Curves through the trajectories, and what the methods need of them; `functions` are those that terms may use."""
    columns = Columns(trajectories.states, trajectories.inputs, order, with_time)
    curves = smooth(trajectories)
    states = [curve.X if order == 1 else np.hstack([curve.X, curve.slopes]) for curve in curves]
    times = [curve.t[:, None] if with_time else np.empty((len(curve.t), 0)) for curve in curves]
    table = [np.hstack([z, curve.inputs, t]) for z, curve, t in zip(states, curves, times, strict=True)]
    spread = trajectories.spread
    tie = np.sqrt(np.mean(np.concatenate([curve.noise for curve in curves]) ** 2, axis=0))
    noise = [curve.noise for curve in curves]
    if order == 2:
        slopes = np.concatenate([curve.slopes for curve in curves]).std(axis=0)
        noise = [
            np.column_stack(
                [np.interp(piece.t, curve.t, curve.slope_errors[:, j]) for j in range(len(columns.measured))]
            )
            + MOTION.smoothing.least_noise * slopes
            for piece, curve in zip(trajectories, curves, strict=True)
        ]
        tie = np.concatenate([tie, np.sqrt(np.mean(np.concatenate(noise) ** 2, axis=0))])
        spread = np.concatenate([spread, slopes])
    moving = [curve.X if order == 1 else curve.slopes for curve in curves]
    rows = weak_rows(trajectories, curves, table, moving, noise, columns.names)
    pieces, whole = (
        cut(trajectories, curves, states, spread, tie, with_time=with_time, points=points)
        for points in (MOTION.shooting.points, trajectories.points)
    )
    places = range(len(columns.names))
    library = (*monomials(places), *single_functions(places, functions))
    scaled = tuple(scaled_terms(rows.X, functions))
    return Motion(trajectories, columns, tuple(curves), rows, pieces, whole, library, scaled)
