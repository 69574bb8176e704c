"""Algebra that keeps the value: one normal form for sums, products, powers and the odd and even functions.

A sum is a constant and terms with coefficients; a product is a coefficient and bases with exponents. Writing every
formula in that form folds constants, merges equal terms, cancels factors, drops zeros and removes redundant constants
(a factor inside a power and one outside are one constant). Values are kept on the formula's domain, up to rounding.

>>> from gmeql.formula.expression import Expression
>>> from gmeql.formula.nodes import Constant, Variable
>>> x, y = Variable(0), Variable(1)
>>> twice = Call("add", (Call("mul", (Constant(2.0), x)), Call("mul", (x, Constant(3.0))), Constant(0.0)))
>>> print(Expression(simplify(twice), ("x", "y")))
5*x
"""

from __future__ import annotations

from functools import lru_cache

from gmeql.formula.nodes import Call, Node, build, exponent_of, fold
from gmeql.formula.normal_form import (
    Positive,
    as_sum,
    merge_sums,
    negated,
    never,
    normal_exponential,
    normal_logarithm,
    normal_sum,
    raised,
    scaled_sum,
)
from gmeql.formula.products import ROUNDING, Factors
from gmeql.formula.rearranging import shortest_product
from gmeql.formula.sums import merge_powers

ALGEBRAIC = frozenset({"add", "sub", "neg", "mul", "div"})
ODD = frozenset({"sin", "tanh", "asin", "atan"})
EVEN = frozenset({"cos", "abs"})


def simplify(root: Node, positive: Positive = never) -> Node:
    """The normal form of a formula. `positive(node)` may vouch that a part is positive wherever it is used, which
    lets roots and fractional powers of products come apart. Raises ArithmeticError where a constant overflows."""
    return fold(root, lambda leaf: leaf, lambda call, args: _simplified(call, args, positive))


def _simplified(node: Call, args: list[Node], positive: Positive) -> Node:
    """A call of arguments in normal form, in normal form."""
    if node.protected:
        return Call(node.operator, tuple(args), protected=True)
    name = node.operator
    if name in ALGEBRAIC or exponent_of(name, args) is not None:
        return _normal(name, tuple(args), positive)
    if name in ODD or name in EVEN:
        constant, terms = as_sum(args[0], positive)
        leading = next(iter(terms.values()), constant)
        if leading < 0:
            flipped = build(name, scaled_sum(-1.0, constant, terms, positive))
            return negated(flipped, positive) if name in ODD else flipped
        return build(name, args[0])
    if name == "exp":
        return normal_exponential(*as_sum(args[0], positive), positive)
    if name == "log":
        return normal_logarithm(args[0], positive)
    return build(name, *args)


@lru_cache(maxsize=50_000)
def _normal(name: str, args: tuple[Node, ...], positive: Positive) -> Node:
    """A sum, product or power in normal form. Formulas are cut and written many times over, and share most of their parts."""
    if name in ("add", "sub", "neg"):
        terms = args if name == "add" else (*args[:-1], negated(args[-1], positive))
        return normal_sum(*merge_sums(terms, positive), positive)
    if (power := exponent_of(name, args)) is not None:
        return shortest_product(*raised(args[0], power, positive), positive)
    coefficient = 1.0
    powers: Factors = {}
    for place, arg in enumerate(args):
        factor, more = raised(arg, -1.0 if name == "div" and place == 1 else 1.0, positive)
        coefficient *= factor
        merge_powers(powers, more, ROUNDING)
    return shortest_product(coefficient, powers, positive)
