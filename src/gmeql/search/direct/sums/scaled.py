"""A sum of plain terms behind a function with a number of its own: y = Q**p, A + exp(Q), c log(Q), c tanh(Q), c atan(Q).

(1 + 0.3 a b + 0.7 c)**1.37 is a sum once the power is undone, and the number in it can be read off the values
(`scaled_readings.py`). Asked are the target, its inverse, square and logarithm, so that K/(1 + exp(Q)) and
K exp(-exp(Q)) are seen as well; small spans first, since the fewer terms there are, the sharper they tell the number.

Legend: `N` rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.sums.scaled_readings import READ_TWICE, TABLE, numbers_of
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, sum_of
from gmeql.search.direct.table import DirectTable, Effort, FloatArray
from gmeql.search.direct.terms.library import brief_vocabulary


@dataclass(frozen=True)
class ScaledConfig:
    """Numbers of the method."""

    max_columns: int = 10
    few_rows: int = 60
    sizes: tuple[int, ...] = (40, 120)  # of vocabularies, one after the other
    readings: tuple[str, ...] = (PLAIN, "inv", "log", "square")  # of the target, before that with a number
    seconds: tuple[float, ...] = (0.011, 0.025)  # of one core, for each vocabulary (measured)


SCALED = ScaledConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """A sum behind such a function that is the target on all rows. Draws nothing at random."""
    if not 1 <= table.n_columns <= SCALED.max_columns or len(table.y) < SCALED.few_rows:
        return
    if not functions.allows({"add", "mul"}) or not table.has_values:
        return
    sign = 1.0 if table.y.mean() >= 0 else -1.0
    left = effort.seconds
    for size, seconds in zip(SCALED.sizes, SCALED.seconds, strict=True):
        left -= seconds
        most = min(size, int((len(table.y) - VOCABULARY.spare_rows) / VOCABULARY.rows_per_term))
        if left < 0 or (most < size and size != SCALED.sizes[0]):
            return
        n = min(len(table.y), int(VOCABULARY.most_rows_per_term * most) + VOCABULARY.spare_rows)
        terms = brief_vocabulary(table.X[:n], functions.allows, most_terms=most)
        span = Span(terms.values, terms.node)
        for name, target in direct_readings(table.y, functions).items():
            if name not in SCALED.readings or effort.out_of_time():
                continue
            for root in sums_behind([span], target[:n], functions, is_read=name != PLAIN):
                whole = DIRECT_READINGS[name].invert(root, sign)
                if table.error(whole) < VOCABULARY.verified:
                    yield whole
                    return


def sums_behind(
    spans: Sequence[Span], y: FloatArray, functions: FunctionSet, *, is_read: bool = False
) -> Iterator[Node]:
    """Sums in one of the spans behind a function with a number of its own that are a target [N].

    What `is_read` already, as an inverse, say, is not asked for a power: that is a power of the same sum.
    """
    readings = {name: one for name, one in TABLE.items() if functions.allows(set(one.needs))}
    for span in spans:
        for name, reading in readings.items():
            for number in numbers_of(reading, y, span.glimpse) if name in READ_TWICE or not is_read else ():
                inner = span.sparse(reading.read(y, np.array([number]))[:, 0])
                if inner is not None:
                    scale = reading.scale(y, number)
                    yield reading.invert(sum_of([(scale * c, node) for c, node in inner]), number, y)
