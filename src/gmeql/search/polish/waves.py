"""Whether the rows can know a wave: the best of many frequencies goes through any points."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, calls
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.knowable import with_part
from gmeql.search.polish.recognition import n_loose_constants
from gmeql.search.polish.scoring import JudgedRows, Scored, refit

FloatArray = NDArray[np.float64]

WAVES = ("sin", "cos")
"""Operators that turn a formula into a wave."""
CONSTANTS_OF_A_WAVE = 3
"""Amplitude, frequency and phase."""
LEAST_DEFINED = 0.5
"""Share of the rows on which a formula must have a value without its wave."""


def are_waves_known(root: Node, loss: float, rows: JudgedRows, *, n_rows: int) -> bool:
    """Whether every wave is slow, with two of `n_rows` rows (or angles) to a half-turn, or stands out from noise.

    A wave of many turns goes through any points: however dense the rows, the best of as many frequencies explains some
    of their noise. It must explain what the formula without it does not.
    """
    for wave in dict.fromkeys(node for node in calls(root) if node.operator in WAVES):
        with np.errstate(all="ignore"):
            angles = Expression(wave.args[0], rows.names)(rows.X)
            angle, n_angles = float(np.ptp(angles)), len(np.unique(angles))
            middle = float(np.mean(Expression(wave, rows.names)(rows.X)))
        n_seen = n_rows if n_angles == len(angles) else min(n_rows, n_angles)
        if angle <= min(math.pi / 2 * n_seen, 2 * math.pi * POLISH.slow_turns):
            continue
        if not math.isfinite(angle) or not math.isfinite(middle):
            return False
        plain = with_part(root, wave, Constant(middle))
        seen = _where_defined(plain, rows)
        without = [] if seen is None else refit([plain], seen)
        if seen is None or not without:
            return False
        own = loss if seen is rows else _loss(root, seen)
        if not _earns_its_place(root, own, without[0], seen, angle / math.pi, n_angles):
            return False
    return True


def _where_defined(root: Node, rows: JudgedRows) -> JudgedRows | None:
    """The rows on which a formula has a value: without its wave a sum under a root may fall below zero; None: too few."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(Expression(root, rows.names)(rows.X))
    if finite.all():
        return rows
    return rows.only(np.flatnonzero(finite)) if finite.mean() >= LEAST_DEFINED else None


def _loss(root: Node, rows: JudgedRows) -> float:
    squares = (Expression(root, rows.names)(rows.X) - rows.target) ** 2
    return float(np.average(squares, weights=rows.weights))


def _earns_its_place(
    root: Node, loss: float, without: Scored, rows: JudgedRows, n_frequencies: float, n_angles: int
) -> bool:
    """Whether what a wave adds to the formula without it, on the rows that it rests on, is beyond chance.

    Rows of one angle see the wave once: through the few values that a column of codes takes, some frequency always goes.
    """
    if not without.loss > 0:
        return False
    with np.errstate(all="ignore"):
        plain = Expression(without.root, rows.names)(rows.X)
        added = Expression(root, rows.names)(rows.X) - plain
    n_rest = rows_rested_on(added, rows.target - plain, rows.weights)
    n_free = min(n_rest, len(rows.target) - n_loose_constants(root), n_angles - CONSTANTS_OF_A_WAVE)
    return stands_out(1.0 - loss / without.loss, n_free, n_frequencies)


def rows_rested_on(added: FloatArray, residual: FloatArray, weights: FloatArray) -> float:
    """On how many rows the gain of a term rests that adds `added` [N] where `residual` [N] was left.

    `Σa² Σr² / Σa²r²`, each row as it weighs. Where errors are of one size, or of other sizes than what is
    added, that is about N; a wave that grows where the errors do meets few rows by chance, and the variance of its
    amplitude is as much larger (White 1980).
    """
    a, r = weights * added**2, weights * residual**2
    both = float(a @ r)
    return float(a.sum()) * float(r.sum()) / both if both > 0 else 0.0


def stands_out(share: float, n_free: float, n_frequencies: float, *, n_waves: int = 1) -> bool:
    """Whether the best of so many frequencies would hardly explain this share P of the variance of noise.

    The chance of that is M (1 - P)**(N/2) for M frequencies and N rows left free (Baluev 2008, without his correction
    for the width of peaks); it must lie below exp(-`false_alarm`), which also pays for the forms that were tried. Where a
    frequency has `n_waves` cosines and sines, each with a factor of its own, P has the distribution Beta(`n_waves`, N/2):
    the chance is that times the sum of Γ(N/2 + j) P**j / (Γ(N/2) j!) over j < `n_waves`.
    """
    share = max(share, 1e-300)
    half = n_free / 2
    if not half > 0:
        return False
    terms = [
        math.lgamma(half + j) - math.lgamma(half) - math.lgamma(j + 1) + j * math.log(share) for j in range(n_waves)
    ]
    largest = max(terms)
    more = largest + math.log(sum(math.exp(term - largest) for term in terms))
    chance = math.log(max(n_frequencies, 1.0)) + half * math.log(max(1.0 - share, 1e-300)) + more
    return chance < -POLISH.false_alarm
