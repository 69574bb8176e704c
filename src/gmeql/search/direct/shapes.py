"""Functions of one product of powers, and the two constants of such a law: y = C P f(c Q).

P and Q are products of powers of the columns. `SHAPES` is the one table of functions f with what is known of their series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, row_values, transform

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


def product_of_powers(X: FloatArray, powers: FloatArray) -> FloatArray:
    """A product of powers on every row [N], with its sign where columns have both."""
    return np.asarray(np.prod(X**powers, axis=1))


def converged(
    y: FloatArray, form: Node, inner: FloatArray, before: FloatArray, scale: float, *, steps: int = 12
) -> tuple[float, float, float] | None:
    """Relative error (root mean square), factor and constant inside of least squares; None where there is no value."""

    def quotient(a: float) -> FloatArray:
        return y / (row_values(form, ("v",), (a * inner)[:, None]) * before)

    best: tuple[float, float, float] | None = None
    for _ in range(steps):
        now, ahead = quotient(scale), quotient(scale * (1 + 1e-6))
        factor = float(np.mean(now))
        error = float(np.std(now)) / abs(factor) if factor else math.inf
        if not math.isfinite(error):
            break
        if best is not None and not error < best[0]:
            break
        best = error, factor, scale
        # quotients are all alike where the constant is right: the step that takes their deviations away
        slope = (ahead / np.mean(ahead) - now / factor) / 1e-6
        squares = float(slope @ slope)
        if not squares > 0:
            break
        step = -float(slope @ (now / factor - 1.0)) / squares
        scale *= 1.0 + min(max(step, -0.5), 1.0)
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
