"""Residuals given as functions: called with SymPy objects, or with stand-ins that NumPy's functions take.

A person may write `lambda x, y: y.diff(x) + y` with SymPy in mind, or, as for numbers, `lambda x, y, dy: dy + np.sin(y)` with the
derivatives as further arguments. Both become algebra, so that a closed form can be proven either way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

FUNCTIONS = {
    "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "exp": "exp", "log": "log",
    "sqrt": "sqrt", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "square": "", "fabs": "Abs",
}  # fmt: skip
"""Functions of NumPy that may stand in a residual, and what SymPy calls them."""


class Standin:
    """A SymPy object where a number is expected. NumPy's functions of an object call its method of their name."""

    def __init__(self, expression: Any) -> None:
        self.expression = expression

    def __getattr__(self, name: str) -> Callable[[], Standin]:
        import sympy

        if name not in FUNCTIONS:
            raise AttributeError(f"a residual's arguments know no {name!r}; NumPy's {', '.join(FUNCTIONS)} are known")
        if name == "square":
            return lambda: self**2
        return lambda: Standin(getattr(sympy, FUNCTIONS[name])(self.expression))

    def __float__(self) -> float:
        raise TypeError(
            "a residual's arguments are symbols: use NumPy's functions (np.sin) or SymPy's, not those of math"
        )

    def __add__(self, other: Any) -> Standin:
        return Standin(self.expression + plain(other))

    def __sub__(self, other: Any) -> Standin:
        return Standin(self.expression - plain(other))

    def __rsub__(self, other: Any) -> Standin:
        return Standin(plain(other) - self.expression)

    def __mul__(self, other: Any) -> Standin:
        return Standin(self.expression * plain(other))

    def __truediv__(self, other: Any) -> Standin:
        return Standin(self.expression / plain(other))

    def __rtruediv__(self, other: Any) -> Standin:
        return Standin(plain(other) / self.expression)

    def __pow__(self, other: Any) -> Standin:
        return Standin(self.expression ** plain(other))

    def __rpow__(self, other: Any) -> Standin:
        return Standin(plain(other) ** self.expression)

    def __neg__(self) -> Standin:
        return Standin(-self.expression)

    def __abs__(self) -> Standin:
        return Standin(abs(self.expression))

    __radd__, __rmul__ = __add__, __mul__


def plain(value: Any) -> Any:
    """What a stand-in stands for; numbers of NumPy as Python's."""
    if isinstance(value, Standin):
        return value.expression
    return value.item() if hasattr(value, "item") else value


def called(equation: Callable[..., Any], variables: Sequence[Any], functions: Sequence[Any]) -> list[Any]:
    """What a residual returns for symbols, as a list of SymPy objects; a `ValueError` where it takes none.

    It is given the variables and the unknown functions, and, where it takes more arguments, the first derivatives of all
    functions, then the second, ...
    """
    order = _order(equation, len(variables), len(functions))
    if order == 0:
        try:
            return _listed(equation(*variables, *functions))
        except TypeError:  # functions of NumPy take no SymPy objects
            pass
    derivatives = [f.diff(variables[0], k) for k in range(1, order + 1) for f in functions]
    try:
        return _listed(equation(*map(Standin, [*variables, *functions, *derivatives])))
    except (TypeError, AttributeError) as error:
        raise ValueError(f"equation cannot be called with symbols: {error}") from None


def _listed(found: Any) -> list[Any]:
    return [plain(one) for one in (found if isinstance(found, list | tuple) else [found])]


def _order(equation: Callable[..., Any], variables: int, functions: int) -> int:
    """The highest derivative that a residual is given as an argument."""
    try:
        parameters = inspect.signature(equation).parameters.values()
    except (TypeError, ValueError):
        return 0
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    if any(p.kind == p.VAR_POSITIONAL for p in parameters) or len(places) == variables + functions:
        return 0
    order, rest = divmod(len(places) - variables - functions, functions)
    if order < 1 or rest or variables > 1:
        raise ValueError(
            f"equation takes {len(places)} arguments; give it the {variables} variables and {functions} unknown functions, and "
            "in one variable after them the derivatives of all functions, order by order: lambda x, y, dy, ddy: ..."
        )
    return order
