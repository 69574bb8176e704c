"""Customary forms: saturation, fractions, waves and scales as people write them, with the same value.

The normal form of `simplify.py` is the shortest; the customary one may be a unit of complexity longer, or two where a power
has to be written twice:

    a/(b/x + c)          (a/c)*x/(x + b/c)        saturation (Michaelis and Menten 1913)
    a/(b/x**n + c)       (a/c)*x**n/(x**n + b/c)  the same with cooperation (Hill 1910), for plain exponents
    a/(b/x + c*y)        a*x/(c*x*y + b)          no fraction below a line, unless all are: 1/(1/x + 1/y) stays
    -a/(1 - b/x)         a*x/(b - x)              constants above and below are positive where they can be
    a/(x*y - x)          a/(x*(y - 1))            what all terms of a sum have in common before its brackets
    (-x - y)*a           -a*(x + y)               no sum of nothing but minus signs
    sin(-x*(y + z))      -sin(x*(y + z))          no sign in an odd or even function that can stand before it
    abs(3*x), abs(x)**2  3*abs(x), x**2           nor a factor in a size, nor a size where it makes no difference
    -a*sin(w*x + p)      a*sin(w*x + p')          a phase within half a turn, a positive amplitude beside it
    a*sin(w*x)*cos(w*x)  (a/2)*sin(2*w*x)         one wave in place of two that are a quarter of a turn apart
    2*cos(x + p)*cos(x)  cos(2*x + p) + cos(p)   one wave and a number in place of two waves, where that is shorter
    a*sin(x-y)+a*sin(x+y)  2*a*sin(x)*cos(y)      a product of two waves in place of their sum, where that is shorter
    sqrt(x)*sqrt(y)      sqrt(x*y)                one root in place of several, and round numbers under it
    exp(x*log(y/z))      (y/z)**x                 a power in place of an exponential of a logarithm
    cos(2*x)-4*cos(x)+3  2*(cos(x) - 1)**2        a square in place of a wave and one of twice its angle
    a*log(x) - a*log(y)  a*log(x/y)               one logarithm in place of the difference of two
    x**2-2*x*y+y**2      (x - y)**2               a square in place of its three terms
    (x - 6)*x + 14       (x - 3)**2 + 5           a distance from a round value
    a*exp((6 - x)*x)     a*exp(9)*exp(-(x - 3)**2)  a bell by its centre
    1e20*exp(-x)         exp(46.05 - x)           no constant that only a scale within the formula makes so large
    a*(b*x + 1)**2       a*b**2*(x + 1/b)**2      a power of the distance from a place, unless that makes constants wild

>>> from gmeql.formula.expression import Expression
>>> s = Variable(0)
>>> root = build("div", Constant(3.25), build("add", build("inv", s), Constant(0.5)))
>>> print(Expression(root, ("S",)), "is", Expression(customary(root), ("S",)))
3.25/(1/S + 0.5) is 6.5*S/(S + 2)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import TypeGuard

from gmeql.formula.fractions import common_factors, lifted, positive_sums, saturation
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, exponent_of, fold, tree_complexity
from gmeql.formula.products import ROUNDING, Factors, as_product, is_sum, power_of, write_product
from gmeql.formula.simplify import EVEN, ODD
from gmeql.formula.sums import merge_powers
from gmeql.formula.terms import Term, exchanged, split_sum, write_sum
from gmeql.formula.waves import (
    WAVES,
    is_same,
    one_wave,
    phased,
    positive_amplitude,
    products_of_waves,
    square_of_wave,
    wave_and_number,
)

MOST_ADDED = 2
"""Units of complexity by which a customary form may be longer at most: what a plain power costs that is written twice. A
fitted exponent costs more, and would become two constants."""
LARGEST_FACTOR = 1e12
"""A larger factor, or one smaller than its inverse, is taken into an exponential or a power beside it. Those that have
a meaning of their own, as the frequency factor of a reaction or Stefan and Boltzmann's constant, mostly lie within."""
ROUND_DIGITS = 3
"""Digits of a constant that somebody wrote down rather than measured."""
PLAIN_DECADES, SANER_DECADES = 6.0, 2.0
"""A constant is wild that many powers of ten from 1; a form is saner whose wildest is that many nearer."""
LARGEST_SCALE = 1e6
"""A scale of a column that would be larger, or smaller than the inverse, is no better than the factor."""

_PRODUCTS = frozenset({"mul", "div", "inv", "neg"})


