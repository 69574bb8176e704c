"""Formula text read safely, by one grammar: into trees of our own, or into SymPy objects.

Text from a file or a person never reaches SymPy's own parsers, which run code. `_read` walks Python's syntax tree and
knows numbers, names, arithmetic and functions of one argument; what they become is a builder's matter. Trees hold the
operators of `operators.py`. SymPy objects also hold functions that no network has (tan, harmonic) and whole numbers
and fractions as such, so case files are read into them directly.

>>> parse_tree("a*sin(`flow rate`)", ["a", "flow rate"])
Call('mul', (Variable(index=0), Call('sin', (Variable(index=1),)),))
>>> parse_formula("sqrt(1.3 + 1.2*x2/x1)", ["x1", "x2"])
sqrt(1.3 + 1.2*x2/x1)
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from gmeql.formula.calculus import expand
from gmeql.formula.canonical import evaluate
from gmeql.formula.limits import NUMBER_EXPONENT_LIMIT, NUMBER_LIMIT
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, leaves
from gmeql.formula.operators import DERIVATIVE, get_operator, is_known

if TYPE_CHECKING:
    import sympy

MAX_TEXT = 10_000
"""Most characters of a formula's text."""
MAX_PARTS = 5_000
"""Most nodes of its syntax tree."""
T = TypeVar("T")

_ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}


class _Builder(Protocol[T]):
    """What the parts of a formula become. A ValueError says what is refused, as the end of "the formula ..."."""

    def number(self, value: int | float) -> T: ...

    def name(self, name: str) -> T: ...

    def negative(self, part: T) -> T: ...

    def arithmetic(self, operator: str, left: T, right: T) -> T: ...

    def function(self, name: str, n_arguments: int) -> Callable[..., T]: ...

    def checked(self, part: T, source: ast.expr) -> T:
        """A finished part, or a ValueError where it must not be used any further."""
        ...


