"""What the members of a finished front promise on unseen rows, told at once or when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter

from gmeql.search.data.rows import SearchRows
from gmeql.search.events import Member
from gmeql.search.groups.table import OwnConstants
from gmeql.search.judging.deferred import Deferred
from gmeql.search.judging.outlook import Outlook, outlooks
from gmeql.search.symmetries.dimensional import in_pure_numbers

MOST_KEPT = 1_000_000
"""Numbers of a table that are kept for a promise until somebody asks; the promises of larger tables are told at once."""


def with_promises(
    front: Sequence[Member], own: OwnConstants | None, rows: SearchRows, *, late: bool = False
) -> tuple[Member, ...]:
    """Members with what they promise, judged on all rows there are; worked out when somebody asks where that may be `late`."""
    found = Deferred(partial(_promises, front, own, rows))
    each = [found.then(itemgetter(place)) for place in range(len(front))]
    late = late and rows.X.size <= MOST_KEPT
    return tuple(replace(m, outlook=one if late else one.get()) for m, one in zip(front, each, strict=True))


def _promises(front: Sequence[Member], own: OwnConstants | None, rows: SearchRows) -> list[Outlook]:
    X = rows.X if own is None or rows.groups is None else own.extended(rows.X, rows.groups.codes)
    roots = [member.expression.root for member in front]
    judged = rows.polished
    stated = None if own is not None else in_pure_numbers(roots, rows.knowledge, judged.X, judged.target)
    found = outlooks(roots, X, rows.y, rows.weights, between=own is None, stated=stated)
    return [one.with_more_constants(m.n_own, len(rows.y)) for one, m in zip(found, front, strict=True)]
