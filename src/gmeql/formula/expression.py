"""A formula over named columns: a tree, and everything a person asks of it.

>>> x1, x2 = Variable(0), Variable(1)
>>> formula = Expression(Call("sqrt", (Call("add", (Constant(1.3), Call("div", (x2, x1)))),)), ("x1", "x2"))
>>> print(formula)
sqrt(1.3 + x2/x1)
>>> formula([[2.0, 5.4]]).tolist()
[2.0]
>>> print(formula.diff("x2"))
0.5/(x1*sqrt(1.3 + x2/x1))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql.formula.calculus import constants_of, differentiate, with_constants
from gmeql.formula.messages import listing, short
from gmeql.formula.nodes import (
    Call,
    Constant,
    Leaf,
    Node,
    Variable,
    fold,
    fold_constants,
    leaves,
    row_values,
    tree_complexity,
    used_columns,
)
from gmeql.formula.plain import from_plain, to_plain
from gmeql.formula.printing.export import export
from gmeql.formula.printing.notation import checked_digits
from gmeql.formula.printing.markup import to_exact_text, to_latex, to_mathml, to_text
from gmeql.formula.printing.sympy import to_sympy


@dataclass(frozen=True, slots=True, repr=False)
class Expression:
    """A formula over named columns.

    Attributes:
        root: the tree.
        names: column names of the data, any text; `x1`, `x2`, ... where none are given.
    """

    root: Node
    names: tuple[str, ...] = ()
    _digits: tuple[int, ...] | Callable[[], tuple[int, ...] | None] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.root, (Constant, Variable, Call)):
            raise ValueError(f"root must be a Constant, Variable or Call, got {short(self.root)}")
        if isinstance(self.names, str):
            raise ValueError(f"names must be a sequence of column names, got the single text {short(self.names)}")
        names = tuple(self.names)
        needed = 1 + max((leaf.index for leaf in leaves(self.root) if isinstance(leaf, Variable)), default=-1)
        if not names:
            names = tuple(f"x{i + 1}" for i in range(needed))
        for name in names:
            if not isinstance(name, str):
                raise ValueError(f"names must be texts, got {short(name)}")
        if needed > len(names):
            raise ValueError(f"the formula uses column {needed - 1}, but there are only {len(names)} names")
        object.__setattr__(self, "names", names if all(type(name) is str for name in names) else tuple(map(str, names)))
        if self._digits is not None and not callable(self._digits):
            object.__setattr__(self, "_digits", checked_digits(self._digits, len(self.constants)))

    @property
    def digits(self) -> tuple[int, ...] | None:
        """To how many digits each of `constants` is shown, where somebody knows how many they are worth; never of weight in a
        comparison or a value."""
        if callable(self._digits):
            found = self._digits()
            object.__setattr__(self, "_digits", None if found is None else checked_digits(found, len(self.constants)))
        return self._digits  # type: ignore[return-value]

    # --- values

    def __call__(self, X: Any) -> np.ndarray:
        """Value for every row of `X` [N, V] -> [N], float64. Outside an operator's domain it is nan or inf."""
        return row_values(self.root, self.names, X)

    @property
    def complexity(self) -> int:
        """Size for people, see `tree_complexity`."""
        return tree_complexity(self.root)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.root.size

    @property
    def depth(self) -> int:
        """Number of levels."""
        return self.root.depth

    @property
    def variables(self) -> tuple[int, ...]:
        """Columns that the formula uses, ascending."""
        return used_columns(self.root)

    @property
    def constants(self) -> tuple[float, ...]:
        """All constants from left to right, exponents included."""
        return tuple(constants_of(self.root))

    @property
    def is_protected(self) -> bool:
        """Whether any call is a protected form."""
        return fold(self.root, lambda leaf: False, lambda call, args: call.protected or any(args))

    def with_constants(self, values: Iterable[float]) -> Expression:
        """The same formula with its constants replaced, in the order of `constants`."""
        values = [float(value) for value in values]
        expected = len(self.constants)
        if len(values) != expected:
            raise ValueError(f"the formula has {expected} constants, got {len(values)} values")
        return Expression(with_constants(self.root, values), self.names)

    def with_digits(self, digits: Iterable[int]) -> Expression:
        """The same formula, its constants shown to so many digits each, in the order of `constants`.

        >>> half = Expression(Call("mul", (Constant(0.512345678912), Variable(0))))
        >>> print(half, half.with_digits([2]), half.with_digits([2]).exact())
        0.51235*x1 0.51*x1 0.512345678912*x1
        """
        return Expression(self.root, self.names, tuple(digits))

    def with_late_digits(self, digits: Callable[[], tuple[int, ...] | None]) -> Expression:
        """The same, to as many digits as a function says when somebody first asks for them."""
        return Expression(self.root, self.names, digits)

    def with_root(self, root: Node) -> Expression:
        """Another tree over the same columns."""
        return Expression(root, self.names)

    def natural(self) -> Expression:
        """The same formula with every call in its natural form."""
        return self.with_root(fold(self.root, lambda leaf: leaf, lambda call, args: Call(call.operator, tuple(args))))

    # --- calculus

    def diff(self, variable: str | int) -> Expression:
        """Derivative by a column, given by name or number.

        >>> print(Expression(Call("sin", (Variable(0),)), ("angle",)).diff("angle"))
        cos(angle)
        """
        return self.with_root(differentiate(self.root, self._column(variable)))

    def subs(self, values: Mapping[str | int, float]) -> Expression:
        """Partial evaluation: columns fixed to numbers, and what became constant folded. The columns stay as they are.

        >>> print(Expression(Call("mul", (Variable(0), Call("square", (Variable(1),))))).subs({"x2": 3}))
        9*x1
        """
        fixed = {self._column(name): Constant(value) for name, value in values.items()}

        def leaf(node: Leaf) -> Node:
            return fixed.get(node.index, node) if isinstance(node, Variable) else node

        def call(node: Call, args: list[Node]) -> Node:
            if all(isinstance(arg, Constant) for arg in args):
                folded = fold_constants(node.operator, args, node.protected)
                if folded is not None:
                    return folded
            return Call(node.operator, tuple(args), node.protected)

        return self.with_root(fold(self.root, leaf, call))

    def _column(self, variable: str | int) -> int:
        if isinstance(variable, int | np.integer) and not isinstance(variable, bool):
            if not 0 <= variable < len(self.names):
                raise ValueError(f"column number must be within 0..{len(self.names) - 1}, got {variable}")
            return int(variable)
        count = self.names.count(variable)
        if count == 0:
            raise ValueError(f"unknown column {short(variable)}; there are: {listing(self.names)}")
        if count > 1:
            raise ValueError(f"{count} columns are called {short(variable)}; give the column number instead")
        return self.names.index(variable)

    # --- forms: all of them live in printing/

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"

    def exact(self) -> str:
        """Text with every constant in full and every protected call marked."""
        return to_exact_text(self)

    def sympy(self, rounded: bool = False) -> Any:
        """SymPy form over plain symbols; with `rounded` the constants as shown to people."""
        return to_sympy(self, rounded=rounded)

    def latex(self) -> str:
        """LaTeX, constants rounded for people."""
        return to_latex(self)

    def export(self, format: str) -> Any:
        """The formula in another form: one of `printing.EXPORTS`, such as "python", "c", "latex", "json", "jax"."""
        return export(self, format)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        return to_mathml(self)

    # --- plain data

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the nodes in a list, arguments before the call that takes them, the root last."""
        return to_plain(self.root, self.names) | ({} if self.digits is None else {"digits": list(self.digits)})

    @classmethod
    def from_dict(cls, data: Any) -> Expression:
        """The expression of `to_dict`; anything else is refused with a ValueError that names the bad entry."""
        digits = None
        if isinstance(data, dict) and "digits" in data:
            data = dict(data)
            digits = data.pop("digits")
        return cls(*from_plain(data), digits)

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression.from_dict, (self.to_dict(),)
