"""A product of powers times a function of another one, over many magnitudes: Planck in wavelength, diodes, Arrhenius.

Least squares see the largest rows of such a target alone. In logarithms every row counts: with y = C P f(c Q)**k,
log |y| = log |C| + p · log |x| + k log |f(c Q)|, which is linear in all but c. Where exponentials of Q are far from 1, as on most
rows of a diode, log f is nearly c Q, and what is left bends where c Q is near 1. So every product w of small powers is asked
first how much w and one bend, at a few places, leave of log |y|; the best are asked for their function. Where nothing is seen,
each column is added to the target or taken off first. What deviates little from a product of powers everywhere is seen by
`corrected`.

Legend: `N` rows, `V` columns, `E` exponents tried, `A` constants tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, calls, row_values, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.powers.shapes import (
    NEARBY,
    POWERS,
    SHAPES,
    Law,
    Shape,
    converged,
    law,
    nearest,
    over_columns,
    product_of_powers,
    products_of_powers,
    stepped,
)
from gmeql.search.direct.table import DirectTable, Effort

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ExponentialsConfig:
    """Numbers of the method."""

    few_rows: int = 60
    rows: int = 240  # that products are chosen by
    bends: float = 0.03  # least deviation of log |y| from a product of powers (root mean square) that is looked at
    powers: tuple[int, ...] = (6, 6, 4, 3, 2, 1)  # largest in w, for tables of one, two, ... columns
    turns: tuple[float, ...] = (1, 4, 16, 64, 256, 1000)  # largest c w at which a bend is looked for
    chunk: int = 256
    explained: float = 0.1  # share of the deviation that w and a bend may leave,
    kept: int = 6  # and so many products are asked for their function
    scales: tuple[float, float, int] = (0.03, 1000.0, 64)  # least and largest c w tried, and how many
    steps: int = 8  # of Gauss and Newton in logarithms
    powers_apart: float = 0.5  # share of a function's power that a first fit may be away from it
    near: float = 0.1  # within which exponents come out as multiples of one over
    parts: int = 2
    cancelled: float = 1e-8  # share of the target below which a difference to a column has too few digits
    met: float = 1e-3  # relative error that a law may leave
    least: float = 1e-13  # error that is rounding
    proposed: int = 3
    alike: float = 100.0  # times the least error that another proposal may have
    seconds_per_product: float = 2e-4  # of one core (measured)


EXPONENTIALS = ExponentialsConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Products of powers times a function of another one that meet every row in its own size. Draws nothing at random."""
    X, y = table.X, table.y
    if table.n_columns > len(EXPONENTIALS.powers) or not functions.allows({"mul"}) or effort.out_of_time():
        return
    if not (np.isfinite(X).all() and (X != 0).all() and np.isfinite(y).all()):
        return
    with np.errstate(all="ignore"):
        found = _laws(X, y, functions, effort)
        if not found and functions.allows({"add"}):
            found = list(_beside_columns(X, y, functions, effort))
    numbers = EXPONENTIALS
    yield from nearest(found, least=numbers.least, alike=numbers.alike, most=numbers.proposed)


