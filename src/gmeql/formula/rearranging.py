"""Products written in their shortest form: divisors cleared out of sums, factors taken under a power, or multiplied out."""

from __future__ import annotations

from gmeql.formula.nodes import Constant, Node, tree_complexity
from gmeql.formula.normal_form import Positive, Terms, as_sum, never, normal_product, normal_sum, scaled_sum
from gmeql.formula.products import ROUNDING, Factors, as_product, is_sum
from gmeql.formula.sums import add, merge_powers, scale

LARGEST_REARRANGED = 40
"""Products of more nodes are written as they come: nobody reads them, and trying every form takes long."""


def shortest_product(coefficient: float, powers: Factors, positive: Positive) -> Node:
    """A product in normal form, in the shortest of the ways to write it."""
    plain = normal_product(coefficient, powers, positive)
    if sum(map(is_sum, powers)) == 0 or len(powers) < 2 or plain.size > LARGEST_REARRANGED:
        return plain
    ways = [_cleared(base, powers, positive) for base in _denominators(powers)]
    ways += [_absorbed(base, total, powers, positive) for total in powers if is_sum(total) for base in powers]
    written = [normal_product(coefficient, way, positive) for way in ways if way is not None]
    shortest = min([plain, *written], key=tree_complexity)
    expanded = _expanded(coefficient, powers, positive)
    if expanded is not None and tree_complexity(expanded) <= tree_complexity(shortest):
        return expanded  # of two forms of one length, people write the sum
    return shortest


def _expanded(coefficient: float, powers: Factors, positive: Positive) -> Node | None:
    """The product multiplied out where one of its factors is a plain sum: (u + v) w is u w + v w."""
    sums = [base for base, exponent in powers.items() if is_sum(base)]
    if len(sums) != 1 or powers[sums[0]] != 1.0:
        return None
    total: Node = sums[0]
    for base, exponent in powers.items():
        if base is not sums[0]:
            total = _multiplied_sum(total, base, exponent, positive)
    return scaled_sum(coefficient, *as_sum(total, positive), positive)


def _absorbed(base: Node, total: Node, powers: Factors, positive: Positive) -> Factors | None:
    """The product with `base` taken under the power of a sum: sqrt(u + v)/sqrt(u) is sqrt(1 + v/u)."""
    times = powers[base] / powers[total]
    if is_sum(base) or not times.is_integer() or not (powers[total].is_integer() or positive(base)):
        return None
    inner = _multiplied_sum(total, base, times, positive)
    if not is_sum(inner):
        return None
    result = {part: exponent for part, exponent in powers.items() if part not in (base, total)}
    merge_powers(result, {inner: powers[total]}, ROUNDING)
    return result


def _multiplied_sum(total: Node, base: Node, exponent: float, positive: Positive) -> Node:
    """Every term of a sum times `base ** exponent`."""
    constant, terms = as_sum(total, positive)
    multiplied: list[Terms] = []
    offset = 0.0
    for core, c in [*terms.items(), *([(Constant(1.0), constant)] if constant else [])]:
        factor, core_powers = as_product(core)
        merge_powers(core_powers, {base: exponent}, ROUNDING)
        more_constant, more_terms = as_sum(normal_product(1.0, core_powers, positive), positive)
        offset += c * factor * more_constant
        multiplied.append(scale(more_terms, c * factor))
    return normal_sum(offset, add(multiplied), positive)


def _denominators(powers: Factors) -> list[Node]:
    """Bases that divide a term of a sum among the bases, or stand beside such a sum."""
    found: dict[Node, None] = {}
    for base in powers:
        if not is_sum(base):
            continue
        for core in as_sum(base, never)[1]:
            found.update({b: None for b, exponent in as_product(core)[1].items() if exponent < 0})
    return list(found)


def _cleared(base: Node, powers: Factors, positive: Positive) -> Factors | None:
    """The product with `base` multiplied into every sum that is divided by it: (u/b + v) b is u + v b."""
    result: Factors = {}
    for part, exponent in powers.items():
        terms = as_sum(part, positive)[1] if is_sum(part) else {}
        lowest = min((as_product(core)[1].get(base, 0.0) for core in terms), default=0.0)
        if lowest >= 0.0:
            merge_powers(result, {part: exponent}, ROUNDING)
            continue
        if not (lowest * exponent).is_integer() and not positive(base):
            return None
        total = _multiplied_sum(part, base, -lowest, positive)
        if not is_sum(total):
            return None
        merge_powers(result, {total: exponent}, ROUNDING)
        merge_powers(result, {base: lowest * exponent}, ROUNDING)
    return result
