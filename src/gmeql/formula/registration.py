"""Operators of users: probed with numbers, their slopes checked, before they join the table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gmeql.formula.domains import Array, Domain, Namespace
from gmeql.formula.operators import OPERATORS, USER_OPCODE, Operator, get_operator, is_known

_PROBES = np.array([-3.0, -1.0, -0.5, 0.25, 0.5, 1.0, 2.0, 7.0])


def register_operator(
    name: str,
    function: Callable[..., Array],
    *,
    arity: int = 1,
    derivative: Callable[..., Any] | None = None,
    sympy: Callable[..., Any] | None = None,
    complexity: int = 3,
    domain: tuple[float, float] = (-math.inf, math.inf),
    weighted_inputs: bool = True,
) -> Operator:
    """Add an operator of your own; it can then stand in `functions` and in layers like any other.

    `function(xp, *args)` is written over an array namespace, so that NumPy and JAX share it. `derivative` has the
    same signature and returns the slope (arity 1) or a tuple of slopes; without it, it is derived by JAX. `sympy`
    builds the SymPy form; without it the formula shows the plain name. `domain` bounds the arguments.

    Raises ValueError, saying what to mend, for a taken name, a wrong arity, nan on ordinary input, or no derivative.

    >>> import numpy as np
    >>> op = register_operator("softplus", lambda xp, x: xp.logaddexp(0.0, x),
    ...                        derivative=lambda xp, x: 1 / (1 + xp.exp(-x)))
    >>> round(float(op.natural(np, np.float64(0.0))), 4)
    0.6931
    >>> unregister_operator("softplus")
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"operator name must be a plain identifier such as 'softplus', got {name!r}")
    if is_known(name):
        raise ValueError(
            f"operator {name!r} exists already; choose another name or unregister_operator({name!r}) first"
        )
    if arity not in (1, 2):
        raise ValueError(f"arity of operator {name!r} must be 1 or 2, got {arity!r}")
    if not callable(function):
        raise ValueError(f"function of operator {name!r} must be callable as function(xp, *args), got {function!r}")
    low, high = domain
    if not low < high:
        raise ValueError(f"domain of operator {name!r} must be (low, high) with low < high, got {domain!r}")
    args = _probes(arity, low, high)
    _check_values(name, function, args)
    partials = _partials_from(function, derivative, arity)
    _check_derivative(name, function, partials, args)
    bounds = Domain(low, high)
    operator = Operator(
        name=name,
        arity=arity,
        opcode=max([USER_OPCODE - 1, *(op.opcode for op in OPERATORS.values())]) + 1,
        natural=function,
        partials=partials,
        sympy=sympy or _opaque_sympy(name),
        complexity=complexity,
        symbol=name,
        domains=(bounds,) * arity,
        weighted_inputs=weighted_inputs,
    )
    OPERATORS[name] = operator
    return operator


def unregister_operator(name: str) -> None:
    """Remove an operator that was registered by `register_operator`."""
    if not get_operator(name).is_user_defined:
        raise ValueError(f"operator {name!r} is built in and stays")
    del OPERATORS[name]


def _probes(arity: int, low: float, high: float) -> tuple[np.ndarray, ...]:
    """Arguments between both bounds at which an operator is tried, each with each."""
    probes = _PROBES[(_PROBES >= low) & (_PROBES <= high)]
    if len(probes) < 2:
        probes = np.linspace(max(low, -1e3), min(high, 1e3), 8)
    return (probes,) if arity == 1 else tuple(a.ravel() for a in np.meshgrid(probes, probes))


def _check_values(name: str, function: Callable[..., Array], args: tuple[np.ndarray, ...]) -> None:
    """Refuse a function that takes other arguments, is not element by element, or not finite at one of the probes."""
    arity = len(args)
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(np, *args), float)
    except TypeError as error:
        raise ValueError(
            f"operator {name!r} has arity {arity}, but function(xp, {', '.join('ab'[:arity])}) failed: {error}. "
            "Write it as function(xp, x) for arity 1 or function(xp, a, b) for arity 2."
        ) from error
    if values.shape != args[0].shape:
        raise ValueError(
            f"operator {name!r} must map arrays element by element: got shape {values.shape} for {args[0].shape}"
        )
    if not np.isfinite(values).all():
        where = tuple(float(a[~np.isfinite(values)][0]) for a in args)
        raise ValueError(
            f"operator {name!r} is not finite at {where}; guard its input with xp.where/xp.clip or narrow domain="
        )


def _opaque_sympy(name: str) -> Callable[..., Any]:
    def build(*args: Any) -> Any:
        import sympy

        return sympy.Function(name)(*args)

    return build


def _partials_from(
    function: Callable[..., Array], derivative: Callable[..., Any] | None, arity: int
) -> Callable[..., tuple[Array, ...]]:
    if derivative is not None:

        def given(xp: Namespace, *args: Array) -> tuple[Array, ...]:
            slopes = derivative(xp, *args)
            return slopes if isinstance(slopes, tuple) else (slopes,)

        return given

    def derived(xp: Namespace, *args: Array) -> tuple[Array, ...]:
        import jax
        import jax.numpy as jnp

        with jax.enable_x64(True):
            flat = [jnp.asarray(np.ravel(a), jnp.float64) for a in args]
            slopes = jax.vmap(jax.grad(lambda *a: function(jnp, *a), argnums=tuple(range(arity))))(*flat)
            return tuple(np.asarray(s).reshape(np.shape(args[0])) for s in slopes)

    return derived


def _check_derivative(
    name: str, function: Callable[..., Array], partials: Callable[..., tuple[Array, ...]], args: tuple[Array, ...]
) -> None:
    advice = "give derivative=lambda xp, x: ... (a tuple of slopes for arity 2)"
    try:
        with np.errstate(all="ignore"):
            slopes = partials(np, *args)
    except Exception as error:  # whatever a user's function raises becomes one clear refusal
        why = str(error).partition("\n")[0]
        raise ValueError(f"operator {name!r} has no derivative: {why}; {advice}") from error
    if len(slopes) != len(args):
        raise ValueError(f"operator {name!r} needs {len(args)} slopes, its derivative gave {len(slopes)}; {advice}")
    for index, slope in enumerate(slopes):
        slope = np.asarray(slope, float) * np.ones_like(args[0])
        step = 1e-6 * np.maximum(1.0, np.abs(args[index]))
        shifted = [[*args[:index], args[index] + sign * step, *args[index + 1 :]] for sign in (1, -1)]
        with np.errstate(all="ignore"):
            numeric = (function(np, *shifted[0]) - function(np, *shifted[1])) / (2 * step)
        smooth = np.isfinite(numeric) & np.isfinite(slope)
        close = np.abs(slope - numeric) <= 1e-3 * np.maximum(1.0, np.abs(numeric))
        if smooth.sum() == 0 or np.mean(close[smooth]) < 0.75:  # a few kinks are fine, a wrong slope is not
            raise ValueError(f"the derivative of operator {name!r} does not match its values; {advice}")
