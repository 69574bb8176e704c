"""Waves as people write them: phases within half a turn, positive amplitudes, and of two waves or one what is shorter.

Rewrites of a product take its constant factor and its other factors, those of a sum its terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, permutations

from gmeql.formula.nodes import Call, Constant, Node, build
from gmeql.formula.products import ROUNDING, Factors, as_product, is_sum, power_of
from gmeql.formula.simplify import simplify
from gmeql.formula.sums import merge_powers
from gmeql.formula.terms import Term, exchanged, split_sum, write_sum

WAVES = frozenset({"sin", "cos"})
SAME_FACTOR = 1e-9
"""How far two factors may be apart, relative to their size, that are meant to be one: what is left of them after a fit to
rows without noise."""


def phased(angle: Node) -> Node:
    """An angle whose phase lies within half a turn of zero."""
    return angle if abs(_phase(angle)) <= math.pi else _turned(angle, 0.0)


def positive_amplitude(coefficient: float, powers: Factors) -> Term | None:
    """-sin(u + p) as sin(u + p - pi): a wave that has a phase needs no sign."""
    for wave, exponent in powers.items():
        if coefficient < 0 and exponent == 1.0 and isinstance(wave, Call) and wave.operator in WAVES:
            if not wave.protected and _phase(wave.args[0]) != 0.0:
                turned = build(wave.operator, _turned(wave.args[0], math.pi))
                return -coefficient, exchanged(powers, wave, turned)
    return None


def one_wave(coefficient: float, powers: Factors) -> Term | None:
    """(sin(u)*cos(u))**n as (sin(2*u)/2)**n."""
    for wave, exponent in powers.items():
        if not isinstance(wave, Call) or wave.operator != "sin" or wave.protected or not exponent.is_integer():
            continue
        other = build("cos", wave.args[0])
        if powers.get(other) == exponent:
            constant, terms = split_sum(wave.args[0])
            doubled = build("sin", write_sum(2.0 * constant, [(2.0 * factor, parts) for factor, parts in terms]))
            rest = {base: power for base, power in powers.items() if base not in (wave, other)}
            merge_powers(rest, {doubled: exponent}, ROUNDING)
            return coefficient * power_of(0.5, exponent), rest
    return None


def products_of_waves(terms: list[Term]) -> Iterator[list[Term]]:
    """The terms with two waves of one amplitude as a product, every two that there are: sin(p) + sin(q) is
    2 sin((p + q)/2) cos((p - q)/2), and its three relatives."""
    waves = [(i, *split) for i, term in enumerate(terms) if (split := _split_wave(term[1])) is not None]
    for (i, first, before), (j, second, beside) in combinations(waves, 2):
        a, b = terms[i][0], terms[j][0]
        if first.operator != second.operator or before != beside or not is_same(abs(a), abs(b)):
            continue
        same = a * b > 0
        half, other = (_combined(first.args[0], second.args[0], sign) for sign in (1.0, -1.0))
        if first.operator == "sin":
            names, factor = (("sin", "cos") if same else ("cos", "sin")), 2.0 * a
        else:
            names, factor = (("cos", "cos"), 2.0 * a) if same else (("sin", "sin"), -2.0 * a)
        product = build("mul", *(build(name, angle) for name, angle in zip(names, (half, other), strict=True)))
        sign, powers = as_product(simplify(product))
        merge_powers(powers, before, ROUNDING)
        yield [*(term for k, term in enumerate(terms) if k not in (i, j)), (sign * factor, powers)]


def wave_and_number(constant: float, terms: list[Term]) -> Iterator[tuple[float, list[Term]]]:
    """The terms with one wave and a number in place of two waves whose angles are a phase apart: 2*cos(u + p)*cos(u) is
    cos(2*u + p) + cos(p)."""
    for place, (factor, powers) in enumerate(terms):
        waves = [b for b, e in powers.items() if isinstance(b, Call) and b.operator in WAVES and e == 1.0]
        if len(waves) != 2 or len(powers) != 2 or any(wave.protected for wave in waves):
            continue
        first, second = sorted(waves, key=lambda wave: wave.operator, reverse=True)  # a sine before a cosine
        apart, total = (_added(first.args[0], second.args[0], sign) for sign in (-1.0, 1.0))
        if not isinstance(apart, Constant):
            continue
        if first.operator != second.operator:
            name, sign, number = "sin", 1.0, math.sin(apart.value)
        else:
            name, sign, number = "cos", 1.0 if first.operator == "cos" else -1.0, math.cos(apart.value)
        level = constant + factor / 2.0 * number
        rest = 0.0 if abs(level) <= SAME_FACTOR * abs(factor) else level
        yield rest, [*terms[:place], (sign * factor / 2.0, {build(name, total): 1.0}), *terms[place + 1 :]]


def square_of_wave(constant: float, terms: list[Term]) -> Iterator[tuple[float, list[Term]]]:
    """The terms with a square in place of a wave and one of twice its angle: cos(2*u) - 4*cos(u) + 3 is 2*(cos(u) - 1)**2."""
    waves = [(k, split[0]) for k, (_, powers) in enumerate(terms) if (split := _split_wave(powers)) and not split[1]]
    for (i, slow), (j, fast) in permutations(waves, 2):
        if fast.operator != "cos" or fast.args[0] != _added(slow.args[0], slow.args[0], 1.0):
            continue
        is_cosine = slow.operator == "cos"  # cos(2*u) is 2*cos(u)**2 - 1, or 1 - 2*sin(u)**2
        squared, level = (2.0 * terms[j][0], -terms[j][0]) if is_cosine else (-2.0 * terms[j][0], terms[j][0])
        shift = terms[i][0] / (2.0 * squared)
        if is_same(constant + level, squared * shift**2):
            others = [term for k, term in enumerate(terms) if k not in (i, j)]
            yield 0.0, [*others, (squared, {write_sum(shift, [(1.0, {slow: 1.0})]): 2.0})]


def _added(first: Node, second: Node, sign: float) -> Node:
    """The sum of two angles, or (`sign` -1) their difference."""
    return simplify(build("add", first, build("mul", Constant(sign), second)))


def _split_wave(powers: Factors) -> tuple[Call, Factors] | None:
    """The one wave among the factors of a term, and the others; None where there is none, or are several."""
    waves = [b for b, e in powers.items() if isinstance(b, Call) and b.operator in WAVES and e == 1.0]
    if len(waves) != 1 or waves[0].protected:
        return None
    return waves[0], {base: power for base, power in powers.items() if base != waves[0]}


def _combined(first: Node, second: Node, sign: float) -> Node:
    """Half the sum of two angles, or (`sign` -1) half their difference."""
    return simplify(build("mul", Constant(0.5), build("add", first, build("mul", Constant(sign), second))))


def _phase(angle: Node) -> float:
    """The constant of an angle."""
    return split_sum(angle)[0] if is_sum(angle) else 0.0


def _turned(angle: Node, turn: float) -> Node:
    """An angle turned further, its phase within half a turn of zero."""
    constant, terms = split_sum(angle)
    phase = math.remainder(constant + turn, 2 * math.pi)
    return write_sum(phase, terms)


def is_same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=SAME_FACTOR)
