"""Differences of nearly equal numbers, of which the target keeps little more than rounding: 2 U (1 - cos(k d)) for tiny k d.

A cosine near 1 is a whole number of half units of rounding below it, so that the target over the right product of powers
is a staircase: whole multiples of one step, many rows on the same one. Smooth formulas leave the height of a stair, and
losses see noise. But the staircase tells everything at once. The product before the difference is the one over which
rows coincide; the step is the factor before the difference times the unit of rounding; the numbers of the stairs are a
product of powers, to half a stair each, which the constant inside must give on every row.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, calls, row_values, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CancelledConfig:
    """Numbers of the method."""

    max_columns: int = 4
    powers: tuple[float, ...] = (0, 1, -1, 2, -2, 3, -3)  # of columns before the difference
    coincide: float = 1e-12  # relative difference of two rows on one stair: some units of rounding
    least_coinciding: int = 10  # pairs of neighbours that do, where the product is right; of a wrong one hardly any do
    few_rows: int = 60
    stairs: int = 20  # lowest ones that tell the step,
    apart: int = 6  # of which two are at most so many steps apart
    on_stair: float = 1e-4  # how far from a whole number of steps they may be
    near_exponent: float = 0.24  # how far from a half the exponents inside may come out: low stairs are coarse
    held: float = 0.995  # share of the rows that a formula must meet,
    met: float = 0.1  # to this share of a step
    most_missed: float = 0.005  # share of the rows that may lie outside when the constant inside is narrowed down
    proposed: int = 3
    seconds_per_product: float = 3e-4  # of one core (measured)


CANCELLED = CancelledConfig()


@dataclass(frozen=True)
class _Difference:
    """A difference h(v) that is close to `leading` v**degree for tiny v, in whole multiples of `unit`.

    Rounding puts a row at most `off` multiples beside its place: what stands under a root is rounded twice.
    """

    form: Callable[[Node], Node]
    degree: int
    leading: float
    unit: float
    off: float = 0.5


_ABOVE, _BELOW = 2.0**-52, 2.0**-53
"""Units of rounding of numbers a little above and below 1."""
_ONE = Constant(1.0)
DIFFERENCES = (
    _Difference(lambda v: build("sub", _ONE, build("cos", v)), 2, 0.5, _BELOW),
    _Difference(lambda v: build("sub", build("exp", v), _ONE), 1, 1.0, _ABOVE),
    _Difference(lambda v: build("sub", _ONE, build("exp", build("neg", v))), 1, 1.0, _BELOW),
    _Difference(lambda v: build("log", build("add", _ONE, v)), 1, 1.0, _ABOVE),
    _Difference(lambda v: build("sub", _ONE, build("sqrt", build("sub", _ONE, v))), 1, 0.5, _BELOW, off=1.0),
    _Difference(lambda v: build("sub", build("sqrt", build("add", _ONE, v)), _ONE), 1, 0.5, _ABOVE, off=1.0),
    _Difference(
        lambda v: build("sub", build("inv", build("sqrt", build("sub", _ONE, v))), _ONE), 1, 0.5, _ABOVE, off=1.0
    ),
)
"""The one table of differences that people write."""


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Products of powers times, or over, a difference that meet the rows to the last stair. Draws nothing at random."""
    X, y = table.X, table.y
    if table.n_columns > CANCELLED.max_columns or len(y) < CANCELLED.few_rows or not (X > 0).all():
        return
    if not ((y >= 0).all() or (y <= 0).all()) or effort.seconds < CANCELLED.seconds_per_product:
        return
    most = int(effort.seconds / CANCELLED.seconds_per_product)
    for place, (powers, inverse) in enumerate(product(_powers(table.n_columns), (False, True))):
        if place >= most or effort.out_of_time():
            return
        stairs = _stairs(X, np.abs(y), powers, inverse=inverse)
        if stairs is not None:
            sign = -1.0 if (y < 0).any() else 1.0
            yield from _written(table, powers, *stairs, inverse=inverse, sign=sign, functions=functions)
            return


def _powers(n_columns: int) -> list[tuple[float, ...]]:
    """Exponents of the columns before a difference, the plainest first."""
    return sorted(product(CANCELLED.powers, repeat=n_columns), key=lambda powers: sum(map(abs, powers)))


