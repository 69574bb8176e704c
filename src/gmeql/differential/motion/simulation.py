"""Systems of equations followed through time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from gmeql.differential.motion.measured import Columns
from gmeql.differential.motion.sides import RightSides
from gmeql.differential.motion.smoothing import input_values
from gmeql.formula.nodes import Node

FloatArray = NDArray[np.float64]
RELATIVE, ABSOLUTE = 1e-8, 1e-10
"""Tolerances of the integration; the second in sizes of the start values."""
MOST_CALLS = 200_000
"""Right sides evaluated, after which a simulation that gets nowhere is given up."""


class DivergedWarning(UserWarning):
    """A simulation ran away, or could not go on, before the last time; the rest is nan."""


class _GivenUp(Exception):
    pass


def simulate(
    columns: Columns,
    equations: Sequence[Node],
    x0: Any,
    t: Any,
    u: Any = None,
) -> FloatArray:
    """States [T, Z] at the times `t` [T], from `x0` [Z] at the first of them.

    `u` are the inputs: an array [T, U], or a function of time that gives U values. Where the states run away, the rest is
    nan and a `DivergedWarning` says from when on.
    """
    times = np.asarray(t, dtype=np.float64)
    if times.ndim != 1 or len(times) < 1 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise ValueError("t must be a list of increasing times, the first of them that of x0")
    start = np.atleast_1d(np.asarray(x0, dtype=np.float64))
    if start.shape != (len(columns.states),) or not np.isfinite(start).all():
        raise ValueError(
            f"x0 must be {len(columns.states)} finite numbers, one for each of {', '.join(columns.states)}; "
            f"got shape {start.shape}"
        )
    inputs = _inputs(columns, times, u)
    sides = RightSides.of(columns.whole(tuple(equations)), len(columns.names))
    calls = 0

    def slope(moment: float, state: FloatArray) -> list[Any]:
        nonlocal calls
        calls += 1
        if calls > MOST_CALLS:
            raise _GivenUp
        known = [*inputs(moment), *((moment,) if columns.with_time else ())]
        with np.errstate(all="ignore"):
            return sides([*state, *known], sides.values)

    found = np.full((len(times), len(start)), np.nan)
    found[0] = start
    if len(times) == 1:
        return found
    bound = 1e6 * (np.abs(start).max() + 1.0)
    runs_away: Any = lambda moment, state: bound - np.abs(state).max()  # noqa: E731
    runs_away.terminal = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the integrator; what matters is said below
            solved = solve_ivp(
                slope, (times[0], times[-1]), start, method="LSODA", t_eval=times, rtol=RELATIVE,
                atol=ABSOLUTE * (np.abs(start).max() + 1e-3), events=runs_away,
            )  # fmt: skip
        reached = min(solved.y.shape[1], len(times))
        found[:reached] = solved.y.T[:reached]
    except (_GivenUp, ValueError, FloatingPointError, OverflowError):
        reached = 1
    if reached < len(times):
        warnings.warn(
            f"the simulation ends after t={times[max(reached - 1, 0)]:g}: the states run away there; the rest is nan",
            DivergedWarning,
            stacklevel=3,
        )
    return found


def _inputs(columns: Columns, times: FloatArray, u: Any) -> Callable[[float], Sequence[float]]:
    count = len(columns.inputs)
    if count == 0:
        if u is not None:
            raise ValueError("u is given, but the model was fitted without inputs; leave it out")
        return lambda moment: ()
    if u is None:
        raise ValueError(
            f"u is missing: the model has the inputs {', '.join(columns.inputs)}; give them at the times t"
        )
    if callable(u):
        return lambda moment: list(np.atleast_1d(np.asarray(u(moment), dtype=np.float64)))
    values = np.asarray(u.to_numpy() if hasattr(u, "to_numpy") else u, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.shape != (len(times), count) or not np.isfinite(values).all():
        raise ValueError(
            f"u must hold {count} finite values at each of the {len(times)} times, got shape {values.shape}"
        )
    curve = input_values(times, values) if len(times) > 1 else lambda moment: values[0]
    return lambda moment: list(np.asarray(curve(np.asarray(moment))))
