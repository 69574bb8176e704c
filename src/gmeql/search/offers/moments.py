"""When direct methods look at the data: shares of the budget or numbers of candidates that went by, and for how long."""

from __future__ import annotations

from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula


def is_time_to_look(state: SearchState) -> bool:
    """Whether the islands had their share of the budget, so that the data may be asked for symmetries and directly.

    A look takes about as long as the islands took until then; a formula that they are about to find should not wait.
    """
    numbers = state.config.clock
    return _share_spent(state) >= numbers.islands_share or state.candidates >= numbers.islands_candidates


def is_time_to_look_again(state: SearchState) -> bool:
    """Whether so much of the budget went by that an exact formula is no longer likely."""
    later_from = state.config.clock.later_from
    if not state.direct_done or state.later_looks >= len(later_from):
        return False
    return _share_spent(state) >= later_from[state.later_looks]


def is_time_to_go_on(state: SearchState) -> bool:
    """Whether another part of the budget went by since the methods were asked that go on from formulas."""
    growing_from = state.config.clock.growing_from
    if not state.direct_done or state.growing_looks >= len(growing_from) or has_exact_formula(state):
        return False
    return _share_spent(state) >= growing_from[state.growing_looks]


def later_seconds(state: SearchState) -> float:
    """What the next of the later looks may take of what is not kept for others: its own share in any case, since those
    before may have taken more than theirs, as far as the share of all looks goes."""
    numbers, seconds = state.config.clock, state.config.direct_seconds
    kept = sum(numbers.last_shares) + numbers.growing_share * (len(numbers.growing_from) - state.growing_looks)
    left = (1.0 - kept) * seconds - state.looks_spent
    own = max(left / (len(numbers.later_from) - state.later_looks), numbers.later_share * seconds)
    return min(own, state.looks_left)


def kept_for_later(state: SearchState, *, asked_last: int = 1) -> float:
    """What the looks that are still to come need of the share of all looks, so many of those that are asked last among them:
    the first of these take what is left."""
    numbers, seconds = state.config.clock, state.config.direct_seconds
    growing = numbers.growing_share * (len(numbers.growing_from) - state.growing_looks)
    again = numbers.later_share * (len(numbers.later_from) - state.later_looks)
    last = sum(numbers.last_shares[len(numbers.last_shares) - asked_last :])
    return (growing + again + last) * seconds


def _share_spent(state: SearchState) -> float:
    """How much of the budget went by, of time or candidates whichever is scarcer; of a usual one where there is none."""
    config = state.config
    spent = [] if config.max_time is None else [state.elapsed / config.max_time]
    spent += [] if config.max_candidates is None else [state.candidates / config.max_candidates]
    return max(spent or [state.candidates / config.clock.later_candidates])
