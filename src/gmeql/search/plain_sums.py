"""Sums of columns beside a finished front, judged as its members are.

While a search goes on, a sum of weak columns falls behind whatever odd form fits the rows a little better, and is gone.
In the end all of them are looked at once more: those chosen step by step, and the sum of all columns with factors drawn
towards 0 (`shrinking.py`). `model.front` lets the one in that describes the rows most briefly of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.choosing import sums_of_columns
from gmeql.search.events import Member
from gmeql.search.losses import find_loss
from gmeql.search.outlook import outlooks
from gmeql.search.polish.printable import is_printable
from gmeql.search.rows import SearchRows
from gmeql.search.shrinking import shrunk_sum

MOST_ROWS = 20_000
"""Beyond so many rows luck is small and least squares needs no help."""
NODES_PER_COLUMN = 4
"""Complexity of one more column in a sum: plus, times, factor, column."""


def judged_sums(front: Sequence[Member], rows: SearchRows) -> tuple[Member, ...]:
    """Sums of columns with what they promise on unseen rows; none where the front is exact or not judged, where rows are
    many or have groups or errors, where the user knows of the form, or under a loss with a value of its own."""
    config, functions = rows.config, FunctionSet(rows.config.functions)
    if any(member.outlook is None for member in front) or rows.polished.is_exact(front[-1].loss ** 2):
        return ()
    if len(rows.y) > MOST_ROWS or any(given is not None for given in (rows.groups, rows.errors, rows.knowledge)):
        return ()
    if find_loss(config.loss).value is not None or not functions.allows({"add"}):
        return ()
    most = (config.max_complexity - 1) // NODES_PER_COLUMN
    found = sums_of_columns(rows.X, rows.y, rows.weights, functions)[:most]
    shrunk = shrunk_sum(rows.X, rows.y, rows.weights, most_columns=most)
    roots = [*found, *(() if shrunk is None else (shrunk.root,))]
    roots = [root for root in roots if math.isfinite(_loss(root, rows))]
    known = [member.expression.root for member in front]
    judged = outlooks(
        roots, rows.X, rows.y, rows.weights, rivals=known, shrunk={} if shrunk is None else {shrunk.root: shrunk}
    )
    sums = []
    for root, outlook in zip(roots, judged, strict=True):
        loss, expression = _loss(root, rows), Expression(root, rows.names)
        if is_printable(root, loss, rows.polished):
            sums.append(Member(expression, math.sqrt(loss), expression.complexity, outlook))
    return tuple(sums)


def _loss(root: Node, rows: SearchRows) -> float:
    """Mean squared error over all rows."""
    with np.errstate(all="ignore"):
        return float(np.average((Expression(root, rows.names)(rows.X) - rows.y) ** 2, weights=rows.weights))
