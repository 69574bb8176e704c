"""Multiple shooting: the constants of a system fitted to the measured trajectories themselves.

Every trajectory is cut into short pieces whose start values are free; all pieces are integrated side by side by the
method of eighth order of Dormand and Prince, in the same steps for every change of a constant or start value, and ties
pull the end of each piece to the start of the next. So constants that are far off still lead somewhere, and chaos does
not blow the errors up (Bock 1983; Levenberg-Marquardt as in MINPACK).

Legend: `B` pieces, `L` intervals of a piece, `Z` states, `K` constants, `P` systems integrated side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853
from scipy.optimize import least_squares

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.sides import RightSides, shared_constants, with_values
from gmeql.differential.motion.smoothing import Curve, input_values
from gmeql.differential.motion.trajectories import Trajectories
from gmeql.fitters.kernel.integration import integrate
from gmeql.formula.nodes import Node

FloatArray = NDArray[np.float64]
TABLEAU = np.ascontiguousarray(DOP853.A[: len(DOP853.B), : len(DOP853.B)])
WEIGHTS = np.ascontiguousarray(DOP853.B)
STAGE_TIMES = np.ascontiguousarray(DOP853.C[: len(DOP853.B)])


@dataclass(frozen=True)
class Fitted:
    """A system fitted to trajectories."""

    roots: tuple[Node, ...]
    starts: FloatArray
    """[B, Z], the fitted start values of the pieces."""
    misfit: FloatArray
    """[S] mean squared distance to the measurements, in units of their noise, ties included; `inf` where it has none."""
    distance: FloatArray
    """[S] root mean squared distance to the measurements, in their units."""
    certainty: FloatArray
    """[K] each constant over its standard error."""
    free: int
    """Constants that are not equal to others, as those of shared terms are."""


@dataclass(frozen=True)
class Pieces:
    """Trajectories cut into pieces to be integrated side by side."""

    times: FloatArray
    """[B, L + 1]; the last time is repeated where a piece is shorter."""
    measured: FloatArray
    """[B, L, S]."""
    noise: FloatArray
    """[B, L, S]; `inf` where there is no measurement."""
    next: NDArray[np.intp]
    """[B], the piece that follows, -1 for none."""
    length: NDArray[np.intp]
    """[B], the interval at whose end the next piece starts."""
    starts: FloatArray
    """[B, Z], on the smooth curves."""
    spread: FloatArray
    """[Z], how far each state ranges."""
    tie: FloatArray
    """[Z], the typical noise of each state."""
    inputs: tuple[Callable[[FloatArray], FloatArray], ...]
    """Inputs as a function of time, for each piece."""
    with_time: bool

    @property
    def n_measured(self) -> int:
        return int(self.measured.shape[2])

    @property
    def first(self) -> NDArray[np.intp]:
        """The pieces that no other one leads to: the first of each trajectory."""
        return np.setdiff1d(np.arange(len(self.next)), self.next)

    @cached_property
    def points(self) -> int:
        """Measured points."""
        return int(np.isfinite(self.noise[:, :, 0]).sum())

    def grid(self, halvings: int) -> Grid:
        """Steps that halve every interval so many times."""
        sizes, count = np.diff(self.times, axis=1), 2**halvings
        steps = np.repeat(sizes.T / count, count, axis=0)
        begins = self.times[:, :-1].T[:, None, :] + np.arange(count)[:, None] * (sizes.T / count)[:, None, :]
        begins = begins.reshape(steps.shape)
        moments = begins[:, None, :] + STAGE_TIMES[:, None] * steps[:, None, :]
        values = np.stack([inputs(moments[:, :, b]) for b, inputs in enumerate(self.inputs)], axis=-1)
        known = np.concatenate([values, moments[:, :, None, :]], axis=2) if self.with_time else values
        ends = np.arange(1, len(steps) + 1) % count == 0
        return Grid(np.ascontiguousarray(steps), ends, np.ascontiguousarray(known))


@dataclass(frozen=True)
class Grid:
    """Steps of an integration: sizes [T, B], where intervals end [T], known columns at every stage [T, Q, W, B]."""

    sizes: FloatArray
    ends: NDArray[np.bool_]
    known: FloatArray


def cut(
    trajectories: Trajectories,
    curves: Sequence[Curve],
    starts: Sequence[FloatArray],
    spread: FloatArray,
    tie: FloatArray,
    *,
    with_time: bool,
    points: int = MOTION.shooting.points,
) -> Pieces:
    """Pieces of a few `points` each; `starts` [G, Z] are all states along each curve."""
    rows = []
    for piece, curve, along in zip(trajectories, curves, starts, strict=True):
        N = len(piece)
        count = max(round(N / points), 1)
        edges = np.linspace(0, N, count + 1).astype(int)
        inputs = input_values(piece.t, piece.inputs)
        for k in range(count):
            first, last = edges[k], edges[k + 1]
            follows = k + 1 < count
            times = piece.t[first : last + 1] if follows else piece.t[first:last]
            start = np.array([np.interp(times[0], curve.t, column) for column in along.T])
            rows.append((times, piece.X[first:last], curve.noise[first:last], follows, start, inputs))
    B, L = len(rows), max(len(row[0]) for row in rows)
    S = rows[0][1].shape[1]
    times = np.stack([np.concatenate([row[0], np.full(L - len(row[0]), row[0][-1])]) for row in rows])
    measured, noise = np.zeros((B, L, S)), np.full((B, L, S), np.inf)
    for b, row in enumerate(rows):
        measured[b, : len(row[1])], noise[b, : len(row[1])] = row[1], row[2]
    following = np.array([b + 1 if row[3] else -1 for b, row in enumerate(rows)])
    length = np.array([len(row[0]) - 1 for row in rows])
    first = np.stack([row[4] for row in rows])
    return Pieces(
        times, measured, noise, following, length, first, spread, tie, tuple(row[5] for row in rows), with_time
    )


class Shooting:
    """One system on the pieces: residuals and their slopes by constants and start values."""

    def __init__(self, pieces: Pieces, roots: Sequence[Node], starts: FloatArray | None = None) -> None:
        self.pieces = pieces
        self.roots = tuple(roots)
        self.B, self.Z = pieces.starts.shape
        known = (1 if pieces.with_time else 0) + pieces.inputs[0](pieces.times[0, :1]).shape[1]
        self.sides = RightSides.of(roots, self.Z + known)
        self.K = len(self.sides.values)
        self._programs = self.sides.programs()
        self.starts = pieces.starts if starts is None else starts
        self._grid = pieces.grid(0)
        self._bound = MOTION.shooting.largest * pieces.spread + np.abs(pieces.starts).max(axis=0)

    def integrate(self, starts: FloatArray, parameters: Sequence[Any]) -> FloatArray:
        """States [Z, L + 1, B, P] from starts [Z, B, P]; what has no value is cut off at the bound."""
        _, B, P = starts.shape
        values = np.empty((self.K, B, P))
        for k, value in enumerate(parameters):
            values[k] = value
        if self._programs is None:
            return self._integrate_plainly(starts, list(values))
        path = np.empty((self.Z, self.pieces.times.shape[1], B * P))
        grid = self._grid
        integrate(
            *self._programs, np.ascontiguousarray(starts.reshape(self.Z, B * P)), values.reshape(self.K, B * P),
            np.repeat(np.arange(B), P), grid.sizes, grid.ends, grid.known, TABLEAU, WEIGHTS, self._bound, path,
        )  # fmt: skip
        return path.reshape(self.Z, -1, B, P)

    def _integrate_plainly(self, starts: FloatArray, parameters: Sequence[FloatArray]) -> FloatArray:
        """The same in NumPy, for operators that compiled code does not know."""
        bound = self._bound[:, None, None]
        state, found = starts, [starts]
        slopes = np.empty((len(WEIGHTS), *starts.shape))
        with np.errstate(all="ignore"):
            for h, ends, known in zip(self._grid.sizes, self._grid.ends, self._grid.known, strict=True):
                for s, now in enumerate(known):
                    ahead = state + h[:, None] * np.tensordot(TABLEAU[s, :s], slopes[:s], 1)
                    sides = self.sides([*ahead, *now[:, :, None]], parameters)
                    for slope, side in zip(slopes[s], sides, strict=True):
                        slope[:] = side
                state = state + h[:, None] * np.tensordot(WEIGHTS, slopes, 1)
                if ends:
                    state = np.clip(np.where(np.isnan(state), bound, state), -bound, bound)
                    found.append(state)
        return np.stack(found, axis=1)

    def refine(self, values: FloatArray, starts: FloatArray, tolerance: float) -> None:
        """Halve the steps until that changes nothing any more.

        A state that leaves all bounds may do so for steps that are too long for a fast part of the system; only one that
        leaves them with the finest steps, too, runs away, and for that the longest steps will do.
        """
        parameters = [np.asarray(value) for value in values]
        self._grid = coarsest = self.pieces.grid(0)
        before = self.integrate(starts.T[:, :, None], parameters)
        if self._runs_away(before):
            self._grid = self.pieces.grid(MOTION.shooting.most_halvings)
            if self._runs_away(self.integrate(starts.T[:, :, None], parameters)):
                self._grid = coarsest
                return
        for halvings in range(1, MOTION.shooting.most_halvings + 1):
            coarse, self._grid = self.pieces.grid(halvings - 1), self.pieces.grid(halvings)
            after = self.integrate(starts.T[:, :, None], parameters)
            if (np.abs(after - before).max(axis=(1, 2, 3)) <= tolerance * self.pieces.spread).all():
                if not self._runs_away(after):
                    self._grid = coarse
                    return
            before = after

    def share_leaving(self, starts: FloatArray, least: FloatArray) -> float:
        """Of starts [Z, B, P] those from which a state leaves all bounds or falls below `least` [Z], in the finest steps."""
        self._grid = self.pieces.grid(MOTION.shooting.most_halvings)
        path = self.integrate(starts, [np.asarray(value) for value in self.sides.values])
        gone = (np.abs(path) >= self._bound[:, None, None, None]) | (path < least[:, None, None, None])
        return float(gone.any(axis=(0, 1)).mean())

    def misfit_from(self, starts: FloatArray) -> FloatArray:
        """[S] mean squared distance to the measurements from starts [B, Z], in units of the noise, in the finest steps."""
        self._grid = self.pieces.grid(MOTION.shooting.most_halvings)
        S, points = self.pieces.n_measured, self.pieces.points
        residual = self.residual(np.concatenate([self.sides.values, starts.ravel()]), 0.0)
        return np.asarray((residual[: S * points].reshape(S, points) ** 2).mean(axis=1))

    def _runs_away(self, path: FloatArray) -> bool:
        """Whether a state of a path [Z, L + 1, B, P] was cut off at the bound."""
        return bool((np.abs(path) >= self._bound[:, None, None, None]).any())

    def residual(self, vector: FloatArray, tie: float) -> FloatArray:
        """Distances to the measurements and between the pieces, in units of the noise."""
        values, starts = vector[: self.K], vector[self.K :].reshape(self.B, self.Z)
        path = self.integrate(starts.T[:, :, None], [np.asarray(value) for value in values])
        return self._compared(path, starts.T[:, :, None], tie)[:, 0]

    def _compared(self, path: FloatArray, starts: FloatArray, tie: float) -> FloatArray:
        """Rows of residuals [rows, P] of paths [Z, L + 1, B, P] that began at `starts` [Z, B, P]."""
        pieces = self.pieces
        measured = np.moveaxis(pieces.measured, (0, 1, 2), (2, 1, 0))[..., None]
        noise = np.moveaxis(pieces.noise, (0, 1, 2), (2, 1, 0))[..., None]
        data = (path[: pieces.n_measured, : measured.shape[1]] - measured) / noise
        data = data[np.broadcast_to(np.isfinite(noise), data.shape)].reshape(-1, path.shape[3])
        tied = np.flatnonzero(pieces.next >= 0)
        ends = path[:, pieces.length[tied], tied]
        gaps = tie * (ends - starts[:, pieces.next[tied]]) / pieces.tie[:, None, None]
        return np.concatenate([data, gaps.reshape(-1, path.shape[3])])

    def jacobian(self, vector: FloatArray, tie: float) -> FloatArray:
        """Slopes of the residuals [rows, K + B Z], by forward differences of all changes side by side."""
        values, starts = vector[: self.K], vector[self.K :].reshape(self.B, self.Z)
        P = 1 + self.K + self.Z
        changed = np.repeat(starts.T[:, :, None], P, axis=2)
        steps = 1e-7 * np.concatenate([np.maximum(np.abs(values), 1e-3), self.pieces.spread])
        parameters = []
        for k, value in enumerate(values):
            column = np.full(P, value)
            column[1 + k] += steps[k]
            parameters.append(column)
        for i in range(self.Z):
            changed[i, :, 1 + self.K + i] += steps[self.K + i]
        path = self.integrate(changed, parameters)
        by_constants = self._compared(path, np.repeat(starts.T[:, :, None], P, axis=2), tie)
        slopes = (by_constants[:, 1:] - by_constants[:, :1]) / steps
        return np.concatenate([slopes[:, : self.K], self._by_starts(slopes[:, self.K :], tie)], axis=1)

    def linearised(self) -> tuple[FloatArray, FloatArray]:
        """Residuals with tight ties, and their slopes [rows, K + B Z] by constants and starts, as they are."""
        vector, tight = np.concatenate([self.sides.values, self.starts.ravel()]), MOTION.shooting.tight
        return self.residual(vector, tight), self.jacobian(vector, tight)

    def row_weights(self, scale: FloatArray) -> FloatArray:
        """[rows] one over `scale` [S] of the state that a residual is about; of the states' slopes, over 1."""
        S, points = self.pieces.n_measured, self.pieces.points
        ties = int((self.pieces.next >= 0).sum())
        every = np.concatenate([scale, np.ones(self.Z - S)])
        return 1.0 / np.concatenate([np.repeat(scale, points), np.repeat(every, ties)])

    def _by_starts(self, slopes: FloatArray, tie: float) -> FloatArray:
        """Slopes [rows, Z] by the starts of all pieces at once, as slopes by the start of each piece [rows, B Z]."""
        owner, follower = self._owners
        rows = np.zeros((len(slopes), self.B, self.Z))
        index = np.arange(len(slopes))
        rows[index, owner] = slopes
        tied = np.flatnonzero(follower >= 0)
        state = self._tied_state[tied]
        rows[tied, follower[tied], state] -= tie / self.pieces.tie[state]
        return rows.reshape(len(slopes), self.B * self.Z)

    @cached_property
    def _owners(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """For each residual the piece it belongs to, and the piece whose start it is compared with (-1: none)."""
        pieces = self.pieces
        finite = np.isfinite(np.moveaxis(pieces.noise, (0, 1, 2), (2, 1, 0)))
        owner = np.broadcast_to(np.arange(self.B), finite.shape)[finite]
        tied = np.flatnonzero(pieces.next >= 0)
        return (
            np.concatenate([owner, np.tile(tied, self.Z)]),
            np.concatenate([np.full(len(owner), -1), np.tile(pieces.next[tied], self.Z)]),
        )

    @cached_property
    def _tied_state(self) -> NDArray[np.intp]:
        """For each residual of a tie the state it compares."""
        ties = int((self.pieces.next >= 0).sum())
        data = len(self._owners[0]) - ties * self.Z
        return np.concatenate([np.zeros(data, dtype=np.intp), np.repeat(np.arange(self.Z), ties)])

    def fit(self, *, loose_steps: int, tight_steps: int, tolerance: float = MOTION.shooting.tolerance) -> Fitted:
        """Constants and start values by least squares: ties loose at first, then tight."""
        numbers = MOTION.shooting
        tolerance = max(tolerance, numbers.noise_share * float((self.pieces.tie / self.pieces.spread).min()))
        vector, made = np.concatenate([self.sides.values, self.starts.ravel()]), self._made
        for tie, steps in ((numbers.loose, loose_steps), (numbers.tight, tight_steps)):
            if not steps:
                continue
            self.refine(vector[: self.K], vector[self.K :].reshape(self.B, self.Z), tolerance)
            solved = least_squares(
                lambda free, tie: self.residual(made @ free, tie), vector @ made / (made**2).sum(axis=0),
                lambda free, tie: self.jacobian(made @ free, tie) @ made,
                method="lm", x_scale="jac", max_nfev=steps, args=(tie,), xtol=1e-11, ftol=1e-9,
            )  # fmt: skip
            if np.isfinite(solved.x).all() and np.isfinite(solved.cost):
                vector = made @ solved.x
        return self._fitted(vector)

    @cached_property
    def _made(self) -> FloatArray:
        """[K + B Z, F + B Z] all constants and starts, made of those that are free."""
        constants = shared_constants(self.roots)
        starts = self.B * self.Z
        return np.block(
            [
                [constants, np.zeros((self.K, starts))],
                [np.zeros((starts, constants.shape[1])), np.eye(starts)],
            ]
        )

    def _fitted(self, vector: FloatArray) -> Fitted:
        values, starts = vector[: self.K], vector[self.K :].reshape(self.B, self.Z)
        residual = self.residual(vector, MOTION.shooting.tight)
        S, points = self.pieces.n_measured, self.pieces.points
        data, gaps = residual[: S * points].reshape(S, points), residual[S * points :].reshape(self.Z, -1)
        square = (data**2).sum(axis=1) + (gaps[:S] ** 2).sum(axis=1)
        square += (gaps[S:] ** 2).sum() / S
        finite = np.isfinite(square) & (np.abs(data).max(axis=1) < 1e12)
        noise = np.moveaxis(self.pieces.noise, (0, 1, 2), (2, 1, 0))
        distance = data * noise[np.isfinite(noise)].reshape(S, points)
        return Fitted(
            with_values(self.roots, values.tolist()),
            starts,
            np.where(finite, square / points, np.inf),
            np.sqrt((distance**2).mean(axis=1)),
            self._certainty(vector, residual),
            self._made.shape[1] - self.B * self.Z,
        )

    def _certainty(self, vector: FloatArray, residual: FloatArray) -> FloatArray:
        """Constants over their standard errors [K], as the curvature at the minimum has them."""
        slopes = self.jacobian(vector, MOTION.shooting.tight) @ self._made
        if not np.isfinite(slopes).all() or not self.K:
            return np.zeros(self.K)
        free = self._made.shape[1] - self.B * self.Z
        length = np.sqrt((slopes**2).sum(axis=0))
        scaled = slopes / np.where(length > 0, length, 1.0)
        freedom = max(len(residual) - slopes.shape[1], 1)
        least = float(np.mean((MOTION.system.exact * self.pieces.spread / self.pieces.tie) ** 2))  # what counts as none
        inverse = np.linalg.pinv(scaled.T @ scaled, rcond=1e-12, hermitian=True)
        with np.errstate(all="ignore"):
            variance = np.diag(inverse)[:free] / length[:free] ** 2 @ np.abs(self._made[: self.K, :free].T)
            certainty = np.abs(vector[: self.K]) / np.sqrt(variance * max(float(residual @ residual) / freedom, least))
        return np.asarray(np.nan_to_num(certainty, nan=0.0))
