"""Constants that people write: 3 and 0.5 in place of a fitted 3.0000008 and 0.5000006, if the rows cannot tell them apart.

Rows that were rounded to five decimals know a factor to seven digits, and for `1/2 log N` nats a search keeps all of them. But
a constant `c` with standard error `δ` takes `log(|c| / (δ √(2πe)))` nats to state (MacKay 2003, chapter 28), which grows with
every digit, while a plain number `p` takes the logarithm of its digits (`search/polish/recognition.py`). So `p` replaces `c` if
it saves more than the rows have against it, `(p - c)² / 2δ²`, and if it is no further away than chance would take it.

Constants are set one after the other, the surest first, and the others move to where the rows then have them. A constant of
2.9987 ± 0.000001 is far from 3 and stays.

Legend: `N` rows, `K` free constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.model.certainty.linearised import FittedRows, linearised
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.config import SearchConfig
from gmeql.search.judging.deferred import carried
from gmeql.search.polish.recognition import plain_nats, recognised
from gmeql.search.polish.rounding import with_changed

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PlainConstantsConfig:
    """From where on constants are asked about, and when plain ones stand for them."""

    least_free: int = 4
    """Rows beyond the constants that tell how well these are known."""
    most_rows: int = 50_000
    most_constants: int = 12
    """Tables and formulas beyond which slopes take long, or constants are no laws' own."""
    largest: float = 1e150
    """A spread from which on squares are beyond the numbers."""
    furthest: float = 3.0
    """Standard errors beyond which a number does not stand for a constant, however well that is known."""
    saved: float = 2.0
    """Nats that a plain number must save: a twentieth of the numbers that are none come so near to one."""


PLAIN = PlainConstantsConfig()


def with_plain_constants(
    front: Front, X: FloatArray, y: FloatArray, weights: FloatArray | None, *, config: SearchConfig
) -> Front:
    """The front with plain numbers for constants that the rows cannot tell from them; the choice stays the choice."""
    if not config.is_plain or len(y) > PLAIN.most_rows or front.select("best").loss <= front.exact_level:
        return front
    members: list[FrontMember] = []
    for member, behind in zip(front, [*front.members[1:], None], strict=True):
        plain = _plain(member, front, X, y, weights)
        is_lower = not members or (plain.loss < members[-1].loss and plain.complexity > members[-1].complexity)
        members.append(plain if is_lower and (behind is None or plain.loss > behind.loss) else member)
    if all(new is old for new, old in zip(members, front, strict=True)):
        return front
    figures = {"rows": front.rows, "target_spread": front.target_spread, "target_largest": front.target_largest}
    found = Front.from_members(members, **figures, beaten=front.others, loss=front.loss)
    return found if found.select("best").index == front.select("best").index else front


def _plain(member: FrontMember, front: Front, X: FloatArray, y: FloatArray, weights: FloatArray | None) -> FrontMember:
    """The member with plain constants, or as it is."""
    if member.is_shrunk or member.is_unmoved or member.loss <= front.exact_level or not member.expression.variables:
        return member
    found = plain_constants(member.expression, X, y, weights)
    if found is member.expression:
        return member
    loss = math.sqrt(_squares(found, X, y, weights))
    return replace(member, expression=found, loss=loss, complexity=found.complexity, outlook=carried(member))


def plain_constants(expression: Expression, X: FloatArray, y: FloatArray, weights: FloatArray | None) -> Expression:
    """The formula with plain numbers for those of its constants that the rows cannot tell from them; the same one where these
    are none, or fit by more worse than its slopes say."""
    free = np.flatnonzero(free_constants(expression))
    if not 0 < len(free) <= PLAIN.most_constants or len(y) < len(free) + PLAIN.least_free:
        return expression
    rows = FittedRows.of(expression, X, y, weights, "squared")
    try:
        with np.errstate(all="ignore"):  # of targets at the end of the numbers
            fit = linearised(expression, free, rows)
    except ValueError:  # no slope somewhere
        return expression
    if fit.undetermined.any() or not 0 < fit.spread < PLAIN.largest or not np.isfinite(fit.root).all():
        return expression
    values = np.asarray(expression.constants, dtype=float)
    covariance = fit.spread**2 * fit.root.T @ fit.root
    chosen = dict(_chosen(values[free] + fit.step, covariance))
    changes = {int(free[k]): number for k, (number, _) in chosen.items()}
    if all(number == values[place] for place, number in changes.items()):
        return expression
    moved = _moved(values[free] + fit.step, covariance, {k: number for k, (number, _) in chosen.items()})
    rest = {int(place): float(moved[k]) for k, place in enumerate(free) if k not in chosen}
    found = expression.with_root(with_changed(expression.root, rest | changes, expression.names))
    before, after = (_squares(one, X, y, weights) for one in (expression, found))
    against = sum(nats for _, nats in chosen.values()) + 0.5  # and half a nat for what is not linear
    if not 0 < after < math.inf or not 0 < before < math.inf or 0.5 * len(y) * math.log(after / before) > against:
        return expression
    return found


def _chosen(values: FloatArray, covariance: FloatArray) -> Iterator[tuple[int, tuple[float, float]]]:
    """Which constants [K] become which plain number, and how many nats the rows have against it; the surest first."""
    left = set(range(len(values)))
    while left:
        offered = [one for k in left for one in _offered(k, float(values[k]), float(covariance[k, k]))]
        if not offered:
            return
        _, k, number, against = max(offered)
        yield k, (number, against)
        left.discard(k)
        shares = covariance[k] / covariance[k, k]
        values = values + shares * (number - values[k])
        covariance = covariance - np.outer(shares, covariance[k])


def _offered(k: int, value: float, variance: float) -> Iterator[tuple[float, int, float, float]]:
    """Plain numbers for a constant: the nats that each saves, the constant, the number, and the nats against it."""
    error = math.sqrt(max(variance, np.finfo(float).tiny))
    for number in recognised(value):
        against = 0.5 * ((number - value) / error) ** 2
        stated = math.log(abs(number) / (error * math.sqrt(2.0 * math.pi * math.e))) if number else -math.inf
        saved = stated - plain_nats(number) - against
        if saved >= PLAIN.saved and against <= 0.5 * PLAIN.furthest**2:
            yield saved, k, number, against


def _moved(values: FloatArray, covariance: FloatArray, numbers: dict[int, float]) -> FloatArray:
    """Where the rows have the constants [K] once some of them are given."""
    held = sorted(numbers)
    away = np.array([numbers[k] - values[k] for k in held])
    return np.asarray(values + covariance[:, held] @ np.linalg.solve(covariance[np.ix_(held, held)], away))


def _squares(expression: Expression, X: FloatArray, y: FloatArray, weights: FloatArray | None) -> float:
    """Mean squared error."""
    with np.errstate(all="ignore"):
        return float(np.average((expression(X) - y) ** 2, weights=weights))
