"""Exact numbers behind fitted constants."""

from __future__ import annotations

import math

import pytest
import sympy

from gmeql.differential.solving.exact_numbers import numbers_in, recognise, units_of

PLAIN = units_of([])


@pytest.mark.parametrize(
    "number",
    [
        sympy.Rational(1, 5),
        sympy.Integer(10),
        sympy.sqrt(3) / 2,
        sympy.pi / 3,
        sympy.E,
        -sympy.log(2),
        sympy.Integer(1234567),
    ],
    ids=str,
)
def test_numbers_that_people_write_are_recognised_first(number: sympy.Expr) -> None:
    assert recognise(float(number) * (1 + 1e-13), PLAIN)[0] == number


def test_numbers_of_the_equation_are_units() -> None:
    x = sympy.Symbol("x")
    numbers = numbers_in([sympy.exp(7 * x) + sympy.sin(sympy.Rational(1, 10))])
    assert 7 in numbers and sympy.Rational(1, 10) in numbers
    assert recognise(math.exp(-7), units_of(numbers))[0] == sympy.exp(-7)
    assert recognise(3 * math.sin(0.1), units_of(numbers))[0] == 3 * sympy.sin(sympy.Rational(1, 10))


def test_other_numbers_are_not_recognised() -> None:
    assert recognise(0.7390851332151607, PLAIN) == ()  # cos(v) = v
    assert recognise(1e-15, PLAIN) == (0,)
