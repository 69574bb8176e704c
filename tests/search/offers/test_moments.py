"""When direct methods look at the data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gmeql.search.config import SearchConfig
from gmeql.search.offers.moments import (
    is_time_to_go_on,
    is_time_to_look,
    is_time_to_look_again,
    kept_for_later,
    later_seconds,
)
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula


def table() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(-3, 3, (60, 2))
    return X, 1 / (1 + X[:, 0] ** -4) + 1 / (1 + X[:, 1] ** -4)


def state(**budget: float) -> SearchState:
    return Search(*table(), config=SearchConfig(n_jobs=1, **budget))._state


def test_formulas_are_gone_on_from_at_set_shares_of_the_budget() -> None:
    seen = state(max_candidates=1_000)
    seen.candidates = 500
    assert not is_time_to_go_on(seen)
    seen.direct_done = True
    assert is_time_to_go_on(seen)
    seen.growing_looks = 2
    assert not is_time_to_go_on(seen)


def test_later_looks_share_what_is_not_kept_for_others_and_have_their_own_in_any_case() -> None:
    seen = state(max_time=20.0)
    numbers, seconds = seen.config.clock, seen.config.direct_seconds
    rich, own = later_seconds(seen), numbers.later_share * seconds
    seen.direct_spent = seen.config.looks_seconds - 2 * own
    assert later_seconds(seen) == pytest.approx(own) and rich > own
    seen.direct_spent = seen.config.looks_seconds - 0.5 * own
    assert later_seconds(seen) == pytest.approx(0.5 * own)
    seen.direct_spent = 2 * seen.config.looks_seconds
    assert later_seconds(seen) == 0.0


def test_what_later_looks_need_is_kept_until_they_were_taken() -> None:
    seen = state(max_time=20.0)
    numbers, seconds = seen.config.clock, seen.config.direct_seconds
    whole = kept_for_later(seen)
    assert 0 < whole < 0.5 * seen.config.looks_seconds
    seen.growing_looks = 1
    assert whole - kept_for_later(seen) == pytest.approx(numbers.growing_share * seconds)
    seen.growing_looks, seen.later_looks = len(numbers.growing_from), len(numbers.later_from)
    assert kept_for_later(seen) == pytest.approx(numbers.last_shares[-1] * seconds)
    assert kept_for_later(seen, asked_last=0) == pytest.approx(0.0)


def test_symmetries_and_quick_looks_leave_less_for_later_ones() -> None:
    seen = state(max_time=20.0)
    rich = later_seconds(seen)
    seen.beside_spent = 0.2 * seen.config.direct_seconds
    looks = len(seen.config.clock.later_from)
    assert later_seconds(seen) == pytest.approx(rich - 0.2 * seen.config.direct_seconds / looks)


def test_another_look_is_taken_when_its_time_has_come() -> None:
    X, y = table()
    seen = state(max_candidates=40_000)
    for candidates, looks, due in (
        (0, 0, False),
        (10_000, 0, True),
        (10_000, 1, False),
        (24_000, 1, True),
        (40_000, 2, False),
    ):
        seen.candidates, seen.later_looks, seen.direct_done = candidates, looks, True
        assert is_time_to_look_again(seen) is due
        assert SearchState.from_dict(seen.to_dict(), X, y).later_looks == looks
    seen.direct_done, seen.later_looks = False, 0
    assert not is_time_to_look_again(seen)


@pytest.mark.parametrize(
    ("budget", "elapsed", "candidates", "due"),
    [
        ({"max_time": 30.0}, 1.0, 29_000, False),
        ({"max_time": 30.0}, 1.3, 100, True),
        ({"max_candidates": 100_000}, 100.0, 3_999, False),
        ({"max_candidates": 100_000}, 0.1, 4_000, True),
        ({"max_time": 30.0, "max_candidates": 1000}, 0.1, 50, True),
        ({"max_time": 3600.0}, 5.0, 30_000, True),
        ({}, 100.0, 14_000, True),
    ],
)
def test_islands_have_a_share_of_the_budget_before_the_first_look(
    budget: dict[str, float], elapsed: float, candidates: int, due: bool
) -> None:
    seen = state(**budget)
    seen.elapsed, seen.candidates = elapsed, candidates
    assert is_time_to_look(seen) is due


def test_sums_and_fractions_are_seen_before_the_first_candidate_and_no_island_is_opened() -> None:
    X = np.random.default_rng(3).uniform(0.5, 3, (300, 3))
    for y in (np.sqrt(1.2 * X[:, 1] / X[:, 0] + 1.3), 1.5 * np.sin(X[:, 0]) + 1.3 * np.sin(X[:, 1] ** 2)):
        search = Search(X, y, config=SearchConfig(max_candidates=40_000, n_jobs=1))
        *_, last = search.run()
        assert last.reason == "exact" and search.candidates == 0 and not search._state.islands
        again = Search.from_state(json.loads(json.dumps(search.state(), default=np.ndarray.tolist)), X, y)
        assert has_exact_formula(again._state)


def test_rarer_formulas_are_asked_for_before_anything_is_drawn_too() -> None:
    X = np.random.default_rng(3).uniform(-3, 3, (300, 3))
    with_sums_beside = 0.7 * X[:, 0] - 1.9 * X[:, 0] * X[:, 1] * np.sin(1.7 * X[:, 2]) + 2.3 * X[:, 1]
    two_waves = 1.3 * np.sin(1.1 * X[:, 0]) * np.cos(0.9 * X[:, 2])
    for y in (with_sums_beside, two_waves):
        search = Search(X, y, config=SearchConfig(max_candidates=40_000, n_jobs=1))
        for _ in search.run():
            pass
        seen = search._state
        assert has_exact_formula(seen) and not seen.direct_done and seen.candidates == 0
