"""When a search ends by itself."""

from __future__ import annotations

from gmeql.search.clock import Clock
from gmeql.search.polish.recognition import all_recognised, n_loose_constants
from gmeql.search.state import SearchState


def why_stop(state: SearchState, clock: Clock, idle_rounds: int) -> str:
    """The reason (a key of `events.REASONS`) for which the search ends after this round, or nothing.

    `idle_rounds` are rounds in a row that found no structure to try: a small network has only so many.
    """
    config = state.config
    if has_exact_formula(state):
        return "exact"
    if config.max_candidates is not None and state.candidates >= config.max_candidates:
        return "max_candidates"
    if clock.is_closing():
        return "max_time"
    if config.patience is not None and state.candidates - state.last_gain >= config.patience:
        return "no gain"
    return "exhausted" if idle_rounds >= config.max_idle_rounds else ""


def has_exact_formula(state: SearchState) -> bool:
    """Whether the best formula is exact, on more rows than its constants could explain, and no shorter twin is likely.

    Unless its constants are numbers people write, a long exact formula may have a shorter twin: the search looks on.
    """
    best, numbers = state.leaderboard.best, state.config.front
    if not state.rows.polished.is_exact(best.loss):
        return False
    n_fitted = n_loose_constants(best.root) + (0 if best.own is None else best.own.size)
    if len(state.rows.y) <= 2 * n_fitted + 2:
        return False
    looked_on = state.candidates >= numbers.look_on * max(state.last_gain, numbers.look_on_candidates)
    return best.complexity <= numbers.short or all_recognised(best.root) or looked_on
