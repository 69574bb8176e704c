"""A sum of plain terms before a root or an exponential with a constant inside: y = S/sqrt(1 + a w), S sqrt(1 + a w), S exp(a w).

(t - v x/c**2)/sqrt(1 - v**2/c**2) is no fraction, though over a narrow range a fraction of a few more terms is the same to
rounding. With the bend undone, y times the inverse of it, what is left is a sum of plain terms for the right a alone. Of
every product w of two columns a few a tell how much is left beside the span of all such sums, and Newton's steps on what is
left (one unknown, nothing left at the end) take the best of them to rounding.

Legend: `N` rows, `T` bends tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, sum_of
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.denominators import small_terms

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class BendsConfig:
    """Numbers of the scan."""

    max_columns: int = 8
    few_rows: int = 60
    sizes: tuple[float, ...] = (1e-3, 0.03, 0.2, 0.5, 0.8, 0.95, 0.99)  # of a w, its largest, of both signs,
    larger: tuple[float, ...] = (1.5, 2.3, 3.5, 5.0, 8.0, 12.0, 20.0)  # ... where the bend has values
    tried: int = 6  # that are taken to rounding
    steps: int = 20
    narrowest: int = 30  # halvings of a step that leaves the range in which the bend has values
    largest: float = 1e100  # value with the bend undone
    vanished: float = 1e-11  # share of what stands before the bend that may be left
    seconds: float = 0.03  # of one core (measured, six columns)


BENDS = BendsConfig()


class Bend(NamedTuple):
    """What undoes a function of a w, its slope by a w over itself, and the function as a formula of the argument."""

    undo: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    around: Callable[[Node, float, Node], Node]
    needs: frozenset[str]


def _root_argument(w: Node, a: float) -> Node:
    return build("add", Constant(1.0), build("mul", Constant(a), w))


TABLE: tuple[Bend, ...] = (
    Bend(
        lambda u: np.sqrt(1.0 + u),
        lambda u: 0.5 / (1.0 + u),
        lambda ahead, a, w: build("div", ahead, build("sqrt", _root_argument(w, a))),
        frozenset({"sqrt", "div"}),
    ),
    Bend(
        lambda u: 1.0 / np.sqrt(1.0 + u),
        lambda u: -0.5 / (1.0 + u),
        lambda ahead, a, w: build("mul", ahead, build("sqrt", _root_argument(w, a))),
        frozenset({"sqrt"}),
    ),
    Bend(
        lambda u: np.exp(-u),
        lambda u: -np.ones_like(u),
        lambda ahead, a, w: build("mul", ahead, build("exp", build("mul", Constant(a), w))),
        frozenset({"exp"}),
    ),
)


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A sum before a bend that is the target on all rows. Draws nothing at random."""
    if not 1 <= table.n_columns <= BENDS.max_columns or len(table.y) < BENDS.few_rows:
        return
    if not table.varies:
        return
    if not functions.allows({"add", "mul"}) or effort.seconds < BENDS.seconds or effort.out_of_time():
        return
    terms = small_terms(table.X)
    n = min(len(table.y), int(VOCABULARY.most_rows_per_term * len(terms)) + VOCABULARY.spare_rows)
    products = [(node, x[:n]) for node, x in terms[1:]]
    weights = 1.0 / (np.abs(table.y[:n]) + np.median(np.abs(table.y[:n])))
    if not np.isfinite(weights).all():
        return
    target = table.y[:n] * weights
    bends = [bend for bend in TABLE if functions.allows(set(bend.needs))]
    # a sum times w may be a sum as well: the fewer terms, the sharper they tell the factor
    for some in (terms[: 1 + table.n_columns], terms):
        span = Span(np.stack([x[:n] for _, x in some]) * weights, lambda m: terms[m][0])
        if np.linalg.norm(span.left(target)) < VOCABULARY.exact * np.linalg.norm(target):
            return  # a plain sum
        for root in _seen(span, target, products, bends):
            if table.error(root) < VOCABULARY.verified:
                yield root
                return


def _seen(
    span: Span, target: FloatArray, products: Sequence[tuple[Node, FloatArray]], bends: Sequence[Bend]
) -> Iterator[Node]:
    """Sums in the span before bends of one of the products that are the target [N]."""
    for bend, (w, values), a in _promising(span, target, products, bends):
        factor = _converged(span, target, values, bend, a)
        found = None if factor is None else span.sparse(target * bend.undo(factor * values))
        if factor is not None and found is not None:
            yield bend.around(sum_of(found), float(f"{factor:.13g}"), w)


def _promising(
    span: Span, target: FloatArray, products: Sequence[tuple[Node, FloatArray]], bends: Sequence[Bend]
) -> list[tuple[Bend, tuple[Node, FloatArray], float]]:
    """Bends, what they are of and a factor, those beside which least is left of a target [N] first, one of each product."""
    sizes = np.concatenate(
        [np.array(BENDS.sizes), -np.array(BENDS.sizes), np.array(BENDS.larger), -np.array(BENDS.larger)]
    )
    found: list[tuple[float, int, Bend, tuple[Node, FloatArray], float]] = []
    for bend in bends:
        for product in products:
            factors = sizes / np.abs(product[1]).max()
            with np.errstate(all="ignore"):
                columns = target[:, None] * bend.undo(np.outer(product[1], factors))
            usable = np.flatnonzero(np.isfinite(columns).all(axis=0))
            if len(usable):
                columns = columns[:, usable]
                shares = np.linalg.norm(span.left(columns), axis=0) / np.linalg.norm(columns, axis=0)
                best = int(np.argmin(shares))
                found.append((float(shares[best]), len(found), bend, product, float(factors[usable[best]])))
    found.sort(key=lambda one: one[:2])
    return [(bend, product, a) for _, _, bend, product, a in found[: BENDS.tried]]


def _converged(span: Span, target: FloatArray, w: FloatArray, bend: Bend, a: float) -> float | None:
    """The factor near to one with which nothing is left of a target [N] with the bend undone; None where something is."""
    before = math.inf
    for _ in range(BENDS.steps):
        with np.errstate(all="ignore"):
            values = target * bend.undo(a * w)
            is_finite = np.isfinite(values).all() and float(np.abs(values).max()) < BENDS.largest
        if not is_finite:
            return None
        slopes = values * bend.slope(a * w) * w
        size = float(
            np.linalg.norm(values)
        )  # of all that is 1: else any bend that makes everything small leaves little
        rest, slope = span.left(np.column_stack([values, slopes])).T / size
        slope = slope - rest * float(values @ slopes) / size**2
        share = float(np.linalg.norm(rest))
        if share < BENDS.vanished and not share < 0.5 * before:
            return a
        square = float(slope @ slope)
        if not square > 0 or not math.isfinite(share):
            return None
        before, step = share, -float(slope @ rest) / square
        with np.errstate(all="ignore"):
            for _ in range(BENDS.narrowest):
                if np.isfinite(bend.undo((a + step) * w)).all():
                    break
                step *= 0.5
        a += step
    return None
