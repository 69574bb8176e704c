"""The curves that every text-book draws: saturation, growth, decay, powers, steps, a rate of reaction, a peak.

A curve is a sum of parts with factors, which follow by least squares (`textbook.py`); what stands inside is looked for on a grid.

Legend: `N` rows, `G` values of what stands inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, build, fold

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CurvesConfig:
    """Numbers of the grids."""

    temperatures: float = 10.0
    """Multiple of the lowest absolute temperature that the highest of a table reaches at most."""
    steps: int = 40
    """Values of what stands inside a curve: a fit starts within 15 % of the best."""


CURVES = CurvesConfig()


@dataclass(frozen=True)
class Shape:
    """A curve: its parts, each [N] or [G, N], for values of what stands inside, each [G, 1], and its tree."""

    operators: frozenset[str]
    parts: Callable[[FloatArray, tuple[FloatArray, ...]], Sequence[FloatArray]]
    tree: Callable[[Node, Sequence[float], tuple[float, ...]], Node]
    inside: Callable[[FloatArray], FloatArray]
    """What may stand inside over a column [N], as [G, values]; nothing where the curve has no place there."""

    def above_a_level(self, inside: Callable[[FloatArray], FloatArray] | None = None) -> Shape:
        """The same curve with a level, which its tree writes where it is given one factor more."""

        def parts(x: FloatArray, b: tuple[FloatArray, ...]) -> Sequence[FloatArray]:
            return [*self.parts(x, b), np.ones(len(x))]

        return replace(self, operators=self.operators | {"add"}, parts=parts, inside=inside or self.inside)


NOTHING = np.empty((0, 1))


def _rates(x: FloatArray) -> FloatArray:
    """Rates per unit of a column, from a curve that is nearly a line to one that is over at once."""
    return np.geomspace(0.2, 50.0, CURVES.steps) / float(np.ptp(x))


def _positive_rates(x: FloatArray) -> FloatArray:
    return _rates(x)[:, None] if x.min() >= 0 else NOTHING


def _all_rates(x: FloatArray) -> FloatArray:
    return np.outer(_rates(x), [1.0, -1.0]).reshape(-1, 1)


def _halfway(x: FloatArray) -> FloatArray:
    """Where a saturating curve has come half the way."""
    middle = float(np.median(x))
    return np.geomspace(0.02, 20.0, CURVES.steps)[:, None] * middle if x.min() >= 0 and middle > 0 else NOTHING


def _inverse_rates(x: FloatArray) -> FloatArray:
    """The rates of a curve over one over the column, which is a temperature if anything, and spans no magnitudes."""
    return _all_rates(1.0 / x) if x.min() > 0 and x.max() < CURVES.temperatures * x.min() else NOTHING


def _exponents(x: FloatArray) -> FloatArray:
    powers = np.linspace(-3, 3, 25)
    powers = powers[(powers != 0.0) & (powers != 1.0), None]
    return powers if x.min() > 0 else powers[powers[:, 0] > 0] if x.min() >= 0 else NOTHING


def _steps(x: FloatArray) -> FloatArray:
    """Slopes and middles of a step."""
    rates = np.geomspace(2.0, 60.0, CURVES.steps // 3) / float(np.ptp(x))
    middles = np.quantile(x, np.linspace(0.05, 0.95, CURVES.steps // 3))
    both = np.array(np.meshgrid(rates, middles, [1.0, -1.0], indexing="ij")).reshape(3, -1)
    return np.column_stack([both[0] * both[2], both[1]])


def _rising_steps(x: FloatArray) -> FloatArray:
    """The same with slopes upwards alone: with a level, a fall is a rise times a number below zero."""
    both = _steps(x)
    return both[both[:, 0] > 0]


def _cooperation(x: FloatArray) -> FloatArray:
    """Exponents of both signs, and where the curve has come half the way; where nothing was given, a share of the column
    alone, which falls."""
    above = x[x > 0]
    if x.min() < 0 or not len(above):
        return np.empty((0, 2))
    exponents = np.geomspace(0.5, 8.0, CURVES.steps // 4)
    halfway = np.geomspace(above.min(), above.max(), CURVES.steps // 3)
    signs = [1.0, -1.0] if x.min() > 0 else [-1.0]
    both = np.array(np.meshgrid(exponents, halfway, signs, indexing="ij")).reshape(3, -1)
    return np.column_stack([both[0] * both[2], both[1]])


def _one_cooperation(x: FloatArray) -> FloatArray:
    """The same with exponents of one sign: with a level, a fall is a rise times a number below zero."""
    both = _cooperation(x)
    return both[both[:, 0] > 0] if x.min() > 0 else both


def _peaks(x: FloatArray) -> FloatArray:
    """Middles and widths of a peak."""
    middles = np.linspace(float(x.min()), float(x.max()), CURVES.steps // 2)
    widths = np.geomspace(0.05, 1.0, CURVES.steps // 4) * float(np.ptp(x))
    return np.array(np.meshgrid(middles, widths, indexing="ij")).reshape(2, -1).T


def _once(x: FloatArray) -> FloatArray:
    return np.empty((1, 0))


def _once_if_positive(x: FloatArray) -> FloatArray:
    return np.empty((int(x.min() > 0), 0))


def _c(value: float) -> Constant:
    return Constant(float(value))


def _of(scale: float, part: Node, level: float | None = None) -> Node:
    scaled = build("mul", _c(scale), part)
    return scaled if level is None else build("add", scaled, _c(level))


def _levelled(curve: Node, a: Sequence[float]) -> Node:
    return build("add", curve, *map(_c, a[1:])) if a[1:] else curve


def _saturation(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _levelled(build("div", build("mul", _c(a[0]), x), build("add", x, _c(b[0]))), a)


def _hill(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    over = (_c(b[1]), x) if b[0] > 0 else (x, _c(b[1]))
    share = build("pow", build("div", *over), _c(abs(b[0])))
    return _levelled(build("div", _c(a[0]), build("add", _c(1.0), share)), a)


def _reaction(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _of(a[0], build("exp", build("div", _c(b[0]), x)))


def _gompertz(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    inner = build("exp", build("mul", _c(b[0]), build("sub", _c(b[1]), x)))
    return _of(a[0], build("exp", build("neg", inner)))


def _peak(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    distance = build("div", build("sub", x, _c(b[0])), _c(b[1]))
    return _of(a[0], build("exp", build("neg", build("square", distance))), *a[1:])


def with_positive_widths(root: Node) -> Node:
    """A fitted curve whose peak has a width above 0: its square is the same."""

    def call(node: Call, args: list[Node]) -> Node:
        inner = args[0]
        if node.operator == "square" and isinstance(inner, Call) and inner.operator == "div":
            width = inner.args[1]
            if isinstance(width, Constant) and width.value < 0:
                return build("square", build("div", inner.args[0], _c(-width.value)))
        return Call(node.operator, tuple(args), node.protected)

    return fold(root, lambda leaf: leaf, call)


def _dose(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _of(a[0], build("mul", x, build("exp", build("mul", _c(-b[0]), x))))


def _rise(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _of(a[0], build("sub", _c(1.0), build("exp", build("mul", _c(-b[0]), x))))


def _exponential(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _of(a[0], build("exp", build("mul", _c(b[0]), x)), *a[1:])


def _power(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    return _of(a[0], build("pow", x, _c(b[0])), *a[1:])


def _logistic(x: Node, a: Sequence[float], b: tuple[float, ...]) -> Node:
    shifted = build("mul", _c(b[0]), build("sub", _c(b[1]), x))
    return _levelled(build("div", _c(a[0]), build("add", _c(1.0), build("exp", shifted))), a)


def _plain(
    operator: str,
    values: Callable[[FloatArray], FloatArray],
    inside: Callable[[FloatArray], FloatArray],
) -> Shape:
    """A multiple of one function of the column, and a level."""
    return Shape(
        frozenset({operator, "add"}),
        lambda x, b: [values(x), np.ones(len(x))],
        lambda x, a, b: _of(a[0], build(operator, x), a[1]),
        inside,
    )


_SATURATION = Shape(frozenset({"div", "add"}), lambda x, b: [x / (x + b[0])], _saturation, _halfway)
_EXPONENTIAL = Shape(frozenset({"exp"}), lambda x, b: [np.exp(b[0] * x)], _exponential, _all_rates)
_LOGISTIC = Shape(
    frozenset({"div", "add", "exp"}), lambda x, b: [1.0 / (1.0 + np.exp(b[0] * (b[1] - x)))], _logistic, _steps
)
_HILL = Shape(  # saturation with cooperation (Hill 1910)
    frozenset({"div", "add", "pow"}), lambda x, b: [1.0 / (1.0 + (x / b[1]) ** -b[0])], _hill, _cooperation
)
_PEAK = Shape(frozenset({"exp", "square"}), lambda x, b: [np.exp(-(((x - b[0]) / b[1]) ** 2))], _peak, _peaks)

SHAPES = (
    _SATURATION,
    Shape(frozenset({"exp"}), lambda x, b: [1.0 - np.exp(-b[0] * x)], _rise, _positive_rates),
    _EXPONENTIAL,
    _EXPONENTIAL.above_a_level(),
    Shape(frozenset({"pow"}), lambda x, b: [x ** b[0]], _power, _exponents),
    _LOGISTIC,
    Shape(
        frozenset({"tanh"}),
        lambda x, b: [np.tanh(b[0] * x)],
        lambda x, a, b: _of(a[0], build("tanh", build("mul", _c(b[0]), x))),
        lambda x: _rates(x)[:, None],
    ),
    _LOGISTIC.above_a_level(_rising_steps),  # from one level to another, as a titration does
    _plain("log", np.log, _once_if_positive),
    Shape(
        frozenset({"div", "add"}),
        lambda x, b: [1.0 / x, np.ones(len(x))],
        lambda x, a, b: build("add", build("div", _c(a[0]), x), _c(a[1])),
        _once_if_positive,
    ),
    _plain("sqrt", np.sqrt, _once_if_positive),
    _plain("square", np.square, _once),
    Shape(
        frozenset({"square", "add"}),
        lambda x, b: [x**2, x, np.ones(len(x))],
        lambda x, a, b: build("add", _of(a[0], build("square", x)), _of(a[1], x), _c(a[2])),
        _once,
    ),
    _SATURATION.above_a_level(),
    _HILL,
    _HILL.above_a_level(_one_cooperation),
    Shape(frozenset({"exp", "div"}), lambda x, b: [np.exp(b[0] / x)], _reaction, _inverse_rates),  # Arrhenius 1889
    Shape(frozenset({"exp"}), lambda x, b: [np.exp(-np.exp(b[0] * (b[1] - x)))], _gompertz, _steps),
    Shape(frozenset({"exp"}), lambda x, b: [x * np.exp(-b[0] * x)], _dose, _positive_rates),
    _PEAK,
    _PEAK.above_a_level(),
)
"""The one table of text-book curves."""
