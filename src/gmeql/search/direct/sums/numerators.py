"""Terms that are one fraction: of 0.87 f - 0.7 x f - 1.08 f/(x + 1.24) it is -0.7 x**2 f/(x + 1.24).

A sum that is looked for with a number, x and 1/(x + c) before a function has three terms where a law has one. What they come to
over x + c, (a + b x)(x + c) + d, is told by its factors, of which few are more than rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, build, transform
from gmeql.search.direct.table import DirectTable

FloatArray = NDArray[np.float64]

NOTHING = 1e-5
"""Share of a numerator's largest term below which another is rounding."""
DIGITS = 6
"""Digits in which constants inside terms agree that are one: each was fitted by itself."""


@dataclass(frozen=True)
class _Fraction:
    """A term with p + c below the line, p and c, and the factors before it."""

    base: Node
    shift: float
    below: Node
    rest: Counter[Node]


def over_one_line(terms: Sequence[Node], factors: Sequence[float], table: DirectTable) -> list[Node]:
    """The terms of a sum with such factors, those that are one fraction written so."""
    left = dict(zip(terms, factors, strict=True))
    for term in terms:
        for fraction in _fractions(term) if term in left else []:
            own = [
                (node, p)
                for node in left
                for p in (0, 1)
                if _like(_parts(node)) == _like(fraction.rest + _powers(fraction, p))
            ]
            numbers = {power: left[node] for node, power in own}
            a, b, c = numbers.get(0, 0.0), numbers.get(1, 0.0), fraction.shift
            above = [left[term] + a * c, a + b * c, b]
            sizes = [abs(k) * float(np.abs(table.values(fraction.base) ** i).max()) for i, k in enumerate(above)]
            kept = [i for i, size in enumerate(sizes) if size > NOTHING * max(sizes)]
            if len(kept) > len(own):
                continue
            for node in (term, *(node for node, _ in own)):
                del left[node]
            for i in kept:
                power = build("pow", fraction.base, Constant(float(i)))
                left[build("mul", power, *fraction.rest.elements(), fraction.below)] = above[i]
            break
    return list(left)


def _powers(fraction: _Fraction, power: int) -> Counter[Node]:
    """What stands below without its number, so many times."""
    return Counter({fraction.base: power}) if power else Counter()


def _fractions(term: Node) -> list[_Fraction]:
    """Every way to read a term as one with p + c below the line."""
    parts, found = _parts(term), []
    for part in parts:
        if isinstance(part, Call) and part.operator == "inv" and isinstance(below := part.args[0], Call):
            shift = [arg for arg in below.args if isinstance(arg, Constant)]
            base = [arg for arg in below.args if not isinstance(arg, Constant)]
            if below.operator == "add" and len(shift) == len(base) == 1:
                found.append(_Fraction(base[0], shift[0].value, part, parts - Counter([part])))
    return found


def _like(parts: Counter[Node]) -> Counter[Node]:
    """Factors with so many digits of their constants."""

    def rounded(leaf: Node) -> Node:
        return Constant(float(f"{leaf.value:.{DIGITS}g}")) if isinstance(leaf, Constant) else leaf

    found: Counter[Node] = Counter()
    for node, n in parts.items():
        found[transform(node, rounded)] += n
    return found


def _parts(term: Node) -> Counter[Node]:
    """What a term is the product of, without 1."""
    parts = term.args if isinstance(term, Call) and term.operator == "mul" else (term,)
    found: Counter[Node] = Counter()
    for part in parts:
        found += _parts(part) if isinstance(part, Call) and part.operator == "mul" else Counter([part])
    return Counter({node: n for node, n in found.items() if node != Constant(1.0)})
