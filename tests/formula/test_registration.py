"""Operators of users: probed, checked, refused with advice."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy

from gmeql.formula.operators import OPERATORS, get_operator, operator_of_opcode
from gmeql.formula.registration import register_operator, unregister_operator


@pytest.fixture
def cleanup():
    before = set(OPERATORS)
    yield
    for name in set(OPERATORS) - before:
        unregister_operator(name)


def test_register_with_and_without_derivative(cleanup: None) -> None:
    given = register_operator(
        "softplus", lambda xp, x: xp.logaddexp(0.0, x), derivative=lambda xp, x: 1 / (1 + xp.exp(-x))
    )
    derived = register_operator("bump", lambda xp, x: xp.exp(-x * x), complexity=4)
    both = register_operator("hypot2", lambda xp, a, b: a * a + b * b, arity=2)
    assert given.is_user_defined and given.opcode != derived.opcode != both.opcode
    x = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(derived.partials(np, x)[0], -2 * x * np.exp(-x * x), rtol=1e-12)
    np.testing.assert_allclose(both.partials(np, x, x + 1)[1], 2 * (x + 1), rtol=1e-12)
    assert get_operator("bump") is derived and operator_of_opcode(derived.opcode) is derived
    assert str(derived.sympy(sympy.Symbol("x"))) == "bump(x)"


def test_opcodes_stay_unique_after_one_is_removed(cleanup: None) -> None:
    register_operator("first", lambda xp, x: x + 1.0)
    second = register_operator("second", lambda xp, x: x + 2.0)
    unregister_operator("first")
    third = register_operator("third", lambda xp, x: x + 3.0)
    assert third.opcode != second.opcode
    assert operator_of_opcode(second.opcode) is second


@pytest.mark.parametrize(
    ("name", "function", "options", "message"),
    [
        ("not a name", lambda xp, x: x, {}, "plain identifier"),
        ("sin", lambda xp, x: x, {}, "exists already"),
        ("mine", lambda xp, x: x, {"arity": 3}, "must be 1 or 2, got 3"),
        ("mine", "x + 1", {}, "must be callable"),
        ("mine", lambda xp, x: x, {"domain": (1.0, 1.0)}, "low < high"),
        ("mine", lambda xp, a, b: a + b, {}, "arity 1, but function.* failed"),
        ("mine", lambda xp, x: x, {"arity": 2}, "arity 2, but function.* failed"),
        ("mine", lambda xp, x: xp.sum(x), {}, "element by element"),
        ("mine", lambda xp, x: xp.log(x), {}, r"not finite at \(-3.0,\).*guard its input"),
        ("mine", lambda xp, x: x**2, {"derivative": lambda xp, x: x}, "does not match its values"),
        ("mine", lambda xp, a, b: a * b, {"arity": 2, "derivative": lambda xp, a, b: b}, "needs 2 slopes.* gave 1"),
        ("mine", lambda xp, x: np.vectorize(math.erf)(x), {}, "has no derivative.*give derivative="),
    ],
)
def test_bad_operators_are_refused(name: str, function: object, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        register_operator(name, function, **options)  # type: ignore[arg-type]
    assert "mine" not in OPERATORS


def test_a_narrow_domain_lets_a_partial_function_in(cleanup: None) -> None:
    operator = register_operator("mylog", lambda xp, x: xp.log(x), domain=(0.1, math.inf))
    assert operator.protected(np, np.array([-5.0])) == pytest.approx(math.log(0.1))


def test_built_in_operators_stay() -> None:
    with pytest.raises(ValueError, match="'sin' is built in"):
        unregister_operator("sin")
