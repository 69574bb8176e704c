"""Measured trajectories, checked: times, states, inputs and slopes.

Legend: `N` points of a trajectory, `S` states, `U` inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.formula.messages import short

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Trajectory:
    """One stretch of measurements without a gap, by rising time."""

    t: FloatArray
    """[N]."""
    X: FloatArray
    """[N, S]."""
    inputs: FloatArray
    """[N, U]."""
    slopes: FloatArray | None = None
    """[N, S], where they were measured too."""

    def __len__(self) -> int:
        return len(self.t)

    def take(self, rows: slice) -> Trajectory:
        """Some of the points."""
        slopes = None if self.slopes is None else self.slopes[rows]
        return Trajectory(self.t[rows], self.X[rows], self.inputs[rows], slopes)


@dataclass(frozen=True)
class Trajectories:
    """All trajectories of a fit, with the names of their columns."""

    pieces: tuple[Trajectory, ...]
    states: tuple[str, ...]
    inputs: tuple[str, ...]

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self.pieces)

    @property
    def points(self) -> int:
        """Measured points, all trajectories together."""
        return sum(len(piece) for piece in self.pieces)

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each state over all points [S]."""
        spread: FloatArray = np.concatenate([piece.X for piece in self.pieces]).std(axis=0)
        return spread


def check_trajectories(
    X: Any,
    t: Any,
    x_dot: Any = None,
    u: Any = None,
    *,
    names: Sequence[str] | None = None,
) -> Trajectories:
    """One trajectory, or a list of them, as `fit` was given them; whatever is wrong is one `ValueError`.

    `X` [N, S] with times `t` [N], or a number, the step between points; lists of them for several trajectories. Where
    times stand still for long the trajectory is taken apart: no curve bridges a gap.
    """
    many = isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(_plain(X[0])) >= 1 and not _is_rows(X)
    count = len(X) if many else 1
    parts = [_listed(value, count, many, name) for value, name in ((X, "X"), (t, "t"), (x_dot, "x_dot"), (u, "u"))]
    trajectories = [_one(*part, label=f" of trajectory {k + 1}" if many else "") for k, part in enumerate(zip(*parts))]
    for k, trajectory in enumerate(trajectories):
        for field, what in (("X", "states"), ("inputs", "inputs")):
            widths = [getattr(one, field).shape[1] for one in (trajectories[0], trajectory)]
            if widths[0] != widths[1]:
                raise ValueError(
                    f"trajectory {k + 1} has {widths[1]} {what}, the first has {widths[0]}; give all the same columns"
                )
    states = _names(parts[0][0], trajectories[0].X.shape[1], names, "x")
    inputs = _names(parts[3][0], trajectories[0].inputs.shape[1], None, "u")
    if (taken := sorted({*states} & {*inputs})) or len({*states}) < len(states):
        double = taken[0] if taken else next(name for name in states if states.count(name) > 1)
        raise ValueError(f"two columns are called {short(double)}; give each state and input a name of its own")
    pieces = [piece for one in trajectories for piece in _without_gaps(one)]
    if not pieces:
        longest = max(max((len(p) for p in _stretches(one)), default=0) for one in trajectories)
        raise ValueError(
            f"the longest stretch without a gap has {longest} points; at least {MOTION.trajectory.min_points} are needed"
        )
    checked = Trajectories(tuple(pieces), states, inputs)
    for name, spread, size in zip(
        states, checked.spread, np.abs(np.concatenate([p.X for p in pieces])).max(axis=0), strict=True
    ):
        if spread <= 1e-12 * size or spread == 0.0:
            raise ValueError(
                f"state {short(name)} is constant: nothing shows what moves it; leave it out, or give it as an input u"
            )
    return checked


def _plain(value: Any) -> Any:
    return value.to_numpy() if hasattr(value, "to_numpy") else value


def _is_rows(X: Sequence[Any]) -> bool:
    """Whether a list is one trajectory written as rows of numbers, [[x, v], ...]."""
    return all(isinstance(row, (list, tuple)) and all(np.isscalar(cell) for cell in row) for row in X)


def _listed(value: Any, count: int, many: bool, name: str) -> list[Any]:
    """One entry for each trajectory."""
    if not many:
        return [value]
    if value is None or (name == "t" and np.isscalar(value)):
        return [value] * count
    if not isinstance(value, (list, tuple)) or len(value) != count:
        given = f"{len(value)} entries" if isinstance(value, (list, tuple)) else "one array"
        raise ValueError(f"{name} has {given} for {count} trajectories; give a list with one for each")
    return list(value)


