"""Sums of products with what their terms have in common before brackets, as people write them.

A sum of sixteen products is longer than a front takes, but a*(x + y)*(1 + u/v) + (x - z)/w, of which it is the expansion, is
not. A power that several terms have is taken out of these; what else stands before the same bracket joins it.
"""

from __future__ import annotations

from collections import Counter

from gmeql.formula.nodes import Call, Constant, Node, build, tree_complexity
from gmeql.formula.products import as_product, is_sum, split_terms, write_product

_Product = frozenset[tuple[Node, float]]
"""Bases with their exponents."""
_Sum = dict[_Product, float]

SAME = 1e-9
"""By how much factors before equal brackets may differ, relative to their size: the digits that fits leave."""


def bracketed(root: Node) -> Node:
    """A formula whose every sum stands in the shortest way that taking out common factors gives."""
    if not isinstance(root, Call):
        return root
    if not is_sum(root):
        return build(root.operator, *map(bracketed, root.args))
    total: _Sum = {}
    for factor, node in split_terms(root):
        coefficient, powers = as_product(node)
        key = frozenset(powers.items())
        total[key] = total.get(key, 0.0) + factor * coefficient
    return min([_plain(total), *(_taken_out(total, common) for common in _common(total))], key=tree_complexity)


def _plain(total: _Sum) -> Node:
    return build("add", *(write_product(factor, dict(key)) for key, factor in total.items()))


def _common(total: _Sum) -> list[_Product]:
    """Powers that two terms or more have, those of most terms first."""
    counts = Counter((base, exponent > 0) for key in total for base, exponent in key)
    found = []
    for (base, is_above), count in sorted(counts.items(), key=lambda item: -item[1]):
        if count > 1:
            least = min(abs(e) for key in total for b, e in key if b == base and (e > 0) == is_above)
            found.append(frozenset([(base, least if is_above else -least)]))
    return found


def _times(left: _Product, right: _Product, power: float = 1.0) -> _Product:
    """A product of powers times another, or over it."""
    powers = dict(left)
    for base, exponent in right:
        powers[base] = powers.get(base, 0.0) + power * exponent
    return frozenset((base, exponent) for base, exponent in powers.items() if exponent)


def _holds(key: _Product, common: _Product) -> bool:
    ((base, least),) = common
    exponent = dict(key).get(base, 0.0)
    return exponent / least >= 1.0


def _taken_out(total: _Sum, common: _Product) -> Node:
    """The sum with a power before a bracket of all terms that have it, and with what else stands before that bracket."""
    inside = {_times(key, common, -1.0): factor for key, factor in total.items() if _holds(key, common)}
    rest = {key: factor for key, factor in total.items() if not _holds(key, common)}
    before: _Sum = {common: 1.0}
    first = next(iter(inside))
    for key in list(rest):
        if key not in rest:
            continue
        other, ratio = _times(key, first, -1.0), rest[key] / inside[first]
        same = {_times(one, other): ratio * factor for one, factor in inside.items()}
        if all(abs(rest.get(one, 0.0) - factor) <= SAME * abs(factor) for one, factor in same.items()):
            before[other] = before.get(other, 0.0) + ratio
            rest = {one: factor for one, factor in rest.items() if one not in same}
    whole = build("mul", _shortest(before), _shortest(inside))
    return build("add", whole, _shortest(rest)) if rest else whole


def _shortest(total: _Sum) -> Node:
    """A part of the sum with its most common power taken out, and so on inside."""
    common = _common(total)
    ways = [_plain(total), *(_taken_out(total, one) for one in common[:1])]
    return min(ways, key=tree_complexity) if total else Constant(0.0)