def _laws(X: FloatArray, y: FloatArray, functions: FunctionSet, effort: Effort) -> list[Law]:
    """Laws that meet all rows, none where there is no product w."""
    told = y != 0  # where an exponential is below the least number, its row tells nothing
    X, y = X[told], y[told]
    tried = _tried(X.shape[1], int(effort.seconds / EXPONENTIALS.seconds_per_product))
    if not len(tried) or len(y) < max(EXPONENTIALS.few_rows, len(told) // 2):
        return []
    logs = _Logarithms(X[: EXPONENTIALS.rows], y[: EXPONENTIALS.rows])
    if not logs.deviation > EXPONENTIALS.bends:
        return []
    found: list[Law] = []
    for exponents in _arguments(logs, tried, effort):
        for shape in SHAPES:
            if effort.out_of_time():
                break
            found += _fitted(logs, X, y, exponents, shape, functions)
        if any(error < EXPONENTIALS.met**2 for error, *_ in found):
            break
    return found


def _beside_columns(X: FloatArray, y: FloatArray, functions: FunctionSet, effort: Effort) -> Iterator[Law]:
    """Laws of the other columns with a column, or a product of two, added or taken off: a cell's current less a diode's."""
    places = range(X.shape[1])
    beside = [(j,) for j in places] + list(combinations(places, 2))
    share = replace(effort, seconds=effort.seconds / max(X.shape[1], 1))
    for taken, sign in product((one for one in beside if len(one) < X.shape[1]), (1.0, -1.0)):
        rest = y - sign * X[:, taken].prod(axis=1)
        rest[np.abs(rest) < EXPONENTIALS.cancelled * np.abs(y)] = 0.0
        if effort.out_of_time() or not ((rest >= 0).all() or (rest <= 0).all()):
            continue
        others = np.delete(np.arange(X.shape[1]), taken)
        for error, _, root in _laws(X[:, others], rest, functions, share):
            term = build("mul", Constant(sign), *(Variable(j) for j in taken))
            whole = build("add", over_columns(root, others), term)
            yield Law(error, tree_complexity(whole), whole)


def _tried(n_columns: int, most: int) -> FloatArray:
    """Exponents [E, V] of all products of small powers, as large as so many allow; none where not even 1 is."""
    for largest in range(EXPONENTIALS.powers[n_columns - 1], 0, -1):
        if (2 * largest + 1) ** n_columns <= most:
            tried = np.array(list(product(range(-largest, largest + 1), repeat=n_columns)), float)
            return np.asarray(tried[tried.any(axis=1)])
    return np.zeros((0, n_columns))


class _Logarithms:
    """log |y| over the logarithms of the columns, and what a product of powers leaves of it."""

    def __init__(self, X: FloatArray, y: FloatArray) -> None:
        self.X = X
        self.columns = np.log(np.abs(X))
        self.target = np.log(np.abs(y))
        self._centre = self.columns.mean(axis=0)
        plain = np.column_stack([np.ones(len(y)), self.columns - self._centre])
        left, sizes, _ = np.linalg.svd(plain, full_matrices=False)
        self._plain, self._basis = plain, left[:, sizes > 1e-10 * sizes[0]]
        self.left = self.without(self.target)
        self.deviation = float(np.sqrt(np.mean(self.left**2)))

    def without(self, values: FloatArray) -> FloatArray:
        """Values [..., N] less the product of powers that is nearest to them."""
        return np.asarray(values - (values @ self._basis) @ self._basis.T)

    def powers(self, values: FloatArray) -> FloatArray:
        """Exponents [V] of the product of powers that is nearest to values [N]."""
        return np.asarray(np.linalg.lstsq(self._plain, values, rcond=None)[0][1:])


def _arguments(logs: _Logarithms, tried: FloatArray, effort: Effort) -> list[FloatArray]:
    """Exponents [V] of products w that explain, with one bend, most of the deviation from a product of powers."""
    total = float(logs.left @ logs.left)
    squares = np.full(len(tried), math.inf)
    for start in range(0, len(tried), EXPONENTIALS.chunk):
        if effort.out_of_time():
            break
        some = tried[start : start + EXPONENTIALS.chunk]
        squares[start : start + len(some)] = _left(logs, some)
    best = np.argsort(squares, kind="stable")[: EXPONENTIALS.kept]
    return [tried[i] for i in best if squares[i] < EXPONENTIALS.explained**2 * total]


def _left(logs: _Logarithms, tried: FloatArray) -> FloatArray:
    """Squares [E] that each w and a bend at the best of some places leave of the deviation."""
    w = products_of_powers(logs.X, tried)
    one = _unit(logs.without(w))
    before = float(logs.left @ logs.left) - (one @ logs.left) ** 2
    best = before
    for turn in EXPONENTIALS.turns:
        v = turn * w
        small = np.exp(-np.abs(v))
        for bend in (np.log1p(-small), np.log1p(small), np.log(np.abs(1.0 + v))):
            two = logs.without(bend)
            two -= np.einsum("en,en->e", two, one)[:, None] * one
            best = np.fmin(best, before - (_unit(two) @ logs.left) ** 2)
    return np.where(np.isfinite(best), best, math.inf)


def _unit(rows: FloatArray) -> FloatArray:
    """Rows [E, N] of length 1; without a value where there is nothing but rounding."""
    lengths = np.sqrt(np.einsum("en,en->e", rows, rows))
    return np.asarray(rows / np.where(lengths > 1e-9, lengths, math.nan)[:, None])


def _fitted(
    logs: _Logarithms, X: FloatArray, y: FloatArray, exponents: FloatArray, shape: Shape, functions: FunctionSet
) -> Iterator[Law]:
    """The law of one function of w, where it meets all rows."""
    plain = shape.form(Variable(0))
    if not functions.allows({call.operator for call in calls(plain)}):
        return
    w = product_of_powers(logs.X, exponents)
    size = float(np.abs(w).max())
    if not (math.isfinite(size) and size > 0) or not np.isfinite(w).all():
        return
    for sign in (1.0, -1.0) if shape.has_powers else (1.0,):
        begun = _begun(logs, plain, w / size, sign, shape)
        if begun is None:
            continue
        scale, power = begun
        before = logs.powers(logs.target - power * _log(plain, scale * w / size))
        halves = np.round(EXPONENTIALS.parts * before) / EXPONENTIALS.parts
        if not np.abs(before - halves).max() < EXPONENTIALS.near:
            continue
        if any(not p.is_integer() and (x < 0).any() for p, x in zip(halves, X.T, strict=True)):
            continue
        form = build("pow", plain, Constant(power))
        inner, outer = product_of_powers(X, exponents), product_of_powers(X, halves)
        found = converged(y, form, inner, outer, scale / size)
        if found is not None and found[0] < EXPONENTIALS.met:
            yield law(found, form, before=halves, inner=exponents)
            return


def _log(plain: Node, v: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.abs(row_values(plain, ("v",), v.reshape(-1, 1)))).reshape(v.shape))


