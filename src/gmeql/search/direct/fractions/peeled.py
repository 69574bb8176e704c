"""Fractions of polynomials behind one step: f(z) R(x), z exp(R(x)) and log(R(x)) ± z, by the linear algebra of `rational.py`.

For every column z and a few functions f the step is undone, and what is left is asked whether it is a fraction. A function
of z before the rest takes z away, so that the fraction is one of fewer columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gmeql.formula.nodes import Node, Variable, build, transform
from gmeql.network.families import FunctionSet
from gmeql.search.direct.fractions.polynomials import written
from gmeql.search.direct.fractions.rational import RATIONAL, exact_ratio, written_ratio
from gmeql.search.direct.readings import LARGEST_EXPONENT
from gmeql.search.direct.table import DirectTable, Effort, FloatArray

BEFORE = ("cos", "sin", "exp", "log", "sqrt")
"""Functions of one column that may stand before a fraction of the others."""

LEAST_ROWS = 20
ERRORS = 4.0
"""Standard errors that a slope may be away from what is expected."""


class _Peel(NamedTuple):
    """What is left of the target behind a step, the columns it may be a fraction of, and the way back."""

    target: FloatArray
    columns: list[int]
    restore: Callable[[Node], Node]


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Fractions behind a step that are the target on all rows. Draws nothing at random."""
    if not 1 <= table.n_columns <= RATIONAL.max_columns + 1 or not functions.allows({"add", "mul", "div"}):
        return
    with np.errstate(all="ignore"):
        peels = [
            peel for peel in _peels(table, functions) if np.isfinite(peel.target).all() and np.ptp(peel.target) > 0
        ]
    for peel in peels:
        X = table.X[:, peel.columns]
        sizes = np.abs(X).max(axis=0)
        if effort.out_of_time():
            return
        if not 1 <= len(peel.columns) <= RATIONAL.max_columns or not (sizes > 0).all():
            continue
        ratio = exact_ratio(X / sizes, peel.target, True, replace(effort, seconds=effort.seconds / len(peels)))
        if ratio is not None:
            yield peel.restore(_over(peel.columns, written_ratio(*ratio, sizes, written)))
            return


def _peels(table: DirectTable, functions: FunctionSet) -> Iterator[_Peel]:
    """Steps by one column, those that take it away first."""
    every = list(range(table.n_columns))
    for j in every:
        others = [k for k in every if k != j]
        for node in (build(name, Variable(j)) for name in BEFORE if functions.allows({name})):
            values = table.values(node)
            if _may_stand_before(values, table.y):
                yield _Peel(table.y / values, others, lambda root, node=node: build("mul", node, root))  # type: ignore[misc]
    for j in every:
        v = Variable(j)
        x = table.X[:, j]
        for sign in (1.0, -1.0) if functions.allows({"log"}) else ():
            if np.abs(table.y - sign * x).max() < LARGEST_EXPONENT:
                ahead = v if sign > 0 else build("neg", v)
                yield _Peel(
                    np.exp(table.y - sign * x),
                    every,
                    lambda root, ahead=ahead: build("add", ahead, build("log", root)),  # type: ignore[misc]
                )
        quotient = table.y / x
        if functions.allows({"exp"}) and (quotient > 0).all():
            yield _Peel(np.log(quotient), every, lambda root, v=v: build("mul", v, build("exp", root)))  # type: ignore[misc]


def _may_stand_before(f: FloatArray, y: FloatArray) -> bool:
    """Whether log|y| rises by log|f| as it does where y is f times something else: by 1, within errors."""
    usable = (f != 0) & (y != 0) & np.isfinite(f)
    if usable.sum() < LEAST_ROWS:
        return False
    x, target = np.log(np.abs(f[usable])), np.log(np.abs(y[usable]))
    x, target = x - x.mean(), target - target.mean()
    square = float(x @ x)
    if not square > 0:
        return False
    slope = float(x @ target) / square
    rest = target - slope * x
    return abs(slope - 1.0) < ERRORS * math.sqrt(float(rest @ rest) / (len(x) * square))


def _over(columns: list[int], root: Node) -> Node:
    """A formula of some columns, over all of them."""
    return transform(root, lambda leaf: Variable(columns[leaf.index]) if isinstance(leaf, Variable) else leaf)
