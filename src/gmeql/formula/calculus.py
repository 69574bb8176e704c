"""Derivatives of trees, from the slopes in the operator table.

>>> differentiate(Call("sin", (Variable(0),)), 0)
Call('cos', (Variable(index=0),))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, calls, fold, used_columns
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


def constant_slopes(root: Node, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [N] of a formula on rows `X` [N, V], and its derivative by each of its constants [N, K].

    Constants are counted as in `Expression.constants`, from left to right. What has no value is nan; a protected call is
    differentiated as its natural form.
    """
    values, slopes, _ = row_slopes(root, X)
    return values, slopes


def row_slopes(root: Node, X: np.ndarray, columns: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values [N] on rows `X` [N, V], slopes by each constant [N, K], and by each of `columns` [N, C].

    One pass up for the values and one down for the slopes (reverse accumulation), in numbers.
    """
    N = len(X)

    def rise(node: Node) -> tuple[Node, np.ndarray, list[Any]]:
        if isinstance(node, Constant):
            return node, np.full(N, node.value), []
        if isinstance(node, Variable):
            return node, X[:, node.index], []
        below = [rise(arg) for arg in node.args]
        operator = get_operator(node.operator)
        function = operator.protected if node.protected else operator.natural
        return node, np.asarray(function(np, *(value for _, value, _ in below)), dtype=float), below

    slopes: list[np.ndarray] = []
    by_column = {column: np.zeros(N) for column in columns}

    def descend(place: tuple[Node, np.ndarray, list[Any]], slope: np.ndarray) -> None:
        node, _, below = place
        if isinstance(node, Constant):
            slopes.append(slope)
        elif isinstance(node, Variable):
            if node.index in by_column:
                by_column[node.index] = by_column[node.index] + slope
        else:
            partials = get_operator(node.operator).partials(np, *(value for _, value, _ in below))
            for part, inner in zip(below, partials, strict=True):
                descend(part, slope * inner)

    with np.errstate(all="ignore"):
        top = rise(root)
        descend(top, np.ones(N))
    by_constant = np.stack(slopes, axis=1) if slopes else np.empty((N, 0))
    others = np.stack(list(by_column.values()), axis=1) if by_column else np.empty((N, 0))
    return np.broadcast_to(top[1], (N,)), by_constant, others
