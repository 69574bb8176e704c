"""Interval arithmetic: between which values a formula stays over whole ranges of its columns, as a guarantee.

Every operator is taken from intervals to an interval that holds all its values (Moore, Interval Analysis, 1966), each
result rounded outward. A column that stands twice is counted as if its two places could differ, which makes bounds too
wide; the ranges are therefore cut into boxes, and the bounds are those of all boxes together.

Legend: `V` columns, `B` boxes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.domains import QUOTIENT_LIMIT, TINY
from gmeql.formula.nodes import Call, Constant, Node, Variable, fold, used_columns
from gmeql.formula.operators import get_operator

MAX_BOXES = 4096
"""Boxes that ranges are cut into at the most."""
MAX_PARTS = 256
"""Parts that one range is cut into at the most."""

Array = NDArray[np.float64]
Interval = tuple[Array, Array]
_NEVER_NEGATIVE = frozenset({"abs", "square", "pow4", "pow6", "exp", "sqrt"})
"""Operators without negative values, and those without any where no argument is negative."""
_KEEPS_SIGN = frozenset({"id", "add", "sum", "mul", "prod", "div", "inv", "cube", "pow5", "pow", "tanh", "atan"})


@dataclass(frozen=True)
class Bounds:
    """All values of a formula over the ranges lie in [low, high]."""

    low: float
    high: float
    defined: bool
    """Whether it is certain that the formula has a value everywhere: no pole, no root or logarithm of a negative."""

    @property
    def finite(self) -> bool:
        """Whether the formula is certain to be defined and bounded."""
        return self.defined and math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True)
class _Boxes:
    """An interval for each box, [B] each, and whether all that led to it was defined there."""

    low: Array
    high: Array
    defined: NDArray[np.bool_]


def bounds(root: Node, ranges: Sequence[tuple[float, float]] | Array) -> Bounds:
    """Bounds of a formula over `ranges`, one (low, high) for each column.

    >>> from gmeql.formula.nodes import Constant, Variable, build
    >>> bounds(build("inv", build("add", Variable(0), Constant(1.0))), [(0.0, 1.0)]).finite
    True
    >>> bounds(build("inv", build("sub", Variable(0), Constant(0.5))), [(0.0, 1.0)]).finite
    False
    """
    columns = _boxes(np.asarray(ranges, dtype=float), used_columns(root))
    n_boxes = len(next(iter(columns.values()))[0]) if columns else 1

    def leaf(node: Node) -> _Boxes:
        if isinstance(node, Constant):
            low = high = np.full(n_boxes, node.value)
        else:
            assert isinstance(node, Variable)
            low, high = columns[node.index]
        return _Boxes(low, high, np.ones(n_boxes, bool))

    with np.errstate(all="ignore"):
        found = fold(root, leaf, _call)
    low, high = _without_nan(found.low, found.high)
    return Bounds(float(low.min()), float(high.max()), bool(found.defined.all()))


def _boxes(ranges: Array, used: Sequence[int]) -> dict[int, tuple[Array, Array]]:
    """The ranges of the used columns, cut into a grid of at most `MAX_BOXES` boxes."""
    if not used:
        return {}
    parts = max(1, min(MAX_PARTS, math.floor(MAX_BOXES ** (1.0 / len(used)))))
    edges = [np.linspace(ranges[column, 0], ranges[column, 1], parts + 1) for column in used]
    if parts == 1:  # of more columns than arrays have dimensions, too
        return {column: (edge[:1], edge[1:]) for column, edge in zip(used, edges, strict=True)}
    places = np.meshgrid(*[np.arange(parts)] * len(used), indexing="ij")
    return {
        column: (edge[place.ravel()], edge[place.ravel() + 1])
        for column, edge, place in zip(used, edges, places, strict=True)
    }


def _call(node: Call, args: list[_Boxes]) -> _Boxes:
    """The interval of one operator over its arguments' intervals."""
    operator = get_operator(node.operator)
    rule = _RULES.get(operator.name)
    defined = np.logical_and.reduce([arg.defined for arg in args])
    if rule is None:  # an operator of the user's: nothing is known of it
        unknown = np.full(len(defined), math.inf)
        return _Boxes(-unknown, unknown, np.zeros(len(defined), bool))
    intervals = [(arg.low, arg.high) for arg in args]
    if node.protected:
        domains = operator.domains * len(args) if len(operator.domains) == 1 else operator.domains
        intervals = [
            _magnitude(low, high, domain.low, domain.high)
            if domain.kind == "magnitude"
            else (np.clip(low, domain.low, domain.high), np.clip(high, domain.low, domain.high))
            for (low, high), domain in zip(intervals, domains, strict=True)
        ]
    low, high, inside = rule(*intervals)
    if node.protected:
        inside = np.ones_like(inside)
        if operator.name in ("div", "inv"):
            zero = _magnitude(*intervals[-1])[0] <= TINY  # there the quotient is 0
            low, high = np.where(zero, np.minimum(low, 0.0), low), np.where(zero, np.maximum(high, 0.0), high)
            low, high = np.clip(low, -QUOTIENT_LIMIT, QUOTIENT_LIMIT), np.clip(high, -QUOTIENT_LIMIT, QUOTIENT_LIMIT)
    low, high = _without_nan(low, high)
    least = np.where(_is_never_negative(operator.name, intervals), 0.0, -math.inf)
    return _Boxes(np.maximum(np.nextafter(low, -math.inf), least), np.nextafter(high, math.inf), defined & inside)


