"""Curves of one column that every text-book draws: saturation, growth, decay, powers, the logistic curve.

On few or noisy rows many odd forms fit a little better than the curve a person would try first, and the luckiest of them says
`tanh(0.285*dose)**6` where a logistic curve predicts as well. There are few such curves, so that stating which of them it
is, over which column, takes `log(curves * V)` nats instead of a price for every symbol: what is known beforehand of how
quantities depend on each other (`front/plain_sums.py` lets the front judge them).

For every value of what stands inside, on a grid, scale and level follow by least squares, all at once; the best few are then
fitted.

Legend: `N` rows, `V` columns, `G` values of what stands inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.losses.converging import SQUARES, converged

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TextbookConfig:
    """Numbers of the method."""

    fitted: int = 4
    """Curves that are fitted, the best of the grid."""
    least_values: int = 6
    """Different values of a column below which a curve over it is a guess."""
    most_columns: int = 30
    rows_per_constant: int = 4
    looked_at: int = 1000
    """Rows by which the grid is looked at."""
    steps: int = 40
    """Values of what stands inside a curve: a fit starts within 15 % of the best."""


TEXTBOOK = TextbookConfig()


@dataclass(frozen=True)
class TextbookCurve:
    """A fitted curve, and the nats that stating it takes."""

    root: Node
    nats: float


@dataclass(frozen=True)
class _Shape:
    """A curve: its parts, each [N] or [G, N], for values of what stands inside, each [G, 1], and its tree."""

    operators: frozenset[str]
    parts: Callable[[FloatArray, tuple[FloatArray, ...]], Sequence[FloatArray]]
    tree: Callable[[Node, Sequence[float], tuple[float, ...]], Node]
    inside: Callable[[FloatArray], FloatArray]
    """What may stand inside over a column [N], as [G, values]; nothing where the curve has no place there."""


NOTHING = np.empty((0, 1))


def textbook_curves(X: FloatArray, y: FloatArray, weights: FloatArray, functions: FunctionSet) -> list[TextbookCurve]:
    """The best few of all curves over all columns."""
    columns = [k for k in range(X.shape[1]) if len(np.unique(X[: TEXTBOOK.looked_at, k])) >= TEXTBOOK.least_values]
    shapes = [shape for shape in SHAPES if functions.allows(set(shape.operators))]
    if not columns or len(columns) > TEXTBOOK.most_columns or not shapes:
        return []
    found: list[tuple[float, Node]] = []
    few = slice(0, TEXTBOOK.looked_at)
    for k in columns:
        for shape in shapes:
            with np.errstate(all="ignore"):  # what is beyond the numbers is no curve
                best = _best_of_grid(shape, X[few, k], y[few], weights[few])
            if best is not None:
                found.append((best[0], shape.tree(Variable(k), *best[1:])))
    nats = math.log(len(shapes) * len(columns) + 1)
    answers = []
    for _, root in sorted(found, key=lambda each: each[0])[: TEXTBOOK.fitted]:
        ones = frozenset(i for i, value in enumerate(Expression(root).constants) if value == 1.0)
        fitted, loss = converged(root, X, y, weights, SQUARES, ones)
        answers += [TextbookCurve(fitted, nats)] if math.isfinite(loss) else []
    return answers


def _best_of_grid(
    shape: _Shape, x: FloatArray, y: FloatArray, weights: FloatArray
) -> tuple[float, list[float], tuple[float, ...]] | None:
    """Nats of what is left and of the constants, the factors of the parts, and what stands inside."""
    inside = shape.inside(x)
    parts = shape.parts(x, tuple(values[:, None] for values in inside.T))
    tables = np.stack([np.broadcast_to(part, (len(inside), len(x))) for part in parts], axis=2)
    factors, lengths = fitted_tables(tables, y, weights, tables.shape[2] + inside.shape[1])
    best = int(np.argmin(lengths)) if len(lengths) else -1
    if best < 0 or not math.isfinite(lengths[best]):
        return None
    return float(lengths[best]), [float(f) for f in factors[best]], tuple(float(value) for value in inside[best])


def fitted_tables(
    tables: FloatArray, y: FloatArray, weights: FloatArray, constants: int
) -> tuple[FloatArray, FloatArray]:
    """Least squares over many small tables [G, N, parts] at once: factors [G, parts], and nats [G] of what is left and of
    so many `constants`; infinite where the rows are too few for these, or values none."""
    root = np.sqrt(weights)
    factors, lengths = np.zeros((len(tables), tables.shape[2])), np.full(len(tables), math.inf)
    with np.errstate(all="ignore"):
        tables = tables * root[:, None]
        sizes = np.abs(tables).max(axis=1, initial=0.0)
    usable = np.flatnonzero(np.isfinite(sizes).all(axis=1) & (sizes > 0).all(axis=1))
    if len(y) < TEXTBOOK.rows_per_constant * constants or not len(usable):
        return factors, lengths
    with np.errstate(all="ignore"):
        scaled = tables[usable] / sizes[usable, None, :]
        outer, triangle = np.linalg.qr(scaled)
        found = np.linalg.pinv(triangle) @ (outer.transpose(0, 2, 1) @ (y * root))[:, :, None]
        left = np.mean((y * root - (scaled @ found)[:, :, 0]) ** 2, axis=1)
        nats = 0.5 * len(y) * np.log(np.maximum(left, 1e-300)) + 0.5 * constants * math.log(len(y))
        factors[usable] = found[:, :, 0] / sizes[usable]
    known = np.isfinite(nats) & np.isfinite(factors[usable]).all(axis=1)
    lengths[usable] = np.where(known, nats, math.inf)
    return factors, lengths


def _rates(x: FloatArray) -> FloatArray:
    """Rates per unit of a column, from a curve that is nearly a line to one that is over at once."""
    return np.geomspace(0.2, 50.0, TEXTBOOK.steps) / float(np.ptp(x))


def _positive_rates(x: FloatArray) -> FloatArray:
    return _rates(x)[:, None] if x.min() >= 0 else NOTHING


def _all_rates(x: FloatArray) -> FloatArray:
    return np.outer(_rates(x), [1.0, -1.0]).reshape(-1, 1)


def _halfway(x: FloatArray) -> FloatArray:
    """Where a saturating curve has come half the way."""
    middle = float(np.median(x))
    return np.geomspace(0.02, 20.0, TEXTBOOK.steps)[:, None] * middle if x.min() >= 0 and middle > 0 else NOTHING


def _exponents(x: FloatArray) -> FloatArray:
    powers = np.linspace(-3, 3, 25)
    return powers[(powers != 0.0) & (powers != 1.0), None] if x.min() > 0 else NOTHING


def _steps(x: FloatArray) -> FloatArray:
    """Slopes and middles of a step."""
    rates = np.geomspace(2.0, 60.0, TEXTBOOK.steps // 3) / float(np.ptp(x))
    middles = np.quantile(x, np.linspace(0.05, 0.95, TEXTBOOK.steps // 3))
    both = np.array(np.meshgrid(rates, middles, [1.0, -1.0], indexing="ij")).reshape(3, -1)
    return np.column_stack([both[0] * both[2], both[1]])


def _rising_steps(x: FloatArray) -> FloatArray:
    """The same with slopes upwards alone: with a level, a fall is a rise times a number below zero."""
    both = _steps(x)
    return both[both[:, 0] > 0]


def _once(x: FloatArray) -> FloatArray:
    return np.empty((1, 0))


def _once_if_positive(x: FloatArray) -> FloatArray:
    return np.empty((int(x.min() > 0), 0))


def _c(value: float) -> Constant:
    return Constant(float(value))


def _of(scale: float, part: Node, level: float | None = None) -> Node:
    scaled = build("mul", _c(scale), part)
    return scaled if level is None else build("add", scaled, _c(level))


def _saturation(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return build("div", build("mul", _c(a[0]), x), build("add", x, _c(b[0])))


def _rise(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _of(a[0], build("sub", _c(1.0), build("exp", build("mul", _c(-b[0]), x))))


def _exponential(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _of(a[0], build("exp", build("mul", _c(b[0]), x)), *a[1:])


def _power(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _of(a[0], build("pow", x, _c(b[0])), *a[1:])


def _logistic(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    shifted = build("mul", _c(b[0]), build("sub", _c(b[1]), x))
    step = build("div", _c(a[0]), build("add", _c(1.0), build("exp", shifted)))
    return build("add", step, *map(_c, a[1:])) if a[1:] else step


def _plain(
    operator: str,
    values: Callable[[FloatArray], FloatArray],
    inside: Callable[[FloatArray], FloatArray],
) -> _Shape:
    """A multiple of one function of the column, and a level."""
    return _Shape(
        frozenset({operator, "add"}),
        lambda x, b: [values(x), np.ones(len(x))],
        lambda x, a, b: _of(a[0], build(operator, x), a[1]),
        inside,
    )


SHAPES = (
    _Shape(frozenset({"div", "add"}), lambda x, b: [x / (x + b[0])], _saturation, _halfway),
    _Shape(frozenset({"exp"}), lambda x, b: [1.0 - np.exp(-b[0] * x)], _rise, _positive_rates),
    _Shape(frozenset({"exp"}), lambda x, b: [np.exp(b[0] * x)], _exponential, _all_rates),
    _Shape(frozenset({"exp", "add"}), lambda x, b: [np.exp(b[0] * x), np.ones(len(x))], _exponential, _all_rates),
    _Shape(frozenset({"pow"}), lambda x, b: [x ** b[0]], _power, _exponents),
    _Shape(frozenset({"div", "add", "exp"}), lambda x, b: [1.0 / (1.0 + np.exp(b[0] * (b[1] - x)))], _logistic, _steps),
    _Shape(
        frozenset({"tanh"}),
        lambda x, b: [np.tanh(b[0] * x)],
        lambda x, a, b: _of(a[0], build("tanh", build("mul", _c(b[0]), x))),
        lambda x: _rates(x)[:, None],
    ),
    _Shape(  # from one level to another, as a titration or a response to a dose does
        frozenset({"div", "add", "exp"}),
        lambda x, b: [1.0 / (1.0 + np.exp(b[0] * (b[1] - x))), np.ones(len(x))],
        _logistic,
        _rising_steps,
    ),
    _plain("log", np.log, _once_if_positive),
    _Shape(
        frozenset({"div", "add"}),
        lambda x, b: [1.0 / x, np.ones(len(x))],
        lambda x, a, b: build("add", build("div", _c(a[0]), x), _c(a[1])),
        _once_if_positive,
    ),
    _plain("sqrt", np.sqrt, _once_if_positive),
    _plain("square", np.square, _once),
    _Shape(
        frozenset({"square", "add"}),
        lambda x, b: [x**2, x, np.ones(len(x))],
        lambda x, a, b: build("add", _of(a[0], build("square", x)), _of(a[1], x), _c(a[2])),
        _once,
    ),
)
"""The one table of text-book curves."""
