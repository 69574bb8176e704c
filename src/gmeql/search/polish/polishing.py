"""A formula polished from start to end: cut, rounded, and written the plainest way that fits as well."""

from __future__ import annotations

from collections.abc import Callable

from gmeql.formula.nodes import Node
from gmeql.formula.ratios import as_ratio
from gmeql.search.polish.cutting import prune, without_dead_terms
from gmeql.search.polish.rounding import snap
from gmeql.search.polish.scoring import JudgedRows, Scored, clean, refit
from gmeql.search.polish.writing import written_and_rounded


def polish(
    root: Node, rows: JudgedRows, out_of_time: Callable[[], bool] = lambda: False, *, exchange: bool = True
) -> list[Scored]:
    """The cleanest form of a formula and the shorter ones met on the way, the cleanest first."""
    met = prune(root, rows, exchange=exchange, out_of_time=out_of_time)
    if not met:
        return []
    final = snap(met[0], rows, out_of_time)
    alive = clean(without_dead_terms(final.root, rows), rows)
    others = [alive, _as_one_fraction(final.root, rows)]
    tidy = refit([root for root in others if root not in (None, final.root)], rows)
    cleanest = min([final, *tidy], key=lambda s: s.length)
    return [written_and_rounded(cleanest, rows, out_of_time), *met]


def _as_one_fraction(root: Node, rows: JudgedRows) -> Node | None:
    fraction = as_ratio(root)
    return None if fraction is None else clean(fraction, rows)