def _is_never_negative(name: str, args: Sequence[Interval]) -> NDArray[np.bool_]:
    """Whether no value can be negative [B], however it is rounded: else a sum of squares had no certain root."""
    signless = np.logical_and.reduce([low >= 0 for low, _ in args])
    if name in _NEVER_NEGATIVE:
        return np.ones_like(signless)
    if name == "pow" and np.all(args[1][0] == args[1][1]) and np.all(args[1][0] % 2 == 0):
        return np.ones_like(signless)
    return signless if name in _KEEPS_SIGN else np.zeros_like(signless)


Rule = Callable[..., tuple[Array, Array, NDArray[np.bool_]]]


def _without_nan(low: Array, high: Array) -> Interval:
    """An end that has no value bounds nothing."""
    return np.where(np.isnan(low), -math.inf, low), np.where(np.isnan(high), math.inf, high)


def _always(low: Array, high: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    return low, high, np.ones(len(low), bool)


def _magnitude(low: Array, high: Array, least: float = 0.0, most: float = math.inf) -> Interval:
    """The interval of |x|, clipped to [least, most]."""
    largest = np.maximum(np.abs(low), np.abs(high))
    smallest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return np.clip(smallest, least, most), np.clip(largest, least, most)


def _sum(*args: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
    return _always(sum(low for low, _ in args), sum(high for _, high in args))  # type: ignore[arg-type]


def _times(one: Interval, other: Interval) -> Interval:
    ends = np.stack([a * b for a in one for b in other])
    ends = np.where(np.isnan(ends), 0.0, ends)  # 0 times infinity: the zero is exact, the infinity only a bound
    return ends.min(axis=0), ends.max(axis=0)


def _product(*args: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
    result = args[0]
    for arg in args[1:]:
        result = _times(result, arg)
    return _always(*result)


def _inverse(arg: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
    low, high = arg
    pole = (low <= 0) & (high >= 0)
    return np.where(pole, -math.inf, 1.0 / high), np.where(pole, math.inf, 1.0 / low), ~pole


def _quotient(one: Interval, other: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
    low, high, inside = _inverse(other)
    return *_times(one, (low, high)), inside


def _rising(function: Callable[[Array], Array], least: float = -math.inf, most: float = math.inf) -> Rule:
    """A function that rises on its domain [least, most]."""

    def rule(arg: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
        low, high = arg
        inside = (low >= least) & (high <= most)
        return function(np.clip(low, least, most)), function(np.clip(high, least, most)), inside

    return rule


def _arc_cosine(arg: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
    low, high, inside = _rising(np.arcsin, -1.0, 1.0)(arg)
    return math.pi / 2 - high, math.pi / 2 - low, inside


def _logarithm(arg: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
    low, high = arg
    return np.log(np.maximum(low, 0.0)), np.log(np.maximum(high, 0.0)), low > 0


def _wave(quarter: float) -> Rule:
    """A sine whose argument is `quarter` quarter turns ahead: 0 for the sine, 1 for the cosine."""

    def rule(arg: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
        low, high = (end + quarter * math.pi / 2 for end in arg)
        ends = np.sin(low), np.sin(high)
        # a crest lies at pi/2 + 2 pi k; the interval holds one where a whole number of turns passes between its ends
        slack = 1e-9 + 1e-15 * np.maximum(np.abs(low), np.abs(high))
        crest = np.floor((high - math.pi / 2) / math.tau + slack) >= np.ceil((low - math.pi / 2) / math.tau - slack)
        trough = np.floor((high + math.pi / 2) / math.tau + slack) >= np.ceil((low + math.pi / 2) / math.tau - slack)
        bounded = np.isfinite(low) & np.isfinite(high)
        upper = np.where(crest | ~bounded, 1.0, np.maximum(*ends))
        lower = np.where(trough | ~bounded, -1.0, np.minimum(*ends))
        return lower, upper, bounded

    return rule


def _whole_power(arg: Interval, exponent: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    if exponent < 0:
        low, high, _ = _whole_power(arg, -exponent)
        return _inverse((low, high))
    low, high = _magnitude(*arg) if exponent % 2 == 0 else arg
    return _always(low**exponent, high**exponent)


def _power(base: Interval, exponent: Interval) -> tuple[Array, Array, NDArray[np.bool_]]:
    first = float(exponent[0][0])
    if np.all(exponent[0] == first) and np.all(exponent[1] == first):
        if first.is_integer():
            return _whole_power(base, int(first))
        low, high = np.maximum(base[0], 0.0), np.maximum(base[1], 0.0)
        if first > 0:
            return low**first, high**first, base[0] >= 0
        return high**first, low**first, base[0] > 0
    low, high, inside = _logarithm(base)
    low, high = _times(exponent, (low, high))
    return np.exp(low), np.exp(high), inside


def _fixed_power(exponent: int) -> Rule:
    return lambda arg: _whole_power(arg, exponent)


_RULES: dict[str, Rule] = {
    "id": lambda arg: _always(*arg),
    "add": _sum,
    "sum": _sum,
    "sub": lambda one, other: _always(one[0] - other[1], one[1] - other[0]),
    "mul": _product,
    "prod": _product,
    "div": _quotient,
    "inv": _inverse,
    "neg": lambda arg: _always(-arg[1], -arg[0]),
    "abs": lambda arg: _always(*_magnitude(*arg)),
    "sin": _wave(0.0),
    "cos": _wave(1.0),
    "sqrt": _rising(np.sqrt, 0.0),
    "exp": _rising(np.exp),
    "log": _logarithm,
    "tanh": _rising(np.tanh),
    "asin": _rising(np.arcsin, -1.0, 1.0),
    "acos": _arc_cosine,
    "atan": _rising(np.arctan),
    "square": _fixed_power(2),
    "cube": _fixed_power(3),
    "pow4": _fixed_power(4),
    "pow5": _fixed_power(5),
    "pow6": _fixed_power(6),
    "pow": _power,
}
"""Operator to rule: intervals of its arguments in, interval of its values and whether all lie in its domain out."""
