"""Smooth curves through measured trajectories, with a noise estimate of their own.

Each state is a Gaussian process over time (Rasmussen and Williams 2006): of two kernels and many length scales those of
the largest evidence, shared by all trajectories. Noise may grow with the value, as that of instruments and counts does,
and a positive state may be smoothed in its logarithm; again the evidence decides. Points without noise are interpolated
by a spline instead, whose slopes are more accurate.

Legend: `N` points of a trajectory, `G` points of its curve, `S` states, `U` inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator, make_interp_spline
from scipy.linalg import cho_factor, cho_solve

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.trajectories import Trajectories
from gmeql.fitters.threads import one_blas_thread

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """One trajectory made smooth, on an even grid of times."""

    t: FloatArray
    """[G]."""
    X: FloatArray
    """[G, S]."""
    slopes: FloatArray
    """[G, S], how fast the states change."""
    slope_errors: FloatArray
    """[G, S], their standard deviations; zero where points are interpolated."""
    bends: FloatArray
    """[G, S], how fast the slopes change."""
    inputs: FloatArray
    """[G, U]."""
    noise: FloatArray
    """[N, S], standard deviation of each measured value."""


Kernel = Callable[[FloatArray, float, int], FloatArray]


def squared_exponential(d: FloatArray, scale: float, order: int) -> FloatArray:
    """exp(-d²/2l²), or its first or second derivative by d."""
    value = np.exp(-0.5 * (d / scale) ** 2)
    if order == 0:
        return value
    return -d / scale**2 * value if order == 1 else (d**2 / scale**4 - 1.0 / scale**2) * value


def matern(d: FloatArray, scale: float, order: int) -> FloatArray:
    """(1 + a + a²/3) exp(-a) with a = √5 |d|/l: Matérn's kernel of smoothness 5/2, or a derivative of it by d."""
    a = math.sqrt(5.0) * np.abs(d) / scale
    if order == 0:
        return (1.0 + a + a**2 / 3.0) * np.exp(-a)
    factor = -5.0 / (3.0 * scale**2) * np.exp(-a)
    return factor * d * (1.0 + a) if order == 1 else factor * (1.0 + a - a**2)


KERNELS: tuple[Kernel, ...] = (squared_exponential, matern)


@dataclass(frozen=True)
class Process:
    """A Gaussian process for one state: kernel, length scale, variance, and noise relative to that variance."""

    kernel: Kernel
    scale: float
    variance: float
    ratio: float
    evidence: float


def smooth(trajectories: Trajectories) -> list[Curve]:
    """A curve for every trajectory.

    >>> from gmeql.differential.motion.trajectories import check_trajectories
    >>> t = np.linspace(0, 3, 40)
    >>> curve, = smooth(check_trajectories(np.sin(t), t))
    >>> bool(np.abs(curve.slopes[:, 0] - np.cos(curve.t)).max() < 1e-4)
    True
    """
    times = [piece.t for piece in trajectories]
    grids = [
        np.linspace(t[0], t[-1], min(MOTION.smoothing.grid * (len(t) - 1) + 1, MOTION.smoothing.most_grid))
        for t in times
    ]
    states = [[piece.X[:, j] for piece in trajectories] for j in range(len(trajectories.states))]
    with one_blas_thread():  # two threads take ten times as long for matrices as small as these
        columns = [_smooth_state(times, values, grids) for values in states]
    curves = []
    for k, (piece, grid) in enumerate(zip(trajectories, grids, strict=True)):
        value, slope, bend, error, noise = (np.column_stack([column[k][i] for column in columns]) for i in range(5))
        curves.append(Curve(grid, value, slope, error, bend, input_values(piece.t, piece.inputs)(grid), noise))
    return curves


