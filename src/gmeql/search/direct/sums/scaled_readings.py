"""Readings of the target with a number of their own: y = c log(Q), Q**p, A ± exp(Q), c atan(Q), c tanh(Q), with Q in a span.

e^(y/c) is in the span of some terms for the right c alone, and so is |y|^(1/p), log|y - A|, tan(y/c) or artanh(y/c). What is
left of it beside the span falls to nothing there and smoothly, so a few dozen numbers tell where to look, and Newton's steps on
what is left (one unknown, nothing left at the end) take the best of them to rounding.

Legend: `N` rows, `T` numbers tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, build
from gmeql.search.data.readings import is_of_one_sign

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ScaledReadingsConfig:
    """Numbers of the scan."""

    largest: float = 12.0  # range of y/c before an exponential: a sum within a factor of e**12 of another
    smallest: float = 0.5  # ... below which e^(y/c) is hardly more than a parabola of y
    farthest: float = 8.0  # ranges of y that A lies off: beyond, log|y - A| is hardly more than a parabola of y
    nearest: float = 1e-3  # ... and must lie off
    fullest: float = 0.999  # share of a quarter turn, or of the bound, that the largest |y/c| fills
    emptiest: float = 0.3
    tried: int = 32  # numbers of each sign between these
    starts: int = 3  # of those that leave less than their neighbours
    steps: int = 12
    gained: float = 0.5  # share of what was left that a step must come below, to go on
    vanished: float = 1e-10  # share of what is read that may be left


SCALED_READINGS = ScaledReadingsConfig()


class ScaledReading(NamedTuple):
    """What is read of a target [N] with a number (or with numbers [1, T]), its slope by the number, and the way back."""

    read: Callable[[FloatArray, FloatArray], FloatArray]
    slope: Callable[[FloatArray, float], FloatArray]
    numbers: Callable[[FloatArray], Sequence[FloatArray]]
    """Those that are tried, several scans; none where the reading does not apply."""
    invert: Callable[[Node, float, FloatArray], Node]
    """The formula of the target, given that of what was read times its scale."""
    needs: frozenset[str]
    scale: Callable[[FloatArray, float], float] = lambda y, number: 1.0
    """What was left out of what is read, to keep it within a few magnitudes."""


def _rates(y: FloatArray) -> list[FloatArray]:
    reach = float(np.ptp(y))
    if not (math.isfinite(reach) and reach > 0):
        return []
    sizes = np.geomspace(SCALED_READINGS.smallest, SCALED_READINGS.largest, SCALED_READINGS.tried) / reach
    return [sizes, -sizes]


def _exponents(y: FloatArray) -> list[FloatArray]:
    return _rates(np.log(np.abs(y))) if is_of_one_sign(y) else []


def _offsets(y: FloatArray) -> list[FloatArray]:
    """Numbers that y is always above, or always below."""
    reach = float(np.ptp(y))
    if not (math.isfinite(reach) and reach > 0):
        return []
    gaps = reach * np.geomspace(SCALED_READINGS.farthest, SCALED_READINGS.nearest, SCALED_READINGS.tried)
    return [y.min() - gaps, y.max() + gaps]


def _fillings(of: float, y: FloatArray) -> list[FloatArray]:
    """Rates that take the largest |y| to some share of a bound."""
    size = float(np.abs(y).max())
    if not 0 < size < math.inf:
        return []
    full = 1.0 - np.geomspace(1.0 - SCALED_READINGS.emptiest, 1.0 - SCALED_READINGS.fullest, SCALED_READINGS.tried)
    return [of * full / size]


def _centred(y: FloatArray) -> FloatArray:
    return np.asarray(y - y.mean())


def _sizes(y: FloatArray) -> FloatArray:
    """log|y|, centred."""
    return _centred(np.log(np.abs(y)))


def _power(Q: Node, rate: float, y: FloatArray) -> Node:
    root = build("pow", Q, Constant(float(f"{1.0 / rate:.13g}")))
    return root if y[0] > 0 else build("neg", root)


def _exponential(Q: Node, offset: float, y: FloatArray) -> Node:
    size = build("exp", Q)
    return build("add", Constant(float(f"{offset:.13g}")), size if y[0] > offset else build("neg", size))


def _amplified(name: str) -> Callable[[Node, float, FloatArray], Node]:
    return lambda Q, rate, y: build("mul", Constant(float(f"{1.0 / rate:.13g}")), build(name, Q))


TABLE: dict[str, ScaledReading] = {
    "log": ScaledReading(
        lambda y, rate: np.exp(np.multiply.outer(_centred(y), rate)),
        lambda y, rate: _centred(y) * np.exp(_centred(y) * rate),
        _rates, _amplified("log"), frozenset({"log"}), lambda y, rate: math.exp(float(y.mean()) * rate),
    ),
    "power": ScaledReading(
        lambda y, rate: np.exp(np.multiply.outer(_sizes(y), rate)),
        lambda y, rate: _sizes(y) * np.exp(_sizes(y) * rate),
        _exponents, _power, frozenset({"pow"}), lambda y, rate: math.exp(float(np.log(np.abs(y)).mean()) * rate),
    ),
    "exp": ScaledReading(
        lambda y, offset: np.log(np.abs(np.subtract.outer(y, offset))),
        lambda y, offset: -1.0 / (y - offset),
        _offsets, _exponential, frozenset({"exp"}),
    ),
    "atan": ScaledReading(
        lambda y, rate: np.tan(np.multiply.outer(y, rate)),
        lambda y, rate: y / np.cos(y * rate) ** 2,
        lambda y: _fillings(math.pi / 2, y), _amplified("atan"), frozenset(),
    ),
    "tanh": ScaledReading(
        lambda y, rate: np.arctanh(np.multiply.outer(y, rate)),
        lambda y, rate: y / (1.0 - (y * rate) ** 2),
        lambda y: _fillings(1.0, y), _amplified("tanh"), frozenset({"tanh"}),
    ),
}  # fmt: skip
"""By the function that stands before the sum."""
READ_TWICE = ("log", "exp")
"""Those that are asked for behind another reading too: a power of a root is a power."""


def numbers_of(reading: ScaledReading, y: FloatArray, left: Callable[[FloatArray], FloatArray]) -> Iterator[float]:
    """Numbers with which `left` leaves nothing of what is read of a target [N], those that bend it least first: the square
    of a sum may be a sum as well. `left` says what is left of columns [N, T] beside a span that holds 1.
    """
    with np.errstate(all="ignore"):
        for numbers in reading.numbers(y):
            columns = reading.read(y, numbers)
            usable = np.isfinite(columns).all(axis=0)
            shares = np.full(len(numbers), math.inf)
            columns = columns[:, usable]
            shares[usable] = np.linalg.norm(left(columns), axis=0) / np.linalg.norm(
                columns - columns.mean(axis=0), axis=0
            )
            around = np.concatenate([[math.inf], shares, [math.inf]])
            lowest = np.flatnonzero((shares <= around[:-2]) & (shares <= around[2:]) & usable)[: SCALED_READINGS.starts]
            for number in numbers[lowest]:
                found = _converged(reading, y, float(number), left)
                if found is not None:
                    yield found


def _converged(
    reading: ScaledReading, y: FloatArray, number: float, left: Callable[[FloatArray], FloatArray]
) -> float | None:
    """The number near to one with which nothing is left of what is read; None where something is."""
    before = math.inf
    for _ in range(SCALED_READINGS.steps):
        columns = np.column_stack([reading.read(y, np.array([number]))[:, 0], reading.slope(y, number)])
        if not np.isfinite(columns).all():
            return None
        rest, slope = left(columns).T
        share = float(np.linalg.norm(rest) / np.linalg.norm(columns[:, 0] - columns[:, 0].mean()))
        if share < SCALED_READINGS.vanished and not share < SCALED_READINGS.gained * before:
            return number
        square = float(slope @ slope)
        if not square > 0 or (not share < SCALED_READINGS.gained * before and before < math.inf):
            return None
        before = share
        number -= float(slope @ rest) / square
    return None