def _numbers(value: Any, name: str, label: str) -> FloatArray:
    try:
        array = np.asarray(_plain(value), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}{label} holds something that is not a number; give numbers only") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name}{label} has {array.ndim} dimensions; give an array [points, columns]")
    if not np.isfinite(array).all():
        row, column = (int(k[0]) for k in np.nonzero(~np.isfinite(array)))
        raise ValueError(
            f"{name}{label} holds {array[row, column]} in row {row}, column {column}; leave such rows out: "
            "times need not be evenly spaced"
        )
    return array


def _times(t: Any, points: int, label: str) -> FloatArray:
    if t is None:
        raise ValueError("t is missing: give the time of every point, or the step between them as one number")
    if np.ndim(_plain(t)) == 0:
        step = float(t)
        if not (np.isfinite(step) and step > 0):
            raise ValueError(f"t={t!r} is the step between points and must be a positive number")
        return np.arange(points, dtype=np.float64) * step
    times = _numbers(t, "t", label)
    if times.shape != (points, 1):
        raise ValueError(f"t{label} has shape {np.shape(_plain(t))} for {points} points; give one time for each")
    times = times[:, 0]
    if (wrong := np.flatnonzero(np.diff(times) <= 0)).size:
        k = int(wrong[0])
        raise ValueError(
            f"times{label} do not increase: t[{k}]={times[k]:g} is followed by t[{k + 1}]={times[k + 1]:g}; sort the "
            "rows by time, keep one row for each, and give separate runs as a list of trajectories"
        )
    return times


def _one(X: Any, t: Any, x_dot: Any, u: Any, *, label: str) -> Trajectory:
    states = _numbers(X, "X", label)
    if len(states) < MOTION.trajectory.min_points:
        raise ValueError(
            f"X{label} has {len(states)} point{'s' * (len(states) != 1)}; at least {MOTION.trajectory.min_points} are "
            "needed to tell how a state moves"
        )
    times = _times(t, len(states), label)
    slopes = None if x_dot is None else _numbers(x_dot, "x_dot", label)
    if slopes is not None and slopes.shape != states.shape:
        raise ValueError(f"x_dot{label} has shape {slopes.shape}, X has {states.shape}; give one slope for each value")
    inputs = np.empty((len(states), 0)) if u is None else _numbers(u, "u", label)
    if len(inputs) != len(states):
        raise ValueError(f"u{label} has {len(inputs)} rows, X has {len(states)}; give the inputs at the same times")
    return Trajectory(times, states, inputs, slopes)


def _names(columns: Any, count: int, names: Sequence[str] | None, letter: str) -> tuple[str, ...]:
    """Names that were given, or those of a data frame, or x1, x2, ..."""
    if names is None:
        named = getattr(columns, "columns", None)
        if named is None and getattr(columns, "name", None) is not None and count == 1:
            named = [columns.name]  # a pandas series
        if named is None or not all(isinstance(name, str) for name in named):
            return tuple(f"{letter}{k + 1}" for k in range(count))
        names = list(named)
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names must be a list of texts, got {short(names)}")
    if len(names) != count:
        raise ValueError(f"feature_names has {len(names)} names for {count} states; give one for each")
    return tuple(names)


def _stretches(trajectory: Trajectory) -> list[Trajectory]:
    """The trajectory, cut at its gaps and where it is too long to be smoothed in one."""
    step = np.diff(trajectory.t)
    beside = np.maximum(np.concatenate([[0.0], step[:-1]]), np.concatenate([step[1:], [0.0]]))
    cuts = np.flatnonzero(step > MOTION.trajectory.gap * beside) + 1
    edges = [0, *cuts.tolist(), len(trajectory)]
    found = []
    for first, last in pairwise(edges):
        parts = -(-(last - first) // MOTION.trajectory.longest)
        inner = np.linspace(first, last, parts + 1).astype(int)
        found += [trajectory.take(slice(a, b)) for a, b in pairwise(inner.tolist())]
    return found


def _without_gaps(trajectory: Trajectory) -> list[Trajectory]:
    return [part for part in _stretches(trajectory) if len(part) >= MOTION.trajectory.min_points]