def customary(root: Node) -> Node:
    """The formula as people write it; its value stays on its domain. Expects the normal form, and keeps any other."""

    def call(node: Call, args: list[Node]) -> Node:
        if node.protected:
            return Call(node.operator, tuple(args), protected=True)
        same = node if tuple(args) == node.args else build(node.operator, *args)
        if node.operator in ODD or node.operator in EVEN:
            return _without_sign(node.operator, args[0])
        if (exponent := exponent_of(node.operator, args)) is not None and exponent % 2.0 == 0.0 and _is_size(args[0]):
            return build(node.operator, args[0].args[0], *args[1:])
        if is_sum(same):
            return _sum(same)
        if node.operator == "exp":
            return _power(same)
        return _product(same, nested=same is not node) if node.operator in _PRODUCTS else same

    written: Node = fold(root, lambda leaf: leaf, call)
    return written if tree_complexity(written) <= tree_complexity(root) + MOST_ADDED else root


def _product(node: Node, *, nested: bool = False) -> Node:
    """A product after every rewrite that applies to it; `nested` where a sum among its factors may be a product now."""
    coefficient, powers = as_product(node)
    if not math.isfinite(coefficient) or coefficient == 0.0:
        return node
    written = write_product(coefficient, powers) if nested else node
    for rewrite, most_added in _REWRITES.items():
        changed = rewrite(coefficient, powers)
        if changed is None or not math.isfinite(changed[0]) or changed[0] == 0.0:
            continue
        other = write_product(*changed)
        if tree_complexity(other) <= tree_complexity(node) + most_added:
            (coefficient, powers), written = changed, other
    return written


def _sum(node: Node) -> Node:
    """A sum in which two or three terms became one, as long as that makes it shorter.

    A product (u - c)*u becomes the square of a distance also where that is no shorter.
    """
    constant, terms = split_sum(node)
    plain = _multiplied_out(terms)
    shorter = [(constant, form) for form in (*products_of_waves(terms), *_logarithms(terms), *_squares(plain))]
    shorter += [*wave_and_number(constant, terms), *square_of_wave(constant, terms)]
    shorter += _completed(constant, plain)
    forms = [write_sum(rest, form) for rest, form in shorter if all(math.isfinite(factor) for factor, _ in form)]
    best = min(forms, key=tree_complexity, default=node)
    longest = tree_complexity(node) - (len(plain) == len(terms))
    return _sum(best) if forms and tree_complexity(best) <= longest else node


def _without_sign(name: str, argument: Node) -> Node:
    """An odd or even function of an argument without a sign; a size without a factor; a wave with a phase near zero."""
    if name in EVEN and _is_size(argument):
        argument = argument.args[0]
    if name in WAVES:
        argument = phased(argument)
    if is_sum(argument):
        return build(name, argument)
    coefficient, powers = as_product(argument)
    outside = abs(coefficient) if name == "abs" else 1.0
    if not powers or not math.isfinite(coefficient) or (coefficient >= 0.0 and outside == 1.0):
        return build(name, argument)
    inner = _without_sign(name, write_product(abs(coefficient) / outside, powers))
    return write_product(-outside if name in ODD and coefficient < 0.0 else outside, {inner: 1.0})


def _power(exponential: Node) -> Node:
    """exp(u*log(v)) as v**u."""
    coefficient, powers = as_product(exponential.args[0]) if isinstance(exponential, Call) else (0.0, {})
    inside, rest = _logarithm_of(powers)
    return exponential if inside is None else build("pow", inside, write_product(coefficient, rest))


def _is_size(node: Node) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.operator == "abs" and not node.protected


# --- logarithms ---------------------------------------------------------------------------------------------------


def _logarithms(terms: list[Term]) -> Iterator[list[Term]]:
    """The terms with a*log(u) - a*log(v) as a*log(u/v), every two that there are. Each has its value where both had one."""
    split = [(factor, *_logarithm_of(powers)) for factor, powers in terms]
    for i, j in permutations(range(len(terms)), 2):
        (a, u, rest), (b, v, other) = split[i], split[j]
        if u is None or v is None or not a > 0 or not is_same(a, -b) or _term_key(rest) != _term_key(other):
            continue
        scale, inside = as_product(build("div", u, v))
        if inside and math.isfinite(scale):
            joined = {**rest, build("log", write_product(scale, inside)): 1.0}
            yield [*(term for m, term in enumerate(terms) if m not in (i, j)), (a, joined)]


