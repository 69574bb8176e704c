"""The operator table: two forms of one function, slopes, SymPy forms."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy

from gmeql.formula.operators import NAMED_CONSTANTS, OPERATORS, USER_OPCODE, Operator, get_operator, operator_of_opcode
from thinned import thinned

HARD = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e-30, 1e30, -1e30, 1e-12, -1e-12, 100.0, -100.0]
"""Inputs at which unguarded functions or their slopes are nan or inf."""
BUILT_IN = [operator for operator in OPERATORS.values() if not operator.is_user_defined]
every_operator = pytest.mark.parametrize("operator", BUILT_IN, ids=lambda operator: operator.name)


def arguments(operator: Operator, values: list[float], dtype: type = np.float64) -> list[np.ndarray]:
    """Every combination of the values as arguments; dense operators are tried with two inputs."""
    count = 1 if operator.arity == 1 else 2
    return [a.ravel() for a in np.meshgrid(*[np.array(values, dtype)] * count)]


def ordinary(operator: Operator) -> list[np.ndarray]:
    """Arguments well inside the natural domain, away from kinks."""
    bounds = [
        (max(d.low, -2.5) + 0.06, min(d.high, 2.5) - 0.05) for d in operator._domains_for((0,) * max(operator.arity, 1))
    ]
    count = 1 if operator.arity == 1 else 2
    bounds = (bounds * count)[:count] if len(bounds) < count else bounds
    rng = np.random.default_rng(1)
    return [
        rng.uniform(max(low, 0.06) if operator.domains[-1].kind == "magnitude" else low, high, 200)
        for low, high in bounds
    ]


@every_operator
def test_protected_equals_natural_inside_the_domain(operator: Operator) -> None:
    args = arguments(operator, [*HARD, *np.linspace(-3, 3, 13)])
    inside = np.broadcast_to(operator.in_domain(*args), args[0].shape)
    assert inside.any()
    with np.errstate(all="ignore"):
        natural, protected = operator.natural(np, *args), operator.protected(np, *args)
    if operator.name in ("asin", "acos"):  # a hair around ±1 takes the value at the end
        inside = inside & (np.abs(args[0]) <= 1 - 1e-7)
    np.testing.assert_allclose(protected[inside], natural[inside], rtol=1e-15, atol=0)


def _value_and_slopes(operator: Operator, args: tuple) -> tuple:
    value, pull_back = jax.vjp(lambda *a: operator.protected(jnp, *a), *args)
    return value, pull_back(jnp.ones_like(value))


@pytest.mark.parametrize("dtype", thinned([np.float32, np.float64], 1))
def test_protected_values_and_slopes_are_finite_everywhere(dtype: type) -> None:
    """All operators in one program: compiling is what takes the time."""
    args = {operator.name: arguments(operator, HARD, dtype) for operator in BUILT_IN}
    with jax.enable_x64(dtype is np.float64):
        arrays = {name: tuple(jnp.asarray(a, dtype) for a in given) for name, given in args.items()}
        found = jax.jit(lambda given: {name: _value_and_slopes(OPERATORS[name], a) for name, a in given.items()})(
            arrays
        )
    for name, (value, slopes) in found.items():
        assert value.dtype == dtype
        for result in (value, *slopes):
            bad = ~np.isfinite(np.asarray(result))
            assert not bad.any(), (name, [float(a[bad][0]) for a in args[name]])


@every_operator
def test_jax_and_numpy_compute_the_same(operator: Operator) -> None:
    args = arguments(operator, [-2.0, -0.7, 0.3, 1.9])
    with jax.enable_x64(True):
        on_device = np.asarray(jax.jit(lambda *a: operator.protected(jnp, *a))(*(jnp.asarray(a) for a in args)))
    np.testing.assert_allclose(on_device, operator.protected(np, *args), rtol=1e-14)


@every_operator
def test_partials_are_the_slopes(operator: Operator) -> None:
    args = ordinary(operator)
    partials = operator.partials(np, *args)
    assert len(partials) == len(args)
    for i, partial in enumerate(partials):
        step = 1e-6 * np.maximum(1.0, np.abs(args[i]))
        up, down = ([*args[:i], args[i] + s * step, *args[i + 1 :]] for s in (1, -1))
        with np.errstate(all="ignore"):
            numeric = (operator.natural(np, *up) - operator.natural(np, *down)) / (2 * step)
        usable = np.isfinite(numeric) & np.isfinite(np.asarray(partial) * 1.0)
        if operator.name in ("abs", "div", "inv"):  # a kink or a pole
            usable &= np.abs(args[-1]) > 0.1
        assert usable.mean() > 0.9
        np.testing.assert_allclose(partial[usable], numeric[usable], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("protected", [False, True], ids=["natural", "protected"])
@every_operator
def test_sympy_form_computes_the_same_numbers(operator: Operator, protected: bool) -> None:
    values = [-150.0, -1.7, -0.4, 0.0, 0.3, 0.9, 2.0, 40.0] if protected else [0.2, 0.5, 0.9]
    args = arguments(operator, values)
    symbols = sympy.symbols("a b", real=True)[: len(args)]
    form = operator.protected_sympy(*symbols) if protected else operator.sympy(*symbols)
    expected = (operator.protected if protected else operator.natural)(np, *args)
    computed = [
        float(form.subs(dict(zip(symbols, map(sympy.Float, row), strict=True)))) for row in zip(*args, strict=True)
    ]
    np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-12)


def test_names_aliases_and_opcodes_are_unique() -> None:
    opcodes = [operator.opcode for operator in BUILT_IN]
    assert len(set(opcodes)) == len(opcodes) and max(opcodes) < USER_OPCODE
    aliases = [alias for operator in BUILT_IN for alias in operator.aliases if alias != operator.name]
    assert len(set(aliases)) == len(aliases) and not set(aliases) & set(OPERATORS)
    assert all(operator_of_opcode(operator.opcode) is operator for operator in BUILT_IN)
    assert [get_operator(a).name for a in ("+", "-", "×", "÷", "Σ", "Π", "x^2", "identity", "√", "ln")] == [
        "add", "sub", "mul", "div", "sum", "prod", "square", "id", "sqrt", "log",
    ]  # fmt: skip
    assert NAMED_CONSTANTS["pi"] == math.pi


def test_unknown_operator_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown operator 'sine'; known: id, add.*register_operator"):
        get_operator("sine")
    with pytest.raises(ValueError, match="no operator has opcode 777"):
        operator_of_opcode(777)
