"""A wave of one column with a wave of another: 1.2 sin(1.1 x) cos(0.9 z), (2 + cos 3x)(1 - sin z²/2), sums of both, cos(ax - bz).

For two given frequencies all of these are sums of nine terms, the products of 1, cos(a u) and sin(a u) with 1, cos(b v) and
sin(b v), whose factors follow from linear equations. Which frequencies shows in a transform in two dimensions over waves
of few turns, one product of matrices for each pair of angles, of cosines and sines; the strongest are refined with their
factors solved for (variable projection). What is not exact then is left to other methods: all of it takes some milliseconds.

Legend: `N` rows, `W` frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CrossedConfig:
    """Numbers of the method."""

    rows: int = 300  # that frequencies are looked for on
    few_rows: int = 40
    max_columns: int = 6
    turns_step: float = 0.25  # between frequencies, over the rows
    most_turns: float = 12.0  # of more turns each wave shows by itself (`waves.py`)
    refined: int = 4  # the strongest pairs of frequencies, of all angles
    steps: int = 15  # of Gauss-Newton on them
    told_after: int = 4  # steps, after which they must leave
    promising: float = 0.5  # ... this share of the squares that they began with
    exact: float = 1e-9  # share of the target's size that may be left
    none: float = 1e-7  # factors below this share of the largest are none, and so are phases in radians
    verified: float = 1e-8  # error of the formula on all rows, relative to the target's spread
    seconds_per_value: float = 5e-9  # of a row and a pair of frequencies on one core (measured)


CROSSED = CrossedConfig()


@dataclass(frozen=True)
class _Angle:
    """What a wave may be a wave of: a column or its square, its values [N], and waves of it, W cosines and W sines [2W, N]."""

    column: int
    node: Node
    u: FloatArray
    frequencies: FloatArray
    waves: FloatArray


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """The sum of products of two waves that is the target. Draws nothing at random."""
    n = min(len(table.y), CROSSED.rows)
    if not 2 <= table.n_columns <= CROSSED.max_columns or n < CROSSED.few_rows:
        return
    if not functions.allows({"sin", "cos", "add", "mul"}) or not np.isfinite(table.X).all() or not np.ptp(table.y) > 0:
        return
    X, y = table.X[:n], table.y[:n]
    size = float(np.sqrt(y @ y))
    if not (math.isfinite(size) and size > 0):
        return
    target = y / size
    starts = _starts(_angles(X, functions), target - target.mean(), effort)
    for one, other, start in starts:
        if effort.out_of_time():
            return
        found = _refined(one.u, other.u, target, start)
        root = None if found is None else _written(one.node, other.node, *found, size)
        if root is not None and table.error(root) < CROSSED.verified:
            yield root
            return


def _angles(X: FloatArray, functions: FunctionSet) -> list[_Angle]:
    """Columns first, then their squares."""
    turns = np.arange(CROSSED.turns_step, CROSSED.most_turns, CROSSED.turns_step)
    found = []
    for power, j in product((1, 2) if functions.allows({"square"}) else (1,), range(X.shape[1])):
        with np.errstate(all="ignore"):
            u, span = X[:, j] ** power, float(np.ptp(X[:, j] ** power))
        if 0 < span < math.inf:
            frequencies = 2 * np.pi * turns / span
            node = Variable(j) if power == 1 else build("square", Variable(j))
            # all are powers of the slowest: to choose where to begin, their rounding does not matter
            slowest = np.broadcast_to(np.exp(1j * frequencies[0] * u), (len(turns), len(u)))
            waves = np.multiply.accumulate(slowest, axis=0)
            found.append(_Angle(j, node, u, frequencies, np.vstack([waves.real, waves.imag])))
    return found


def _starts(angles: list[_Angle], centred: FloatArray, effort: Effort) -> list[tuple[_Angle, _Angle, FloatArray]]:
    """The pairs of frequencies [2] of most power, of all pairs of angles of two columns, the strongest first."""
    found: list[tuple[float, _Angle, _Angle, FloatArray]] = []
    alone = [np.sum((angle.waves @ centred).reshape(2, -1) ** 2, axis=0) for angle in angles]
    left = effort.seconds
    for i, k in combinations(range(len(angles)), 2):
        one, other = angles[i], angles[k]
        left -= CROSSED.seconds_per_value * len(centred) * len(one.frequencies) * len(other.frequencies)
        if one.column == other.column or left < 0:
            continue
        sums = (one.waves * centred) @ other.waves.T  # of sums and differences of angles, |e^i(p+q)|² + |e^i(p-q)|²
        power = 2.0 * np.sum((sums**2).reshape(2, len(one.frequencies), 2, len(other.frequencies)), axis=(0, 2))
        row, place = (int(p) for p in np.unravel_index(int(np.argmax(power)), power.shape))
        found.append((float(power[row, place]), one, other, np.array([one.frequencies[row], other.frequencies[place]])))
        first, second = int(np.argmax(alone[i])), int(np.argmax(alone[k]))
        each = np.array([one.frequencies[first], other.frequencies[second]])
        found.append((float(alone[i][first] + alone[k][second]), one, other, each))
    found.sort(key=lambda start: -start[0])
    return [(one, other, start) for _, one, other, start in found[: CROSSED.refined]]


def _terms(u: FloatArray, frequency: float) -> tuple[FloatArray, FloatArray]:
    """1, cosine and sine [N, 3], and their slopes by the frequency; around the middle of u, so that steps are no turns."""
    cosine, sine = np.cos(frequency * u), np.sin(frequency * u)
    moved = u - u.mean()
    return np.column_stack([np.ones_like(u), cosine, sine]), np.column_stack(
        [np.zeros_like(u), -moved * sine, moved * cosine]
    )


def _refined(
    u: FloatArray, v: FloatArray, target: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Frequencies [2] and factors [3, 3] of the nine terms that are the target; None where they are not."""
    frequencies, best, began = start, math.inf, math.inf
    step, factors = np.zeros(2), np.zeros((3, 3))
    for number in range(CROSSED.steps):
        trial = frequencies + step
        (left, left_slope), (right, right_slope) = _terms(u, float(trial[0])), _terms(v, float(trial[1]))
        table = (left[:, :, None] * right[:, None, :]).reshape(len(u), 9)
        solved = np.asarray(np.linalg.lstsq(table, target, rcond=None)[0], float)
        rest = target - table @ solved
        squares = float(rest @ rest)
        if not squares < best:
            break
        began = squares if number == 0 else began
        frequencies, best, factors = trial, squares, solved.reshape(3, 3)
        if number == CROSSED.told_after and squares > CROSSED.promising * began:
            return None
        slopes = np.column_stack(
            [np.sum((left_slope @ factors) * right, axis=1), np.sum((left @ factors) * right_slope, axis=1)]
        )
        step = np.linalg.lstsq(np.hstack([table, slopes]), rest, rcond=None)[0][9:]
    return (frequencies, factors) if math.sqrt(best) < CROSSED.exact else None


