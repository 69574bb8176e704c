"""Fitted formulas of a direct method compared: the briefest with constants rounded, of those that match the best so far.

Description lengths here count a decimal as fitted even where it was rounded, so that a form with no constants but ones
and twos is preferred to a look-alike with three.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gmeql.formula.nodes import Constant, Node, leaves
from gmeql.search.direct.table import DirectTable
from gmeql.search.polish.rounding import snap
from gmeql.search.polish.scoring import JudgedRows, Scored, length_in_nats


@dataclass(frozen=True)
class ComparingConfig:
    """Numbers of the comparison."""

    rounded: int = 5  # formulas of which the constants are rounded
    proposed: int = 4
    largest_whole: int = 4  # up to which a whole number is part of the form rather than fitted
    gain: float = 1.02  # share of the error of the best formula so far to reach: a shorter one may be as good
    same_loss: float = 1e-7  # losses that differ by less, relatively, are the same
    seconds_per_rounding: float = 0.012  # (measured)


COMPARING = ComparingConfig()


def briefest(
    fitted: Sequence[Scored], table: DirectTable, rows: JudgedRows, out_of_time: Callable[[], bool] = lambda: False
) -> list[Node]:
    """The formulas of least length with constants rounded, of those that match the best formula so far on all rows."""
    better = (one for one in _different(fitted, rows) if table.error(one.root) < COMPARING.gain * table.unexplained)
    rounded = [snap(one, rows, out_of_time) for one in itertools.islice(better, COMPARING.rounded)]
    return [one.root for one in _different(rounded, rows)[: COMPARING.proposed]]


def _different(found: Sequence[Scored], rows: JudgedRows) -> list[Scored]:
    """Formulas of different losses, the briefest first: those of one loss are one formula written twice."""
    first: dict[int, Scored] = {}
    for one in sorted(found, key=lambda one: plain_length(one, rows)):
        first.setdefault(round(math.log(max(one.loss, rows.floor)) / COMPARING.same_loss), one)
    return list(first.values())


def plain_length(one: Scored, rows: JudgedRows) -> float:
    """Description length in which all constants but small whole numbers were fitted."""
    constants = sum(isinstance(leaf, Constant) and not _is_small_whole(leaf.value) for leaf in leaves(one.root))
    variance = math.log(max(one.loss, rows.floor))
    return length_in_nats(variance, constants, one.complexity, n_rows=len(rows.target))


def _is_small_whole(value: float) -> bool:
    return value.is_integer() and abs(value) <= COMPARING.largest_whole