def _logarithm_of(powers: Factors) -> tuple[Node | None, Factors]:
    """What the one logarithm of a product is of, and its other factors."""
    for base, exponent in powers.items():
        if isinstance(base, Call) and base.operator == "log" and not base.protected and exponent == 1.0:
            return base.args[0], {other: e for other, e in powers.items() if other != base}
    return None, powers


# --- squares ------------------------------------------------------------------------------------------------------


def _squares(terms: list[Term]) -> Iterator[list[Term]]:
    """The terms with a*u**2 + b*u*v + c*v**2 as a*(u + b/(2*a)*v)**2 where b**2 is 4*a*c, every three that there are."""
    plain = {_term_key(powers): k for k, (_, powers) in enumerate(terms)}
    for k, (b, powers) in enumerate(terms):
        for u, v in _halves(powers):
            i, j = (plain.get(_term_key({base: 2.0 * e for base, e in part.items()})) for part in (u, v))
            if i is None or j is None or k in (i, j):
                continue
            a, c = terms[i][0], terms[j][0]
            if not a * c > 0 or not is_same(b * b, 4.0 * a * c):
                continue
            others = [term for m, term in enumerate(terms) if m not in (i, j, k)]
            for own in (1.0, math.sqrt(abs(a))):  # 4*(x + 0.5*y)**2, or (2*x + y)**2
                total = write_sum(0.0, [(own, u), (own * b / (2.0 * a), v)])
                yield [*others, (a / own**2, {total: 2.0})]


def _completed(constant: float, terms: list[Term]) -> Iterator[tuple[float, list[Term]]]:
    """Constant and terms with a*u**2 + b*u as a*(u + b/(2*a))**2, where that makes round constants: every u there is."""
    plain = {_term_key(powers): k for k, (_, powers) in enumerate(terms)}
    for k, (b, powers) in enumerate(terms):
        i = plain.get(_term_key({base: 2.0 * exponent for base, exponent in powers.items()}))
        if i is None or terms[i][0] == 0.0:  # a fitted factor may be 0
            continue
        a = terms[i][0]
        shift = b / (2.0 * a)
        rest = 0.0 if is_same(constant, a * shift**2) else constant - a * shift**2
        if _is_round(shift) and _is_round(rest):
            others = [term for m, term in enumerate(terms) if m not in (i, k)]
            yield rest, [*others, (a, {write_sum(shift, [(1.0, powers)]): 2.0})]


def _multiplied_out(terms: list[Term]) -> list[Term]:
    """Terms of which none is a plain sum times something: (x - 2*y)*x is x**2 - 2*x*y."""
    result: list[Term] = []
    for factor, powers in terms:
        total = next((base for base, e in powers.items() if is_sum(base) and e == 1.0), None)
        if total is None:
            result.append((factor, powers))
            continue
        constant, inner = split_sum(total)
        for own, parts in [*inner, *([(constant, {})] if constant else [])]:
            product = {base: e for base, e in powers.items() if base != total}
            merge_powers(product, parts, ROUNDING)
            result.append((factor * own, product))
    return result


def _halves(powers: Factors) -> Iterator[tuple[Factors, Factors]]:
    """A product of two or three factors as one of them times the others."""
    if 2 <= len(powers) <= 3:
        for base, exponent in powers.items():
            yield {base: exponent}, {other: e for other, e in powers.items() if other != base}


def _term_key(powers: Factors) -> frozenset[tuple[Node, float]]:
    return frozenset(powers.items())


def _bell(coefficient: float, powers: Factors) -> Term | None:
    """c*exp(b*u - a*u**2) as c*exp(b**2/(4*a))*exp(-a*(u - b/(2*a))**2): a bell by its centre, where c is no 1."""
    for base, exponent in powers.items():
        if exponent != 1.0 or not isinstance(base, Call) or base.operator != "exp" or base.protected:
            continue
        if abs(coefficient) == 1.0:
            return None
        constant, terms = split_sum(base.args[0])
        plain = _multiplied_out(terms)
        places = {_term_key(parts): k for k, (_, parts) in enumerate(plain)}
        for k, (b, parts) in enumerate(plain):
            i = places.get(_term_key({factor: 2.0 * e for factor, e in parts.items()}))
            if i is None or not plain[i][0] < 0:
                continue
            a = plain[i][0]
            others = [term for m, term in enumerate(plain) if m not in (i, k)]
            bell = build("exp", write_sum(constant, [*others, (a, {write_sum(b / (2.0 * a), [(1.0, parts)]): 2.0})]))
            height = coefficient * math.exp(min(-b * b / (4.0 * a), 700.0))
            return 1.0 if is_same(height, 1.0) else height, exchanged(powers, base, bell)
    return None


