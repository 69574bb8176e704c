"""Members of the front at the least of the effective variance, where columns have errors of their own."""

from __future__ import annotations

from collections.abc import Callable

from gmeql.formula.nodes import Node
from gmeql.search.data.rows import FloatArray, SearchRows
from gmeql.search.groups.joint import GroupedTable, refit_jointly
from gmeql.search.losses.effective import least_effective
from gmeql.search.polish.scoring import Scored


def least_effective_member(
    member: Scored, rows: SearchRows, least: Callable[[Node], Node] | None
) -> tuple[Node, FloatArray | None]:
    """A member with the constants, its groups' own ones included, at which the effective variance is least."""
    assert rows.errors is not None
    known = rows.extended(member.own).knowledge
    held = frozenset() if known is None else known.held_constants(member.root)
    if rows.groups is not None:
        table = GroupedTable.of(rows.X, rows.given_y, rows.given_weights, rows.groups.codes, rows.errors)
        return refit_jointly(member.root, member.own, table, held)
    if least is not None:
        return least(member.root), None
    return least_effective(member.root, rows.X, rows.given_y, rows.given_weights, rows.errors, held), None
