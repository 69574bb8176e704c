"""The one table of direct methods, in the order in which they are asked."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.direct.fractions import peeled, rational, roots
from gmeql.search.direct.going_on import filled, grown
from gmeql.search.direct.middle import meeting, pairs, two_terms
from gmeql.search.direct.powers import cancelled, corrected, exponentials, exponents, forms
from gmeql.search.direct.steps import nested, squares, strange
from gmeql.search.direct.sums import (
    bends,
    derivatives,
    held,
    inner_sums,
    linear,
    pursuit,
    scaled,
    sections,
    signs,
    subsets,
    vocabulary,
)
from gmeql.search.direct.table import DirectMethod, DirectTable, Effort
from gmeql.search.direct.waves import (
    capped,
    crossed,
    damped,
    fast_waves,
    modulated,
    wave_fractions,
    wave_products,
    waves,
)

_log = logging.getLogger(__name__)

DIRECT_METHODS: dict[str, DirectMethod] = {
    "linear": linear.propose,
    "cancelled": cancelled.propose,
    "corrected": corrected.propose,
    "exponentials": exponentials.propose,
    "exponents": exponents.propose,
    "bends": bends.propose,
    "scaled": scaled.propose,
    "rational": rational.propose,
    "pursuit": pursuit.propose,
    "held": held.propose,
    "inner sums": inner_sums.propose,
    "vocabulary": vocabulary.propose,
    "wave fractions": wave_fractions.propose,
    "wave products": wave_products.propose,
    "crossed": crossed.propose,
    "modulated": modulated.propose,
    "roots": roots.propose,
    "peeled": peeled.propose,
    "capped": capped.propose,
    "sections": sections.propose,
    "signs": signs.propose,
    "nested": nested.propose,
    "squares": squares.propose,
    "subsets": subsets.propose,
    "waves": waves.propose,
    "damped": damped.propose,
    "derivatives": derivatives.propose,
    "forms": forms.propose,
    "two terms": two_terms.propose,
    "meeting": meeting.propose,
    "grown": grown.propose,
    "filled": filled.propose,
    "fast waves": fast_waves.propose,
    "pairs": pairs.propose,
    "strange": strange.propose,
}
"""By name; those that are cheap where they find nothing stand first."""
SHARES: dict[str, float] = {
    "linear": 0.1, "cancelled": 0.5, "corrected": 4.0, "exponentials": 2.0, "scaled": 2.0, "pursuit": 3.0, "held": 8.0,
    "inner sums": 3.0, "capped": 4.0, "wave fractions": 3.0, "wave products": 2.0, "nested": 3.0, "waves": 4.0, "peeled": 4.0,
    "damped": 0.2, "sections": 7.0, "meeting": 3.0, "two terms": 8.0, "forms": 2.0, "fast waves": 3.0, "strange": 8.0,
    "grown": 0.14, "exponents": 2.0,
}  # fmt: skip
"""What a method gets of the time for a table, beside the 1 of every other."""
AT_ONCE = ("linear",)
"""Methods that are asked before the first candidate is drawn, about the columns as they are: they cost next to nothing."""
QUICK = ("rational", "vocabulary")
"""Methods that are asked then, too, for what they see within some hundredths of a second and islands need long for."""
SOON = ("crossed", "modulated", "two terms")
"""Such methods for rarer formulas, asked after them."""
EARLY = (
    "exponents", "cancelled", "corrected", "exponentials", "bends", "scaled", "rational", "pursuit", "capped", "sections",
    "held", "inner sums", "signs", "nested", "squares", "vocabulary", "wave fractions", "wave products", "subsets",
)  # fmt: skip
"""Methods that see a formula by linear algebra, asked about the columns as they are before symmetries are looked for."""
LATER = ("fast waves", "pairs")
"""Methods for targets that are noise or look like it, asked once nothing exact was found for long."""
NOISY = ("pairs",)
"""Methods that are asked about the smallest tables at once where even these are noisy."""
GROWING = ("grown", "filled")
"""Methods that go on from formulas found so far, asked a few times at set shares of the budget."""
LAST = ("strange", "waves")
"""Methods that take long to begin, asked about the columns as they are when all others had their time."""
AT_FIRST = tuple(name for name in DIRECT_METHODS if name not in (*LATER, *GROWING, "strange"))
"""All others."""
FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What costs no search: it finds formulas without looks at the data."""


def ask(
    name: str, table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator
) -> Iterator[Node]:
    """What a method proposes. Values beyond a float on the way there are its own affair: no warning is heard, and where
    linear algebra fails on them it has seen nothing more. Nor does any other fault of a method cost the search, which finds
    formulas without it; that one is told."""
    proposals = DIRECT_METHODS[name](table, functions=functions, effort=effort, rng=rng)
    while True:
        with np.errstate(all="ignore"):  # around each step: a generator that sleeps inside would silence its caller
            try:
                root = next(proposals, None)
            except np.linalg.LinAlgError as error:
                _log.debug("direct method %s ended: %s", name, error)
                return
            except FAULTS:
                _log.warning("the direct method %s failed; the search goes on without it", name, exc_info=True)
                return
        if root is None:
            return
        yield root
