"""Formulas: an immutable tree of our own operators, with the column names it speaks of.

A node is a ``Constant``, a ``Variable`` (a column number) or a ``Call`` of an operator from ``operators.py``. In trees
``add`` and ``mul`` take two or more arguments, ``sub``, ``div`` and ``pow`` two, the others what the operator says; the
dense nodes of a network (``sum``, ``prod``) become ``add`` and ``mul`` of ``pow`` before they get here.

Every tree is bounded in size and depth when it is built, and every walk goes through ``fold``, which does not recurse:
a hostile file can neither hang nor overflow the stack.

>>> x1, x2 = Variable(0), Variable(1)
>>> formula = Expression(Call("sqrt", (Call("add", (Constant(1.3), Call("div", (x2, x1)))),)), ("x1", "x2"))
>>> print(formula)
sqrt(1.3 + x2/x1)
>>> formula([[2.0, 5.4]]).tolist()
[2.0]
>>> print(formula.diff("x2"))
0.5/(sqrt(1.3 + x2/x1)*x1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np

from gmeql.formula.operators import OPERATORS, get_operator
from gmeql.formula.tracing import NotTraceable, Traced, trace

MAX_NODES = 10_000
"""Most nodes a tree may have."""
MAX_DEPTH = 200
"""Most levels a tree may have."""
MAX_COLUMNS = 1_000_000
"""Most column names an expression may carry."""
N_ARY = frozenset({"add", "mul"})
"""Operators that take two or more arguments in trees."""

T = TypeVar("T")


# --- nodes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; finite."""

    value: float
    size: ClassVar[int] = 1
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if isinstance(self.value, str | bytes | bool):
            raise ValueError(f"a constant must be a finite number, got {self.value!r}")
        try:
            value = float(self.value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"a constant must be a finite number, got {_short(self.value)}") from None
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
        if isinstance(self.index, bool) or not isinstance(self.index, int | np.integer):
            raise ValueError(f"a variable's index must be a whole number, got {_short(self.index)}")
        if not 0 <= self.index < MAX_COLUMNS:
            raise ValueError(f"a variable's index must be within 0..{MAX_COLUMNS - 1}, got {_short(self.index)}")
        object.__setattr__(self, "index", int(self.index))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Call:
    """An operator applied to arguments; ``protected`` picks the operator's protected reading."""

    operator: str
    args: tuple[Node, ...]
    protected: bool = False
    size: int = field(init=False)
    depth: int = field(init=False)
    _hash: int = field(init=False)
    _complexity: int | None = field(init=False)  # remembered by ``tree_complexity``
    _text: str | None = field(init=False)  # remembered by ``repr``

    def __post_init__(self) -> None:
        operator = get_operator(self.operator)
        args = tuple(self.args)
        for arg in args:
            if not isinstance(arg, _NODES):
                raise ValueError(f"arguments of {operator.name!r} must be nodes, got {_short(arg)}")
        if operator.is_dense:
            raise ValueError(f"{operator.name!r} is a network node; in a formula it is written with add, mul and pow")
        if operator.name in N_ARY:
            if len(args) < 2:
                raise ValueError(f"operator {operator.name!r} takes two or more arguments, got {len(args)}")
        elif len(args) != operator.arity:
            raise ValueError(f"operator {operator.name!r} takes {operator.arity} argument(s), got {len(args)}")
        size = 1 + sum(arg.size for arg in args)
        depth = 1 + max(arg.depth for arg in args)
        if size > MAX_NODES:
            raise ValueError(f"a formula may have at most {MAX_NODES} nodes, this one has {size}")
        if depth > MAX_DEPTH:
            raise ValueError(f"a formula may be at most {MAX_DEPTH} levels deep, this one has {depth}")
        for name, value in (
            ("operator", operator.name),
            ("args", args),
            ("protected", bool(self.protected)),
            ("size", size),
            ("depth", depth),
            ("_hash", hash((operator.name, args, bool(self.protected)))),
            ("_complexity", None),
            ("_text", None),
        ):
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
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


Node = Constant | Variable | Call
_NODES = (Constant, Variable, Call)


