"""Initial value problems integrated step by step, also where the highest derivative is given only implicitly.

What comes out is a start for `collocation.py`, which takes it to rounding, or the solution itself where that fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from gmeql.differential.solving.config import NUMERICAL
from gmeql.differential.solving.problem import FloatArray, Jet, Problem
from gmeql.formula.canonical import evaluate


class OutOfTime(ArithmeticError):
    """One integration took longer than it may."""


class NoRoot(ArithmeticError):
    """The equation cannot be solved for the highest derivatives here."""


@dataclass(frozen=True)
class Trajectory:
    """A solution from an initial point, as far as it goes."""

    low: float
    high: float
    states: Callable[[FloatArray], FloatArray]
    """State [S, P] at points [P]."""
    first: tuple[int, ...]
    """Where in the state each function's own values stand."""

    def values(self, points: FloatArray) -> FloatArray:
        """Values of every function at points [P, 1]: [F, P]."""
        return self.states(points[:, 0])[list(self.first)]


@dataclass(frozen=True)
class InitialValues:
    """All lower derivatives at one point."""

    point: float
    state: FloatArray


def state_jets(problem: Problem) -> list[Jet]:
    """What makes up the state: every derivative below the highest, function by function."""
    return [Jet(i, (k,)) for i, order in enumerate(problem.orders) for k in range(order)]


def initial_values(problem: Problem) -> InitialValues | None:
    """The whole state at one point, where the conditions give it; None where they are boundary values."""
    found: dict[Any, dict[Jet, float]] = {}
    for condition in problem.conditions:
        if len(condition.jets) != 1 or condition.residual.diff(condition.jets[0].symbol) != 1:
            return None
        jet = condition.jets[0]
        assert jet.place is not None
        value = -float(evaluate(condition.residual.subs(jet.symbol, 0), {}))
        found.setdefault(jet.place[0], {})[Jet(jet.function, jet.orders)] = value
    needed = state_jets(problem)
    for place, values in found.items():
        if all(jet in values for jet in needed):
            return InitialValues(float(evaluate(place, {})), np.array([values[jet] for jet in needed]))
    return None


class HighestDerivatives:
    """The highest derivatives of a state, from the equations; on the branch that it was started on."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.state = [jet.symbol.name for jet in state_jets(problem)]
        self.highest = [jet.symbol for jet in problem.highest]
        self.slopes = [[r.diff(symbol) for symbol in self.highest] for r in problem.residuals]
        self.is_linear = not any(
            slope.free_symbols & set(self.highest) for row in self.slopes for slope in row
        )  # then one step of Newton's method is the solution
        self.last = np.zeros(len(self.highest))
        self.deadline = time.monotonic() + NUMERICAL.ivp_seconds

    def _columns(self, x: float, state: FloatArray, highest: Sequence[float] | FloatArray) -> dict[str, Any]:
        columns: dict[str, Any] = {self.problem.variables[0].name: x}
        columns |= dict(zip(self.state, state, strict=True))
        return columns | {symbol.name: value for symbol, value in zip(self.highest, highest, strict=True)}

    def residuals(self, x: float, state: FloatArray, highest: Sequence[float] | FloatArray) -> FloatArray:
        columns = self._columns(x, state, highest)
        return np.array([float(evaluate(r, columns)) for r in self.problem.residuals])

    def solve(self, x: float, state: FloatArray, start: FloatArray) -> FloatArray:
        """Newton's method for the highest derivatives."""
        value = np.array(start, dtype=float)
        for _ in range(1 if self.is_linear else NUMERICAL.newton_steps):
            columns = self._columns(x, state, value)
            matrix = np.array([[float(evaluate(slope, columns)) for slope in row] for row in self.slopes])
            residual = self.residuals(x, state, value)
            try:
                step = np.linalg.solve(matrix, -residual)
            except np.linalg.LinAlgError:
                raise NoRoot(f"the highest derivative is not determined at {x:g}") from None
            value = value + step
            if not np.isfinite(value).all():
                raise NoRoot(f"no finite highest derivative at {x:g}")
            if np.abs(step).max() <= 1e-15 * max(1.0, np.abs(value).max()):
                break
        return value

    def branches(self, x: float, state: FloatArray) -> list[FloatArray]:
        """All highest derivatives that the equation allows at the start."""
        if self.is_linear:
            return [self.solve(x, state, self.last)]
        if len(self.highest) > 1:
            starts = [np.full(len(self.highest), start) for start in (0.5, -0.5, 2.0, -2.0)]
            return _distinct([root for start in starts for root in self._attempt(x, state, start)])
        size = np.geomspace(1e-3, NUMERICAL.roots_within, 60)
        grid = np.concatenate([-size[::-1], [0.0], size])
        values = np.array([self.residuals(x, state, [v])[0] for v in grid])
        roots = [
            np.array([brentq(lambda v: self.residuals(x, state, [v])[0], a, b, xtol=1e-15)])
            for a, b, fa, fb in zip(grid, grid[1:], values, values[1:], strict=False)
            if np.isfinite([fa, fb]).all() and fa * fb < 0
        ]
        roots += [np.array([v]) for v, f in zip(grid, values, strict=True) if f == 0]
        return sorted(_distinct(roots), key=lambda root: (-float(root[0] > 0), abs(float(root[0]))))

    def _attempt(self, x: float, state: FloatArray, start: FloatArray) -> list[FloatArray]:
        try:
            return [self.solve(x, state, start)]
        except NoRoot:
            return []

    def __call__(self, x: float, state: FloatArray) -> FloatArray:
        """The state's derivative."""
        if time.monotonic() > self.deadline:
            raise OutOfTime
        self.last = self.solve(x, state, self.last)
        derivative, place = [], 0
        for number, order in enumerate(self.problem.orders):
            derivative += [*state[place + 1 : place + order], self.last[number]]
            place += order
        return np.array(derivative)


