"""Residuals given as functions, of SymPy objects or as for numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy

from gmeql.differential.solving.callables import Standin, called

x, t = sympy.symbols("x t")
y, z, u = (sympy.Function(name) for name in "yzu")


def test_sympy_residuals_are_called_as_they_are() -> None:
    assert called(lambda x, y: sympy.Eq(y.diff(x), y), [x], [y(x)]) == [sympy.Eq(y(x).diff(x), y(x))]
    assert called(lambda *given: given[1].diff(given[0]), [x], [y(x)]) == [y(x).diff(x)]


def test_residuals_as_for_numbers_become_algebra() -> None:
    (found,) = called(lambda x, y, dy, ddy: ddy + 2 * np.sin(y) / x - np.float64(3.0) ** dy, [x], [y(x)])
    assert found == y(x).diff(x, 2) + 2 * sympy.sin(y(x)) / x - 3.0 ** y(x).diff(x)
    (found,) = called(lambda x, y: np.exp(-y) - 1 / np.sqrt(x) + np.square(y), [x], [y(x)])
    assert found == sympy.exp(-y(x)) - 1 / sympy.sqrt(x) + y(x) ** 2
    assert called(lambda x, y, z, dy, dz: [dy - z, dz + y], [x], [y(x), z(x)]) == [
        y(x).diff(x) - z(x), z(x).diff(x) + y(x)
    ]  # fmt: skip


@pytest.mark.parametrize("function", ["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "arctan"])
def test_functions_of_numpy_have_their_values(function: str) -> None:
    found = getattr(np, function)(Standin(x)).expression
    assert math.isclose(float(found.subs(x, 0.3)), float(getattr(np, function)(0.3)))


@pytest.mark.parametrize(
    ("residual", "sentence"),
    [
        (lambda x, y, dy: math.sin(y) + dy, "not those of math"),
        (lambda x, y, dy: np.floor(y) + dy, "cannot be called with symbols"),
        (lambda x: x, "takes 1 arguments"),
    ],
)
def test_what_takes_no_symbols_is_one_clear_error(residual: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        called(residual, [x], [y(x)])
    with pytest.raises(ValueError, match="takes 4 arguments"):
        called(lambda x, t, u, du: du, [x, t], [u(x, t)])
