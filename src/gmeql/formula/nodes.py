"""Formulas as immutable trees: nodes, walks over them, their value, their size for people.

A node is a `Constant`, a `Variable` (a column number) or a `Call` of an operator from `operators.py`. In trees `add`
and `mul` take two or more arguments, `sub`, `div` and `pow` two, the others what the operator says; the dense nodes of
a network (`sum`, `prod`) become `add` and `mul` of `pow` before they get here.

Every tree is bounded in size and depth when it is built, and every walk goes through `fold`, which does not recurse:
a hostile file can neither hang nor overflow the stack.

>>> root = Call("sqrt", (Call("add", (Constant(1.3), Call("div", (Variable(1), Variable(0))))),))
>>> root.size, root.depth, tree_complexity(root), used_columns(root)
(6, 4, 7, (0, 1))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, ClassVar, TypeVar

import numpy as np

from gmeql.formula.limits import PLAIN_EXPONENT_LIMIT, WHOLE_EXPONENT_LIMIT
from gmeql.formula.messages import listing, short
from gmeql.formula.operators import DERIVATIVE, EXPONENTS, POWER_NAMES, get_operator

MAX_NODES = 10_000
"""Most nodes a tree may have."""
MAX_DEPTH = 200
"""Most levels a tree may have."""
MAX_COLUMNS = 1_000_000
"""Most column names an expression may carry."""
N_ARY = frozenset({"add", "mul"})
"""Operators that take two or more arguments in trees."""

T = TypeVar("T")
_set = object.__setattr__  # millions of nodes are made in a search: nothing is looked up twice


# --- nodes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; finite."""

    value: float
    size: ClassVar[int] = 1
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if type(self.value) is float and math.isfinite(self.value):
            return
        if isinstance(self.value, (str, bytes, bool)):
            raise ValueError(f"a constant must be a finite number, got {self.value!r}")
        try:
            value = float(self.value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"a constant must be a finite number, got {short(self.value)}") from None
        if not math.isfinite(value):
            raise ValueError(f"a constant must be a finite number, got {value}")
        object.__setattr__(self, "value", value)


@dataclass(frozen=True, slots=True)
class Variable:
    """A column of the data, by its number from 0."""

    index: int
    size: ClassVar[int] = 1
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if isinstance(self.index, bool) or not isinstance(self.index, (int, np.integer)):
            raise ValueError(f"a variable's index must be a whole number, got {short(self.index)}")
        if not 0 <= self.index < MAX_COLUMNS:
            raise ValueError(f"a variable's index must be within 0..{MAX_COLUMNS - 1}, got {short(self.index)}")
        object.__setattr__(self, "index", int(self.index))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Call:
    """An operator applied to arguments; `protected` picks the operator's protected form."""

    operator: str
    args: tuple[Node, ...]
    protected: bool = False
    size: int = field(init=False)
    depth: int = field(init=False)
    _hash: int = field(init=False)
    _complexity: int | None = field(init=False)  # remembered by `tree_complexity`
    _text: str | None = field(init=False)  # remembered by `repr`
    _leaves: tuple[Leaf, ...] | None = field(init=False)  # remembered by `leaves`

    def __post_init__(self) -> None:
        operator = get_operator(self.operator)
        args = tuple(self.args)
        for arg in args:
            if not isinstance(arg, _NODES):
                raise ValueError(f"arguments of {operator.name!r} must be nodes, got {short(arg)}")
        if operator.is_dense:
            raise ValueError(f"{operator.name!r} is a network node; in a formula it is written with add, mul and pow")
        if operator.name in N_ARY:
            if len(args) < 2:
                raise ValueError(f"operator {operator.name!r} takes two or more arguments, got {len(args)}")
        elif len(args) != operator.arity:
            raise ValueError(f"operator {operator.name!r} takes {operator.arity} argument(s), got {len(args)}")
        if operator is DERIVATIVE and not isinstance(args[1], Variable):
            raise ValueError("D(f, x) takes a formula and the column to differentiate by")
        size = 1 + sum([arg.size for arg in args])
        depth = 1 + max([arg.depth for arg in args])
        if size > MAX_NODES:
            raise ValueError(f"a formula may have at most {MAX_NODES} nodes, this one has {size}")
        if depth > MAX_DEPTH:
            raise ValueError(f"a formula may be at most {MAX_DEPTH} levels deep, this one has {depth}")
        protected = bool(self.protected)
        _set(self, "operator", operator.name)
        _set(self, "args", args)
        _set(self, "protected", protected)
        _set(self, "size", size)
        _set(self, "depth", depth)
        _set(self, "_hash", hash((operator.name, args, protected)))
        _set(self, "_complexity", None)
        _set(self, "_text", None)
        _set(self, "_leaves", None)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Call) or self._hash != other._hash:
            return False
        pairs: list[tuple[Any, Any]] = [(self, other)]
        while pairs:
            one, two = pairs.pop()
            if one is two:
                continue
            if not (isinstance(one, Call) and isinstance(two, Call)):
                if isinstance(one, Call) or isinstance(two, Call) or one != two:
                    return False
                continue
            if one._hash != two._hash or (one.operator, one.protected) != (two.operator, two.protected):
                return False
            if len(one.args) != len(two.args):
                return False
            pairs.extend(zip(one.args, two.args, strict=True))
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, (self.operator, self.args, self.protected)  # the cached hash differs between processes

    def __repr__(self) -> str:
        def text(call: Call) -> str:
            end = ", protected=True)" if call.protected else ")"
            return f"Call({call.operator!r}, ({', '.join(map(repr, call.args))},){end}"

        return self._text or _remembered(self, "_text", text)