def _read(text: str, builder: _Builder[T]) -> T:
    """The formula of a text, made by a builder; nothing in the text is ever run."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"has {len(text)} characters; at most {MAX_TEXT} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        if sum(1 for _ in ast.walk(tree)) > MAX_PARTS:
            raise ValueError(f"{_short(text)} has more than {MAX_PARTS} parts")
        return _build(tree.body, builder)
    except (SyntaxError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"{_short(text)} cannot be read ({why}); write it like 0.5*x1**2 + sin(x2)") from error


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _build(source: ast.expr, builder: _Builder[T]) -> T:
    return builder.checked(_build_any(source, builder), source)


def _build_any(source: ast.expr, builder: _Builder[T]) -> T:
    if isinstance(source, ast.Constant):
        value = source.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= NUMBER_LIMIT:
            raise ValueError(f"contains {_short(str(value))}; numbers up to {NUMBER_LIMIT:g} are allowed")
        return builder.number(value)
    if isinstance(source, ast.Name):
        return builder.name(source.id)
    if isinstance(source, ast.UnaryOp) and isinstance(source.op, ast.UAdd | ast.USub):
        operand = _build(source.operand, builder)
        return builder.negative(operand) if isinstance(source.op, ast.USub) else operand
    if isinstance(source, ast.BinOp):
        left, right = _build(source.left, builder), _build(source.right, builder)
        if type(source.op) not in _ARITHMETIC:
            raise ValueError(f"uses {type(source.op).__name__}; allowed are + - * / and ** for powers")
        return builder.arithmetic(_ARITHMETIC[type(source.op)], left, right)
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.args and not source.keywords:
        # first: what open('x') calls is worse than what it is given
        function = builder.function(source.func.id, len(source.args))
        return function(*(_build(argument, builder) for argument in source.args))
    raise ValueError(f"contains {_short(ast.unparse(source))}, which is not arithmetic on columns and numbers")


# --- trees --------------------------------------------------------------------------------------------------------

_PLACEHOLDER = "column_in_backticks_"


class _Trees:
    """Trees of our own operators; nothing is computed while they are built."""

    def __init__(self, names: Sequence[str], quoted: Sequence[str]) -> None:
        self.names = tuple(names)
        self.quoted = quoted

    def number(self, value: int | float) -> Node:
        return Constant(value)

    def name(self, name: str) -> Node:
        place = name.removeprefix(_PLACEHOLDER)
        if place != name and place.isdecimal() and int(place) < len(self.quoted):
            name = self.quoted[int(place)]
        if name not in self.names:
            raise ValueError(f"there is no column {name!r}; columns are {', '.join(self.names[:12])}")
        return Variable(self.names.index(name))

    def negative(self, part: Node) -> Node:
        return Constant(-part.value) if isinstance(part, Constant) else Call("mul", (Constant(-1.0), part))

    def arithmetic(self, operator: str, left: Node, right: Node) -> Node:
        return Call(operator, (left, right))

    def function(self, name: str, n_arguments: int) -> Callable[..., Node]:
        try:
            operator = get_operator(name)
        except ValueError:
            raise ValueError(f"{name!r} is not a function that is known here") from None
        if operator is DERIVATIVE and n_arguments == operator.arity:
            return lambda part, by: self.derivative(Call(DERIVATIVE.name, (part, by)))
        if operator.arity != 1 or n_arguments != 1:
            raise ValueError(
                f"{name!r} does not take {'one argument' if n_arguments == 1 else f'{n_arguments} arguments'}"
            )
        return lambda part: Call(operator.name, (part,))

    def derivative(self, call: Call) -> Node:
        """D(f, x) in a tree: what it comes to."""
        return expand(call)

    def checked(self, part: Node, source: ast.expr) -> Node:
        return part


def parse_tree(text: str, names: Sequence[str]) -> Node:
    """The tree of what a person wrote about the columns `names`, such as "sin(a)/b" or "`flow rate`^2".

    A name that is no identifier stands in backticks, its own doubled, as formulas are printed; ^ is a power, too.
    Nothing is a constant but numbers: a name that is no column is a slip of the pen. D(f, x) is the derivative of a part f
    by the column x; the tree holds what it comes to.
    """
    return _parse(text, names, lambda quoted: _Trees(names, quoted))


FIRST_CALL, FIRST_NAME = 500_000, 600_000
"""Variables from these numbers on stand in an open form for calls of unknown functions, and for names of constants."""


@dataclass(frozen=True)
class OpenForm:
    """A formula with open places: calls of functions that nobody knows yet, and names of constants."""

    root: Node
    calls: tuple[tuple[str, tuple[Node, ...]], ...]
    names: tuple[str, ...]


def parse_open_form(text: str, names: Sequence[str]) -> OpenForm:
    """The tree of a formula in which functions and constants may be unknown, such as "a*exp(-b*f(x)) + g(y, z)".

    What is neither a column nor `pi` is the name of a constant, what is no operator the name of a function. D(f(x), x), the
    derivative of a part by a column, stays until the functions are known.
    """
    builders: list[_OpenTrees] = []

    def builder(quoted: list[str]) -> _OpenTrees:
        builders.append(_OpenTrees(names, quoted))
        return builders[0]

    root = _parse(text, names, builder)
    return OpenForm(root, tuple(builders[0].calls), tuple(builders[0].open_names))


class _OpenTrees(_Trees):
    """Trees with open places."""

    def __init__(self, names: Sequence[str], quoted: Sequence[str]) -> None:
        super().__init__(names, quoted)
        self.calls: list[tuple[str, tuple[Node, ...]]] = []
        self.open_names: list[str] = []

    def name(self, name: str) -> Node:
        if name in self.names or name.startswith(_PLACEHOLDER):
            return super().name(name)
        if name == "pi":
            return Constant(math.pi)
        if name not in self.open_names:
            self.open_names.append(name)
        return Variable(FIRST_NAME + self.open_names.index(name))

    def arithmetic(self, operator: str, left: Node, right: Node) -> Node:
        return build(operator, left, right)  # 3/2 is a number

    def derivative(self, call: Call) -> Node:
        return call  # f may not be known yet

    def function(self, name: str, n_arguments: int) -> Callable[..., Node]:
        if is_known(name):
            return super().function(name, n_arguments)

        def call(*arguments: Node) -> Node:
            if any(leaf.index >= FIRST_CALL for a in arguments for leaf in leaves(a) if isinstance(leaf, Variable)):
                raise ValueError(
                    f"the function {name!r} takes columns and numbers, no constants and no other functions"
                )
            self.calls.append((name, arguments))
            return Variable(FIRST_CALL + len(self.calls) - 1)

        return call


def _parse(text: str, names: Sequence[str], builder: Callable[[list[str]], _Builder[T]]) -> T:
    """What a builder makes of a text over the columns `names`, which may stand in backticks."""
    quoted: list[str] = []

    def keep(match: re.Match[str]) -> str:
        quoted.append(match[1].replace("``", "`"))
        return f"{_PLACEHOLDER}{len(quoted) - 1}"

    def keep_own(match: re.Match[str]) -> str:
        """A group's own constant, such as `k1[star]`, is one name, and so is a column that is called as a word of Python."""
        if match[0] not in names or not ("[" in match[0] or keyword.iskeyword(match[0])):
            return match[0]
        quoted.append(match[0])
        return f"{_PLACEHOLDER}{len(quoted) - 1}"

    source = re.sub(r"`((?:[^`]|``)*)`", keep, text).replace("^", "**")
    source = re.sub(r"[^\W\d]\w*(?:\[[^\W\d]\w*\])?", keep_own, source)
    try:
        return _read(source, builder(quoted))
    except ValueError as error:
        reason = str(error)
        for number, name in enumerate(quoted):
            reason = reason.replace(f"{_PLACEHOLDER}{number}", f"`{name}`")
        raise ValueError(reason) from error


