"""Natural domains of arguments, and the protected forms that are more than a projection into them.

Written over an array namespace `xp` (`numpy` or `jax.numpy`) and once more for SymPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Array = Any
Namespace = Any

TINY = 1e-12
"""Smallest magnitude a root, logarithm or denominator may see; below it the protected form takes over."""
QUOTIENT_LIMIT = 100.0
"""Protected quotients are clipped to this magnitude, as in the paper's released code."""
ANGLE_EDGE = 1.0 - 1e-7
"""Where the protected arcus functions stop following the natural ones, whose slope is infinite at 1."""


@dataclass(frozen=True)
class Domain:
    """Natural domain of one argument, and the projection of any real number into it.

    `kind` is `"interval"` (clip to [low, high]) or `"magnitude"` (take the absolute value, at least `low`).
    """

    low: float = -math.inf
    high: float = math.inf
    kind: str = "interval"

    def contains(self, x: Array) -> Array:
        """Whether each number lies in the natural domain."""
        return (x >= self.low) & (x <= self.high)

    def project(self, xp: Namespace, x: Array) -> Array:
        if self.kind == "magnitude":
            return xp.clip(xp.abs(x), self.low, self.high)
        if math.isinf(self.low) and math.isinf(self.high):
            return x
        return xp.clip(x, self.low, self.high)

    def project_sympy(self, x: Any) -> Any:
        import sympy

        if self.kind == "magnitude":
            x = sympy.Abs(x)
        if not math.isinf(self.low):
            x = sympy.Max(x, sympy.Float(self.low))
        if not math.isinf(self.high):
            x = sympy.Min(x, sympy.Float(self.high))
        return x


EVERYWHERE = Domain()
MAGNITUDE = Domain(TINY, math.inf, "magnitude")


def symmetric(limit: float) -> Domain:
    """All numbers up to a magnitude."""
    return Domain(-limit, limit)


def protected_quotient(xp: Namespace, a: Array, b: Array) -> Array:
    """a/b clipped to ±100, 0 for a zero denominator; the guard sits on the input so gradients stay finite."""
    divides = xp.abs(b) > TINY
    inside = divides & (xp.abs(a) <= QUOTIENT_LIMIT * xp.abs(b))
    quotient = xp.where(inside, a, 0.0) / xp.where(inside, b, 1.0)
    return xp.where(inside, quotient, xp.where(divides, QUOTIENT_LIMIT * xp.sign(a) * xp.sign(b), 0.0))


def protected_quotient_sympy(a: Any, b: Any) -> Any:
    import sympy

    limit = sympy.Float(QUOTIENT_LIMIT)
    return sympy.Piecewise(
        (sympy.Float(0.0), sympy.Abs(b) <= sympy.Float(TINY)),
        (a / b, sympy.Abs(a) <= limit * sympy.Abs(b)),
        (limit * sympy.sign(a) * sympy.sign(b), True),
    )


def protected_angle(name: str) -> Callable[..., Array]:
    """asin and acos at ±1 have infinite slope: clip a hair inside for the gradient, exact value outside."""

    def protected(xp: Namespace, x: Array) -> Array:
        x = xp.clip(x, -1.0, 1.0)
        inside = xp.abs(x) <= ANGLE_EDGE
        function = getattr(xp, name)
        end = xp.where(x > 0, function(xp.ones_like(x)), function(-xp.ones_like(x)))
        return xp.where(inside, function(xp.where(inside, x, 0.0)), end)

    return protected


def protected_angle_sympy(name: str) -> Callable[..., Any]:
    def protected(x: Any) -> Any:
        import sympy

        function = getattr(sympy, name)
        return sympy.Piecewise(
            (function(sympy.Integer(-1)), x < -ANGLE_EDGE),
            (function(sympy.Integer(1)), x > ANGLE_EDGE),
            (function(x), True),
        )

    return protected
