"""How a generation of islands is opened: how many there are, for how long a look, and what is known beforehand."""

from __future__ import annotations

from collections.abc import Callable

from gmeql.search.clock import Clock
from gmeql.search.execution.execution import Executor
from gmeql.search.guesses import try_guesses
from gmeql.search.islands.island import Island
from gmeql.search.offers.looking import offer_multiple
from gmeql.search.offers.seeing import look_at_once
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula


def islands_of_guesses(state: SearchState, clock: Clock) -> list[Island]:
    """Offer what is known beforehand, and return the islands that guesses open.

    Units alone say: a constant times a product of powers that has the target's unit.
    """
    for table in state.portfolio.tables:
        if not table.view.is_raw_of(state.rows.n_variables):
            offer_multiple(state, table, clock.is_late)
    return try_guesses(state, clock.is_late)


def open_generation(
    state: SearchState,
    executor: Executor,
    clock: Clock,
    is_interrupted: Callable[[], bool] = lambda: False,
) -> None:
    """Many islands for a short look where there are many readings of small tables, one of them easy; else few.

    On accelerators the first generations are small, and so are their steps: what they find is found soon. So are those that
    only look on for a shorter twin of an exact formula.
    Hundreds take tenths of a second to open; before each of them somebody is asked whether that `is_interrupted`.
    """
    if not state.portfolio.opened:
        look_at_once(state, clock)
        if has_exact_formula(state):
            return  # nothing is left to be drawn
    many = len(state.portfolio.tables) > 1
    config = state.config
    n_islands = config.islands_per_generation if many else config.few_islands
    state.stage = 0 if many or config.is_stage_long(1, n_islands) else min(1, len(config.stage_ages) - 1)
    executor.look_for_accelerators(state, clock)
    on_device = executor.on_cards
    if on_device:
        n_islands = _n_on_cards(n_islands * config.device_islands, state)
    later = _is_later(state)
    state.islands = []
    while len(state.islands) < n_islands and not is_interrupted():
        state.islands.append(state.portfolio.open_island(state.rng, on_device=on_device, later=later))


def _n_on_cards(first: int, state: SearchState) -> int:
    """How many islands accelerators take next, where the first generation has so many."""
    config = state.config
    later = config.later_device_islands if _is_later(state) else first
    return min(later, config.later_device_islands) if state.portfolio.opened else first


def _is_later(state: SearchState) -> bool:
    """Whether the first generations are over, and nothing exact was found."""
    if state.portfolio.opened < state.config.early_device_islands:
        return False
    return not state.rows.polished.is_exact(state.leaderboard.best.loss)
