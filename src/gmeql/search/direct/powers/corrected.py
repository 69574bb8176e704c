"""Nearly a product of powers: n m tanh(m B / (k T)) with m B far below k T differs from n m² B / (k T) by a millionth.

Losses and surrogates see the product and hardly more; what tells the law is the small rest. With the product P of the
asymptotic rows, y / P = C (1 + D w + E w² + ...) where w is a product of powers too. For a given w the coefficients follow
from linear equations, so that all products of small powers are tried, some ten thousand at a time. A function such as the
hyperbolic tangent has a series of its own: its first term gives the constant inside, the others tell whether it is the one.

Legend: `N` rows, `V` columns, `E` exponents tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice, product

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, calls
from gmeql.network.families import FunctionSet
from gmeql.search.direct.powers.shapes import (
    POWERS,
    SHAPES,
    Law,
    converged,
    law,
    nearest,
    product_of_powers,
    products_of_powers,
)
from gmeql.search.direct.table import DirectTable, Effort

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CorrectedConfig:
    """Numbers of the method."""

    few_rows: int = 60
    largest: float = 0.3  # share of the product up to which a deviation is small
    smallest: float = 1e-13  # deviation (root mean square) that is more than rounding
    rounds: int = 8  # of weights that leave rows out on which the product is not reached,
    far: float = 0.5  # times the deviation that so many rows are below,
    reached: float = 0.2
    side: float = 0.4  # share of the rows, lowest or highest in one or two columns, that these weights begin with
    rows: int = 300  # that tell the product,
    few_started: int = 20  # and begin with,
    starts: int = 30
    products: int = 3  # that are looked at
    parts: int = 2  # exponents before the rest are multiples of one over this,
    near: float = 0.1  # as which they may come out this far away
    powers: tuple[int, ...] = (6, 6, 6, 4, 3, 2)  # largest in w, for tables of one, two, ... columns
    screens: tuple[tuple[int, tuple[int, int], int], ...] = ((1, (48, 16), 300), (2, (128, 64), 6))
    """By which products w are chosen: the degree in w, how many rows that deviate most and least, how many are kept."""
    chunk: int = 1024
    order: int = 4  # of the series in w on all rows
    explained: float = 0.005  # share of the deviation that it may leave
    screened: int = 200  # rows that functions are fitted to first
    met: float = 1e-3  # share of the deviation that a function may leave: the series of another differs from it by more
    proposed: int = 3
    alike: float = 100.0  # times the least error that another proposal may have
    seconds_per_product: float = 1.2e-5  # of one core (measured)


CORRECTED = CorrectedConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Products of powers times a function of another one that hold the small rest too. Draws nothing at random."""
    X, y = table.X, table.y
    if table.n_columns > len(CORRECTED.powers) or len(y) < CORRECTED.few_rows or not functions.allows({"mul"}):
        return
    if not (np.isfinite(X).all() and (X != 0).all() and np.isfinite(y).all() and (y != 0).all()):
        return
    largest = CORRECTED.powers[table.n_columns - 1]
    tried = np.array(list(product(range(-largest, largest + 1), repeat=table.n_columns)), float)
    if effort.seconds < CORRECTED.seconds_per_product * len(tried) or effort.out_of_time():
        return
    found: list[Law] = []
    with np.errstate(all="ignore"):
        for powers, inner, rest in _products(X, y):
            if effort.out_of_time() or found:
                break
            for place, (exponents, first) in enumerate(_arguments(X[inner], rest[inner], tried)):
                effort = effort if place else effort.on_trail()
                if effort.out_of_time() or found:
                    break
                found = list(_fitted(table, inner, powers, exponents, first, functions))
    yield from nearest(found, least=CORRECTED.smallest, alike=CORRECTED.alike, most=CORRECTED.proposed)


def _products(X: FloatArray, y: FloatArray) -> list[tuple[FloatArray, NDArray[np.bool_], FloatArray]]:
    """Products of powers that the target nearly is on many rows: exponents [V], which rows, the target over it."""
    found: dict[tuple[float, ...], tuple[NDArray[np.bool_], FloatArray]] = {}
    for powers in _powers_before(X, y):
        rest = y / product_of_powers(X, powers)
        rest = rest / _typical(rest)
        inner = np.abs(rest - 1.0) < CORRECTED.largest
        if inner.sum() >= CORRECTED.few_rows and float(np.std(rest[inner])) > CORRECTED.smallest:
            found.setdefault(tuple(powers), (inner, rest))
    most = sorted(found.items(), key=lambda one: -int(one[1][0].sum()))[: CORRECTED.products]
    return [(np.array(powers), inner, rest) for powers, (inner, rest) in most]


def _typical(values: FloatArray) -> float:
    """The middle of the shortest range that holds half of the values: where they crowd."""
    ordered = np.sort(values)
    half = len(ordered) // 2
    place = int(np.argmin(ordered[half:] - ordered[: len(ordered) - half]))
    return float(np.median(ordered[place : place + half + 1]))


