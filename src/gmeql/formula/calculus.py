"""Derivatives of trees, from the slopes in the operator table.

>>> differentiate(Call("sin", (Variable(0),)), 0)
Call('cos', (Variable(index=0),))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gmeql.formula.nodes import (
    Call,
    Constant,
    Leaf,
    Node,
    Variable,
    build,
    calls,
    fold,
    leaves,
    transform,
    used_columns,
)
from gmeql.formula.operators import DERIVATIVE, OPERATORS, get_operator
from gmeql.formula.tracing import NotTraceable, Traced, trace

_ZERO, _ONE = Constant(0.0), Constant(1.0)


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
    """Derivative by column `index`, from the slopes in the operator table by the chain rule.

    A protected call is differentiated as its natural form: right wherever its arguments lie in the natural domain.
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


def expand(root: Node, unknown: range = range(0)) -> Node:
    """The tree with every D(f, x) written out: the derivative of f by column x, the innermost first.

    Variables numbered in `unknown` stand for functions that are not known yet; a D of one of those stays as it is.

    >>> expand(Call("D", (Call("sin", (Variable(0),)), Variable(0))))
    Call('cos', (Variable(index=0),))
    """
    if not any(call.operator == DERIVATIVE.name for call in calls(root)):
        return root

    def call(node: Call, args: list[Node]) -> Node:
        by = node.args[-1]
        if node.operator != DERIVATIVE.name or not isinstance(by, Variable):
            return Call(node.operator, tuple(args), node.protected)
        if any(column in unknown for column in used_columns(args[0])):
            return Call(node.operator, (args[0], by))
        return differentiate(args[0], by.index)

    return fold(root, lambda leaf: leaf, call)


def _partial(node: Call, number: int) -> Node:
    """Derivative of a call by one of its arguments."""
    try:
        return from_trace(trace(get_operator(node.operator).partials, len(node.args))[number], node.args)
    except NotTraceable as error:
        raise ValueError(
            f"the derivative of operator {node.operator!r} cannot be written as a formula: {error}. "
            "Register it with derivative=lambda xp, x: ... that uses functions of formulas only."
        ) from error


def constants_of(root: Node) -> list[float]:
    """The constants of a formula from left to right, exponents included."""
    return [leaf.value for leaf in leaves(root) if isinstance(leaf, Constant)]


def with_constants(root: Node, values: Iterable[float]) -> Node:
    """A formula with other constants, in the order of `constants_of`.

    >>> with_constants(Call("mul", (Constant(2.0), Variable(0))), [2.5])
    Call('mul', (Constant(value=2.5), Variable(index=0),))
    """
    given = iter(values)
    return transform(root, lambda leaf: Constant(next(given)) if isinstance(leaf, Constant) else leaf)


def constant_slopes(root: Node, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [N] of a formula on rows `X` [N, V], and its derivative by each of its constants [N, K].

    Constants are counted as by `constants_of`. What has no value is nan; a protected call is
    differentiated as its natural form.
    """
    values, slopes, _ = row_slopes(root, X)
    return values, slopes


def row_slopes(root: Node, X: np.ndarray, columns: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values [N] on rows `X` [N, V], slopes by each constant [N, K], and by each of `columns` [N, C]."""
    return Slopes(root, X, columns=columns)()


class Slopes:
    """A formula on rows `X` [N, V]: its values and slopes for any constants, its tree walked through once.

    One pass up for the values and one down for the slopes (reverse accumulation), in numbers; parts without a constant or
    column that is asked for are left out of the second. `by` are the numbers of the constants that are asked for, all where
    nobody says.
    """

    def __init__(
        self, root: Node, X: np.ndarray, *, columns: Sequence[int] = (), by: Sequence[int] | None = None
    ) -> None:
        self.n_rows = len(X)
        self._values: list[Any] = []
        self._calls: list[tuple[int, Callable[..., Any], Callable[..., Any], tuple[int, ...]]] = []
        self._by_column: dict[int, list[int]] = {column: [] for column in columns}
        constants: list[int] = []
        self.constants: list[float] = []
        """The formula's own, in the order of `constants_of`."""

        def leaf(node: Leaf) -> int:
            place = len(self._values)
            if isinstance(node, Constant):
                constants.append(place)
                self.constants.append(node.value)
                self._values.append(None)
            else:
                self._values.append(X[:, node.index])
                if node.index in self._by_column:
                    self._by_column[node.index].append(place)
            return place

        def call(node: Call, args: list[int]) -> int:
            operator = get_operator(node.operator)
            function = operator.protected if node.protected else operator.natural
            partials = power_partials if node.operator == "pow" else operator.partials
            self._calls.append((len(self._values), function, partials, tuple(args)))
            self._values.append(None)
            return len(self._values) - 1

        self._top = fold(root, leaf, call)
        self._places = constants
        self._by = constants if by is None else [constants[number] for number in by]
        self._is_asked = [False] * len(self._values)
        for place in (*self._by, *(place for places in self._by_column.values() for place in places)):
            self._is_asked[place] = True
        for place, _, _, args in self._calls:  # arguments come before the call that takes them
            self._is_asked[place] = any(self._is_asked[arg] for arg in args)

    def __call__(self, constants: Iterable[float] | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values [N], slopes by each constant that is asked for [N, K], and by each of the columns [N, C]; with the
        formula's own constants where no others are given."""
        values, N = self._values, self.n_rows
        for place, number in zip(self._places, self.constants if constants is None else constants, strict=True):
            values[place] = np.full(N, number)
        slopes: dict[int, np.ndarray] = {self._top: np.ones(N)}
        with np.errstate(all="ignore"):
            for place, function, _, args in self._calls:
                values[place] = np.asarray(function(np, *[values[arg] for arg in args]), dtype=float)
            for place, _, partials, args in reversed(self._calls):
                if self._is_asked[place]:
                    slope = slopes[place]
                    for arg, inner in zip(args, partials(np, *[values[arg] for arg in args]), strict=True):
                        if self._is_asked[arg]:
                            slopes[arg] = slope * inner
            by_column = [sum((slopes[place] for place in places), np.zeros(N)) for places in self._by_column.values()]
        by_constant = np.stack([slopes[place] for place in self._by], axis=1) if self._by else np.empty((N, 0))
        others = np.stack(by_column, axis=1) if by_column else np.empty((N, 0))
        return np.broadcast_to(values[self._top], (N,)), by_constant, others


def power_partials(xp: Any, a: np.ndarray, b: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of a**b in numbers; at a = 0 it moves neither with the exponent nor, as far as a fit is told, with the base."""
    at_zero = (a == 0.0) & (np.asarray(b) > 0.0)
    base = np.where(at_zero, 1.0, a)
    return np.where(at_zero, 0.0, b * base ** (b - 1)), np.where(at_zero, 0.0, base**b * np.log(base))
