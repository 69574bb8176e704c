"""From the islands to the front: the one place where formulas are refitted, cut to shape and offered.

Exact formulas are polished completely at once. Others get a few cuts while the search goes on, since they are soon outdone, and
the whole treatment at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gmeql.formula.nodes import Constant, Node, tree_complexity
from gmeql.network.repository import size
from gmeql.search.clock import Clock
from gmeql.search.events import Member
from gmeql.search.islands.island import Island
from gmeql.search.losses.losses import find_loss
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.cutting import prune, reductions
from gmeql.search.polish.polishing import polish
from gmeql.search.polish.rounding import snap
from gmeql.search.polish.scoring import JudgedRows, Scored, clean, description_length, refit
from gmeql.search.data.rows import SearchRows
from gmeql.search.state import SearchState

OutOfTime = Callable[[], bool]


def is_exact(state: SearchState, island: Island) -> bool:
    """Whether an island's best formula is exact. Near misses reach 1e-8 too; taken to convergence they show."""
    rows, numbers = state.rows.polished, state.config.front
    if not state.portfolio.loss(island) < (numbers.near_exact * rows.spread) ** 2:
        return False
    root = state.portfolio.formula(island, 0)
    fitted = [] if root is None else refit([root], rows, keep_recognised=False, max_steps=numbers.exact_steps)
    return any(scored.loss < (numbers.exact * rows.spread) ** 2 for scored in fitted)


def offer_elites(state: SearchState, island: Island) -> None:
    """Offer the best elite of each complexity, refitted: what noise hides among long formulas is short ones."""
    n = int(size(island.repository))
    with np.errstate(over="ignore"):  # what is beyond a float in the target's own unit is infinite
        losses = island.repository.losses[:n] * state.portfolio.unit(island)
    complexities = island.repository.items["complexity"][:n]
    roots: list[Node] = []
    lowest = math.inf
    for complexity in np.unique(complexities):
        places = np.flatnonzero(complexities == complexity)[: _tries_each(state)]
        loss = float(losses[places[0]])
        if loss < state.config.front.class_gain * lowest and state.leaderboard.is_promising(loss, int(complexity)):
            lowest = loss
            found = [state.portfolio.formula(island, int(e)) for e in places]
            roots += [root for root in found if root is not None]
    state.offer(refit(roots, state.rows.polished, keep_recognised=False))


def _tries_each(state: SearchState) -> int:
    """Formulas offered where else one is: what the user knows may refuse the first, and of formulas that are equally long
    in pure numbers one may be shorter in the columns."""
    knowledge = state.config.knowledge
    several = knowledge is not None and (knowledge.looks_at_values or knowledge.has_strict_units)
    return state.config.front.offered_each if several else 1


def polish_island(state: SearchState, island: Island, out_of_time: OutOfTime) -> None:
    """Polish an island's first elite that is promising, and offer what comes of it."""
    for e in range(int(size(island.repository))):
        loss = float(island.repository.losses[e]) * state.portfolio.unit(island)
        if not state.leaderboard.is_promising(loss, int(island.repository.items["complexity"][e])):
            continue
        raw = state.portfolio.formula(island, e)
        root = None if raw is None else clean(raw, state.rows.polished)
        try:
            if root is not None:
                polish_formula(state, root, out_of_time, thorough=is_exact(state, island))
            return
        except (ArithmeticError, ValueError):  # a constant left the range of floating point on the way
            continue


def offer_ranked(state: SearchState, ranked: Sequence[Island], *, settled: bool, out_of_time: OutOfTime) -> None:
    """Cut the best island's formula to shape, once the loss has settled, and offer the best of each complexity of all."""
    for rank, island in enumerate(ranked):
        if rank and out_of_time():
            break
        if settled and rank < state.config.polished_per_stage:
            polish_island(state, island, out_of_time)
        offer_elites(state, island)


