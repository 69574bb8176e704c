"""Whether the rows can know a wave: one that is faster than the rows are dense goes through any points."""

from __future__ import annotations

import math

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, calls
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.knowable import with_part
from gmeql.search.polish.recognition import n_loose_constants
from gmeql.search.polish.scoring import JudgedRows, refit

WAVES = ("sin", "cos")
"""Operators that turn a formula into a wave."""


def are_waves_known(root: Node, loss: float, rows: JudgedRows, *, n_rows: int) -> bool:
    """Whether every wave has two of `n_rows` rows to a half-turn, or stands out from what noise would have.

    A wave through fewer rows says nothing between them by itself: it must explain what the formula without it does not.
    """
    for wave in dict.fromkeys(node for node in calls(root) if node.operator in WAVES):
        with np.errstate(all="ignore"):
            angle = float(np.ptp(Expression(wave.args[0], rows.names)(rows.X)))
            middle = float(np.mean(Expression(wave, rows.names)(rows.X)))
        if angle <= math.pi / 2 * n_rows:
            continue
        if not math.isfinite(angle) or not math.isfinite(middle):
            return False
        without = [scored.loss for scored in refit([with_part(root, wave, Constant(middle))], rows)]
        share = 1.0 - loss / min(without) if without and min(without) > 0 else 0.0
        if not stands_out(share, len(rows.target) - n_loose_constants(root), angle / math.pi):
            return False
    return True


def stands_out(share: float, n_free: int, n_frequencies: float) -> bool:
    """Whether the best of so many frequencies would hardly explain this share P of the variance of noise.

    The chance of that is M (1 - P)**(N/2) for M frequencies and N rows left free (Baluev 2008, without his correction
    for the width of peaks); it must lie below exp(-`false_alarm`), which also pays for the forms that were tried.
    """
    chance = math.log(max(n_frequencies, 1.0)) + 0.5 * n_free * math.log(max(1.0 - share, 1e-300))
    return n_free > 0 and chance < -POLISH.false_alarm
