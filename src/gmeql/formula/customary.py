"""Customary forms: saturation, fractions, waves and scales as people write them, with the same value.

The normal form of `simplify.py` is the shortest; the customary one may be a unit of complexity longer, or two where a power
has to be written twice:

    a/(b/x + c)          (a/c)*x/(x + b/c)        saturation (Michaelis and Menten 1913)
    a/(b/x**n + c)       (a/c)*x**n/(x**n + b/c)  the same with cooperation (Hill 1910), for plain exponents
    -a/(1 - b/x)         a*x/(b - x)              constants above and below are positive where they can be
    -a*sin(w*x + p)      a*sin(w*x + p')          a phase within half a turn, a positive amplitude beside it
    a*sin(w*x)*cos(w*x)  (a/2)*sin(2*w*x)         one wave in place of two that are a quarter of a turn apart
    1e20*exp(-x)         exp(46.05 - x)           no constant that only a scale within the formula makes so large

>>> from gmeql.formula.expression import Expression
>>> s = Variable(0)
>>> root = build("div", Constant(3.25), build("add", build("inv", s), Constant(0.5)))
>>> print(Expression(root, ("S",)), "is", Expression(customary(root), ("S",)))
3.25/(1/S + 0.5) is 6.5*S/(S + 2)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, fold, tree_complexity
from gmeql.formula.products import ROUNDING, Factors, as_product, is_sum, power_of, write_product, writing_order
from gmeql.formula.sums import merge_powers

MOST_ADDED = 2
"""Units of complexity by which a customary form may be longer at most: what a plain power costs that is written twice. A
fitted exponent costs more, and would become two constants."""
LARGEST_FACTOR = 1e12
"""A larger factor, or one smaller than its inverse, is taken into an exponential or a power beside it. Those that have
a meaning of their own, as the frequency factor of a reaction or Stefan and Boltzmann's constant, mostly lie within."""
LARGEST_SCALE = 1e6
"""A scale of a column that would be larger, or smaller than the inverse, is no better than the factor."""

_PRODUCTS = frozenset({"mul", "div", "inv", "neg"})
_WAVES = frozenset({"sin", "cos"})

Term = tuple[float, Factors]


def customary(root: Node) -> Node:
    """The formula as people write it; its value stays on its domain. Expects the normal form, and keeps any other."""

    def call(node: Call, args: list[Node]) -> Node:
        if node.protected:
            return Call(node.operator, tuple(args), protected=True)
        same = node if tuple(args) == node.args else build(node.operator, *args)
        if node.operator in _WAVES:
            return _within_half_a_turn(node.operator, args[0])
        return _product(same) if node.operator in _PRODUCTS else same

    written: Node = fold(root, lambda leaf: leaf, call)
    return written if tree_complexity(written) <= tree_complexity(root) + MOST_ADDED else root


def _product(node: Node) -> Node:
    """A product after every rewrite that applies to it."""
    coefficient, powers = as_product(node)
    if not math.isfinite(coefficient) or coefficient == 0.0:
        return node
    written = node
    for rewrite, most_added in _REWRITES.items():
        changed = rewrite(coefficient, powers)
        if changed is None or not math.isfinite(changed[0]) or changed[0] == 0.0:
            continue
        other = write_product(*changed)
        if tree_complexity(other) <= tree_complexity(node) + most_added:
            (coefficient, powers), written = changed, other
    return written


# --- fractions ----------------------------------------------------------------------------------------------------


def _saturation(coefficient: float, powers: Factors, *, of_powers: bool = False) -> Term | None:
    """(b*u/v + c)**-n as c**-n * v**n * (v + (b/c)*u)**-n, where `v` is what the one term of the sum is divided by.

    With `of_powers` only b/v**n + c below the line, whose power is then written twice.
    """
    for total, exponent in powers.items():
        if not is_sum(total) or exponent >= 0 or not exponent.is_integer():
            continue
        constant, terms = _split(total)
        if constant == 0.0 or len(terms) != 1:
            continue
        ((factor, parts),) = terms
        below = {base: -power for base, power in parts.items() if power < 0}
        above = {base: power for base, power in parts.items() if power > 0}
        share = factor / constant
        if not below or any(map(is_sum, below)) or not math.isfinite(share) or share == 0.0:
            continue
        if of_powers and (above or len(below) != 1 or exponent != -1.0):
            continue
        rest = {base: power for base, power in powers.items() if base != total}
        merge_powers(rest, {base: -exponent * power for base, power in below.items()}, ROUNDING)
        merge_powers(rest, {_write_sum(0.0, [(1.0, below), (share, above)]): exponent}, ROUNDING)
        return coefficient * power_of(constant, exponent), rest
    return None


def _positive_fraction(coefficient: float, powers: Factors) -> Term | None:
    """-u/(v - w) as u/(w - v)."""
    for total, exponent in powers.items():
        if coefficient < 0 and is_sum(total) and exponent < 0 and exponent % 2 == 1.0:
            constant, terms = _split(total)
            if constant < 0 or any(factor < 0 for factor, _ in terms):
                flipped = _write_sum(-constant, [(-factor, parts) for factor, parts in terms])
                return -coefficient, _exchanged(powers, total, flipped)
    return None


def _cooperation(coefficient: float, powers: Factors) -> Term | None:
    return _saturation(coefficient, powers, of_powers=True)


# --- waves --------------------------------------------------------------------------------------------------------


