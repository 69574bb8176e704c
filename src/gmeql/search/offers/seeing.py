"""One step of a search: direct methods look at every table, and what they see goes to the front.

- Methods that cost next to nothing are asked about the plain columns at the very start, then quick ones; those of linear algebra
  after the first stage.
- The step itself is taken once, after the look for symmetries. Smaller tables come first, since a formula is short there. Of
  several tables with as many columns, which the same symmetry gives, the plainest is looked at.
- Methods for noisy targets come later, when nothing exact was found for long and the best formula so far tells how large noise
  can be.

Time or work is shared out over the tables and, as `SHARES` says, over the methods (`turns.py`). Where time is the budget, all
that looks take is one account: the first have their time in any case, later ones end with `looks_share`. Some more is kept for
methods that have seen part of a formula. Where rows have groups, a few of them are looked at one by one instead (`by_group.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gmeql.fitters.threads import one_blas_thread
from gmeql.formula.nodes import Node
from gmeql.search.clock import Clock
from gmeql.search.direct.methods import AT_FIRST, AT_ONCE, EARLY, GROWING, LAST, LATER, NOISY, QUICK, SHARES, SOON, ask
from gmeql.search.direct.table import DirectTable, worked
from gmeql.search.polish.recognition import all_recognised
from gmeql.search.polish.scoring import clean, refit
from gmeql.search.offers.by_group import look_at_groups
from gmeql.search.offers.moments import kept_for_later, later_seconds
from gmeql.search.offers.promotion import polish_formula
from gmeql.search.offers.tables import is_noisy, is_small, noisy_views_of, plainest_views, small_views_of, table_of
from gmeql.search.offers.turns import Kept, Turns, counted, effort_until
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.formulas import views_of_formula
from gmeql.search.symmetries.views import View

SEEN_QUICKLY = ("vocabulary", *SOON)
"""Methods that do the same where they are asked quickly and have no more time than then."""


def look_at_once(state: SearchState, clock: Clock) -> None:
    """Before anything is drawn, ask the cheapest methods: there is something to show, and to be better than. Fractions come
    before sums of columns, which nobody wants where the law is a short fraction."""
    if state.rows.groups is not None and not state.direct_done:
        state.direct_done = True
        look_at_groups(state, clock, asked_of(state, AT_FIRST))
    elif not state.direct_done:
        first, *others = (*QUICK, *SOON)
        look_soon(state, clock, first)
        if has_exact_formula(state) and is_brief(state):
            return
        _look(state, clock, asked_of(state, AT_ONCE), state.config.direct_seconds, cut=False, at_least=math.inf)
        for name in others:
            look_soon(state, clock, name)


def look_soon(state: SearchState, clock: Clock, name: str) -> None:
    """Ask a method for what it sees quickly: islands are long to find it, and need not."""
    if not state.direct_done and not has_exact_formula(state):
        seconds = _quick_seconds(state)
        _look(state, clock, asked_of(state, [name]), seconds, cut=False, is_quick=True, at_least=seconds)


def _quick_seconds(state: SearchState) -> float:
    """What a quick look may take."""
    return state.config.clock.soon_share * state.config.direct_seconds


def look_early(state: SearchState, clock: Clock) -> bool:
    """Ask methods of linear algebra about the columns as they are, once; whether that made a formula exact."""
    if state.direct_done or state.direct_spent > 0 or has_exact_formula(state):
        return False
    seconds = state.config.clock.early_share * state.config.direct_seconds
    _look(state, clock, asked_of(state, EARLY), seconds, cut=True, at_least=seconds)
    return has_exact_formula(state)


def look_directly(state: SearchState, clock: Clock) -> None:
    """Let every direct method see every table, until a formula is exact or the share of the budget is spent."""
    state.direct_done = True
    numbers, seconds = state.config.clock, state.config.direct_seconds
    look_at_smaller(state, clock, plainest_views(state))
    if has_exact_formula(state):
        return
    for view, share in noisy_views_of(state):
        each = share * seconds
        _look(state, clock, asked_of(state, NOISY), each, cut=True, views=[view], at_least=each)
    look_at_small(state, clock)
    with counted(state):  # what is seen without noise only need not be looked for long
        at_least = 0.0 if is_noisy(state) else numbers.first_least * seconds
    left = max(numbers.first_share * seconds - state.looks_spent, at_least)  # what was left over early is theirs
    left = min(left, max(state.looks_left - kept_for_later(state), at_least))
    if left > numbers.least_look * seconds:
        _look(state, clock, asked_of(state, AT_FIRST), left, cut=True, at_least=at_least)


def look_at_smaller(state: SearchState, clock: Clock, views: Sequence[View]) -> None:
    """Ask the quick methods about new smaller tables: what is left when symmetries are taken off is often plain, and shares
    of what all methods get for all tables may be too short to see it."""
    taken = {table.view for table in state.portfolio.tables}
    smaller = [view for view in views if view in taken and not view.is_raw_of(state.rows.n_variables)]
    if smaller and not has_exact_formula(state):
        smaller = sorted(smaller, key=lambda view: len(view.columns))[: state.config.tables_looked_at_again]
        seconds = len(smaller) * _quick_seconds(state)
        _look(state, clock, asked_of(state, QUICK), seconds, cut=True, views=smaller, is_quick=True)


def look_at_small(state: SearchState, clock: Clock) -> None:
    """Let all methods see the smallest tables for long: that symmetries leave so little says that there is a law, so the time
    is that of a trail. What is left of it is often seen at once by a method that takes half a second to see it."""
    for view, share in small_views_of(state):
        seconds = min(share * state.config.trail_seconds, state.config.trail_seconds - state.trail_spent)
        if not seconds > 0 or has_exact_formula(state):
            return
        before = state.direct_spent
        _look(state, clock, asked_of(state, AT_FIRST), seconds, cut=True, views=[view], at_least=seconds)
        state.trail_spent += state.direct_spent - before
        state.direct_spent = before


def go_on(state: SearchState, clock: Clock) -> None:
    """Ask the methods that go on from the formulas found so far, about the columns as they are."""
    state.growing_looks += 1
    seconds = state.config.clock.growing_share * state.config.direct_seconds
    view = state.portfolio.tables[0].view
    _look(state, clock, asked_of(state, GROWING), seconds, cut=True, views=[view], at_least=seconds)


def views_of_leading(
    state: SearchState, asked: set[Node] | None = None, out_of_time: Callable[[], bool] = lambda: False
) -> list[View]:
    """Smaller tables that the leading formulas would fit in, of which there are none yet, as far as time allows.

    Formulas that were `asked` before are not again; those that are now are added to them.
    """
    asked = set() if asked is None else asked
    known = {table.view for table in state.portfolio.tables}
    found: dict[View, None] = {}
    roots = [scored.root for scored in state.leaderboard.leading(state.config.formulas_viewed)]
    for place, root in enumerate(root for root in roots if root not in asked):
        if place and out_of_time():
            break
        asked.add(root)
        for slack in SYMMETRIES.formula_slacks:
            views = views_of_formula(root, state.rows.polished.X, slack=slack, out_of_time=out_of_time)
            found |= dict.fromkeys(view for view in views[:1] if view not in known)
    return list(found)


def look_again(state: SearchState, clock: Clock) -> None:
    """Let the methods for noisy targets see the smallest tables, the newest first, with what is left of the share."""
    numbers, seconds = state.config.clock, state.config.direct_seconds
    left = later_seconds(state)
    state.later_looks += 1
    views = plainest_views(state)
    with counted(state):
        shares = later_shares(state, left, views)
    for names, share, at_least in shares:
        _look(state, clock, names, share, cut=True, views=views, at_least=at_least)
    if state.later_looks < len(numbers.later_from):
        return
    for place, (name, at_least) in enumerate(zip(LAST, numbers.last_shares, strict=True)):
        # what all others left over, and enough for a look: many columns and their smaller tables leave nothing
        kept = sum(numbers.last_shares[place + 1 :]) * seconds
        left, asked = max(seconds - kept - state.looks_spent, at_least * seconds), asked_of(state, [name])
        left = min(left, state.looks_left - kept_for_later(state, asked_last=len(LAST) - 1 - place))
        if asked and left > 0 and not has_exact_formula(state):
            _look(state, clock, asked, left, cut=True, views=[state.portfolio.tables[0].view])


def later_shares(state: SearchState, seconds: float, views: Sequence[View]) -> list[tuple[list[str], float, float]]:
    """Methods of the later looks with their seconds, of so many in all, and what they have whatever others took; where noise is
    seen, those for it have most of these, and enough to begin in any case where one of the views is small."""
    if not is_noisy(state):
        return [(asked_of(state, LATER), seconds, 0.0)]
    numbers, whole = state.config.clock, state.config.direct_seconds
    others = asked_of(state, [name for name in LATER if name not in NOISY])
    theirs = numbers.later_share * whole
    enough = numbers.noisy_later_share * whole if any(is_small(view, state) for view in views) else 0.0
    return [(others, theirs, 0.0), (asked_of(state, NOISY), max(seconds - theirs, enough), enough)]


def asked_of(state: SearchState, names: Iterable[str]) -> list[str]:
    """Those of some methods that the user did not leave out; derivatives where he asked for them."""
    asked = [name for name in names if state.config.direct is None or name in state.config.direct]
    return [name for name in asked if name != "derivatives" or state.portfolio.functions.derivatives]


def _look(
    state: SearchState,
    clock: Clock,
    names: list[str],
    seconds: float,
    *,
    cut: bool,
    views: list[View] | None = None,
    is_quick: bool = False,
    at_least: float = 0.0,
) -> None:
    """Offer what methods see within some seconds, and note what was spent: where time is the budget, all that it took but
    for trails that were followed, which have a share of their own. It ends with the share of all looks, where it was not
    promised so many seconds in any case."""
    most = max(state.looks_left, at_least)
    seconds = min(seconds, most)
    if not seconds > 0:
        return
    began, kept = worked(), Kept(state, clock, max(state.config.trail_seconds - state.trail_spent, 0.0))
    looks = plan(state, names, seconds, views)
    is_last = not at_least or bool(state.growing_looks)  # the first end one after the other, however long each took
    turns = Turns([look.seconds for look in looks], most - (worked() - began) if is_last else math.inf)

    def is_late() -> bool:
        return clock.is_late() or (turns.are_over() and not kept.is_taken)

    _take_in(state, clock, _proposals(state, clock, looks, turns, kept, is_quick=is_quick), cut=cut, is_late=is_late)
    is_timed = state.config.max_time is not None
    took = worked() - began - kept.used if is_timed else seconds
    if cut:
        state.direct_spent += took
    elif is_timed:
        state.beside_spent += took
    state.trail_spent += kept.used


def _take_in(
    state: SearchState,
    clock: Clock,
    proposals: Iterator[tuple[View, Node]],
    *,
    cut: bool,
    is_late: Callable[[], bool],
) -> None:
    """Offer what was seen to the front, until an exact formula has its shortest form or the time is over."""
    # the matrices are small, and one thread always rounds alike
    with one_blas_thread():
        solved: View | None = None
        for view, root in proposals:
            if solved not in (None, view) or clock.is_closing():
                return  # the other methods had their turn on that table: one of them may have a shorter form
            offer_seen(state, view.restore(root), clock, cut=cut, is_late=is_late)
            if solved is None and has_exact_formula(state):
                solved = view
                if is_brief(state):
                    return


def is_brief(state: SearchState) -> bool:
    """Whether the best formula, which is exact, has hardly a shorter form."""
    best, numbers = state.leaderboard.best, state.config.front
    return best.complexity <= (numbers.short_written if all_recognised(best.root) else numbers.short)


@dataclass(frozen=True)
class PlannedLook:
    """A method that is to look at a table, which a view shows, for so many seconds."""

    view: View
    table: DirectTable
    name: str
    seconds: float
    number: int
    """Its place in the plan, which its random numbers depend on."""
    is_first: bool
    """Whether its methods were not asked before."""

    def is_heard(self, root: Node) -> bool:
        """Methods that were asked at once are heard again only where they fit better than the best formula so far."""
        is_new = self.is_first or self.name not in (*AT_ONCE, *QUICK, *SOON)
        return is_new or self.table.error(root) < self.table.unexplained


def plan(state: SearchState, names: list[str], seconds: float, views: list[View] | None = None) -> list[PlannedLook]:
    """Which methods look at which tables, and for how long; tables of few columns first where no views are named."""
    tables = [(view, table) for view in views or plainest_views(state) if (table := table_of(view, state)) is not None]
    if not tables:
        return []
    are_early_over = state.direct_done and state.direct_spent > 0 and not state.later_looks
    looked, raw = EARLY if are_early_over else (), View.raw(state.rows.n_variables)  # they are not asked twice
    # what formulas suggest that were found until now is worth more than what the data did; of that, the columns as they
    # are get half, since a symmetry may be an illusion
    smaller = max(len(tables) - 1, 1)
    at_first = [1.0 / smaller] * (len(tables) - 1) + [1.0]
    sizes = at_first if not state.later_looks else [1.0 / (1 + place) for place in range(len(tables))]
    looks, shares = [], np.zeros(0)
    for (view, table), size in zip(tables, sizes, strict=True):
        asked = [name for name in names if not (view == raw and name in looked)]
        looks += [(view, table, name) for name in asked]
        shares = np.append(shares, [size * SHARES.get(name, 1.0) for name in asked])
    each = seconds * shares / shares.sum()
    return [PlannedLook(*look, float(each[i]), i, not state.direct_done) for i, look in enumerate(looks)]


def _proposals(
    state: SearchState, clock: Clock, looks: Sequence[PlannedLook], turns: Turns, kept: Kept, *, is_quick: bool
) -> Iterator[tuple[View, Node]]:
    """What the methods see, over the columns of which view."""
    quick, raw = _quick_seconds(state), View.raw(state.rows.n_variables)
    for i, look in enumerate(looks):
        if turns.are_over():
            return
        effort = effort_until(state, clock, look.seconds, turns.until(i))
        if not is_quick and look.view == raw and look.name in SEEN_QUICKLY and effort.seconds <= quick:
            continue  # it would do no more than it did before anything was drawn
        effort = replace(effort, more=kept.take, is_quick=is_quick)
        rng, functions = np.random.default_rng([state.seed, i]), state.portfolio.functions
        for root in ask(look.name, look.table, functions=functions, effort=effort, rng=rng):
            if look.is_heard(root):
                paused = worked()
                yield look.view, root
                turns.pause(worked() - paused)  # what is done with a formula is not the next method's time
        turns.pause(kept.settle(), is_kept=True)  # nor is what was kept


def offer_seen(
    state: SearchState, root: Node, clock: Clock, *, cut: bool, is_late: Callable[[], bool] | None = None
) -> None:
    """Refit a formula on the rows that all are judged on, and offer it: cut to shape all the way where it is exact, else as far
    as it is not late."""
    rows, numbers = state.rows.polished, state.config.front
    cleaned = clean(root, rows)
    for scored in refit([cleaned] if cleaned else [], rows, keep_recognised=False, max_steps=numbers.exact_steps):
        state.offer([scored])
        if scored.loss < (numbers.exact * rows.spread) ** 2:
            polish_formula(state, scored.root, clock.is_late, thorough=True)
        elif cut and state.leaderboard.is_promising(scored.loss, scored.complexity):
            polish_formula(state, scored.root, is_late or clock.is_late, thorough=False)