def _powers_before(X: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
    """Exponents [V] of products that the target nearly is on many rows, each seen from rows low or high in a column."""
    logarithms, target = np.log(np.abs(X)), np.log(np.abs(y))
    logarithms, target = logarithms[: CORRECTED.rows], target[: CORRECTED.rows]
    columns = np.column_stack([logarithms - logarithms.mean(axis=0), np.ones(len(target))])
    low = logarithms < np.quantile(logarithms, CORRECTED.side, axis=0)
    high = logarithms > np.quantile(logarithms, 1.0 - CORRECTED.side, axis=0)
    sides = [(j, side[:, j]) for side in (low, high) for j in range(X.shape[1])]
    pairs = (one & two for (i, one), (j, two) in combinations(sides, 2) if i != j)
    starts = chain([np.ones(len(target), bool)], (side for _, side in sides), pairs)
    for start in islice(starts, CORRECTED.starts):
        if start.sum() < CORRECTED.few_started:
            continue
        weights = start.astype(float)
        fitted = np.zeros(columns.shape[1])
        for _ in range(CORRECTED.rounds):
            weighed = columns * (weights**2)[:, None]
            gram = weighed.T @ columns
            fitted = np.linalg.lstsq(gram, weighed.T @ target, rcond=None)[0]
            left = np.abs(target - columns @ fitted)
            weights = 1.0 / (left + CORRECTED.far * float(np.quantile(left, CORRECTED.reached)) + CORRECTED.smallest)
        powers = np.round(CORRECTED.parts * fitted[:-1]) / CORRECTED.parts
        if not np.abs(powers - fitted[:-1]).max() < CORRECTED.near:
            continue
        if all(p.is_integer() or (x > 0).all() for p, x in zip(powers, X.T, strict=True)):
            yield np.asarray(powers)


def _arguments(X: FloatArray, rest: FloatArray, tried: FloatArray) -> list[tuple[FloatArray, float]]:
    """Exponents [V] of products w of which the rest [N] is a short series 1 + D w + ..., with D; the best first."""
    ordered = np.argsort(np.abs(rest - np.median(rest)), kind="stable")
    tried = tried[tried.any(axis=1)]
    for degree, (most, least), kept_most in CORRECTED.screens:
        rows = np.unique(np.concatenate([ordered[-most:], ordered[:least]]))
        left = np.concatenate(
            [
                _left(X[rows], rest[rows], tried[start : start + CORRECTED.chunk], degree)
                for start in range(0, len(tried), CORRECTED.chunk)
            ]
        )
        tried = tried[np.argsort(left, kind="stable")[:kept_most]]
    kept = []
    for powers in tried:
        w = product_of_powers(X, powers)
        size = float(np.abs(w).max())
        series = np.vander(w / size, CORRECTED.order + 1, increasing=True)
        if not np.isfinite(series).all():
            continue
        factors = np.linalg.lstsq(series, rest, rcond=None)[0]
        share = float(np.sqrt(np.mean((rest - series @ factors) ** 2))) / float(np.std(rest))
        if share < CORRECTED.explained and factors[0] != 0 != factors[1]:
            kept.append((share, float(np.abs(powers).sum()), powers, float(factors[1] / factors[0] / size)))
    return [(powers, first) for *_, powers, first in sorted(kept, key=lambda one: one[:2])]


def _left(X: FloatArray, rest: FloatArray, tried: FloatArray, degree: int) -> FloatArray:
    """Squares [E] that a polynomial of the first or second degree in each product w leaves of the rest [N]."""
    w = products_of_powers(X, tried)
    target = rest - rest.mean()
    one = w - w.mean(axis=1, keepdims=True)
    one /= np.sqrt(np.einsum("en,en->e", one, one))[:, None]
    squares = float(target @ target) - (one @ target) ** 2
    if degree == 2:
        two = w * w
        two -= two.mean(axis=1, keepdims=True)
        two -= np.einsum("en,en->e", two, one)[:, None] * one
        squares -= (two @ target) ** 2 / np.maximum(np.einsum("en,en->e", two, two), 1e-300)
    return np.where(np.isfinite(squares), squares, math.inf)


def _fitted(
    table: DirectTable,
    rows: NDArray[np.bool_],
    powers: FloatArray,
    exponents: FloatArray,
    first: float,
    functions: FunctionSet,
) -> Iterator[Law]:
    """Laws of the product that w is a power of, with both constants fitted.

    They are fitted to some of the rows that are nearly a product first, then to all.
    """
    some = np.flatnonzero(rows)[: CORRECTED.screened]
    X, y = table.X[some], table.y[some]
    quotients = y / product_of_powers(X, powers)
    allowed = CORRECTED.met * float(np.std(quotients / np.mean(quotients)))
    for shape, outer in product(SHAPES, POWERS):
        # (c v**power (1 + first v**degree))**outer
        if outer != 1 and not shape.has_powers:
            continue
        ratio = first / (outer * shape.first)
        inner = exponents / shape.degree
        before = powers - outer * shape.power * inner
        halves = np.array([inner, before]) * CORRECTED.parts
        if (shape.degree == 2 and ratio < 0) or not (halves == np.round(halves)).all():
            continue
        form = build("pow", shape.form(Variable(0)), Constant(outer))
        if not functions.allows({call.operator for call in calls(form)}):
            continue
        scale = math.copysign(abs(ratio) ** (1 / shape.degree), ratio)
        few = converged(y, form, product_of_powers(X, inner), product_of_powers(X, before), scale)
        if few is None or not few[0] < allowed:
            continue
        found = converged(table.y, form, product_of_powers(table.X, inner), product_of_powers(table.X, before), few[2])
        if found is not None and found[0] < allowed:
            yield law(found, form, before=before, inner=inner)
