"""Exponents that people write: 1.5 in place of a fitted 1.4994, if the rows do not refute it.

Rows that follow `365.25*distance**1.5` to a twentieth of a percent know the exponent to a ten-thousandth, and by squared errors
the largest rows alone decide about its last digits. Two things speak for the round number:

- A fitted exponent has to be stated as exactly as the rows know it. That takes `log(range/σ)` nats, since exponents are numbers
  of order one whatever the rows are (MacKay 2003, chapter 28). The usual `1/2 log N`, right for constants of unknown size,
  would charge eight planets one nat for four digits.
- If a positive target spans magnitudes, errors may just as well be alike in proportion. So that reading is asked as well.

A round exponent is chosen if in one of the readings the rows have no more against it than its fitted neighbour costs to state.

Legend: `N` rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.constants import exponents, free_constants, round_exponents
from gmeql.formula.customary import customary
from gmeql.formula.expression import Expression
from gmeql.formula.limits import PLAIN_EXPONENT_LIMIT
from gmeql.formula.simplify import simplify
from gmeql.model.certainty.intervals import constant_intervals
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import stating_nats
from gmeql.search.config import SearchConfig
from gmeql.search.judging.outlook import outlooks
from gmeql.search.judging.soundness import left_out_errors
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.printable import with_known_digits
from gmeql.search.polish.recognition import plain_nats
from gmeql.search.polish.scoring import JudgedRows, refit
from gmeql.search.sums.shrinking import ShrunkSum

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ExponentConfig:
    """From where on exponents are asked about, and how."""

    least_rows: int = 5
    most_rows: int = 20_000
    """Beyond so many rows exponents are known as well as they are needed, and refits take long."""
    most_exponents: int = 3
    """Formulas with more fitted exponents than these are no laws of powers."""
    orders: float = 30.0
    """Ratio of the largest to the smallest target from which on errors in proportion are a reading of their own."""


EXPONENTS = ExponentConfig()


def with_round_exponents(
    front: Front, X: FloatArray, y: FloatArray, weights: FloatArray | None, *, config: SearchConfig
) -> Front:
    """The front with the chosen formula in round exponents, and these as the choice, where the rows do not refute them."""
    best = front.select("best")
    if not front.has_outlooks or best.is_settled or best.is_shrunk or best.loss <= front.exact_level:
        return front
    if not config.is_plain:
        return front
    if not EXPONENTS.least_rows <= len(y) <= EXPONENTS.most_rows or not _fitted(best.expression):
        return front
    weights = np.ones(len(y)) if weights is None else weights / weights.mean()
    readings = [JudgedRows.of(X, y, given, best.expression.names) for given in _readings(y, weights)]
    found = next((one for one in _rounder(best.expression) if _is_open(best.expression, one, readings)), None)
    fitted = [] if found is None else refit([simplify(found.root)], readings[0], keep_recognised=False)
    if not fitted:
        return front
    # with an exponent of 1 a power is none, and constants that stood inside and outside of it are one
    member = _member(best.expression.with_root(customary(simplify(fitted[0].root))), best, front, X, y, weights)
    return front if member is None else front.joined(member)


def with_fitted_exponents(front: Front) -> FrontMember:
    """What would be chosen if every exponent were as good as another."""
    plain = tuple(m if m.outlook is None else replace(m, outlook=replace(m.outlook, rounded=False)) for m in front)
    return replace(front, members=plain).select("best")


def _fitted(expression: Expression) -> list[int]:
    """Indices into `expression.constants` of exponents that are not round; none where they are too many."""
    found = sorted(exponents(expression) - round_exponents(expression))
    return found if len(found) <= EXPONENTS.most_exponents else []


def _readings(y: FloatArray, weights: FloatArray) -> Iterator[FloatArray]:
    """Weights [N] of rows whose errors are alike, and where the target runs over magnitudes of rows with such in proportion."""
    yield weights
    if float(y.min()) > 0 and float(y.max()) > EXPONENTS.orders * float(y.min()):
        sizes = y / float(y.max())
        yield weights / sizes**2


def _rounder(expression: Expression) -> Iterator[Expression]:
    """The formula with fitted exponents exchanged for round ones nearby, the plainest numbers and as many as can be first."""
    places = _fitted(expression)
    offered = []
    for place in places:
        value = expression.constants[place]
        near = {round(value * parts) / parts for parts in POLISH.exponent_parts}
        close = sorted((one for one in near if 0 < abs(one - value) < POLISH.near_exponent and one), key=plain_nats)
        offered.append([*close, value])
    choices = [
        choice for choice in itertools.product(*offered) if choice != tuple(expression.constants[p] for p in places)
    ]
    for choice in sorted(
        choices, key=lambda one: sum(value == expression.constants[p] for value, p in zip(one, places, strict=True))
    ):
        values = list(expression.constants)
        for place, value in zip(places, choice, strict=True):
            values[place] = value
        yield expression.with_constants(values)


def _is_open(fitted: Expression, rounder: Expression, readings: list[JudgedRows]) -> bool:
    """Whether some reading of the rows has no more against round exponents than the fitted ones cost to state."""
    return any(_excess(fitted, rounder, rows) <= 0.0 for rows in readings)


def _excess(fitted: Expression, rounder: Expression, rows: JudgedRows) -> float:
    """Nats by which the rows speak for fitted exponents beyond what these cost."""
    both = [refit([one.root], rows, keep_recognised=False) for one in (fitted, rounder)]
    if not all(both) or not both[0][0].loss > 0:
        return math.inf
    (free,), (held,) = both
    gained = 0.5 * len(rows.target) * math.log(max(held.loss / free.loss, 1.0))
    return gained - _price(fitted.with_root(free.root), rounder, rows)


def _price(fitted: Expression, rounder: Expression, rows: JudgedRows) -> float:
    """Nats that exponents fitted to the rows take to state, less those of the round ones that stand for them."""
    try:
        known = constant_intervals(fitted, rows.X, rows.target, sample_weight=rows.weights)
    except ValueError:  # as many constants as rows, or no slope somewhere
        return -math.inf
    errors = {item.position: item.standard_error for item in known}
    usual = 0.5 * math.log(max(len(rows.target), 2)) + POLISH.node_cost
    price = 0.0
    for place in _fitted(fitted):
        value = rounder.constants[place]
        if value == fitted.constants[place] or place not in round_exponents(rounder):
            continue
        error = max(errors.get(place, math.inf), np.finfo(float).tiny)
        exact = math.log(2.0 * PLAIN_EXPONENT_LIMIT / (error * math.sqrt(2.0 * math.pi * math.e)))
        price += max(usual, exact) - plain_nats(value)
    return price


def _member(
    expression: Expression, best: FrontMember, front: Front, X: FloatArray, y: FloatArray, weights: FloatArray
) -> FrontMember | None:
    """The formula as a member of the front that is chosen in the place of the `best`; None where it is not defined on all rows
    or is told from nothing."""
    expression = with_known_digits(expression, X, y, weights)
    with np.errstate(all="ignore"):
        loss = math.sqrt(float(np.average((expression(X) - y) ** 2, weights=weights)))
    if not loss < front[0].loss:
        return None
    root, fitted = expression.root, free_constants(expression)
    fitted[list(round_exponents(expression))] = False  # without a row they are the same
    left_out = left_out_errors(root, X, y, weights, fitted=fitted) ** 2
    nats = stating_nats(root, len(expression.names))
    if best.outlook is not None and best.outlook.nats is not None:  # it is one of few, and so is this
        own = [expression.constants[place] for place in round_exponents(expression)]
        nats = min(nats, best.outlook.nats + sum(plain_nats(value) for value in own))
    known = {root: ShrunkSum(root, left_out, None, nats)}
    (outlook,) = outlooks([root], X, y, weights, rivals=[member.expression.root for member in front], shrunk=known)
    if not math.isfinite(outlook.error) or outlook.doubtful_pole:
        return None
    return FrontMember(expression, loss, expression.complexity, 0.0, -1, replace(outlook, rounded=True))
