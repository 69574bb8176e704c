"""A formula as one fraction: everything over a common denominator, multiplied out, common factors cancelled.

Sums of nested fractions that search and fit put together often hide a short ratio of two sums.

>>> from gmeql.formula.expression import Expression
>>> from gmeql.formula.simplify import simplify
>>> a, b, c = Variable(0), Variable(1), Variable(2)
>>> nested = build("add", build("div", build("sub", a, b), build("add", build("inv", c), Constant(1.0))), b)
>>> print(Expression(nested, ("a", "b", "c")))
(a - b)/(1/c + 1) + b
>>> print(Expression(simplify(as_ratio(nested)), ("a", "b", "c")))
(a*c + b)/(c + 1)
"""

from __future__ import annotations

import math

from gmeql.formula.limits import PLAIN_EXPONENT_LIMIT
from gmeql.formula.nodes import Constant, Node, Variable, build, exponent_of
from gmeql.formula.sums import Polynomial, Rounding, add, divide, multiply, quotient, scale, shared_powers

Sum = Polynomial[Node]
Ratio = tuple[Sum, Sum]

MAX_TERMS = 24
"""Sums of more terms are given up: nobody would read them."""
ROUNDING = Rounding(exponents=0.0, terms=1e-12)
"""Exponents are whole here; coefficients have been multiplied a few times."""
_UNIT: Sum = {(): 1.0}


def as_ratio(root: Node) -> Node | None:
    """The formula as one fraction of two sums, also inside its functions; None where that grows too long."""
    try:
        return _write(_ratio(root))
    except ArithmeticError:
        return None


def _ratio(node: Node) -> Ratio:
    if isinstance(node, Constant):
        return {(): node.value}, _UNIT
    if isinstance(node, Variable) or node.protected:
        return {((node, 1.0),): 1.0}, _UNIT
    name = node.operator
    if name in ("add", "sub", "neg"):
        parts = [_ratio(arg) for arg in node.args]
        if name != "add":
            parts[-1] = scale(parts[-1][0], -1.0), parts[-1][1]
        total = parts[0]
        for part in parts[1:]:
            total = _sum(total, part)
        return total
    if name in ("mul", "div", "inv"):
        parts = [_ratio(arg) for arg in node.args]
        if name != "mul":
            parts[-1] = _inverse(parts[-1])
        total = parts[0]
        for part in parts[1:]:
            total = _product(total, part)
        return _cancelled(total)
    power = exponent_of(name, node.args)
    if power is not None and power.is_integer() and 0 < abs(power) <= PLAIN_EXPONENT_LIMIT:
        base = _ratio(node.args[0])
        total = base
        for _ in range(abs(int(power)) - 1):
            total = _product(total, base)
        return total if power > 0 else _inverse(total)
    atom = build(name, *(_write(_ratio(arg)) for arg in node.args))
    return {((atom, 1.0),): 1.0}, _UNIT


def _times(left: Sum, right: Sum) -> Sum:
    return multiply(left, right, ROUNDING, max_terms=MAX_TERMS)


def _product(left: Ratio, right: Ratio) -> Ratio:
    return _times(left[0], right[0]), _times(left[1], right[1])


def _sum(left: Ratio, right: Ratio) -> Ratio:
    if left[1] == right[1]:
        return _cancelled((add([left[0], right[0]], ROUNDING.terms), left[1]))
    above = add([_times(left[0], right[1]), _times(right[0], left[1])], ROUNDING.terms)
    return _cancelled((above, _times(left[1], right[1])))


def _inverse(ratio: Ratio) -> Ratio:
    if not ratio[0]:
        raise ArithmeticError("division by zero")
    return ratio[1], ratio[0]


def _cancelled(ratio: Ratio) -> Ratio:
    """Powers that every term above and below shares, taken out; a sum on one side that divides that on the other, too."""
    above, below = ratio
    if not above:
        return {}, _UNIT
    shared = shared_powers([dict(product) for part in ratio for product in part])
    if shared:
        above, below = divide(above, shared, ROUNDING), divide(below, shared, ROUNDING)
    for one, other in ((above, below), (below, above)):
        if 1 < len(other) <= len(one) and (left := quotient(one, other, ROUNDING, max_terms=MAX_TERMS)) is not None:
            return (left, _UNIT) if other is below else (_UNIT, left)
    return above, below


def _write(ratio: Ratio) -> Node:
    above, below = _cancelled(ratio)
    return build("div", _written(above), _written(below))


def _written(total: Sum) -> Node:
    if not all(map(math.isfinite, total.values())):
        raise OverflowError("a constant of the formula overflowed")
    terms = [
        build("mul", Constant(coefficient), *(build("pow", base, Constant(power)) for base, power in product))
        for product, coefficient in total.items()
    ]
    return build("add", *terms) if terms else Constant(0.0)