def _begun(logs: _Logarithms, plain: Node, w: FloatArray, sign: float, shape: Shape) -> tuple[float, float] | None:
    """The constant inside and the power of a function that leave least of log |y|; None where they leave much."""
    low, high, count = EXPONENTIALS.scales
    scales = sign * np.geomspace(low, high, count)
    values = logs.without(_log(plain, scales[:, None] * w))
    sizes = np.einsum("an,an->a", values, values)
    slopes = values @ logs.left / sizes
    left = np.asarray(np.where(np.isfinite(slopes), logs.left @ logs.left - slopes**2 * sizes, math.inf))
    best = int(np.argmin(left))
    if not shape.has_powers:  # a power of an exponential is another
        return (float(scales[best] * slopes[best]), 1.0) if math.isfinite(left[best]) else None
    power = min(POWERS, key=lambda one: abs(one - slopes[best])) if math.isfinite(left[best]) else math.nan
    if not abs(power - slopes[best]) < EXPONENTIALS.powers_apart * abs(power):
        return None
    left = np.einsum("an,an->a", *[logs.left - power * values] * 2)
    left = np.where(np.isfinite(left), left, math.inf)
    scale = float(scales[int(np.argmin(left))])
    for _ in range(EXPONENTIALS.steps):
        now = logs.without(_log(plain, scale * w))
        ahead = logs.without(_log(plain, scale * (1 + NEARBY) * w))
        scale = stepped(scale, (ahead - now) * power / NEARBY, logs.left - power * now)
        if not math.isfinite(scale):
            return None
    return scale, power