Leaf = Constant | Variable
Node = Leaf | Call
_NODES = (Constant, Variable, Call)


def _remembered(root: Call, name: str, compute: Callable[[Call], T]) -> T:
    """`compute` of a call, and of each below it that does not remember its own yet, arguments first.

    Formulas that differ by one cut share most of their parts, so little is left to do for the next.
    """
    waiting = [root]
    while waiting:
        missing = [arg for arg in waiting[-1].args if isinstance(arg, Call) and getattr(arg, name) is None]
        if missing:
            waiting += missing
        else:
            done = waiting.pop()
            object.__setattr__(done, name, compute(done))
    result: T = getattr(root, name)
    return result


def fold(root: Node, leaf: Callable[[Leaf], T], call: Callable[[Call, list[T]], T]) -> T:
    """Bottom-up walk without recursion: `leaf(node)` of leaves, `call(node, results of its arguments)` of calls.

    >>> fold(Call("add", (Variable(0), Constant(2))), lambda node: 1, lambda call, results: 1 + sum(results))
    3
    """
    order: list[Node] = []  # backwards: a call before its arguments, the last of them first
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if isinstance(node, Call):
            waiting += node.args
    done: list[T] = []
    for node in reversed(order):
        if isinstance(node, Call):
            first = len(done) - len(node.args)
            results = done[first:]
            del done[first:]
            done.append(call(node, results))
        else:
            done.append(leaf(node))
    return done[0]


def leaves(root: Node) -> tuple[Leaf, ...]:
    """Constants and variables from left to right."""
    if isinstance(root, Call) and root._leaves is not None:
        return root._leaves
    found: list[Leaf] = []
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call):
            waiting += node.args[::-1]
        else:
            found.append(node)
    if isinstance(root, Call):
        _set(root, "_leaves", tuple(found))
    return tuple(found)


def calls(root: Node) -> list[Call]:
    """All function nodes, with repetition."""
    found: list[Call] = []
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Call):
            found.append(node)
            stack += node.args
    return found


def used_columns(root: Node) -> tuple[int, ...]:
    """Columns that a tree uses, ascending."""
    return tuple(sorted({leaf.index for leaf in leaves(root) if isinstance(leaf, Variable)}))


def transform(root: Node, leaf: Callable[[Leaf], Node]) -> Node:
    """The tree with every leaf replaced, left to right; untouched parts are shared with the old tree."""

    def rebuild(call: Call, args: list[Node]) -> Node:
        if all(map(is_, args, call.args)):
            return call
        return Call(call.operator, tuple(args), call.protected)

    return fold(root, leaf, rebuild)


# --- value ----------------------------------------------------------------------------------------------------------


def evaluate(root: Node, columns: Callable[[int], Any], constant: Callable[[float], Any], xp: Any) -> Any:
    """Value of the tree over an array namespace: `columns(i)` is column i, `constant(v)` a number of its type.

    A whole exponent is handed on as an int, which every namespace raises to without a logarithm.
    """

    def leaf(node: Leaf) -> Any:
        return constant(node.value) if isinstance(node, Constant) else columns(node.index)

    def call(node: Call, args: list[Any]) -> Any:
        operator = get_operator(node.operator)
        if node.protected:
            return operator.protected(xp, *args)
        if node.operator == "pow" and (exponent := whole_exponent(node)) is not None:
            return operator.natural(xp, args[0], exponent)
        return operator.natural(xp, *args)

    return fold(root, leaf, call)