def polish_formula(state: SearchState, root: Node, out_of_time: OutOfTime, *, thorough: bool) -> None:
    """Offer formulas near `root`: all the way for an exact one, else a few cuts judged on few rows."""
    if thorough:
        state.offer(_polished(state, root, out_of_time, exchange=False), out_of_time)
        return

    def few_cuts(root: Node, rows: JudgedRows) -> list[Scored]:
        return prune(root, rows, max_rounds=state.config.light_cuts, out_of_time=out_of_time)

    met = _keeping_units(state, root, state.rows.light, few_cuts)
    kept = state.config.front.light_cuts_kept * _tries_each(state)
    chosen = sorted(_unbeaten(met), key=lambda s: s.length)[:kept]
    state.offer(refit([s.root for s in chosen], state.rows.polished, keep_recognised=False), out_of_time)


def _unbeaten(met: Iterable[Scored]) -> list[Scored]:
    """Formulas that no simpler one matches."""
    best: list[Scored] = []
    for scored in sorted(met, key=lambda s: (s.complexity, s.loss)):
        if not best or scored.loss < best[-1].loss:
            best.append(scored)
    return best


def polish_leading(state: SearchState, n: int, out_of_time: OutOfTime) -> None:
    """Polish the `n` members of least description length all the way, the best first."""
    for scored in state.leaderboard.leading(n):
        root = scored.source or scored.root
        if not out_of_time() and not isinstance(root, Constant):
            state.offer(_polished(state, root, out_of_time), out_of_time)


def _polished(state: SearchState, root: Node, out_of_time: OutOfTime, *, exchange: bool = True) -> list[Scored]:
    """A formula polished all the way."""

    def whole(root: Node, rows: JudgedRows) -> list[Scored]:
        return polish(root, rows, out_of_time, exchange=exchange)

    return _keeping_units(state, root, state.rows.polished, whole)


def _keeping_units(
    state: SearchState, root: Node, rows: JudgedRows, way: Callable[[Node, JudgedRows], list[Scored]]
) -> list[Scored]:
    """What a way of polishing makes of a formula; where units are given, of its form in pure numbers, which no cut and
    no rounded exponent can break."""
    knowledge = state.config.knowledge
    views = [table.view for table in state.portfolio.tables if table.view.units]
    if not views or knowledge is None or knowledge.units is None or not knowledge.units.keeps(root):
        return way(root, rows)
    view = min(views, key=lambda view: tree_complexity(view.inner(root)))
    factors = view.factors(rows.X)
    names = [f"x{i + 1}" for i in range(len(view.columns))]
    grouped: dict[str, Any] = {"groups": rows.groups, "n_groups": rows.n_groups}
    table = view.table(rows.X), rows.target / factors, rows.weights * factors**2
    pure = knowledge.has_pure_constants
    numbers = JudgedRows.of(*table, names, rows.n_threads, pure_numbers=pure, **grouped)
    met = way(view.inner(root), numbers)
    restored = [clean(view.restore(scored.root), rows) for scored in [*met[:1], *_unbeaten(met[1:])]]
    found = refit([root for root in restored if root is not None], rows)
    # a factor that hides in one choice of units shows in the columns: x - 1.01 is x1 - 1.01*x2 there
    return [snap(found[0], rows), *found] if found and rows.pure_numbers else found


def reweigh(state: SearchState, rows: SearchRows) -> None:
    """Go on with rows of other weights, by which the front is refitted and ranked."""
    roots = [m.source or m.root for m in state.leaderboard.members.values()]
    roots = [root for root in roots if state.rows.groups is not None or not isinstance(root, Constant)]
    state.rows = rows
    state.rank_anew(refit(roots, rows.polished))


def finish(state: SearchState, clock: Clock) -> None:
    """Polish the most promising members all the way, then judge the front."""
    polish_front(state, clock)
    judge_front(state, clock)


