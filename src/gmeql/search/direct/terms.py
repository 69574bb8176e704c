"""Sums of several terms with constants inside: which table and which reading, with which terms, for how much work.

The library (`library.py`) is used tier by tier, since a small vocabulary finds what is made of it where a rich one gets
lost: powers and their products first, then functions as people write them, then terms with an inner constant to fit,
then all. Each tier chooses terms by `choice.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.direct.choice import TERMS, TermChoice
from gmeql.search.direct.library import Library, library
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.term_sums import TermSum
from gmeql.search.polish.scoring import JudgedRows, description_length
from gmeql.search.data.readings import PLAIN, READINGS, read_target


@dataclass(frozen=True)
class SumsConfig:
    """Numbers of the method."""

    rows: int = 200  # that terms are chosen on
    max_columns: int = 10
    few_rows: int = 12  # with fewer rows a sum of terms goes through all of them
    least_seconds: float = 0.03  # of work for each column: making the library takes some of it
    powers: tuple[int, ...] = (20,)  # sums of each length that go on, made of powers alone
    functions: tuple[int, ...] = (24,)  # of powers and plain functions
    tuned: tuple[int, ...] = (12, 12, 6)  # of powers and tuned terms, with none, one and two of these
    every: tuple[int, ...] = (20, 12, 6)  # of all terms
    tuned_share: float = 0.7  # of the work left that powers with tuned terms get, before all terms together
    least_beam: float = 0.08  # share of a tier's sums that the work must allow, or the tier is left out
    pairs_share: float = 0.15  # of the work left that pairs of terms may take
    per_pair: int = 100  # multiplications of a pair of terms besides those of its rows
    flops: float = 3.5e9  # multiplications a second that one core does of these (measured)
    seconds_per_fit: float = 8e-4  # of one tuned sum (measured)
    trail: float = 0.3  # error of a sum, relative to that of the best formula so far, from which more work is worth it
    proposed: int = 2  # sums proposed where none is exact
    gain: float = 0.9  # share of the error of the best formula so far that such a sum must reach


SUMS = SumsConfig()

_INVERTED_BY: dict[str, set[str]] = {
    PLAIN: set(), "square": {"sqrt"}, "inv": {"div"}, "log": {"exp"}, "inv_square": {"div", "sqrt"},
}  # fmt: skip
"""Readings of the target that are tried, and what stands before the sum when a reading is undone."""


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Sums of terms that are the target, or that fit it best where none is exact. Draws nothing at random."""
    n = min(len(table.y), SUMS.rows)
    if not 1 <= table.n_columns <= SUMS.max_columns or n < SUMS.few_rows or not functions.allows({"add", "mul"}):
        return
    if effort.seconds < SUMS.least_seconds * table.n_columns:
        return
    terms = library(table.X[:n], functions.allows)
    if not len(terms) or effort.out_of_time():
        return
    sign = 1.0 if table.y.mean() >= 0 else -1.0
    rows = {
        name: JudgedRows.of(table.X[:n], target, weights, [f"x{i}" for i in range(table.n_columns)])
        for name, (target, weights) in read_target(table.y[:n], table.weights[:n]).items()
        if name in _INVERTED_BY and functions.allows(_INVERTED_BY[name])
    }
    inexact: list[TermSum] = []
    left = effort.seconds
    for reading, used, beams in _tiers(terms, rows):
        cost = _cost(int(used.sum()), n, beams)
        share = left * (SUMS.tuned_share if beams == SUMS.tuned else 1.0) / cost
        if (share < 1.0 or effort.out_of_time()) and _is_on_trail(inexact, table):
            effort, before = effort.on_trail(), effort
            left = left if effort is before else effort.seconds
            share = left / cost
        share = min(1.0, share)
        if share < SUMS.least_beam or effort.out_of_time():
            continue
        left -= share * cost
        pairing = _pairing_cost(int(used.sum()), n, beams)
        by_pairs = pairing < SUMS.pairs_share * left
        left -= pairing * by_pairs
        narrowed = tuple(math.ceil(share * width) for width in beams)
        choice = TermChoice(terms, used, rows[reading], beams=narrowed, by_pairs=by_pairs)
        found = list(choice.run(effort.out_of_time))
        if found and rows[reading].is_exact(found[-1].loss):
            yield READINGS[reading].invert(found[-1].root, sign)
            return
        inexact += found if reading == PLAIN else []
    yield from best_inexact(inexact, table, rows[PLAIN], len(terms))


def _tiers(terms: Library, readings: Iterable[str]) -> Iterator[tuple[str, NDArray[np.bool_], tuple[int, ...]]]:
    """Readings with the terms used for each and how many sums go on, from a small vocabulary to a rich one."""
    powers = ~terms.plain & ~terms.tuned
    others = [name for name in readings if name != PLAIN]
    tiers = [
        (PLAIN, powers, SUMS.powers),
        (PLAIN, ~terms.tuned, SUMS.functions),
        *((name, powers, SUMS.powers) for name in others),
        (PLAIN, ~terms.plain, SUMS.tuned),
        (PLAIN, np.ones(len(terms), bool), SUMS.every),
        *((name, ~terms.tuned, SUMS.functions) for name in others),
    ]
    return ((name, used, beams) for name, used, beams in tiers if used.any())


def _is_on_trail(found: list[TermSum], table: DirectTable) -> bool:
    """Whether sums come much nearer to the target than the best formula so far: then the target may be one."""
    return any(table.error(one.root) < SUMS.trail * table.unexplained for one in found[-1:])


def best_inexact(found: list[TermSum], table: DirectTable, rows: JudgedRows, n_terms: int) -> list[Node]:
    """The sums of least description length that beat the best formula so far on all rows, not only on those chosen by."""
    roots = [one.root for one in _by_length(found, rows, n_terms)]
    return [root for root in roots if table.error(root) < SUMS.gain * table.unexplained][: SUMS.proposed]


def best_of(found: list[TermSum], rows: JudgedRows, n_terms: int) -> TermSum | None:
    """The sum of least description length; None where the mean has less."""
    return next(iter(_by_length(found, rows, n_terms)), None)


def _by_length(found: list[TermSum], rows: JudgedRows, n_terms: int) -> list[TermSum]:
    """Sums of less description length than the mean, the least first.

    Naming one of `n_terms` terms takes the logarithm of that number: the luckiest of thousands goes through noise.
    """

    def length(one: TermSum) -> float:
        return description_length(one.root, one.loss, rows) + len(one.terms) * math.log(n_terms)

    longest = length(TermSum((), (0.0,), rows.spread**2))
    return sorted((one for one in found if length(one) < longest), key=length)


def _cost(n_terms: int, n_rows: int, beams: tuple[int, ...]) -> float:
    """Seconds of one core that a choice among so many terms takes at most, roughly."""
    lengths = range(1, TERMS.max_terms + 1)
    sums = sum(beams) + TERMS.exchanged * len(beams) * TERMS.max_terms
    products = sum(2.0 * sums * (length + 1) * n_rows * n_terms for length in lengths)
    fits = 2 * TERMS.max_terms * sum(beams[1:]) * TERMS.fits
    return products / SUMS.flops + fits * SUMS.seconds_per_fit


def _pairing_cost(n_terms: int, n_rows: int, beams: tuple[int, ...]) -> float:
    """The same for the extension by pairs of terms."""
    bases = TERMS.max_terms * len(beams) * TERMS.leading
    partners = min(n_terms, TERMS.partners)
    pairs = bases * partners * min(n_terms, partners + TERMS.paired * (len(beams) > 1))
    return 4.0 * pairs * (n_rows + SUMS.per_pair) / SUMS.flops