# --- SymPy objects ------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "asin",
    "arcsin": "asin",
    "acos": "acos",
    "arccos": "acos",
    "atan": "atan",
    "arctan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "exp": "exp",
    "log": "log",
    "ln": "log",
    "sqrt": "sqrt",
    "abs": "Abs",
    "Abs": "Abs",
    "harmonic": "harmonic",
}
"""Functions of case files, and the SymPy class of each."""


class _SympyObjects:
    """SymPy objects over real symbols; constant parts must be finite real numbers before anything uses them.

    With `exact`, a decimal number is the fraction that it says.
    """

    def __init__(self, names: Iterable[str], *, exact: bool) -> None:
        import sympy

        self.symbols = {name: sympy.Symbol(name, real=True) for name in names}
        self.exact = exact

    def number(self, value: int | float) -> Any:
        import sympy

        if isinstance(value, int):
            return sympy.Integer(value)
        return sympy.Rational(repr(value)) if self.exact else sympy.Float(value)

    def name(self, name: str) -> Any:
        import sympy

        constants = {"pi": sympy.pi, "E": sympy.E}
        if name not in self.symbols and name not in constants:
            raise ValueError(f"names {name!r}; the columns are {', '.join(self.symbols)}, the constants pi and E")
        return self.symbols[name] if name in self.symbols else constants[name]

    def negative(self, part: Any) -> Any:
        return -part

    def arithmetic(self, operator: str, left: Any, right: Any) -> Any:
        return self._power(left, right) if operator == "pow" else get_operator(operator).sympy(left, right)

    @staticmethod
    def _power(base: Any, exponent: Any) -> Any:
        """`base ** exponent`, refused where two numbers would make one too large to hold (9**9**9**9)."""
        if not base.free_symbols and not exponent.free_symbols:
            b, x = float(evaluate(base, {})), float(evaluate(exponent, {}))
            if abs(x) > NUMBER_EXPONENT_LIMIT or (b and abs(x * math.log10(abs(b))) > math.log10(NUMBER_LIMIT)):
                raise ValueError(f"raises a number to the power {exponent}, which is too large")
        return base**exponent

    def function(self, name: str, n_arguments: int) -> Callable[..., Any]:
        import sympy

        if name not in FUNCTIONS:
            raise ValueError(f"calls {name!r}; allowed are {', '.join(sorted(FUNCTIONS))}")
        if n_arguments != 1:
            raise ValueError(f"calls {name!r} with {n_arguments} arguments; it takes one")

        def apply(part: Any) -> Any:
            if name == "harmonic" and not part.free_symbols:
                raise ValueError("takes harmonic() of a number, not of a column")
            return getattr(sympy, FUNCTIONS[name])(part)

        return apply

    def checked(self, part: Any, source: ast.expr) -> Any:
        if not part.free_symbols and not np.isfinite(evaluate(part, {})):
            raise ValueError(f"contains {_short(ast.unparse(source))}, which is no finite real number")
        return part


def parse_formula(text: str, names: Iterable[str], *, exact: bool = False) -> sympy.Expr:
    """A SymPy object for formula text of a file over the columns `names`.

    Column names come first, so columns called `I`, `gamma` or `E` are columns. Otherwise `pi` and `E` are constants.
    With `exact`, 0.1 is one tenth and not the float next to it.
    """
    try:
        return _read(text, _SympyObjects(names, exact=exact))
    except ValueError as error:
        raise ValueError(f"formula {error}") from error