# --- formulas -----------------------------------------------------------------------------------------------------------


def _written(u: Node, v: Node, frequencies: FloatArray, factors: FloatArray, size: float) -> Node | None:
    """The nine terms as a product of two sums, or as waves beside each other; None where that takes more of them."""
    a, b = (float(f) for f in frequencies)
    largest = float(np.abs(factors).max())
    factors = np.where(np.abs(factors) < CROSSED.none * largest, 0.0, factors)
    left, singular, right = np.linalg.svd(factors)
    if singular[1] < CROSSED.none * singular[0]:
        (one, of_one), (other, of_other) = _by_wave(left[:, 0]), _by_wave(right[0])
        scale = Constant(float(singular[0]) * of_one * of_other * size)
        return build("mul", scale, _sum(u, a, one), _sum(v, b, other))
    parts = [_sum(u, a, np.array([0.0, *factors[1:, 0]])), _sum(v, b, np.array([0.0, *factors[0, 1:]]))]
    crossed = _crossed(u, v, a, b, factors[1:, 1:])
    if crossed is None:
        return None
    waves = [build("mul", Constant(size), part) for part in (*parts, crossed) if part != Constant(0.0)]
    return build("add", Constant(float(factors[0, 0]) * size), *waves)


def _crossed(u: Node, v: Node, a: float, b: float, block: FloatArray) -> Node | None:
    """Products of two waves, [2, 2] factors of cosine and sine: one product, or one wave of a sum or a difference."""
    left, singular, right = np.linalg.svd(block)
    if not singular[0] > 0:
        return Constant(0.0)
    if singular[1] < CROSSED.none * singular[0]:
        waves = (_wave(u, a, *left[:, 0]), _wave(v, b, *right[0]))
        return build("mul", Constant(float(singular[0])), *waves)
    for sign in (1.0, -1.0):  # cos(p ± q) = cos p cos q ∓ sin p sin q, sin(p ± q) = sin p cos q ± cos p sin q
        cosine, sine = block[0, 0], block[1, 0]
        rest = max(abs(block[1, 1] + sign * cosine), abs(block[0, 1] - sign * sine))
        if rest < CROSSED.none * singular[0]:
            angle = build("add", build("mul", Constant(a), u), build("mul", Constant(sign * b), v))
            return _wave(angle, 1.0, cosine, sine)
    return None


def _by_wave(factors: FloatArray) -> tuple[FloatArray, float]:
    """Factors [3] of 1, cosine and sine over the larger one of its wave, or the first where there is no wave; that."""
    place = 1 + int(np.argmax(np.abs(factors[1:]))) if np.abs(factors[1:]).max() > CROSSED.none else 0
    by = float(factors[place])
    scaled = factors / by
    return np.where(np.abs(scaled) < CROSSED.none, 0.0, scaled), by


def _sum(u: Node, frequency: float, factors: FloatArray) -> Node:
    """A constant and a wave, by the factors [3] of 1, cosine and sine."""
    wave = _wave(u, frequency, float(factors[1]), float(factors[2]))
    return build("add", Constant(float(factors[0])), wave) if factors[0] else wave


def _wave(u: Node, frequency: float, cosine: float, sine: float) -> Node:
    """Cosine and sine of one angle with their factors, as one wave: without a phase where there is none."""
    size = math.hypot(cosine, sine)
    if not size > 0:
        return Constant(0.0)
    angle = u if frequency == 1.0 else build("mul", Constant(frequency), u)
    if abs(sine) < CROSSED.none * size:
        return build("mul", Constant(cosine), Call("cos", (angle,)))
    if abs(cosine) < CROSSED.none * size:
        return build("mul", Constant(sine), Call("sin", (angle,)))
    return build("mul", Constant(size), Call("sin", (build("add", angle, Constant(math.atan2(cosine, sine))),)))
