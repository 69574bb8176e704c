"""What steps leave as a function of a sum of few out of very many terms.

A vocabulary that one fit must hold has room for hundreds of terms; behind a step the sum may be of any of thousands. A pursuit
(`pursuit.py`) is asked for each reading of what is left.

Legend: `N` rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import EVERY_READING, INVERTED_BY
from gmeql.search.direct.sums.pursuit import Terms
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, beside_root
from gmeql.search.direct.terms.brackets import bracketed

FloatArray = NDArray[np.float64]
ASKED = (PLAIN, "square", "exp", "less", "inv", "log")
"""Readings of what is left by which such a sum is looked for."""
PLAINEST = 350
"""Terms of which what stands under a root beside others may be a sum."""


class Chased:
    """Sums of few out of very many terms over columns X [N, V]."""

    def __init__(self, X: FloatArray, functions: FunctionSet, terms: Terms, has_ended: Callable[[], bool]) -> None:
        self.X, self.functions, self.terms, self.has_ended = X, functions, terms, has_ended

    @cached_property
    def span(self) -> Span:
        """The plainest of them, on all rows."""
        most = min(PLAINEST, len(self.terms), int((len(self.X) - VOCABULARY.spare_rows) / VOCABULARY.rows_per_term))
        return Span(self.terms.exact(range(most), len(self.X)), self.terms.node)

    def beside_root(self, target: FloatArray, beside: Sequence[tuple[Node, FloatArray]]) -> Iterator[Node]:
        """A sum of terms with values [N] with a root of a sum beside it that is a target [N], if there is one."""
        found = None if self.has_ended() else beside_root(self.span, target, beside, self.X)
        yield from () if found is None else (found,)

    def formulas(self, target: FloatArray, sign: float) -> Iterator[Node]:
        """A function of such a sum that a target [N] may be."""
        for name, reading in EVERY_READING.items():
            if self.has_ended():
                return
            if name in ASKED and self.functions.allows(INVERTED_BY[name]) and reading.applies(target):
                found = self.terms.sum_for(np.asarray(reading.forward(target)))
                if found is not None:
                    yield reading.invert(min((found, bracketed(found)), key=tree_complexity), sign)