def row_values(root: Node, names: Sequence[str], X: Any) -> np.ndarray:
    """Value for every row of `X` [N, V] -> [N], float64, nan or inf outside a domain; `names` are those of the V columns."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ValueError(f"X must have shape [rows, {len(names)}] (columns {listing(names)}), got {X.shape}")
    with np.errstate(all="ignore"):
        value = evaluate(root, lambda index: X[:, index], np.float64, np)
    if type(value) is np.ndarray and value.shape == X.shape[:1] and value.dtype == np.float64:
        return value.copy()  # it may be a column
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (X.shape[0],)))


def whole_exponent(node: Call) -> int | None:
    """The exponent of a `pow` call where it is a small whole constant."""
    exponent = node.args[1]
    if isinstance(exponent, Constant) and exponent.value.is_integer():
        return int(exponent.value) if abs(exponent.value) <= WHOLE_EXPONENT_LIMIT else None
    return None


def exponent_of(operator: str, args: Sequence[Node]) -> float | None:
    """The exponent of a call that raises its first argument to a constant power, whichever way it is written.

    >>> exponent_of("cube", [Variable(0)]), exponent_of("pow", [Variable(0), Constant(0.3)])
    (3.0, 0.3)
    """
    if operator == "pow":
        return args[1].value if isinstance(args[1], Constant) else None
    return EXPONENTS.get(operator)


# --- size for people --------------------------------------------------------------------------------------------------


def tree_complexity(root: Node) -> int:
    """Complexity of a formula: the sum of its nodes' weights.

    A constant or variable counts 1, a call the `complexity` of its operator (n-ary `add` and `mul` once per sign
    between arguments). What is only a way of writing counts nothing, so that equal formulas written differently weigh
    about the same: the exponent of `pow` where it is a whole or half number of at most 6 (`x**2` weighs as much as
    `square`), a factor -1, the sign of a term of `add`, an `inv` among the factors of `mul`.

    >>> x = Variable(0)
    >>> tree_complexity(Call("pow", (x, Constant(2.0)))) == tree_complexity(Call("square", (x,))) == 3
    True
    """
    sign, inverse = get_operator("neg").complexity, get_operator("inv").complexity

    def complexity(node: Call) -> int:
        total = get_operator(node.operator).complexity * max(1, len(node.args) - 1 if node.operator in N_ARY else 1)
        for arg in node.args:
            weight = arg._complexity or 0 if isinstance(arg, Call) else 1
            if node.operator == "add" and _is_negated(arg):
                weight -= sign
            elif node.operator == "mul" and isinstance(arg, Constant) and arg.value == -1.0:
                weight = 0
            elif node.operator == "mul" and isinstance(arg, Call) and arg.operator == "inv":
                weight -= inverse
            elif node.operator == "pow" and arg is node.args[1] and is_plain_exponent(arg):
                weight = 0
            total += weight
        return total

    if not isinstance(root, Call):
        return 1
    return root._complexity or _remembered(root, "_complexity", complexity)


def _is_negated(node: Node) -> bool:
    return isinstance(node, Call) and (node.operator == "neg" or (node.operator == "mul" and _MINUS_ONE in node.args))


def is_plain_exponent(node: Node) -> bool:
    """Whether an exponent is a whole or half number of at most 6, as people write them."""
    return isinstance(node, Constant) and abs(node.value) <= PLAIN_EXPONENT_LIMIT and (2 * node.value).is_integer()


# --- building with the obvious simplified away -----------------------------------------------------------------------

_ZERO, _ONE, _MINUS_ONE = Constant(0.0), Constant(1.0), Constant(-1.0)


def build(operator: str, *args: Node) -> Node:
    """A call with constants folded and neutral elements dropped (0 + x, 1*x, 0*x, x/1, x**1, -(-x)).

    >>> build("add", Constant(0), build("mul", Constant(1), Variable(0)))
    Variable(index=0)
    """
    name = get_operator(operator).name
    numbers = [arg.value if isinstance(arg, Constant) else None for arg in args]
    if None not in numbers and (folded := fold_constants(name, args)) is not None:
        return folded
    if name == "add":
        terms = [arg for arg, number in zip(args, numbers, strict=True) if number != 0.0]
        return _ZERO if not terms else terms[0] if len(terms) == 1 else Call("add", tuple(terms))
    if name == "sub":
        return args[0] if numbers[1] == 0.0 else build("neg", args[1]) if numbers[0] == 0.0 else Call("sub", args)
    if name == "mul":
        if 0.0 in numbers:
            return _ZERO
        factors = [arg for arg, number in zip(args, numbers, strict=True) if number != 1.0]
        return _ONE if not factors else factors[0] if len(factors) == 1 else Call("mul", tuple(factors))
    if name == "div":
        return _ZERO if numbers[0] == 0.0 else args[0] if numbers[1] == 1.0 else Call("div", args)
    if name == "pow" and isinstance(args[1], Constant):
        exponent = args[1].value
        if exponent in (0.0, 1.0):
            return _ONE if exponent == 0.0 else args[0]
        return Call(POWER_NAMES[exponent], args[:1]) if exponent in POWER_NAMES else Call("pow", args)
    if name == "neg" and isinstance(args[0], Call) and args[0].operator == "neg":
        return args[0].args[0]
    if name == "id":
        return args[0]
    return Call(name, args)


def fold_constants(operator: str, args: Sequence[Node], protected: bool = False) -> Constant | None:
    """The number a call of constants comes to, or None where it is not finite."""
    try:
        with np.errstate(all="ignore"):
            value = float(evaluate(Call(operator, tuple(args), protected), int, np.float64, np))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return Constant(value) if math.isfinite(value) else None
