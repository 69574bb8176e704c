"""Numerical solutions to rounding: Chebyshev polynomials on a box, fitted to equation and conditions at once.

The unknowns are coefficients of products of Chebyshev polynomials. Equation (at Gauss points inside the box) and
conditions (at points of their faces) are the rows of a least squares problem, solved by Newton's method with exact
slopes. Columns are scaled to one size, which keeps derivatives of high polynomials from drowning the low ones
(Boyd, Chebyshev and Fourier Spectral Methods, ch. 6 and 15). Initial and boundary values, systems, and box domains in
any number of variables are all the same problem here; conditions that are one too many show as a misfit, and one too
few as a direction that nothing determines.

Legend: `F` unknown functions, `d` variables, `n` polynomials along each variable, `P` points, `U = F*n**d` unknowns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import lstsq

from gmeql.differential.solving.config import NUMERICAL
from gmeql.differential.solving.problem import Condition, FloatArray, Jet, Orders, Problem, point_columns, weigh
from gmeql.formula.canonical import evaluate


class NoConvergence(ArithmeticError):
    """Newton's method did not reach a solution from this start."""


class Contradiction(ValueError):
    """No function meets equation and conditions together."""


class Undetermined(ValueError):
    """Equation and conditions leave the solution open."""


@dataclass(frozen=True)
class ChebyshevSolution:
    """Coefficients [F, n, ..., n] of a solution on a box."""

    coefficients: FloatArray
    box: tuple[tuple[float, float], ...]

    def values(self, points: FloatArray, orders: Orders | None = None) -> FloatArray:
        """Derivative of the given orders of every function at points [P, d]: [F, P]."""
        d = len(self.box)
        orders = (0,) * d if orders is None else orders
        rows = basis(points, self.coefficients.shape[1], self.box, orders)
        return self.coefficients.reshape(len(self.coefficients), -1) @ rows.T

    @property
    def tail(self) -> float:
        """Size of the last coefficients along any variable, relative to the largest."""
        largest = np.abs(self.coefficients).max(initial=0.0)
        if largest == 0.0:
            return 0.0
        last = [np.abs(np.take(self.coefficients, [-2, -1], axis=axis)).max() for axis in range(1, len(self.box) + 1)]
        return float(max(last) / largest)


def gauss_points(n: int, low: float, high: float) -> FloatArray:
    """`n` Chebyshev points inside a range; its ends, where an equation may be singular, are not among them."""
    return low + (high - low) * (1 - np.cos(np.pi * (np.arange(n) + 0.5) / n)) / 2


def basis(points: FloatArray, n: int, box: tuple[tuple[float, float], ...], orders: Orders) -> FloatArray:
    """Derivative of every product of polynomials at points [P, d]: [P, n**d]."""
    rows = np.ones((len(points), 1))
    for k, ((low, high), order) in enumerate(zip(box, orders, strict=True)):
        t = (2 * points[:, k] - low - high) / (high - low)
        if order >= n:
            line = np.zeros((len(t), n))
        else:
            change = chebyshev.chebder(np.eye(n), order) if order else np.eye(n)
            line = chebyshev.chebvander(t, n - 1 - order) @ change * (2 / (high - low)) ** order
        rows = (rows[:, :, None] * line[:, None, :]).reshape(len(points), -1)
    return rows


def points_inside(problem: Problem, n: int) -> FloatArray:
    """Points at which the equation is asked for: [P, d]."""
    m = int(np.ceil(NUMERICAL.more_points * n)) + 1
    return np.array(list(product(*(gauss_points(m, *side) for side in problem.box))))


