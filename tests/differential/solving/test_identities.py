"""What vanishes is shown to, what does not is not."""

from __future__ import annotations

import pytest
import sympy

from gmeql.differential.solving.identities import vanishes

x, y = sympy.Symbol("x", positive=True), sympy.Symbol("y", real=True)
exp, log, sin, cos, sqrt, tanh = sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.sqrt, sympy.tanh
ZEROS = [
    sin(x) ** 2 + cos(x) ** 2 - 1,
    sin(x + sympy.Rational(1, 10)) - sin(x) * cos(sympy.Rational(1, 10)) - cos(x) * sin(sympy.Rational(1, 10)),
    tanh(y) - (exp(2 * y) - 1) / (exp(2 * y) + 1),
    exp(x) * sympy.E - exp(x + 1),
    2**x - exp(x * log(2)),
    log(x**2 + x) - log(x) - log(1 + x),
    log(6) - log(2) - log(3),
    sqrt(1 + sqrt(x)) ** 4 - 1 - x - 2 * sqrt(x),
    1 / (1 + sqrt(x)) - (1 - sqrt(x)) / (1 - x),
    sqrt(1 / (1 + y**2)) * sqrt(1 + y**2) - 1,
    sin(2 * sympy.atan(y)) - 2 * y / (1 + y**2),
    (x + y) ** 7 - sympy.expand((x + y) ** 7),
]
OTHERS = [
    sin(x) - x,
    sin(x) ** 2 + cos(x) ** 2 - 2,
    sympy.pi - sympy.Rational(355, 113),
    exp(x) - exp(x * sympy.Rational(100001, 100000)),
    log(x) - log(x + sympy.Rational(1, 10**9)),
    sqrt(2) - sympy.Rational(141421356237, 10**11),
    x - sympy.Float(1.0) * x + sympy.Float(1e-30) * x,
]


@pytest.mark.parametrize("expression", ZEROS, ids=str)
def test_zeros_are_shown(expression: sympy.Expr) -> None:
    assert vanishes(expression)


@pytest.mark.parametrize("expression", OTHERS, ids=str)
def test_nothing_else_is(expression: sympy.Expr) -> None:
    assert not vanishes(expression)


def test_what_would_grow_without_end_is_given_up() -> None:
    many = sum((sqrt(x + k) for k in range(12)), start=sympy.Integer(0)) ** 30
    assert not vanishes(many - many.subs(x, x + 1))
    assert not vanishes(exp(exp(x)) ** 1000 * x**100000 - x)