def _remembered(root: Call, name: str, compute: Callable[[Call], T]) -> T:
    """``compute`` of a call, and of each below it that does not remember its own yet, arguments first.

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


def _short(value: object) -> str:
    """A value for an error message: its repr, cut; huge integers and hostile reprs stay out of messages."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "a very large whole number"
    text = ascii(value) if isinstance(value, str | bytes | int | float | bool | type(None)) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def fold(root: Node, leaf: Callable[[Any], T], call: Callable[[Call, list[T]], T]) -> T:
    """Bottom-up walk without recursion: ``leaf(node)`` of leaves, ``call(node, results of its arguments)`` of calls.

    >>> fold(Call("add", (Variable(0), Constant(2))), lambda node: 1, lambda call, results: 1 + sum(results))
    3
    """
    done: list[T] = []
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, ready = waiting.pop()
        if not isinstance(node, Call):
            done.append(leaf(node))
        elif ready:
            first = len(done) - len(node.args)
            results = done[first:]
            del done[first:]
            done.append(call(node, results))
        else:
            waiting.append((node, True))
            waiting.extend((arg, False) for arg in reversed(node.args))
    return done[0]


def leaves(root: Node) -> list[Constant | Variable]:
    """Constants and variables from left to right."""
    found: list[Constant | Variable] = []
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call):
            waiting.extend(reversed(node.args))
        else:
            found.append(node)
    return found


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


def transform(root: Node, leaf: Callable[[Any], Node]) -> Node:
    """The tree with every leaf replaced, left to right; untouched parts are shared with the old tree."""

    def rebuild(call: Call, args: list[Node]) -> Node:
        if all(new is old for new, old in zip(args, call.args, strict=True)):
            return call
        return Call(call.operator, tuple(args), call.protected)

    return fold(root, leaf, rebuild)


# --- value ----------------------------------------------------------------------------------------------------------


def evaluate(root: Node, columns: Callable[[int], Any], constant: Callable[[float], Any], xp: Any) -> Any:
    """Value of the tree over an array namespace: ``columns(i)`` is column i, ``constant(v)`` a number of its type.

    A whole exponent is handed on as an int, which every namespace raises to without a logarithm.
    """

    def leaf(node: Constant | Variable) -> Any:
        return constant(node.value) if isinstance(node, Constant) else columns(node.index)

    def call(node: Call, args: list[Any]) -> Any:
        operator = get_operator(node.operator)
        if node.protected:
            return operator.protected(xp, *args)
        if node.operator == "pow" and (exponent := whole_exponent(node)) is not None:
            return operator.natural(xp, args[0], exponent)
        return operator.natural(xp, *args)

    return fold(root, leaf, call)


def whole_exponent(node: Call) -> int | None:
    """The exponent of a ``pow`` call where it is a small whole constant."""
    exponent = node.args[1]
    if isinstance(exponent, Constant) and exponent.value.is_integer() and abs(exponent.value) <= 64:
        return int(exponent.value)
    return None


# --- size for people --------------------------------------------------------------------------------------------------


