"""Fitted formulas of a direct method compared: the briefest with constants rounded, of those that match the best so far.

Description lengths here count a decimal as fitted even where it was rounded, so that a form with no constants but ones
and twos is preferred to a look-alike with three.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gmeql.formula.nodes import Constant, Node, leaves
from gmeql.search.direct.table import DirectTable
from gmeql.search.polish.rounding import snap
from gmeql.search.polish.scoring import JudgedRows, Scored, length_in_nats
from gmeql.search.judging.structure import unwritten_factors


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
    fitted: Sequence[Scored],
    table: DirectTable,
    rows: JudgedRows,
    out_of_time: Callable[[], bool] = lambda: False,
    *,
    n_tried: float = 1.0,
) -> list[Node]:
    """The formulas of least length with constants rounded, of those that match the best formula so far on all rows.

    The luckiest of `n_tried` formulas goes through noise: naming it takes the logarithm of that number, and with this
    added it must still be shorter than the mean of the target and than a plane through the columns.
    """
    longest = _plain_answers(rows) - math.log(n_tried)
    better = (
        one
        for one in _different(fitted, rows)
        if table.error(one.root) < COMPARING.gain * table.unexplained and _length(one.loss, one.root, rows) < longest
    )
    rounded = [snap(one, rows, out_of_time) for one in itertools.islice(better, COMPARING.rounded)]
    return [one.root for one in _different(rounded, rows)[: COMPARING.proposed]]


def _length(loss: float, root: Node, rows: JudgedRows) -> float:
    """Nats of the residuals and the constants, those that are not written among them."""
    n_constants = sum(isinstance(leaf, Constant) for leaf in leaves(root)) + unwritten_factors(root)
    return length_in_nats(math.log(max(loss, rows.floor)), n_constants, 0, n_rows=len(rows.target))


def _plain_answers(rows: JudgedRows) -> float:
    """Nats of what needs no search: the mean, or a plane through all columns."""
    n_rows = len(rows.target)
    mean = length_in_nats(2 * math.log(rows.spread), 1, 0, n_rows=n_rows)
    columns = np.column_stack([rows.X / np.maximum(np.abs(rows.X).max(axis=0), 1e-300), np.ones(n_rows)])
    if n_rows <= columns.shape[1] or not np.isfinite(columns).all():
        return mean
    roots = np.sqrt(rows.weights)
    factors = np.linalg.lstsq(roots[:, None] * columns, roots * rows.target, rcond=None)[0]
    loss = float(np.average((rows.target - columns @ factors) ** 2, weights=rows.weights))
    plane = length_in_nats(math.log(max(loss, rows.floor)), columns.shape[1], 0, n_rows=n_rows)
    return min(mean, plane) if math.isfinite(loss) else mean


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
