"""Functions of one product of powers, and the two constants of such a law: y = C P f(c Q)**k.

P and Q are products of powers of the columns. `SHAPES` is the one table of functions f with what is known of their series.

Legend: `N` rows, `V` columns, `E` exponents tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values, transform, tree_complexity

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """A function of v that is c v**power (1 + first v**degree + ...) for small v."""

    form: Callable[[Node], Node]
    power: int
    degree: int
    first: float
    has_powers: bool = True
    """Whether its powers are no functions of the same kind with another constant inside."""


_ONE = Constant(1.0)


def _plus(v: Node) -> Node:
    return build("add", _ONE, v)


def _root(v: Node) -> Node:
    return build("sqrt", _plus(v))


def _both(operator: str, v: Node) -> Node:
    """Twice the hyperbolic cosine or sine."""
    return build(operator, build("exp", v), build("exp", build("neg", v)))


def _inverse_sinh(v: Node) -> Node:
    return build("log", build("add", v, _root(build("square", v))))


SHAPES = (
    Shape(_plus, 0, 1, 1.0),
    Shape(lambda v: build("div", _plus(v), build("sub", _ONE, v)), 0, 1, 2.0),
    Shape(lambda v: build("exp", v), 0, 1, 1.0, has_powers=False),
    Shape(lambda v: build("add", build("exp", v), _ONE), 0, 1, 0.5),
    Shape(lambda v: build("cos", v), 0, 2, -0.5),
    Shape(lambda v: _both("add", v), 0, 2, 0.5),
    Shape(lambda v: build("log", _plus(v)), 1, 1, -0.5),
    Shape(lambda v: build("sub", build("exp", v), _ONE), 1, 1, 0.5),
    Shape(lambda v: build("sub", _root(v), _ONE), 1, 1, -0.25),
    Shape(lambda v: build("add", _root(v), _ONE), 0, 1, 0.25),
    Shape(lambda v: build("sub", build("inv", _root(v)), _ONE), 1, 1, -0.75),
    Shape(lambda v: build("sub", build("inv", _plus(v)), _ONE), 1, 1, -1.0),
    Shape(lambda v: build("sin", v), 1, 2, -1 / 6),
    Shape(lambda v: build("div", build("sin", v), build("cos", v)), 1, 2, 1 / 3),
    Shape(lambda v: build("tanh", v), 1, 2, -1 / 3),
    Shape(lambda v: _both("sub", v), 1, 2, 1 / 6),
    Shape(lambda v: build("atan", v), 1, 2, -1 / 3),
    Shape(lambda v: build("asin", v), 1, 2, 1 / 6),
    Shape(lambda v: build("sub", _ONE, build("cos", v)), 2, 2, -1 / 12),
    Shape(_inverse_sinh, 1, 2, -1 / 6),
    Shape(lambda v: build("log", build("div", _plus(v), build("sub", _ONE, v))), 1, 2, 1 / 3),
    Shape(lambda v: build("mul", _plus(v), build("exp", build("neg", v))), 0, 2, -0.5),
    Shape(lambda v: build("sub", build("inv", build("tanh", v)), build("inv", v)), 1, 2, -1 / 15),
)
"""The one table of functions, the plainest first."""
POWERS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, -1.5)
"""Powers k of a function that laws have."""
NEARBY = 1e-6
"""Share of the constant inside by which slopes look ahead,"""
STEPS = (-0.5, 1.0)
"""and shares by which it changes in one step at most."""


class Law(NamedTuple):
    """A formula with its relative error (root mean square)."""

    error: float
    complexity: int
    root: Node


def nearest(laws: Sequence[Law], *, least: float, alike: float, most: int) -> list[Node]:
    """The formulas of `laws` with up to `alike` times the least error; of those below `least`, the simplest come first."""
    if not laws:
        return []
    ordered = sorted(laws, key=lambda law: (max(law.error, least), law.complexity))
    allowed = alike * max(ordered[0].error, least)
    return [law.root for law in ordered[:most] if law.error < allowed]


def product_of_powers(X: FloatArray, powers: FloatArray) -> FloatArray:
    """A product of powers on every row [N], with its sign where columns have both."""
    return np.asarray(np.prod(X**powers, axis=1))


def products_of_powers(X: FloatArray, tried: FloatArray) -> FloatArray:
    """Products with the exponents `tried` [E, V] on every row [E, N], each in units of its largest."""
    heights = tried @ np.log(np.abs(X)).T
    products = np.exp(heights - heights.max(axis=1, keepdims=True))
    if (X < 0).any():
        products *= 1.0 - 2.0 * ((tried % 2) @ (X < 0).T % 2)
    return np.asarray(products)


def stepped(scale: float, slope: FloatArray, left: FloatArray) -> float:
    """The constant inside after a step of Gauss and Newton by what is `left` [N]; NaN where nothing depends on it."""
    squares = float(slope @ slope)
    if not (math.isfinite(squares) and squares > 0):
        return math.nan
    return scale * (1.0 + min(max(float(slope @ left) / squares, STEPS[0]), STEPS[1]))


def converged(
    y: FloatArray, form: Node, inner: FloatArray, before: FloatArray, scale: float, *, steps: int = 12
) -> tuple[float, float, float] | None:
    """Relative error (root mean square), factor and constant inside of least squares; None where there is no value."""

    def quotient(a: float) -> FloatArray:
        return y / (row_values(form, ("v",), (a * inner)[:, None]) * before)

    best: tuple[float, float, float] | None = None
    for _ in range(steps):
        now, ahead = quotient(scale), quotient(scale * (1 + NEARBY))
        factor = float(np.mean(now))
        error = float(np.std(now)) / abs(factor) if factor else math.inf
        if not math.isfinite(error):
            break
        if best is not None and not error < best[0]:
            break
        best = error, factor, scale
        # quotients are all alike where the constant is right: the step that takes their deviations away
        slope = (ahead / np.mean(ahead) - now / factor) / NEARBY
        scale = stepped(scale, slope, 1.0 - now / factor)
    return best


def put(form: Node, argument: Node) -> Node:
    """A form with a formula in place of its variable."""
    return transform(form, lambda leaf: argument if isinstance(leaf, Variable) else leaf)


def over_columns(root: Node, columns: Sequence[int] | NDArray[np.int64]) -> Node:
    """A formula over some columns of a table as one over the whole table."""
    return transform(root, lambda leaf: Variable(int(columns[leaf.index])) if isinstance(leaf, Variable) else leaf)


def monomial(powers: Sequence[float] | FloatArray) -> Node:
    """A product of powers of the columns."""
    return build("mul", _ONE, *(build("pow", Variable(j), Constant(float(p))) for j, p in enumerate(powers) if p))


def law(fitted: tuple[float, float, float], form: Node, *, before: FloatArray, inner: FloatArray) -> Law:
    """The law of a form with what `converged` gives for it: exponents [V] of the product before it and inside."""
    error, factor, scale = fitted
    argument = build("mul", Constant(scale), monomial(inner))
    root = build("mul", Constant(factor), monomial(before), put(form, argument))
    return Law(error, tree_complexity(root), root)
