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

from gmeql.formula.limits import PLAIN_EXPONENT_LIMIT
from gmeql.formula.nodes import Constant, Node, Variable, build, exponent_of

Monomial = tuple[tuple[Node, int], ...]
Polynomial = dict[Monomial, float]
Ratio = tuple[Polynomial, Polynomial]

MAX_TERMS = 24
"""Polynomials of more terms are given up: nobody would read them."""
_UNIT: Polynomial = {(): 1.0}


class _TooLong(Exception):
    """A polynomial outgrew MAX_TERMS."""


def as_ratio(root: Node) -> Node | None:
    """The formula as one fraction of two sums, also inside its functions; None where that grows too long."""
    try:
        return _write(_ratio(root))
    except (_TooLong, ArithmeticError):
        return None


def _ratio(node: Node) -> Ratio:
    if isinstance(node, Constant):
        return {(): node.value}, _UNIT
    if isinstance(node, Variable) or node.protected:
        return {((node, 1),): 1.0}, _UNIT
    name = node.operator
    if name in ("add", "sub", "neg"):
        parts = [_ratio(arg) for arg in node.args]
        if name != "add":
            parts[-1] = _scaled(parts[-1], -1.0)
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
            total = _times(total[0], part[0]), _times(total[1], part[1])
        return _cancelled(total)
    power = exponent_of(name, node.args)
    if power is not None and power.is_integer() and 0 < abs(power) <= PLAIN_EXPONENT_LIMIT:
        base = _ratio(node.args[0])
        total = base
        for _ in range(abs(int(power)) - 1):
            total = _times(total[0], base[0]), _times(total[1], base[1])
        return total if power > 0 else _inverse(total)
    atom = build(name, *(_write(_ratio(arg)) for arg in node.args))
    return {((atom, 1),): 1.0}, _UNIT


def _sum(left: Ratio, right: Ratio) -> Ratio:
    if left[1] == right[1]:
        return _cancelled((_added(left[0], right[0]), left[1]))
    above = _added(_times(left[0], right[1]), _times(right[0], left[1]))
    return _cancelled((above, _times(left[1], right[1])))


def _added(left: Polynomial, right: Polynomial) -> Polynomial:
    total = dict(left)
    for monomial, coefficient in right.items():
        before = total.get(monomial, 0.0)
        after = before + coefficient
        if abs(after) <= 1e-12 * (abs(before) + abs(coefficient)):
            total.pop(monomial, None)
        else:
            total[monomial] = after
    return total


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for first, a in left.items():
        for second, b in right.items():
            total = _added(total, {_joined(first, second): a * b})
            if len(total) > MAX_TERMS:
                raise _TooLong
    return total


def _joined(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for base, power in right:
        powers[base] = powers.get(base, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: repr(item[0])))


def _scaled(ratio: Ratio, factor: float) -> Ratio:
    return {monomial: factor * c for monomial, c in ratio[0].items()}, ratio[1]


def _inverse(ratio: Ratio) -> Ratio:
    if not ratio[0]:
        raise ArithmeticError("division by zero")
    return ratio[1], ratio[0]


def _cancelled(ratio: Ratio) -> Ratio:
    """Powers that every term above and below shares, taken out; a numerator that is a multiple of the other, too."""
    above, below = ratio
    if not above:
        return {}, _UNIT
    monomials = [dict(monomial) for part in ratio for monomial in part]
    shared = {base: min(m.get(base, 0) for m in monomials) for base in monomials[0]}
    shared = {base: power for base, power in shared.items() if power > 0}
    if shared:
        above, below = _divided(above, shared), _divided(below, shared)
    if above.keys() == below.keys():
        factors = [above[monomial] / below[monomial] for monomial in above]
        if max(factors) - min(factors) <= 1e-12 * abs(factors[0]):
            return {(): factors[0]}, _UNIT
    return above, below


def _divided(polynomial: Polynomial, shared: dict[Node, int]) -> Polynomial:
    result = {}
    for monomial, coefficient in polynomial.items():
        rest = ((base, power - shared.get(base, 0)) for base, power in monomial)
        result[tuple((base, power) for base, power in rest if power)] = coefficient
    return result


def _write(ratio: Ratio) -> Node:
    above, below = _cancelled(ratio)
    return build("div", _written(above), _written(below))


def _written(polynomial: Polynomial) -> Node:
    terms = [
        build("mul", Constant(coefficient), *(build("pow", base, Constant(float(power))) for base, power in monomial))
        for monomial, coefficient in polynomial.items()
    ]
    return build("add", *terms) if terms else Constant(0.0)
