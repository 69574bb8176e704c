"""Numbers that people write down: short decimals, small fractions, small multiples of pi."""

from __future__ import annotations

import bisect
import math
from fractions import Fraction
from functools import lru_cache

from gmeql.formula.nodes import Constant, Node, leaves
from gmeql.search.polish.config import POLISH

_FRACTIONS = sorted({p / q for q in POLISH.denominators for p in range(1, POLISH.largest_numerator + 1)})


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
    """Numbers people write down near `value`, the plainest first.

    >>> recognised(0.3333)
    (0.33, 0.333, 0.3333333333333333, 0.3183098861837907)
    """
    if value == 0.0 or not math.isfinite(value):
        return (0.0,)
    sign, size = math.copysign(1.0, value), abs(value)
    found = short_decimals(size)
    for unit in POLISH.units:
        place = bisect.bisect(_FRACTIONS, size / unit)
        found += [fraction * unit for fraction in _FRACTIONS[max(place - 1, 0) : place + 1]]
    close = [f for f in found if f > 0 and abs(f - size) < POLISH.near_number * size]
    return tuple(sign * f for f in dict.fromkeys(close))


@lru_cache(maxsize=4096)
def plain_nats(value: float) -> float:
    """Nats to state a number that people write down: the logarithm of numerator times denominator, of 1 nothing at all.

    A multiple of pi says which unit it is a multiple of, too; a decimal is its digits.

    >>> [round(plain_nats(value), 2) for value in (1.0, -2.0, 0.5, 1.03)]
    [0.0, 0.69, 0.69, 4.63]
    """
    size = abs(value)
    if size == 0.0 or not math.isfinite(size):
        return 0.0
    found = [math.log(int(f"{size:.14e}".split("e")[0].replace(".", "").rstrip("0")))]
    for unit in POLISH.units:
        fraction = Fraction(size / unit).limit_denominator(max(POLISH.denominators))
        if fraction and float(fraction) * unit == size:
            which = 0.0 if unit == 1.0 else math.log(len(POLISH.units))
            found.append(math.log(fraction.numerator * fraction.denominator) + which)
    return min(found)


def short_decimals(value: float) -> list[float]:
    """The nearest whole number and the decimals of few digits near `value`, the shortest first.

    >>> short_decimals(1.4142)
    [1.4, 1.41]
    """
    if value == 0.0 or not math.isfinite(value):
        return [0.0]
    digits = -math.floor(math.log10(abs(value)))
    found = [float(round(value))] if abs(value) < POLISH.largest_whole else []
    found += [round(value, digits + extra) for extra in range(POLISH.max_digits)]
    return [f for f in dict.fromkeys(found) if f != 0.0 and abs(f - value) < POLISH.near_number * abs(value)]
