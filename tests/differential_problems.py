"""Differential equations that several test files share, with their solutions."""

from __future__ import annotations

from typing import Any

import sympy

from gmeql.differential.solving.problem import Problem
from gmeql.differential.solving.reading import read_problem

x, t, k = sympy.Symbol("x"), sympy.Symbol("t"), sympy.Symbol("k")
y, w, u = sympy.Function("y"), sympy.Function("w"), sympy.Function("u")
SLOPE = y(x).diff(x)


def slope_at(point: Any, order: int = 1) -> Any:
    """The derivative of y at a point, as SymPy writes it in conditions."""
    return y(x).diff(x, order).subs(x, point)


def oscillator(**more: Any) -> Problem:
    """y'' = -y, y(0) = 0, y'(0) = 1: sin(x)."""
    return read_problem(sympy.Eq(y(x).diff(x, 2), -y(x)), y(x), ics={y(0): 0, slope_at(0): 1}, **more)


def laplace() -> Problem:
    """u_xx + u_tt = 4 on the unit square with the values of x**2 + t**2 on its edge."""
    edge = {u(0, t): t**2, u(1, t): 1 + t**2, u(x, 0): x**2, u(x, 1): x**2 + 1}
    return read_problem(sympy.Eq(u(x, t).diff(x, 2) + u(x, t).diff(t, 2), 4), u(x, t), ics=edge)