class System:
    """Equation and conditions of a problem as rows over coefficients."""

    def __init__(self, problem: Problem, n: int) -> None:
        self.problem, self.n = problem, n
        self.size = n ** len(problem.variables)
        self.inside = points_inside(problem, n)
        self._bases = {jet.orders: basis(self.inside, n, problem.box, jet.orders) for jet in problem.jets}
        self._faces = [self._face(condition) for condition in problem.conditions]

    def _face(self, condition: Condition) -> tuple[dict[str, FloatArray], dict[Jet, FloatArray], FloatArray]:
        """Coordinates on the face of a condition, the basis of each of its jets there, and measured values."""
        box = self.problem.box
        free = [k for k, place in enumerate(condition.face) if place is None]
        lines = [gauss_points(self.n + 2, *box[k]) for k in free]
        grid = np.array(list(product(*lines))) if free else np.zeros((1, 0))
        columns = {self.problem.variables[k].name: grid[:, i] for i, k in enumerate(free)}
        bases = {}
        for jet in condition.jets:
            assert jet.place is not None
            points = np.empty((len(grid), len(box)))
            for k, place in enumerate(jet.place):
                points[:, k] = columns[self.problem.variables[k].name] if place is None else float(evaluate(place, {}))
            bases[jet] = basis(points, self.n, box, jet.orders)
        measured = np.zeros(len(grid))
        if condition.measure is not None:
            measured = np.broadcast_to(np.asarray(condition.measure(*grid.T), dtype=float), (len(grid),))
        return columns, bases, measured

    def rows(self, unknowns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Residuals [R], their slopes [R, U], and the size of what they are made of [R]."""
        problem = self.problem
        coefficients = unknowns.reshape(len(problem.names), self.size)
        columns: dict[str, FloatArray] = point_columns(problem, self.inside)
        columns |= {jet.symbol.name: self._bases[jet.orders] @ coefficients[jet.function] for jet in problem.jets}
        parts = [
            self._block(residual, slopes, columns, self._bases_of(slopes), len(self.inside))
            for residual, slopes in zip(problem.residuals, problem.slopes, strict=True)
        ]
        for condition, (place, bases, measured) in zip(problem.conditions, self._faces, strict=True):
            at = place | {jet.symbol.name: rows @ coefficients[jet.function] for jet, rows in bases.items()}
            slopes = {jet: condition.residual.diff(jet.symbol) for jet in condition.jets}
            values, rows, scale = self._block(condition.residual, slopes, at, bases, len(measured))
            parts.append((values - measured, rows, scale + np.abs(measured)))
        values, rows, scale = (np.concatenate(part) for part in zip(*parts, strict=True))
        return values, rows, scale

    def _bases_of(self, slopes: Mapping[Jet, object]) -> dict[Jet, FloatArray]:
        return {jet: self._bases[jet.orders] for jet in slopes}

    def _block(
        self,
        residual: object,
        slopes: Mapping[Jet, object],
        columns: Mapping[str, FloatArray],
        bases: Mapping[Jet, FloatArray],
        length: int,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        values, factors, scale = weigh(residual, slopes, columns, length)
        rows = np.zeros((length, len(self.problem.names), self.size))
        for jet, factor in factors.items():
            rows[:, jet.function] += factor[:, None] * bases[jet]
        return values, rows.reshape(length, -1), scale


def solve_collocation(problem: Problem, n: int, start: FloatArray | None = None) -> tuple[ChebyshevSolution, float]:
    """Newton's method from coefficients `start` [F, n**d] (zeros without): the solution, and its relative misfit."""
    system = System(problem, n)
    unknowns = np.zeros(len(problem.names) * system.size) if start is None else start.reshape(-1).copy()
    with np.errstate(all="ignore"):  # a step too far may overflow; it is then halved
        unknowns, misfit = _newton(system, unknowns)
    shape = (len(problem.names), *(n,) * len(problem.variables))
    return ChebyshevSolution(unknowns.reshape(shape), problem.box), misfit


def _newton(system: System, unknowns: FloatArray) -> tuple[FloatArray, float]:
    """Steps, halved until the residuals fall, until they are small; and the relative misfit that is left."""
    values, rows, scale = system.rows(unknowns)
    if not np.isfinite(values).all() or not np.isfinite(rows).all():
        raise NoConvergence("equation or conditions have no finite value at the start")
    loss = _size(values, rows)
    for _ in range(NUMERICAL.newton_steps):
        step = _least_squares_step(values, rows)
        share = 1.0
        for _ in range(NUMERICAL.newton_halvings):
            trial = system.rows(unknowns + share * step)
            new_loss = _size(trial[0], trial[1])
            if np.isfinite(new_loss) and np.isfinite(trial[1]).all() and new_loss <= max(loss, NUMERICAL.tail):
                break
            share /= 2
        else:
            break
        unknowns = unknowns + share * step
        (values, rows, scale), loss = trial, new_loss
        if np.abs(share * step).max() <= NUMERICAL.newton_tolerance * np.abs(unknowns).max(initial=1e-300):
            break
    return unknowns, float(np.max(np.abs(values) / np.maximum(scale, scale.max() * NUMERICAL.small_scale + 1e-300)))


def _row_scale(rows: FloatArray) -> FloatArray:
    return np.asarray(1.0 / np.maximum(np.abs(rows).max(axis=1), 1e-300))


def _size(values: FloatArray, rows: FloatArray) -> float:
    return float(np.linalg.norm(values * _row_scale(rows)))


def _least_squares_step(values: FloatArray, rows: FloatArray) -> FloatArray:
    """The step that makes all residuals as small as can be, rows and columns brought to one size."""
    columns = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    scaled = rows / columns
    weight = _row_scale(scaled)
    step, *_ = lstsq(scaled * weight[:, None], -values * weight, cond=1e-15, lapack_driver="gelsy", check_finite=False)
    return np.asarray(step / columns)


def padded(solution: ChebyshevSolution, n: int) -> FloatArray:
    """Coefficients of the same solution among those of `n` polynomials along each variable."""
    old = solution.coefficients
    coefficients = np.zeros((len(old), *(n,) * (old.ndim - 1)))
    coefficients[tuple(slice(0, size) for size in old.shape)] = old
    return coefficients


def open_directions(problem: Problem, solution: ChebyshevSolution, n: int) -> int:
    """How many directions of the unknowns neither equation nor conditions determine, seen with `n` polynomials."""
    _, rows, _ = System(problem, n).rows(padded(solution, n).reshape(-1))
    rows = rows / np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    sizes = np.linalg.svd(rows * _row_scale(rows)[:, None], compute_uv=False)
    return int((sizes < NUMERICAL.rank * sizes[0]).sum())
