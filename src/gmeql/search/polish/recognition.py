"""Numbers that people write down: short decimals, small fractions, small multiples of pi."""

from __future__ import annotations

import bisect
import math
from functools import lru_cache

from gmeql.formula.nodes import Constant, Node, leaves

_UNITS = (1.0, math.pi, math.pi**2, 1 / math.pi, math.sqrt(2.0))
_FRACTIONS = sorted({p / q for q in (1, 2, 3, 4, 5, 6, 8) for p in range(1, 33)})


@lru_cache(maxsize=4096)
def is_recognised(value: float) -> bool:
    """Whether a constant is a number people write down: a few digits, a small fraction, a small multiple of pi."""
    return any(value == candidate for candidate in recognised(value))


def n_loose_constants(root: Node) -> int:
    """How many constants of a formula were fitted rather than recognised."""
    return sum(isinstance(leaf, Constant) and not is_recognised(leaf.value) for leaf in leaves(root))


def all_recognised(root: Node) -> bool:
    """Whether every constant of a formula is a number people write down."""
    return n_loose_constants(root) == 0


@lru_cache(maxsize=4096)
def recognised(value: float) -> tuple[float, ...]:
    """Numbers people write down near `value`, the plainest first."""
    if value == 0.0 or not math.isfinite(value):
        return (0.0,)
    sign, size = math.copysign(1.0, value), abs(value)
    found = short_decimals(size)
    for unit in _UNITS:
        place = bisect.bisect(_FRACTIONS, size / unit)
        found += [fraction * unit for fraction in _FRACTIONS[max(place - 1, 0) : place + 1]]
    close = [f for f in found if f > 0 and abs(f - size) < 0.05 * size]
    return tuple(sign * f for f in dict.fromkeys(close))


def short_decimals(value: float) -> list[float]:
    """The nearest whole number and decimals of one to three digits, within 5 %; the shortest first."""
    if value == 0.0 or not math.isfinite(value):
        return [0.0]
    digits = -math.floor(math.log10(abs(value)))
    found = [float(round(value))] if abs(value) < 1e6 else []
    found += [round(value, digits + extra) for extra in range(3)]
    return [f for f in dict.fromkeys(found) if f != 0.0 and abs(f - value) < 0.05 * abs(value)]