def _within_half_a_turn(name: str, angle: Node) -> Node:
    """A wave whose phase lies within half a turn of zero."""
    phase = _phase(angle)
    return build(name, angle if abs(phase) <= math.pi else _turned(angle, 0.0))


def _positive_amplitude(coefficient: float, powers: Factors) -> Term | None:
    """-sin(u + p) as sin(u + p - pi): a wave that has a phase needs no sign."""
    for wave, exponent in powers.items():
        if coefficient < 0 and exponent == 1.0 and isinstance(wave, Call) and wave.operator in _WAVES:
            if not wave.protected and _phase(wave.args[0]) != 0.0:
                turned = build(wave.operator, _turned(wave.args[0], math.pi))
                return -coefficient, _exchanged(powers, wave, turned)
    return None


def _one_wave(coefficient: float, powers: Factors) -> Term | None:
    """(sin(u)*cos(u))**n as (sin(2*u)/2)**n."""
    for wave, exponent in powers.items():
        if not isinstance(wave, Call) or wave.operator != "sin" or wave.protected or not exponent.is_integer():
            continue
        other = build("cos", wave.args[0])
        if powers.get(other) == exponent:
            constant, terms = _split(wave.args[0])
            doubled = build("sin", _write_sum(2.0 * constant, [(2.0 * factor, parts) for factor, parts in terms]))
            rest = {base: power for base, power in powers.items() if base not in (wave, other)}
            merge_powers(rest, {doubled: exponent}, ROUNDING)
            return coefficient * power_of(0.5, exponent), rest
    return None


def _phase(angle: Node) -> float:
    """The constant of an angle."""
    return _split(angle)[0] if is_sum(angle) else 0.0


def _turned(angle: Node, turn: float) -> Node:
    """An angle turned further, its phase within half a turn of zero."""
    constant, terms = _split(angle)
    phase = math.remainder(constant + turn, 2 * math.pi)
    return _write_sum(phase, terms)


# --- scales -------------------------------------------------------------------------------------------------------


def _scaled_exponential(coefficient: float, powers: Factors) -> Term | None:
    """A huge or tiny factor c of an exponential inside it: exp(log(c) + u)."""
    if _is_sane(coefficient):
        return None
    for base, exponent in powers.items():
        if exponent == 1.0 and isinstance(base, Call) and base.operator == "exp" and not base.protected:
            constant, terms = _split(base.args[0])
            inner = _write_sum(constant + math.log(abs(coefficient)), terms)
            return math.copysign(1.0, coefficient), _exchanged(powers, base, build("exp", inner))
    return None


def _scaled_power(coefficient: float, powers: Factors) -> Term | None:
    """A huge or tiny factor c of a power as the scale of its column: (x/s)**n with s = c**(-1/n)."""
    if _is_sane(coefficient):
        return None
    for base, exponent in powers.items():
        if isinstance(base, Variable) and abs(exponent) > 1.0:
            scale = power_of(abs(coefficient), -1.0 / exponent)
            if 1 / LARGEST_SCALE <= scale <= LARGEST_SCALE:
                scaled = build("div", base, Constant(scale)) if exponent > 0 else build("div", Constant(scale), base)
                rest = {other: power for other, power in powers.items() if other != base}
                return math.copysign(1.0, coefficient), rest | {scaled: abs(exponent)}
    return None


def _is_sane(factor: float) -> bool:
    return 1 / LARGEST_FACTOR <= abs(factor) <= LARGEST_FACTOR


_REWRITES: dict[Callable[[float, Factors], Term | None], int] = {
    _saturation: 1,
    _cooperation: MOST_ADDED,
    _positive_fraction: 1,
    _one_wave: 0,
    _positive_amplitude: 1,
    _scaled_exponential: 1,
    _scaled_power: 1,
}
"""The rewrites of a product in their order, and by how many units of complexity each may make it longer."""


# --- reading and writing ------------------------------------------------------------------------------------------


def _split(node: Node) -> tuple[float, list[Term]]:
    """Constant and terms of a sum, each as a product."""
    signed = [(1.0, arg) for arg in node.args] if is_sum(node) and isinstance(node, Call) else [(1.0, node)]
    if isinstance(node, Call) and node.operator == "sub" and not node.protected:
        signed[1] = (-1.0, node.args[1])
    constant = 0.0
    terms: list[Term] = []
    for sign, arg in signed:
        factor, powers = as_product(arg)
        if powers:
            terms.append((sign * factor, powers))
        else:
            constant += sign * factor
    return constant, terms


def _write_sum(constant: float, terms: list[Term]) -> Node:
    """The tree of a sum: what is added before what is subtracted, a constant after the terms of its sign."""
    constants: list[Term] = [(constant, {})] if constant else []
    ordered: list[Term] = sorted(
        (t for t in terms if t[1]), key=lambda term: writing_order(write_product(1.0, term[1]))
    )
    ordered += [t for t in terms if not t[1]] + constants
    ordered.sort(key=lambda term: term[0] < 0)
    return build("add", *(write_product(factor, powers) for factor, powers in ordered))


def _exchanged(powers: Factors, old: Node, new: Node) -> Factors:
    """A product with one base exchanged for another."""
    exchanged: Factors = {base: power for base, power in powers.items() if base != old}
    merge_powers(exchanged, {new: powers[old]}, ROUNDING)
    return exchanged
