"""Functions of a wave of a sum: c*sin(k*sin(u + p)) + l and c*cos(k*sin(u + p)) + l, where the wave of u, or of 2*u, has most of
the target.

sin(k sin u) is 2 J1(k) sin u and odd multiples of u, cos(k sin u) is a number, 2 J2(k) cos 2u and even ones: a scan for single
waves sees u, but nothing plain is left beside it. From there Gauss and Newton's steps lead to all constants.

Legend: `N` rows, `K` terms of the angle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class InnerWavesConfig:
    """Numbers of the fit."""

    inner: tuple[float, ...] = (0.6, 1.0, 1.5, 2.1, 2.8)  # factors k from which is begun
    rows: int = 400  # that it is fitted on
    steps: int = 15
    enough: float = 1e-13  # error, relative to the target's spread, from which it is rounding
    nearer: float = 0.999  # error of a step relative to the one before, from which none follows


INNER_WAVES = InnerWavesConfig()
_Function = Callable[[FloatArray], FloatArray]
OUTER: dict[str, tuple[_Function, _Function]] = {"sin": (np.sin, np.cos), "cos": (np.cos, lambda s: -np.sin(s))}
"""Functions with their slopes."""


@dataclass(frozen=True)
class InnerWave:
    """outer(inner * sin(Σ factors * terms + phase)) * scale + level, and what it leaves relative to the target's spread."""

    outer: str
    inner: float
    factors: tuple[float, ...]
    phase: float
    scale: float
    level: float
    error: float


def inner_waves(
    columns: FloatArray, target: FloatArray, factors: Sequence[float], outer: Sequence[str]
) -> InnerWave | None:
    """The function of a wave that comes nearest to a target [N], given terms [N, K] of whose sum a wave has most of it."""
    columns, target = columns[: INNER_WAVES.rows], target[: INNER_WAVES.rows]
    angle = columns @ np.array(factors)
    waves = np.column_stack([np.cos(angle), np.sin(angle), np.ones(len(angle))])
    cosine, sine, _ = np.linalg.lstsq(waves, target, rcond=None)[0]
    phase = float(np.arctan2(cosine, sine))  # of the wave as a sine
    starts = {"sin": ((1.0, phase),), "cos": tuple((0.5, (phase + sign * np.pi / 2) / 2) for sign in (1, -1))}
    best: InnerWave | None = None
    for name in outer:
        for share, shift in starts[name]:
            for inner in INNER_WAVES.inner:
                found = _fitted(name, columns, target, np.array([*(share * f for f in factors), shift, inner]))
                if found is not None and (best is None or found.error < best.error):
                    best = found
                if best is not None and best.error < INNER_WAVES.enough:
                    return best
    return best


def _fitted(name: str, columns: FloatArray, target: FloatArray, start: FloatArray) -> InnerWave | None:
    """The same from one start [K + 2]: factors, phase and inner factor."""
    outer, slope = OUTER[name]
    size = float(np.std(target)) or 1.0
    ones = np.ones(len(target))

    def solved(trial: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = outer(trial[-1] * np.sin(columns @ trial[:-2] + trial[-2]))
        table = np.column_stack([values, ones])
        linear = np.asarray(np.linalg.lstsq(table, target, rcond=None)[0], float)
        return linear, np.asarray(target - table @ linear)

    def error(rest: FloatArray) -> float:
        return float(np.sqrt(np.mean(rest**2))) / size

    trial = start
    linear, rest = solved(trial)
    for _ in range(INNER_WAVES.steps):
        angle = columns @ trial[:-2] + trial[-2]
        wave, steep = np.sin(angle), linear[0] * slope(trial[-1] * np.sin(angle))
        turning = steep * trial[-1] * np.cos(angle)
        table = np.column_stack([turning[:, None] * columns, turning, steep * wave, outer(trial[-1] * wave), ones])
        step = np.linalg.lstsq(table, rest, rcond=None)[0][: len(trial)]
        moved = trial + step
        if not np.isfinite(moved).all():
            break
        new_linear, new_rest = solved(moved)
        if not error(new_rest) < INNER_WAVES.nearer * error(rest):
            break
        trial, linear, rest = moved, new_linear, new_rest
    found = error(rest)
    factors = tuple(float(f) for f in trial[:-2])
    if not np.isfinite(found):
        return None
    return InnerWave(name, float(trial[-1]), factors, float(trial[-2]), float(linear[0]), float(linear[1]), found)
