"""An operator's function called with symbols instead of numbers.

`operators.py` writes every function once, over an array namespace `xp`. Called with the namespace and the values
of this module, the same function returns a small graph of primitive operations instead of numbers. Derivative trees
and the code of protected or user-registered operators in other languages come from that graph, so nothing about a
function is written twice.

>>> from gmeql.formula.operators import get_operator
>>> trace(get_operator("log").protected, 1)
Traced('log', (Traced('maximum', (Traced('abs', (Traced('argument', (0,)),)), 1e-12)),))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Operand = Any  # Traced | float | int


class NotTraceable(ValueError):
    """The function does something that has no symbolic form here, such as a branch on a value."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Traced:
    """One primitive operation on operands that are Traced or plain numbers."""

    operation: str
    args: tuple[Operand, ...]

    __array_ufunc__ = None  # NumPy scalars on the left hand leave the operation to us

    def __repr__(self) -> str:
        return f"Traced({self.operation!r}, {self.args!r})"

    def __bool__(self) -> bool:
        raise NotTraceable("it branches on a value; write xp.where(condition, a, b) instead of if")

    def __float__(self) -> float:
        raise NotTraceable("it turns a value into a plain number; use functions of xp throughout")

    def __add__(self, other: Operand) -> Traced:
        return Traced("add", (self, other))

    def __radd__(self, other: Operand) -> Traced:
        return Traced("add", (other, self))

    def __sub__(self, other: Operand) -> Traced:
        return Traced("sub", (self, other))

    def __rsub__(self, other: Operand) -> Traced:
        return Traced("sub", (other, self))

    def __mul__(self, other: Operand) -> Traced:
        return Traced("mul", (self, other))

    def __rmul__(self, other: Operand) -> Traced:
        return Traced("mul", (other, self))

    def __truediv__(self, other: Operand) -> Traced:
        return Traced("div", (self, other))

    def __rtruediv__(self, other: Operand) -> Traced:
        return Traced("div", (other, self))

    def __pow__(self, other: Operand) -> Traced:
        return Traced("pow", (self, other))

    def __rpow__(self, other: Operand) -> Traced:
        return Traced("pow", (other, self))

    def __neg__(self) -> Traced:
        return Traced("neg", (self,))

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return Traced("abs", (self,))

    def __lt__(self, other: Operand) -> Traced:
        return Traced("less", (self, other))

    def __le__(self, other: Operand) -> Traced:
        return Traced("less_equal", (self, other))

    def __gt__(self, other: Operand) -> Traced:
        return Traced("less", (other, self))

    def __ge__(self, other: Operand) -> Traced:
        return Traced("less_equal", (other, self))

    def __and__(self, other: Operand) -> Traced:
        return Traced("and", (self, other))

    def __or__(self, other: Operand) -> Traced:
        return Traced("or", (self, other))

    def __invert__(self) -> Traced:
        return Traced("not", (self,))


_OPERATION_OF = {
    **{name: name for name in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh", "sinh", "cosh", "abs", "sign")},
    **{name: name for name in ("minimum", "maximum", "where", "log1p", "expm1")},
    **{"arcsin": "asin", "arccos": "acos", "arctan": "atan", "asin": "asin", "acos": "acos", "atan": "atan"},
    **{"absolute": "abs", "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div"},
    **{"power": "pow", "negative": "neg", "less": "less", "less_equal": "less_equal"},
    **{"logical_and": "and", "logical_or": "or", "logical_not": "not"},
}
"""Functions of NumPy's namespace that have a symbolic form, and the primitive each stands for."""


class TracingNamespace:
    """Stands in for `numpy` or `jax.numpy` while a function is traced."""

    pi, e, inf = math.pi, math.e, math.inf

    def __getattr__(self, name: str) -> Callable[..., Traced]:
        operation = _OPERATION_OF.get(name)
        if operation is None:
            known = ", ".join(sorted(_OPERATION_OF))
            raise NotTraceable(f"it calls xp.{name}, which has no symbolic form; there are: {known}")
        return lambda *args: Traced(operation, args)

    @staticmethod
    def ones_like(x: Operand) -> float:
        return 1.0

    @staticmethod
    def zeros_like(x: Operand) -> float:
        return 0.0

    @staticmethod
    def square(x: Operand) -> Operand:
        return Traced("pow", (x, 2))

    @staticmethod
    def reciprocal(x: Operand) -> Operand:
        return Traced("div", (1.0, x))

    @staticmethod
    def asarray(x: Operand, *_: Any, **__: Any) -> Operand:
        return x

    @staticmethod
    def logaddexp(a: Operand, b: Operand) -> Operand:
        """log(exp(a) + exp(b)) without overflow: max + log1p(exp(-|a - b|))."""
        gap = Traced("neg", (Traced("abs", (Traced("sub", (a, b)),)),))
        return Traced("maximum", (a, b)) + Traced("log1p", (Traced("exp", (gap,)),))

    @staticmethod
    def clip(x: Operand, low: Operand, high: Operand) -> Operand:
        if not (isinstance(low, float) and math.isinf(low)):
            x = Traced("maximum", (x, low))
        if not (isinstance(high, float) and math.isinf(high)):
            x = Traced("minimum", (x, high))
        return x


def trace(function: Callable[..., Any], n_args: int) -> Any:
    """What `function(xp, *args)` computes, as Traced operations on `Traced("argument", (i,))`.

    Raises NotTraceable, with the reason, where the function leaves what has a symbolic form.
    """
    arguments = [Traced("argument", (index,)) for index in range(n_args)]
    try:
        return function(TracingNamespace(), *arguments)
    except NotTraceable:
        raise
    except (TypeError, AttributeError, ValueError, NotImplementedError, ImportError) as error:
        raise NotTraceable(f"it failed on symbols ({error}); write it with functions of xp") from error