def polish_front(state: SearchState, clock: Clock) -> None:
    """Polish the most promising members, and what the open islands have, all the way; nothing where one is exact."""
    config, stop = state.config, clock.is_time_to_judge
    if state.reason != "exact":
        polish_leading(state, 1, stop)
        seen = {island.number: state.portfolio.seen_loss(island, state.rows) for island in state.islands}
        for island in sorted(state.islands, key=lambda each: seen[each.number])[: config.front.islands_at_end]:
            if island.best < math.inf and not stop():
                polish_island(state, island, stop)
        if state.rows.groups is not None:  # a fit to every group takes long: a stage may never have ended
            for island in sorted(state.islands, key=state.portfolio.loss):
                if island.best < math.inf and not stop():
                    offer_elites(state, island)
        polish_leading(state, config.polished_at_end, stop)
        if stop():
            shed_terms(state)


def judge_front(state: SearchState, clock: Clock) -> None:
    """Refit and rank on all rows where the search saw a sample, and tell what every member promises."""
    config = state.config
    if state.rows.is_sampled:
        judge_on_all_rows(state, clock)
    has_value = find_loss(config.loss).value is not None
    # squares around one formula would drop others one by one; under a loss with a value each is led to its own least
    for _ in range(0 if has_value else config.reweighings_at_end):
        closest = state.leaderboard.closest
        rows = state.rows.reweighted(closest.root, closest.own, least=config.least_reweighing_at_end)
        if rows is state.rows or clock.is_late():
            break
        reweigh(state, rows)
    if state.rows.errors is not None:
        state.leaderboard.converge_effective(state.rows)
    look_out(state)


def look_out(state: SearchState) -> None:
    """Tell of the front of a search that has ended what it promises on unseen rows; under a loss with a value of its own,
    each member at the least of that."""
    if find_loss(state.config.loss).value is not None:
        state.leaderboard.converge(state.rows)
    else:
        # of an exact front the choice is made, and what its members promise is asked by few
        state.leaderboard.look_out(state.rows, late=state.reason == "exact")


def shed_terms(state: SearchState) -> None:
    """Offer what single cuts make of the best formula, again while that is shorter: the least that is done for it, which
    takes no time to speak of, so that a slow machine does not end with a constant that says nothing."""
    rows = state.rows.polished
    for _ in range(POLISH.shed_rounds):
        best = state.leaderboard.best
        shorter = sorted(set(reductions(best.source or best.root)), key=lambda root: (root.size, repr(root)))
        cuts = refit(shorter[: POLISH.shed_tried], rows, keep_recognised=False)
        better = [cut for cut in cuts if cut.complexity < best.complexity]
        if not better:
            return
        state.offer([min(better, key=lambda cut: cut.length)])
        if state.leaderboard.best.root == best.root:
            return


def judge_on_all_rows(state: SearchState, clock: Clock) -> None:
    """Let constants, losses and ranks of the front be those of every row, not of the sample the search saw.

    A constant that the sample could not tell from a short number stays rounded only where all rows cannot either. The
    briefest members come first; those that no time is left for leave the front, since losses on other rows do not compare.
    Each is ranked and told what it promises afterwards, which takes about as long as its refit: time is left for that too.
    """
    members = sorted(state.leaderboard.members.values(), key=lambda member: member.length)
    state.rows = state.rows.whole()
    rows, numbers = state.rows.polished, state.config.front
    steps, began = numbers.final_steps, clock.elapsed()
    found: list[Scored] = []
    for place, member in enumerate(member for member in members if member.complexity > 1):
        each = (clock.elapsed() - began) / max(place, 1)
        if place >= numbers.judged_at_least and clock.will_be_late(each + numbers.told_share * (place + 1) * each):
            break
        fits = [
            refit([member.source or member.root], rows, keep_recognised=keep, max_steps=steps) for keep in (True, False)
        ]
        found += sorted((scored for fit in fits for scored in fit), key=lambda scored: scored.length)[:1]
    state.rank_anew(found, settled=True)


def briefest(front: Sequence[Member], rows: JudgedRows) -> Member:
    """The member of least description length, the one meaning of `Progress.best`: for fronts made in other ways."""
    return min(front, key=lambda member: description_length(member.expression.root, member.loss**2, rows))