def tree_complexity(root: Node) -> int:
    """Complexity of a formula: the sum of its nodes' weights.

    A constant or variable counts 1, a call the ``complexity`` of its operator (n-ary ``add`` and ``mul`` once per sign
    between arguments). What is only a way of writing counts nothing, so that equal formulas written differently weigh
    about the same: the exponent of ``pow`` where it is a whole or half number of at most 6 (``x**2`` weighs as much as
    ``square``), a factor -1, the sign of a term of ``add``, an ``inv`` among the factors of ``mul``.

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
    if not isinstance(node, Call):
        return False
    return node.operator == "neg" or (node.operator == "mul" and Constant(-1.0) in node.args)


def is_plain_exponent(node: Node) -> bool:
    """Whether an exponent is a whole or half number of at most 6, as people write them."""
    return isinstance(node, Constant) and abs(node.value) <= 6 and (2 * node.value).is_integer()


# --- building with the obvious simplified away -----------------------------------------------------------------------

_ZERO, _ONE = Constant(0.0), Constant(1.0)
_POWERS = {2.0: "square", 3.0: "cube", 4.0: "pow4", 5.0: "pow5", 6.0: "pow6", 0.5: "sqrt"}


def build(operator: str, *args: Node) -> Node:
    """A call with constants folded and neutral elements dropped (0 + x, 1*x, 0*x, x/1, x**1, -(-x)).

    >>> build("add", Constant(0), build("mul", Constant(1), Variable(0)))
    Variable(index=0)
    """
    name = get_operator(operator).name
    if all(isinstance(arg, Constant) for arg in args):
        folded = _fold_constants(name, args)
        if folded is not None:
            return folded
    if name == "add":
        terms = [arg for arg in args if arg != _ZERO]
        return _ZERO if not terms else terms[0] if len(terms) == 1 else Call("add", tuple(terms))
    if name == "sub":
        return args[0] if args[1] == _ZERO else build("neg", args[1]) if args[0] == _ZERO else Call("sub", args)
    if name == "mul":
        if _ZERO in args:
            return _ZERO
        factors = [arg for arg in args if arg != _ONE]
        return _ONE if not factors else factors[0] if len(factors) == 1 else Call("mul", tuple(factors))
    if name == "div":
        return _ZERO if args[0] == _ZERO else args[0] if args[1] == _ONE else Call("div", args)
    if name == "pow" and isinstance(args[1], Constant):
        exponent = args[1].value
        if exponent in (0.0, 1.0):
            return _ONE if exponent == 0.0 else args[0]
        return Call(_POWERS[exponent], args[:1]) if exponent in _POWERS else Call("pow", args)
    if name == "neg" and isinstance(args[0], Call) and args[0].operator == "neg":
        return args[0].args[0]
    if name == "id":
        return args[0]
    return Call(name, args)


def _fold_constants(operator: str, args: Sequence[Node], protected: bool = False) -> Constant | None:
    """The number a call of constants comes to, or None where it is not finite."""
    try:
        with np.errstate(all="ignore"):
            value = float(evaluate(Call(operator, tuple(args), protected), int, np.float64, np))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return Constant(value) if math.isfinite(value) else None


def from_trace(traced: Any, arguments: Sequence[Node]) -> Node:
    """The tree that traced operations spell over the given arguments; NotTraceable where no operator fits."""
    if not isinstance(traced, Traced):
        return Constant(traced)
    if traced.operation == "argument":
        return arguments[traced.args[0]]
    if traced.operation not in OPERATORS and traced.operation != "sign":
        raise NotTraceable(f"{traced.operation!r} has no place in a formula")
    args = [from_trace(arg, arguments) for arg in traced.args]
    if traced.operation == "sign":
        return build("div", args[0], Call("abs", (args[0],)))
    return build(traced.operation, *args)


def differentiate(root: Node, index: int) -> Node:
    """Derivative by column ``index``, from the slopes in the operator table by the chain rule.

    A protected call is differentiated as its natural reading: right wherever its arguments lie in the natural domain.
    """

    def call(node: Call, slopes: list[Node]) -> Node:
        if all(slope == _ZERO for slope in slopes):
            return _ZERO
        terms = []
        for number, slope in enumerate(slopes):
            if slope == _ZERO:
                continue
            outer = _partial(node, number)
            if isinstance(outer, Call) and outer.operator == "div" and outer.args[0] == _ONE:
                terms.append(build("div", slope, outer.args[1]))
            elif isinstance(slope, Call) and slope.operator == "div" and slope.args[0] == _ONE:
                terms.append(build("div", outer, slope.args[1]))
            else:
                terms.append(build("mul", outer, slope))
        return build("add", *terms) if len(terms) > 1 else terms[0]

    return fold(root, lambda leaf: _ONE if isinstance(leaf, Variable) and leaf.index == index else _ZERO, call)


def _partial(node: Call, number: int) -> Node:
    """Derivative of a call by one of its arguments."""
    try:
        return from_trace(trace(get_operator(node.operator).partials, len(node.args))[number], node.args)
    except NotTraceable as error:
        raise ValueError(
            f"the derivative of operator {node.operator!r} cannot be written as a formula: {error}. "
            "Register it with derivative=lambda xp, x: ... that uses functions of formulas only."
        ) from error


# --- Expression -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Expression:
    """A formula over named columns.

    Attributes:
        root: the tree.
        names: column names of the data, any text; ``x1``, ``x2``, ... where none are given.
    """

    root: Node
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.root, Constant | Variable | Call):
            raise ValueError(f"root must be a Constant, Variable or Call, got {_short(self.root)}")
        if isinstance(self.names, str):
            raise ValueError(f"names must be a sequence of column names, got the single text {_short(self.names)}")
        names = tuple(self.names)
        needed = 1 + max((leaf.index for leaf in leaves(self.root) if isinstance(leaf, Variable)), default=-1)
        if not names:
            names = tuple(f"x{i + 1}" for i in range(needed))
        for name in names:
            if not isinstance(name, str):
                raise ValueError(f"names must be texts, got {_short(name)}")
        if needed > len(names):
            raise ValueError(f"the formula uses column {needed - 1}, but there are only {len(names)} names")
        object.__setattr__(self, "names", tuple(str(name) for name in names))

    # --- values

    def __call__(self, X: Any) -> np.ndarray:
        """Value for every row of ``X`` [N, V] -> [N], float64. Outside an operator's domain it is nan or inf."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.names):
            raise ValueError(
                f"X must have shape [rows, {len(self.names)}] (columns {_listing(self.names)}), got {X.shape}"
            )
        with np.errstate(all="ignore"):
            value = evaluate(self.root, lambda index: X[:, index], np.float64, np)
        return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (X.shape[0],)))

    @property
    def complexity(self) -> int:
        """Size for people, see ``tree_complexity``."""
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
        return tuple(sorted({leaf.index for leaf in leaves(self.root) if isinstance(leaf, Variable)}))

    @property
    def constants(self) -> tuple[float, ...]:
        """All constants from left to right, exponents included."""
        return tuple(leaf.value for leaf in leaves(self.root) if isinstance(leaf, Constant))

    @property
    def is_protected(self) -> bool:
        """Whether any call is a protected reading."""
        return fold(self.root, lambda leaf: False, lambda call, args: call.protected or any(args))

    def with_constants(self, values: Iterable[float]) -> Expression:
        """The same formula with its constants replaced, in the order of ``constants``."""
        values = [float(value) for value in values]
        expected = len(self.constants)
        if len(values) != expected:
            raise ValueError(f"the formula has {expected} constants, got {len(values)} values")
        supply = iter(values)
        root = transform(self.root, lambda leaf: Constant(next(supply)) if isinstance(leaf, Constant) else leaf)
        return Expression(root, self.names)

    def with_root(self, root: Node) -> Expression:
        """Another tree over the same columns."""
        return Expression(root, self.names)

    def with_names(self, names: Iterable[str]) -> Expression:
        """The same tree over renamed columns."""
        return Expression(self.root, tuple(names))

    def natural(self) -> Expression:
        """The same formula with every call in its natural reading."""
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

        def leaf(node: Constant | Variable) -> Node:
            return fixed.get(node.index, node) if isinstance(node, Variable) else node

        def call(node: Call, args: list[Node]) -> Node:
            if all(isinstance(arg, Constant) for arg in args):
                folded = _fold_constants(node.operator, args, node.protected)
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
            raise ValueError(f"unknown column {_short(variable)}; there are: {_listing(self.names)}")
        if count > 1:
            raise ValueError(f"{count} columns are called {_short(variable)}; give the column number instead")
        return self.names.index(variable)

    # --- forms: all of them live in printing.py

    def __str__(self) -> str:
        from gmeql.formula.printing import to_text

        return to_text(self)

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"

    def exact(self) -> str:
        """Text with every constant in full and every protected call marked."""
        from gmeql.formula.printing import to_exact_text

        return to_exact_text(self)

    def sympy(self, rounded: bool = False) -> Any:
        """SymPy form over plain symbols; with ``rounded`` the constants as shown to people."""
        from gmeql.formula.printing import to_sympy

        return to_sympy(self, rounded=rounded)

    def latex(self) -> str:
        """LaTeX, constants rounded for people."""
        from gmeql.formula.printing import to_latex

        return to_latex(self)

    def export(self, format: str) -> Any:
        """The formula in another form: one of ``printing.EXPORTS``, such as "python", "c", "latex", "json", "jax"."""
        from gmeql.formula.printing import export

        return export(self, format)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        from gmeql.formula.printing import to_mathml

        return to_mathml(self)

    # --- plain data

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the nodes in a list, arguments before the call that takes them, the root last."""
        nodes: list[dict[str, Any]] = []

        def leaf(node: Constant | Variable) -> int:
            nodes.append({"constant": node.value} if isinstance(node, Constant) else {"variable": node.index})
            return len(nodes) - 1

        def call(node: Call, args: list[int]) -> int:
            entry: dict[str, Any] = {"call": node.operator, "args": args}
            if node.protected:
                entry["protected"] = True
            nodes.append(entry)
            return len(nodes) - 1

        fold(self.root, leaf, call)
        return {"names": list(self.names), "nodes": nodes}

    @classmethod
    def from_dict(cls, data: Any) -> Expression:
        """The expression of ``to_dict``; anything else is refused with a ValueError that names the bad entry."""
        if not isinstance(data, dict) or set(data) != {"names", "nodes"}:
            found = _listing([_short(key) for key in data]) if isinstance(data, dict) else _short(data)
            raise ValueError(f"an expression must be a mapping with 'names' and 'nodes', got {found}")
        names, entries = data["names"], data["nodes"]
        if not isinstance(names, list | tuple) or len(names) > MAX_COLUMNS:
            raise ValueError(f"'names' must be a list of at most {MAX_COLUMNS} texts, got {_short(names)}")
        if not isinstance(entries, list | tuple) or not 1 <= len(entries) <= MAX_NODES:
            raise ValueError(f"'nodes' must be a list of 1 to {MAX_NODES} nodes, got {_short(entries)}")
        nodes: list[Node] = []
        used = [False] * len(entries)
        for number, entry in enumerate(entries):
            try:
                nodes.append(_node_from(entry, nodes, used))
            except ValueError as error:
                raise ValueError(f"node {number}: {error}") from None
        if not all(used[:-1]):
            raise ValueError(f"node {used.index(False)} is not an argument of any other")
        return cls(nodes[-1], tuple(names))

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_plain, (self.to_dict(),)


def _from_plain(data: dict[str, Any]) -> Expression:
    return Expression.from_dict(data)


def _node_from(entry: Any, nodes: list[Node], used: list[bool]) -> Node:
    """One checked node of the dict form; marks the arguments it takes as used."""
    if not isinstance(entry, dict):
        raise ValueError(f"must be a mapping, got {_short(entry)}")
    keys = set(entry)
    if keys == {"constant"}:
        return Constant(entry["constant"])
    if keys == {"variable"}:
        return Variable(entry["variable"])
    if not {"call", "args"} <= keys <= {"call", "args", "protected"}:
        raise ValueError(f"must hold 'constant', 'variable' or 'call' with 'args', got {_listing(map(_short, keys))}")
    operator, positions, protected = entry["call"], entry["args"], entry.get("protected", False)
    if not isinstance(operator, str) or len(operator) > 100:
        raise ValueError(f"'call' must name an operator, got {_short(operator)}")
    if not isinstance(protected, bool):
        raise ValueError(f"'protected' must be true or false, got {_short(protected)}")
    if not isinstance(positions, list | tuple):
        raise ValueError(f"'args' must be a list of node numbers, got {_short(positions)}")
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < len(nodes):
            raise ValueError(f"'args' must be numbers of earlier nodes, got {_short(position)}")
        if used[position]:
            raise ValueError(f"node {position} is an argument of two calls; write it twice")
        used[position] = True
    return Call(operator, tuple(nodes[position] for position in positions), protected)


def _listing(names: Iterable[str], limit: int = 8) -> str:
    names = [ascii(name) if not name.isprintable() else name for name in names]
    shown = ", ".join(name[:40] for name in names[:limit])
    return shown + (f", ... ({len(names)} in all)" if len(names) > limit else "")
