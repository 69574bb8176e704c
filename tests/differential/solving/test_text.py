"""Differential equations as text."""

from __future__ import annotations

import pytest
import sympy

from gmeql.differential.solving.text import read_text, split_commas

x, t = sympy.Symbol("x", real=True), sympy.Symbol("t", real=True)
y, z, u = sympy.Function("y"), sympy.Function("z"), sympy.Function("u")


def test_primes_and_conditions() -> None:
    problem = read_text("y'' + 0.1*y'(x) = -y^2 + e", ics="y(0)=1/3, y'(pi)=sin(0.1)", domain="0..2*pi")
    D = y(x).diff(x)
    assert problem.equations == [sympy.Eq(D.diff(x) + D / 10, -(y(x) ** 2) + sympy.E)]
    assert problem.functions == [y(x)]
    assert problem.ics[0] == (y(0), sympy.Rational(1, 3))
    assert problem.ics[1] == (D.subs(x, sympy.pi), sympy.sin(sympy.Rational(1, 10)))
    assert problem.domain == {x: (0, 2 * sympy.pi)}


def test_systems_and_their_variable() -> None:
    problem = read_text("y' = z*t; z' = -k*y", parameters=["k"])
    assert problem.equations[0] == sympy.Eq(y(t).diff(t), z(t) * t)
    assert problem.functions == [y(t), z(t)]
    assert [p.name for p in problem.parameters] == ["k"]


def test_subscripts_are_derivatives_by_variables() -> None:
    problem = read_text("u_t = u_xx + u*u_x", ics="u(x, 0)=sin(x), u_t(x,0)=0", domain="x=0..1, t=0..2")
    v = u(t, x)
    assert problem.equations == [sympy.Eq(v.diff(t), v.diff(x, 2) + v * v.diff(x))]
    assert problem.domain == {x: (0, 1), t: (0, 2)}


def test_the_order_of_arguments_is_that_of_the_variables() -> None:
    problem = read_text("u_t = u_xx", ics="u(x, 0)=sin(x), u_t(x,0)=0", variables=["x", "t"])
    assert problem.ics == [(u(x, 0), sympy.sin(x)), (u(x, t).diff(t).subs(t, 0), 0)]


def test_commas_in_brackets_do_not_split() -> None:
    assert split_commas("u(0, y)=1 , u(x, 0)=f(2, 3),") == ["u(0, y)=1", "u(x, 0)=f(2, 3)"]


@pytest.mark.parametrize(
    ("equation", "options", "sentence"),
    [
        ("", {}, "empty"),
        ("y = x", {}, "holds no derivative"),
        ("y' = y = 1", {}, "is no equation"),
        ("y'", {}, "is no equation"),
        ("y' = u_x", {}, "both primes and subscripts"),
        ("y' = a + b", {}, "is one of a, b the variable"),
        ("y' = 2y", {}, "cannot be read"),
        ("y' = foo(y)", {}, "calls 'foo'"),
        ("y' = __import__('os')", {"variables": ["x"]}, "cannot be read"),
        ("y' = 9**9**9**9", {}, "too large"),
        ("y''''''''' = 1", {}, "order 9"),
        ("y' = y", {"ics": "y=1"}, "is no condition"),
        ("y' = y", {"ics": "z(0)=1"}, "is no condition"),
        ("y' = y", {"ics": "y(0,1)=1"}, "has 1 variable"),
        ("y' = y", {"domain": "0-1"}, "write it like 0..1"),
        ("y' = y", {"domain": "q=0..1"}, "domain of q"),
        ("y' = y", {"domain": "0..x"}, "between two numbers"),
        ("u_tq = u_xx", {"variables": ["x", "t"]}, "derivative by q"),
        ("y' = y*x", {"variables": ["y"]}, "unknown function and a variable"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(equation: str, options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_text(equation, **options)
