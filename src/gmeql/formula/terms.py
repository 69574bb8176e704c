"""A sum as its constant and terms, each a product of powers, and the tree that is written from them."""

from __future__ import annotations

from gmeql.formula.nodes import Call, Node, build
from gmeql.formula.products import ROUNDING, Factors, as_product, is_sum, write_product, writing_order
from gmeql.formula.sums import merge_powers

Term = tuple[float, Factors]
"""A factor, and bases with their exponents."""


def split_sum(node: Node) -> tuple[float, list[Term]]:
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


def write_sum(constant: float, terms: list[Term]) -> Node:
    """The tree of a sum: what is added before what is subtracted, a constant after the terms of its sign."""
    constants: list[Term] = [(constant, {})] if constant else []
    ordered: list[Term] = sorted(
        (t for t in terms if t[1]), key=lambda term: writing_order(write_product(1.0, term[1]))
    )
    ordered += [t for t in terms if not t[1]] + constants
    ordered.sort(key=lambda term: term[0] < 0)
    return build("add", *(write_product(factor, powers) for factor, powers in ordered))


def exchanged(powers: Factors, old: Node, new: Node) -> Factors:
    """A product with one base exchanged for another."""
    exchanged: Factors = {base: power for base, power in powers.items() if base != old}
    merge_powers(exchanged, {new: powers[old]}, ROUNDING)
    return exchanged
