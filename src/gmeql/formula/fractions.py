"""Fractions as people write them: rewrites of a product, given as its factor and powers; None where one does not apply."""

from __future__ import annotations

import math

from gmeql.formula.products import ROUNDING, Factors, is_sum, power_of
from gmeql.formula.sums import merge_powers
from gmeql.formula.terms import Term, exchanged, split_sum, write_sum


def saturation(coefficient: float, powers: Factors) -> Term | None:
    """(b*u/v + c)**-n as c**-n * v**n * (v + (b/c)*u)**-n, where `v` is what the one term of the sum is divided by."""
    for total, exponent in powers.items():
        if not is_sum(total) or exponent >= 0 or not exponent.is_integer():
            continue
        constant, terms = split_sum(total)
        if constant == 0.0 or len(terms) != 1:
            continue
        ((factor, parts),) = terms
        below = {base: -power for base, power in parts.items() if power < 0}
        above = {base: power for base, power in parts.items() if power > 0}
        share = factor / constant
        if not below or any(map(is_sum, below)) or not math.isfinite(share) or share == 0.0:
            continue
        rest = {base: power for base, power in powers.items() if base != total}
        merge_powers(rest, {base: -exponent * power for base, power in below.items()}, ROUNDING)
        merge_powers(rest, {write_sum(0.0, [(1.0, below), (share, above)]): exponent}, ROUNDING)
        return coefficient * power_of(constant, exponent), rest
    return None


def positive_sums(coefficient: float, powers: Factors) -> Term | None:
    """-u/(v - w) as u/(w - v); and (-v - w)*u as -(v + w)*u, above the line or below."""
    for total, exponent in powers.items():
        if is_sum(total) and exponent % 2 == 1.0:
            constant, terms = split_sum(total)
            signs = [factor < 0 for factor, _ in terms] + [constant < 0] * (constant != 0.0)
            if all(signs) or (exponent < 0 and coefficient < 0 and any(signs)):
                flipped = write_sum(-constant, [(-factor, parts) for factor, parts in terms])
                return -coefficient, exchanged(powers, total, flipped)
    return None


def common_factors(coefficient: float, powers: Factors) -> Term | None:
    """(u*v - u)*w as u*(v - 1)*w, above the line or below."""
    for total, exponent in powers.items():
        if not is_sum(total) or not exponent.is_integer():
            continue
        constant, terms = split_sum(total)
        if constant or len(terms) < 2:
            continue
        shared = {base: min(parts.get(base, 0.0) for _, parts in terms) for base in terms[0][1]}
        shared = {base: power for base, power in shared.items() if power > 0}
        if not shared:
            continue
        inverse = {base: -power for base, power in shared.items()}
        left = [(factor, _times(parts, inverse)) for factor, parts in terms]
        inside = write_sum(sum(factor for factor, parts in left if not parts), [term for term in left if term[1]])
        if not is_sum(inside):
            continue
        rest = _times({base: power for base, power in powers.items() if base != total}, {inside: exponent})
        return coefficient, _times(rest, {base: exponent * power for base, power in shared.items()})
    return None


def lifted(coefficient: float, powers: Factors) -> Term | None:
    """u/(v/w + r) as u*w/(v + r*w): no fraction below the line, unless all terms there are, as 1/(1/x + 1/y)."""
    for total, exponent in powers.items():
        if not is_sum(total) or exponent != -1.0:
            continue
        constant, terms = split_sum(total)
        below: Factors = {}
        for _, parts in terms:
            for base, power in parts.items():
                if power < 0:
                    below[base] = max(below.get(base, 0.0), -power)
        are_all = constant == 0.0 and all(any(power < 0 for power in parts.values()) for _, parts in terms)
        if not below or are_all or any(map(is_sum, below)):
            continue
        scale = constant if constant and len(terms) == 1 else 1.0  # as in saturation, of which this may be one
        plain: list[Term] = [*terms, *([(constant, {})] if constant else [])]
        multiplied = [(factor / scale, _times(parts, below)) for factor, parts in plain]
        inside = write_sum(sum(factor for factor, parts in multiplied if not parts), [t for t in multiplied if t[1]])
        rest = _times({base: power for base, power in powers.items() if base != total}, below)
        return coefficient / scale, _times(rest, {inside: exponent})
    return None


def _times(first: Factors, second: Factors) -> Factors:
    product = dict(first)
    merge_powers(product, second, ROUNDING)
    return product
