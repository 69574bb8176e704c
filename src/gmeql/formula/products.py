"""A tree as a product: a coefficient, and bases with exponents; as terms; and the order in which they are written.

>>> as_product(Call("div", (Call("mul", (Constant(3.0), Call("square", (Variable(0),)))), Variable(1))))
(3.0, {Variable(index=0): 2.0, Variable(index=1): -1.0})
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, exponent_of, fold, tree_complexity
from gmeql.formula.sums import Powers, Rounding, merge_powers

Factors = Powers[Node]

ROUNDING = Rounding(exponents=1e-14, terms=5e-16)
"""Constants are exact here, up to the last digit."""


def as_product(node: Node) -> tuple[float, Factors]:
    """Coefficient and bases with exponents of a node in normal form."""
    coefficient, items = _product_items(node)
    return coefficient, dict(items)


@lru_cache(maxsize=50_000)
def _product_items(node: Node) -> tuple[float, tuple[tuple[Node, float], ...]]:
    coefficient, powers = _split_product(node)
    return coefficient, tuple(powers.items())


def _split_product(node: Node) -> tuple[float, Factors]:
    if isinstance(node, Constant):
        return node.value, {}
    if isinstance(node, Variable) or node.protected:
        return 1.0, {node: 1.0}
    name = node.operator
    if name == "neg":
        coefficient, powers = as_product(node.args[0])
        return -coefficient, powers
    if name in ("mul", "div"):
        coefficient, powers = 1.0, {}
        for i, arg in enumerate(node.args):
            factor, more = as_product(arg)
            sign = -1.0 if name == "div" and i == 1 else 1.0
            coefficient *= factor**sign if factor != 0 else (math.nan if sign < 0 else 0.0)
            merge_powers(powers, {base: sign * exponent for base, exponent in more.items()}, ROUNDING)
        return coefficient, powers
    if (exponent := exponent_of(name, node.args)) is not None:
        return 1.0, {node.args[0]: exponent}
    return 1.0, {node: 1.0}


def write_product(coefficient: float, powers: Factors) -> Node:
    """The tree of a coefficient and bases with exponents, in writing order: what is divided by stands below."""
    ordered = sorted(powers.items(), key=lambda item: writing_order(item[0]))
    above = [build("pow", base, Constant(exponent)) for base, exponent in ordered if exponent > 0]
    below = [build("pow", base, Constant(-exponent)) for base, exponent in ordered if exponent < 0]
    if coefficient == -1.0 and above:
        numerator = build("neg", build("mul", *above))
    else:
        numerator = build("mul", Constant(coefficient), *above) if above else Constant(coefficient)
    return build("div", numerator, build("mul", *below)) if below else numerator


def with_gathered_factors(root: Node) -> Node:
    """The same tree with the constants of every product in one, at its front. Nothing is moved across a sum or a function,
    so where they are powers of two no value changes, not even where nearly equal terms are subtracted."""

    def factor_of(node: Node) -> tuple[float, Node | None]:
        if isinstance(node, Constant):
            return node.value, None
        if isinstance(node, Call) and node.operator == "mul" and isinstance(node.args[0], Constant):
            return node.args[0].value, node.args[1]
        return 1.0, node

    def call(node: Call, args: list[Node]) -> Node:
        if node.operator != "mul":
            return Call(node.operator, tuple(args), node.protected)
        (a, left), (b, right) = map(factor_of, args)
        rest = [each for each in (left, right) if each is not None]
        product = rest[0] if len(rest) == 1 else Call("mul", tuple(rest)) if rest else None
        if product is None:
            return Constant(a * b)
        return product if a * b == 1.0 else Call("mul", (Constant(a * b), product))

    return fold(root, lambda leaf: leaf, call)


def power_of(value: float, exponent: float) -> float:
    try:
        result = value**exponent
    except (OverflowError, ZeroDivisionError):
        return math.nan
    return result if isinstance(result, float) else math.nan


def is_sum(node: Node) -> bool:
    return isinstance(node, Call) and node.operator in ("add", "sub") and not node.protected


def split_terms(root: Node) -> list[tuple[float, Node]]:
    """A formula as terms with coefficients: 3*x + sin(y) is 3 times x and 1 times sin(y).

    >>> split_terms(Call("add", (Call("mul", (Constant(3.0), Variable(0))), Constant(2.0))))
    [(3.0, Variable(index=0)), (2.0, Constant(value=1.0))]
    """
    if isinstance(root, Call) and is_sum(root):
        found = split_terms(root.args[0])
        for arg in root.args[1:]:
            sign = -1.0 if root.operator == "sub" else 1.0
            found += [(sign * coefficient, term) for coefficient, term in split_terms(arg)]
        return found
    coefficient, powers = as_product(root)
    return [(coefficient, write_product(1.0, powers))]


def new_terms(roots: Iterable[Node], known: Iterable[Node], *, most: int) -> list[Node]:
    """Terms of formulas that are not known yet, in the order of the formulas, at most so many."""
    seen = set(known)
    found: list[Node] = []
    for root in roots:
        for _, term in split_terms(root):
            if term not in seen and len(found) < most:
                seen.add(term)
                found.append(term)
    return found


def nicest_factor(constant: float, coefficients: list[float]) -> float:
    """The coefficient to divide a sum by: the one that leaves most whole numbers; the constant and the first win ties."""
    values = ([constant] if constant else []) + coefficients

    def whole(factor: float) -> int:
        return sum(abs(v / factor - round(v / factor)) < 1e-7 * abs(v / factor) for v in values)

    return max(values, key=whole)


@lru_cache(maxsize=20_000)
def writing_order(node: Node) -> tuple[int, float, str]:
    """Writing order: by the first column that appears, simpler parts first, then by their text."""
    first = fold(node, lambda leaf: leaf.index if isinstance(leaf, Variable) else 10**9, lambda call, args: min(args))
    return first, tree_complexity(node) if first == 10**9 else -_degree(node), repr(node)


def _degree(node: Node) -> float:
    """Highest exponent of a term, so that cubes come before squares."""
    _, powers = as_product(node)
    return max((abs(e) for e in powers.values()), default=0.0)