def _stairs(
    X: FloatArray, y: FloatArray, powers: tuple[float, ...], *, inverse: bool
) -> tuple[float, NDArray[np.int64]] | None:
    """The step of which y over a product of powers (or that over y) is a multiple, and of how many [N]; None: of none."""
    with np.errstate(all="ignore"):
        heights = y / np.prod(X ** np.array(powers), axis=1)
        heights = 1 / heights if inverse else heights
        if not np.isfinite(heights).all():
            return None
        ordered = np.sort(heights[heights > 0])
        together = np.diff(ordered) < CANCELLED.coincide * ordered[1:]
    if len(ordered) < 2 or together.sum() < CANCELLED.least_coinciding:
        return None
    lowest = ordered[np.concatenate([[True], ~together])][: CANCELLED.stairs]
    if len(lowest) < CANCELLED.stairs // 2:  # a target of few values, such as a count or a class
        return None
    nearest = float(np.diff(lowest).min())
    for steps in range(1, CANCELLED.apart + 1):
        multiples = lowest / (nearest / steps)
        if np.abs(multiples - np.round(multiples)).max() < CANCELLED.on_stair:
            step = float(lowest[0] / np.round(multiples[0]))
            return step, np.round(heights / step).astype(np.int64)
    return None


def _written(
    table: DirectTable,
    powers: tuple[float, ...],
    step: float,
    stairs: NDArray[np.int64],
    *,
    inverse: bool,
    sign: float,
    functions: FunctionSet,
) -> Iterator[Node]:
    """The differences that have these stairs on nearly all rows, the simplest first."""
    found: list[tuple[int, int, Node]] = []
    exponents = _exponents(table.X, stairs)
    if exponents is None:
        return
    for place, kind in enumerate(DIFFERENCES):
        inner = np.prod(table.X ** (exponents / kind.degree), axis=1)
        scale = _scale(inner, stairs, kind)
        if scale is None:
            continue
        argument = build("mul", Constant(scale), _monomial(exponents / kind.degree))
        difference = kind.form(argument)
        if not functions.allows({call.operator for call in calls(difference)}):
            continue
        with np.errstate(all="ignore"):
            heights = row_values(difference, [f"x{j}" for j in range(table.n_columns)], table.X) / kind.unit
        if np.mean(np.abs(heights - stairs) < CANCELLED.met) < CANCELLED.held:
            continue
        factor = sign * (step / kind.unit) ** (-1 if inverse else 1)
        root = build("mul", Constant(factor), _monomial(np.array(powers)))
        root = build("div" if inverse else "mul", root, difference)
        found.append((tree_complexity(root), place, root))
    yield from (root for *_, root in sorted(found)[: CANCELLED.proposed])


def _exponents(X: FloatArray, stairs: NDArray[np.int64]) -> FloatArray | None:
    """Of which product of powers the stairs are the whole part, in halves; None: of none. High stairs tell it best."""
    high = stairs > 0
    weight = stairs[high].astype(float)
    columns = np.column_stack([np.log(X[high]), np.ones(int(high.sum()))])
    fitted = np.linalg.lstsq(columns * weight[:, None], np.log(weight) * weight, rcond=None)[0][:-1]
    exponents = np.round(2 * fitted) / 2
    near = np.abs(exponents - fitted).max() < CANCELLED.near_exponent and np.abs(exponents).max() > 0
    return np.asarray(exponents) if near else None


def _scale(inner: FloatArray, stairs: NDArray[np.int64], kind: _Difference) -> float | None:
    """The constant inside that puts nearly every row on its stair; of those that do, the one with fewest digits."""
    with np.errstate(all="ignore"):
        lowest, highest = (
            (np.maximum(stairs + side, 0.0) * kind.unit / kind.leading) ** (1 / kind.degree) / inner
            for side in (-kind.off, kind.off)
        )
    # a stair may be off by rounding of the product inside
    spare = int(CANCELLED.most_missed * len(inner))
    low, high = float(np.sort(lowest)[-1]), float(np.sort(highest)[0])
    if low > high:
        low, high = float(np.sort(lowest)[-1 - spare]), float(np.sort(highest)[spare])
    if not (0 < low <= high < math.inf):
        return None
    middle = (low + high) / 2
    for digits in range(1, 17):
        rounded = float(f"{middle:.{digits}g}")
        if low <= rounded <= high:
            return rounded
    return middle


def _monomial(powers: FloatArray) -> Node:
    """A product of powers of the columns."""
    return build("mul", _ONE, *(build("pow", Variable(j), Constant(float(p))) for j, p in enumerate(powers) if p))