def _distinct(roots: Sequence[FloatArray]) -> list[FloatArray]:
    kept: list[FloatArray] = []
    for root in roots:
        if not any(np.allclose(root, other, rtol=1e-8, atol=1e-12) for other in kept):
            kept.append(root)
    return kept


def trajectories(problem: Problem, start: InitialValues) -> Iterator[Trajectory]:
    """The solution of every branch that leaves the initial point, over the domain or as far as it stays finite."""
    derivatives = HighestDerivatives(problem)
    try:
        branches = derivatives.branches(start.point, start.state)
    except NoRoot:
        return
    for branch in branches:
        pieces = []
        low, high = problem.box[0]
        for end in (low, high):
            if end != start.point:
                pieces.append((end, _integrate(derivatives, start, branch, end)))
        if any(piece is None for _, piece in pieces):
            continue
        yield _joined(problem, start, pieces)


def _integrate(derivatives: HighestDerivatives, start: InitialValues, branch: FloatArray, end: float) -> Any:
    """`solve_ivp` from the start to `end`; None where it cannot take a step."""

    def escapes(x: float, state: FloatArray) -> float:
        return float(NUMERICAL.large - np.abs(state).max())

    escapes.terminal = True  # type: ignore[attr-defined]
    for method in ("DOP853", "Radau"):
        derivatives.last = branch.copy()
        derivatives.deadline = time.monotonic() + NUMERICAL.ivp_seconds
        last = None
        try:
            with np.errstate(all="ignore"):
                last = solve_ivp(
                    derivatives,
                    (start.point, end),
                    start.state,
                    method=method,
                    rtol=NUMERICAL.tolerance,
                    atol=NUMERICAL.tolerance * max(1e-3, np.abs(start.state).max(initial=0.0)),
                    dense_output=True,
                    events=escapes,
                )
        except (NoRoot, OutOfTime, ValueError):
            continue
        if last.t[-1] != start.point:
            return last
    return None


def _joined(problem: Problem, start: InitialValues, pieces: Sequence[tuple[float, Any]]) -> Trajectory:
    """Both sides of the initial point as one trajectory, shortened before a pole."""
    ends = {}
    for end, piece in pieces:
        reached = float(piece.t[-1])
        if reached != end:
            reached = start.point + NUMERICAL.kept_share * (reached - start.point)
        ends[end < start.point] = reached
    low, high = ends.get(True, start.point), ends.get(False, start.point)

    def states(points: FloatArray) -> FloatArray:
        values = np.empty((len(start.state), len(points)))
        for end, piece in pieces:
            here = points <= start.point if end < start.point else points >= start.point
            values[:, here] = piece.sol(points[here])
        return values

    first = tuple(int(k) for k in np.cumsum((0, *problem.orders[:-1])))
    return Trajectory(low, high, states, first)
