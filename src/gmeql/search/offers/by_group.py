"""Where rows have groups, direct methods look at a few of them one by one, at the very start: what they see there is cut to
shape where it is exact, and fitted to all."""

from __future__ import annotations

import numpy as np

from gmeql.fitters.threads import one_blas_thread
from gmeql.formula.nodes import Constant, Node, transform
from gmeql.search.clock import Clock
from gmeql.search.direct.methods import SHARES, ask
from gmeql.search.direct.table import DirectTable, worked
from gmeql.search.groups.config import GROUPS
from gmeql.search.polish.polishing import polish
from gmeql.search.polish.scoring import Scored, clean, refit
from gmeql.search.offers.turns import effort_until
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula


def look_at_groups(state: SearchState, clock: Clock, names: list[str]) -> None:
    """Let the methods look at the largest groups one by one; the shortest descriptions of these are fitted to all.

    What a method leaves over of its time is shared by those after it.
    """
    rows = state.rows.polished
    assert rows.groups is not None
    largest = np.argsort(-np.bincount(rows.groups), kind="stable")[: GROUPS.looked]
    looks = [(name, rows.only(np.flatnonzero(rows.groups == g))) for name in names for g in largest]
    shares = np.array([SHARES.get(name, 1.0) for name, _ in looks])
    searched = min(GROUPS.searched, int(rows.groups.max()) + 1)
    left, exact = GROUPS.longer * state.config.direct_seconds_with(groups=searched), ""
    found: dict[Node, Scored] = {}
    with one_blas_thread():
        for i, (name, seen) in enumerate(looks):
            if exact not in ("", name) or clock.is_closing():
                break  # the method that met a group exactly has seen the others too
            seconds, began = left * float(shares[i] / shares[i:].sum()), worked()
            table = DirectTable(seen.X, seen.target, seen.weights / seen.weights.mean())
            rng = np.random.default_rng([state.seed, i])
            effort = effort_until(state, clock, seconds, began + seconds)
            proposed = ask(name, table, functions=state.portfolio.functions, effort=effort, rng=rng)
            cleaned = [root for root in (clean(root, seen) for root in proposed) if root is not None]
            fitted = refit(cleaned, seen, keep_recognised=False)
            met = [scored for scored in fitted if seen.is_exact(scored.loss)]
            if met:  # it may hold more than the group asks for: what cancels there would be lost among all groups
                exact = name
                fitted += polish(min(met, key=lambda s: s.length).root, seen, clock.is_late)[:1]
            for scored in fitted:
                shape = _shape(scored.root)
                if shape not in found or scored.length < found[shape].length:
                    found[shape] = scored
            left -= seconds if state.config.max_time is None else worked() - began
        for scored in sorted(found.values(), key=lambda s: s.length)[: GROUPS.seen_most]:
            if clock.is_closing() or has_exact_formula(state):
                return
            state.offer_to_groups(scored.root)


def _shape(root: Node) -> Node:
    """A formula with all constants alike."""
    return transform(root, lambda leaf: Constant(0.0) if isinstance(leaf, Constant) else leaf)