def input_values(t: FloatArray, inputs: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Inputs [N, U] known at times `t`, as a function of time that neither overshoots nor runs on beyond the ends."""
    if inputs.shape[1] == 0:
        return lambda times: np.empty((*np.shape(times), 0))
    curve = PchipInterpolator(t, inputs, axis=0)
    return lambda times: np.asarray(curve(np.clip(times, t[0], t[-1])))


# --- one state --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Smoother:
    """How one state is smoothed: its process, the relative noise variances of its points, whether in logarithms."""

    process: Process
    relative: list[FloatArray]
    logarithmic: bool

    @property
    def noise(self) -> float:
        """Standard deviation of a point of relative noise 1."""
        return math.sqrt(self.process.ratio * self.process.variance)


def _smooth_state(
    times: Sequence[FloatArray], values: Sequence[FloatArray], grids: Sequence[FloatArray]
) -> list[tuple[FloatArray, ...]]:
    """Value, slope, bend and error of the slope on each grid, and the noise of each point."""
    smoother = _best_smoother(times, values)
    measured = [np.log(y) for y in values] if smoother.logarithmic else values
    spread = float(np.concatenate(measured).std())
    exact = smoother.noise <= MOTION.smoothing.exact * spread
    level = max(smoother.noise, MOTION.smoothing.least_noise * spread)
    found: list[tuple[FloatArray, ...]] = []
    for t, y, w, grid in zip(times, measured, smoother.relative, grids, strict=True):
        if exact:
            curve = make_interp_spline(t, y, k=min(MOTION.smoothing.degree, len(t) - 1))
            shapes = (curve(grid), curve(grid, 1), curve(grid, 2), np.zeros(len(grid)))
        else:
            shapes = _posterior(smoother.process, t, y, w, grid)
        noise = level * np.sqrt(w)
        if smoother.logarithmic:
            z, slope, bend, error = shapes
            x = np.exp(z)
            shapes = (x, x * slope, x * (bend + slope**2), x * error)
            noise = noise * np.exp(np.interp(t, grid, z))
        found.append((*shapes, noise))
    return found


def _best_smoother(times: Sequence[FloatArray], values: Sequence[FloatArray]) -> Smoother:
    """Of the state as it is, with noise that grows with it, and of its logarithm where it is positive: the likeliest."""
    even = [np.ones(len(t)) for t in times]
    found = [Smoother(fit_process(times, values, even), even, False)]
    together = np.concatenate(values)
    if (together > 0).all():
        logarithms = [np.log(y) for y in values]
        process = fit_process(times, logarithms, even)
        density = process.evidence - float(np.log(together).sum())  # of the values, not of their logarithms
        found.append(Smoother(replace(process, evidence=density), even, True))
    elif found[0].noise > MOTION.smoothing.exact * together.std():
        fitted = [_posterior(found[0].process, t, y, w, t)[0] for t, y, w in zip(times, values, even, strict=True)]
        relative = _growing_noise(together - np.concatenate(fitted), fitted)
        found.append(Smoother(fit_process(times, values, relative), relative, False))
    return max(found, key=lambda smoother: smoother.process.evidence)


def _growing_noise(residual: FloatArray, fitted: Sequence[FloatArray]) -> list[FloatArray]:
    """Relative noise variances (1 - q) + q value² of the points, with the share q that suits the residuals best."""
    value = np.concatenate(fitted)
    size = math.sqrt(float(np.mean(value**2))) or 1.0
    squares = (value / size) ** 2

    def misfit(share: float) -> float:
        """-2 log likelihood, the overall level chosen best."""
        variance = (1.0 - share) + share * squares
        level = np.mean(residual**2 / variance)
        return float(len(residual) * np.log(level) + np.log(variance).sum())

    share = min(MOTION.smoothing.growing_shares, key=misfit)
    return [(1.0 - share) + share * (part / size) ** 2 for part in fitted]


def fit_process(times: Sequence[FloatArray], values: Sequence[FloatArray], relative: Sequence[FloatArray]) -> Process:
    """The process of the largest evidence; `relative` are the points' noise variances up to a common factor."""
    step = float(np.median(np.concatenate([np.diff(t) for t in times])))
    duration = max(float(t[-1] - t[0]) for t in times)
    scales = np.geomspace(step, 2.0 * duration, MOTION.smoothing.scales)
    best: Process | None = None
    for kernel in KERNELS:
        tried = [_best_ratio(kernel, float(scale), times, values, relative) for scale in scales]
        top = max(range(len(scales)), key=lambda k: tried[k].evidence)
        around = scales[max(top - 1, 0)], scales[min(top + 1, len(scales) - 1)]
        finer = np.geomspace(*around, MOTION.smoothing.finer + 2)[1:-1]
        tried += [_best_ratio(kernel, float(scale), times, values, relative) for scale in finer]
        for process in tried:
            if best is None or process.evidence > best.evidence:
                best = process
    assert best is not None
    return best


def _best_ratio(
    kernel: Kernel,
    scale: float,
    times: Sequence[FloatArray],
    values: Sequence[FloatArray],
    relative: Sequence[FloatArray],
) -> Process:
    """Noise ratio and variance of the largest evidence for a length scale, from one eigendecomposition a trajectory."""
    ratios = np.geomspace(MOTION.smoothing.least_noise**2, 1e2, 49)
    squares, logs, count = np.zeros(len(ratios)), np.zeros(len(ratios)), 0
    for t, y, w in zip(times, values, relative, strict=True):
        root = np.sqrt(w)
        covariance = kernel(t[:, None] - t[None, :], scale, 0) / root[:, None] / root[None, :]
        eigenvalues, vectors = np.linalg.eigh(covariance)
        projected = vectors.T @ ((y - y.mean()) / root)
        spectrum = np.maximum(eigenvalues, 0.0)[None, :] + ratios[:, None]
        squares += (projected**2 / spectrum).sum(axis=1)
        logs += np.log(spectrum).sum(axis=1) + np.log(w).sum()
        count += len(t)
    evidence = -0.5 * count * np.log(squares / count) - 0.5 * logs
    top = int(np.argmax(evidence))
    return Process(kernel, scale, float(squares[top] / count), float(ratios[top]), float(evidence[top]))


def _posterior(
    process: Process, t: FloatArray, y: FloatArray, relative: FloatArray, grid: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean, slope and bend on the grid, and the standard deviation of the slope."""
    kernel, scale = process.kernel, process.scale
    covariance = kernel(t[:, None] - t[None, :], scale, 0)
    factor = cho_factor(covariance + np.diag(process.ratio * relative + MOTION.smoothing.least_noise**2))
    weights = cho_solve(factor, y - y.mean())
    across = grid[:, None] - t[None, :]
    slope = kernel(across, scale, 1)
    prior = -float(kernel(np.zeros(1), scale, 2)[0])
    known = np.einsum("gn,ng->g", slope, cho_solve(factor, slope.T))
    error = np.sqrt(process.variance * np.maximum(prior - known, 0.0))
    return (
        y.mean() + kernel(across, scale, 0) @ weights,
        slope @ weights,
        kernel(across, scale, 2) @ weights,
        error,
    )
