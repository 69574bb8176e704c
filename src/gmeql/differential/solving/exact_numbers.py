"""Exact numbers behind fitted constants: fractions, times the units that equation and conditions suggest.

>>> [str(number) for number in recognise(0.8660254037844386, units_of([]))][:1]
['sqrt(3)/2']
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from gmeql.differential.solving.config import PROOF
from gmeql.formula.canonical import evaluate

_MAX_NUMBERS = 12
"""Numbers of an equation and its conditions whose roots, exponentials, logarithms and waves are units."""

Units = tuple[tuple[Any, float], ...]


def numbers_in(expressions: Iterable[Any]) -> list[Any]:
    """The numbers that occur in expressions, each once: constants and constant parts."""
    found: dict[Any, None] = {}
    for expression in expressions:
        for part in _parts(expression):
            if part.is_number and part.is_real and part not in (0, 1, -1):
                found[abs(part)] = None
    return list(found)


def _parts(expression: Any) -> list[Any]:
    waiting, found = [expression], []
    while waiting:
        part = waiting.pop()
        found.append(part)
        waiting.extend(part.args)
    return found


def units_of(numbers: Sequence[Any]) -> Units:
    """What constants may be simple fractions of, the plainest first."""
    import sympy

    plain = [sympy.Integer(1), sympy.pi, sympy.E, sympy.sqrt(2), sympy.sqrt(3), sympy.sqrt(5), sympy.sqrt(6)]
    plain += [sympy.sqrt(sympy.pi), sympy.log(2), sympy.log(3), 1 / sympy.pi, 1 / sympy.E, sympy.pi**2]
    for number in sorted(numbers[:_MAX_NUMBERS], key=lambda n: (n.count_ops(), str(n))):
        plain += [number, 1 / number, sympy.sqrt(number), sympy.exp(number), sympy.exp(-number), sympy.log(number)]
        plain += [sympy.sin(number), sympy.cos(number), 1 / sympy.sin(number), 1 / sympy.cos(number)]
    units: dict[Any, float] = {}
    for unit in plain:
        value = float(evaluate(unit, {})) if not unit.has(sympy.zoo, sympy.nan) else 0.0
        if (
            np.isfinite(value)
            and value != 0.0
            and not any(math.isclose(value, v, rel_tol=PROOF.same_unit) for v in units.values())
        ):
            units[unit] = value
    return tuple(units.items())


@lru_cache(maxsize=4096)
def recognise(value: float, units: Units) -> tuple[Any, ...]:
    """Exact numbers that agree with a fitted constant, the plainest first."""
    import sympy

    if abs(value) < PROOF.none:
        return (sympy.Integer(0),)
    found = []
    for rank, (unit, size) in enumerate(units):
        ratio = value / size
        if not PROOF.ratios[0] <= abs(ratio) <= PROOF.ratios[1]:
            continue
        fraction = Fraction(ratio).limit_denominator(PROOF.largest_denominator)
        height = abs(fraction.numerator) * fraction.denominator
        if fraction and height <= PROOF.largest_height and abs(float(fraction) / ratio - 1) <= PROOF.same:
            price = math.log2(height + 1) + (2 + min(rank, 12) / 4 if rank else 0)
            found.append((price, rank, sympy.Rational(fraction.numerator, fraction.denominator) * unit))
    whole = round(value)
    if not found and abs(value) < PROOF.largest_whole and whole and abs(whole / value - 1) <= PROOF.same:
        found.append((0.0, 0, sympy.Integer(whole)))
    decimal = sympy.Rational(f"{value:.6g}")
    if not found and abs(float(decimal) / value - 1) <= PROOF.same:
        found.append((0.0, 0, decimal))
    return tuple(number for *_, number in sorted(found, key=lambda f: f[:2]))