# --- scales -------------------------------------------------------------------------------------------------------


def _scaled_exponential(coefficient: float, powers: Factors) -> Term | None:
    """A huge or tiny factor c of an exponential inside it: exp(log(c) + u)."""
    if _is_sane(coefficient):
        return None
    for base, exponent in powers.items():
        if exponent == 1.0 and isinstance(base, Call) and base.operator == "exp" and not base.protected:
            constant, terms = split_sum(base.args[0])
            inner = write_sum(constant + math.log(abs(coefficient)), terms)
            return math.copysign(1.0, coefficient), exchanged(powers, base, build("exp", inner))
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


def _distance(coefficient: float, powers: Factors) -> Term | None:
    """(b*u + c)**n as b**n * (u + c/b)**n; where n is -1, 1/2 or 1, and longer sums, only to be rid of wild constants."""
    for total, exponent in powers.items():
        constant, terms = split_sum(total) if is_sum(total) else (0.0, [])
        inside = [factor for factor, _ in terms] + [constant] * (constant != 0.0)
        divisors = [d if exponent % 2.0 == 0.0 else abs(d) for d in inside] if len(inside) > 1 and all(inside) else []
        forms = [(coefficient * power_of(d, exponent), *(value / d for value in inside)) for d in divisors]
        now, *wildest = (max(map(_decades, form)) for form in ((coefficient, *inside), *forms))
        k = next((k for k, w in enumerate(wildest) if w == min(wildest) and w + SANER_DECADES < wildest[0]), 0)
        is_sane = not forms or now <= PLAIN_DECADES or wildest[k] + SANER_DECADES > now
        stays = is_sane and (len(terms) != 1 or exponent in (-1.0, 0.5, 1.0))
        if not forms or stays or forms[k][1] == inside[0] or not wildest[k] <= now + SANER_DECADES:
            continue
        scaled = [(value, parts) for value, (_, parts) in zip(forms[k][1:], terms, strict=False)]
        return forms[k][0], exchanged(powers, total, write_sum(constant / divisors[k], scaled))
    return None


def _one_root(coefficient: float, powers: Factors) -> Term | None:
    """sqrt(u)*sqrt(v)/sqrt(w) as sqrt(u*v/w), and 1.4142*sqrt(u) as sqrt(2*u)."""
    under = {base: 2.0 * exponent for base, exponent in powers.items() if abs(exponent) == 0.5}
    square = coefficient * abs(coefficient)
    factor = abs(square) if _is_sane(square) and _is_round(square) and not _is_round(coefficient) else 1.0
    if not under or (len(under) == 1 and factor == 1.0):
        return None
    rest = {base: exponent for base, exponent in powers.items() if base not in under}
    if all(exponent < 0 for exponent in under.values()) and factor == 1.0:
        root = {write_product(1.0, {base: -exponent for base, exponent in under.items()}): -0.5}
    else:
        root = {write_product(factor, under): 0.5}
    merge_powers(rest, root, ROUNDING)
    return (math.copysign(1.0, coefficient) if factor != 1.0 else coefficient), rest


def _decades(value: float) -> float:  # how many powers of ten a constant is away from 1
    return abs(math.log10(abs(value))) if value and math.isfinite(value) else math.inf


def _is_sane(factor: float) -> bool:
    return 1 / LARGEST_FACTOR <= abs(factor) <= LARGEST_FACTOR


_REWRITES: dict[Callable[[float, Factors], Term | None], int] = {
    saturation: 1,
    lifted: MOST_ADDED,
    common_factors: MOST_ADDED,
    positive_sums: MOST_ADDED,
    one_wave: 0,
    _bell: 1,
    positive_amplitude: 1,
    _scaled_exponential: 1,
    _scaled_power: 1,
    _distance: MOST_ADDED,
    _one_root: 1,
}
"""The rewrites of a product in their order, and by how many units of complexity each may make it longer."""


# --- constants ------------------------------------------------------------------------------------------------------


def _is_round(value: float) -> bool:
    return is_same(value, float(f"{value:.{ROUND_DIGITS}g}"))
