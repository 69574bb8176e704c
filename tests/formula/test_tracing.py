"""Functions called with symbols: what was traced computes what the function computes, and the rest is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gmeql.formula.operators import OPERATORS
from gmeql.formula.tracing import NotTraceable, Traced, trace

PRIMITIVES: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "neg": np.negative,
    "less": np.less, "less_equal": np.less_equal, "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
} | {
    name: getattr(np, name)
    for name in "sin cos tan sqrt exp log tanh sinh cosh abs sign minimum maximum where log1p expm1".split()
}  # fmt: skip


def value(traced: Any, args: tuple[np.ndarray, ...]) -> Any:
    if not isinstance(traced, Traced):
        return np.float64(traced)
    if traced.operation == "argument":
        return args[traced.args[0]]
    return PRIMITIVES[traced.operation](*(value(arg, args) for arg in traced.args))


@pytest.mark.parametrize("form", ["natural", "protected"])
@pytest.mark.parametrize("name", [name for name, operator in OPERATORS.items() if operator.arity in (1, 2)])
def test_the_trace_of_every_operator_computes_its_value(name: str, form: str) -> None:
    operator = OPERATORS[name]
    points = np.array([-3.0, -1.0, -0.4, 0.0, 1e-13, 0.3, 1.0, 2.5, 200.0])
    args = tuple(a.ravel() for a in np.meshgrid(*[points] * operator.arity))
    function = getattr(operator, form)
    with np.errstate(all="ignore"):
        expected = np.broadcast_to(function(np, *args), args[0].shape)
        traced = np.broadcast_to(value(trace(function, operator.arity), args), args[0].shape)
    np.testing.assert_allclose(traced, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, x: xp.logaddexp(0.0, x),
        lambda xp, x: xp.reciprocal(xp.square(x) + 1.0),
        lambda xp, x: xp.clip(x, -1.0, 1.0) + xp.zeros_like(x),
        lambda xp, x: xp.where((x > 0) & ~(x >= 2), 2 - x, +xp.asarray(x, float)) / 3,
        lambda xp, x: xp.where((x < -1) | (x <= -2), abs(-x), 2**x),
    ],
)
def test_what_users_write(function: Callable[..., Any]) -> None:
    x = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(value(trace(function, 1), (x,)), function(np, x), rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda xp, x: x if x > 0 else -x, "branches on a value"),
        (lambda xp, x: float(x), "plain number"),
        (lambda xp, x: xp.sinc(x), "xp.sinc, which has no symbolic form"),
        (lambda xp, x: x[0], "failed on symbols"),
    ],
)
def test_what_has_no_symbols_is_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(NotTraceable, match=message):
        trace(function, 1)
