"""How long direct methods may look, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gmeql.formula.nodes import Constant
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.direct.methods import EARLY
from gmeql.search.direct.table import worked
from gmeql.search.offers import seeing, turns
from gmeql.search.offers.seeing import go_on, look_again, look_directly, look_early, plan
from gmeql.search.offers.turns import Kept, Turns, counted, effort_until
from gmeql.search.search import Search
from gmeql.search.state import SearchState


def state(**budget: float) -> SearchState:
    X = np.random.default_rng(0).uniform(-3, 3, (60, 2))
    return Search(X, 1 / (1 + X[:, 0] ** -4), config=SearchConfig(n_jobs=1, **budget))._state


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Processor seconds so far, to be set."""
    seconds = [0.0]
    monkeypatch.setattr(turns, "worked", lambda: seconds[0])
    monkeypatch.setattr(seeing, "worked", lambda: seconds[0])
    return seconds


def test_what_one_leaves_over_is_the_next_ones_and_what_it_takes_too_much_is_not(now: list[float]) -> None:
    looks = Turns([1.0, 2.0, 3.0])
    assert looks.until(0) == 1.0
    now[0] = 0.5
    assert looks.until(1) == 3.0
    now[0] = 7.0
    assert looks.until(2) == 10.0
    looks.pause(1.0)
    now[0] = 8.0
    assert looks.until(2) == 11.0


def test_all_end_with_the_share_of_looks_which_formulas_take_from_and_trails_do_not(now: list[float]) -> None:
    looks = Turns([1.0, 2.0, 3.0], most=4.0)
    now[0] = 1.0
    looks.pause(1.0)  # what became of a formula
    assert looks.until(2) == 4.0
    now[0] = 3.0
    looks.pause(2.0, is_kept=True)
    assert looks.until(2) == 6.0 and not looks.are_over()
    now[0] = 6.0
    assert looks.are_over()


def test_what_was_kept_is_nobodys_turn(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    granted: dict[str, float] = {}

    def on_trail(name: str, table: Any, *, effort: Any, **options: Any) -> Iterator[Any]:
        granted[name] = effort.seconds
        if name == "sections":
            effort.on_trail()
            now[0] += 2.0
        return iter(())

    monkeypatch.setattr(seeing, "ask", on_trail)
    look_early(state(max_time=30.0), Clock(SearchConfig(n_jobs=1, max_time=30.0)))
    assert granted["held"] > granted["sections"] > 0  # all that those before left over


def test_methods_after_one_that_ends_late_are_asked_for_their_share(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    granted: dict[str, float] = {}

    def late(name: str, table: Any, *, effort: Any, **options: Any) -> Iterator[Any]:
        granted[name] = effort.seconds
        now[0] += 1.5 if name == "sections" else 0.0
        return iter(())

    monkeypatch.setattr(seeing, "ask", late)
    seen = state(max_time=30.0)
    seconds = seen.config.clock.early_share * seen.config.direct_seconds
    own = {look.name: look.seconds for look in plan(seen, list(EARLY), seconds)}
    look_early(seen, Clock.unlimited())
    after = EARLY[EARLY.index("sections") + 1 :]
    # one by one what is left over is passed on, so that the first has its own and no other has less
    assert granted[after[0]] == pytest.approx(own[after[0]])
    assert all(granted[name] >= own[name] - 1e-9 for name in after)


def test_what_a_trail_took_is_told_apart(now: list[float]) -> None:
    kept = Kept(state(max_time=60.0), Clock.unlimited(), 2.0)
    assert kept.take() is not None and kept.take() is None
    now[0] = 1.5
    kept.settle()
    assert kept.used == 1.5
    effort = kept.take()
    assert effort is not None and effort.seconds == 0.5


def test_trails_share_what_is_kept_for_them_and_take_nothing_from_looks(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[float] = []

    def on_trail(name: str, table: Any, *, effort: Any, **options: Any) -> Iterator[Any]:
        more = effort.more()
        kept.append(more.seconds if more else 0.0)
        now[0] += 3.0
        return iter(())

    monkeypatch.setattr(seeing, "ask", on_trail)
    seen = state(max_time=30.0)
    for _ in range(2):
        seeing._look(seen, Clock.unlimited(), ["nested"], 0.5, cut=True, at_least=0.5)
    assert kept == pytest.approx([seen.config.trail_seconds, seen.config.trail_seconds - 3.0])
    assert seen.trail_spent == pytest.approx(6.0) and seen.looks_spent == pytest.approx(0.0)
    assert SearchState.from_dict(seen.to_dict(), seen.rows.X, seen.rows.y).trail_spent == pytest.approx(6.0)


def test_what_is_kept_for_a_trail_is_given_once_where_candidates_are_the_budget() -> None:
    kept = Kept(state(max_candidates=40_000), Clock.unlimited(), 2.0)
    given = kept.take()
    assert given is not None and given.seconds == 2.0
    kept.settle()
    assert kept.take() is None and kept.used == 0.0


def test_methods_that_get_little_of_the_processor_end_with_the_search() -> None:
    """They count their own processor time; where that hardly moves, the whole search's clock holds."""
    seen = state(max_time=10.0)
    clock, until = Clock.start(seen.config), worked() + 1000.0
    assert not effort_until(seen, clock, 1.0, until).out_of_time()
    assert effort_until(seen, replace(clock, closing=clock.started), 1.0, until).out_of_time()


@pytest.mark.parametrize(("budget", "noted"), [({"max_time": 20.0}, 2.0), ({"max_candidates": 1000}, 0.0)])
def test_what_is_done_beside_methods_counts_as_a_look_where_time_is_the_budget(
    budget: dict[str, float], noted: float, now: list[float]
) -> None:
    seen = state(**budget)
    with counted(seen):
        now[0] = 2.0
    assert seen.beside_spent == noted and seen.looks_spent == noted
    again = SearchState.from_dict(seen.to_dict(), seen.rows.X, seen.rows.y)
    assert again.beside_spent == noted


@pytest.mark.parametrize(("each", "is_asked"), [(0.04, False), (0.2, True)])
def test_what_was_seen_quickly_is_asked_again_only_with_more_time(
    each: float, is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(name: str, *_: Any, **__: Any) -> Iterator[Any]:
        asked.append(name)
        return iter(())

    monkeypatch.setattr(seeing, "ask", ask)
    seen = state(max_candidates=100_000)
    seeing._look(seen, Clock.unlimited(), ["modulated"], each, cut=True)
    assert asked == (["modulated"] if is_asked else [])
    seeing._look(seen, Clock.unlimited(), ["modulated"], each, cut=True, is_quick=True)
    assert asked[-1] == "modulated"


@pytest.mark.parametrize("slow", [1.0, 4.0])
def test_all_looks_end_with_their_share_of_the_time_however_slow_the_core(
    slow: float, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Methods that take more than theirs, formulas that take long to be cut, symmetries: those that come later have less."""

    def ask(name: str, table: Any, *, effort: Any, **options: Any) -> Iterator[Any]:
        now[0] += effort.seconds + 0.01 * slow
        yield Constant(1.0)

    def offer(*_: Any, **options: Any) -> None:
        now[0] += 0.0 if options["is_late"]() else 0.01 * slow

    monkeypatch.setattr(seeing, "ask", ask)
    monkeypatch.setattr(seeing, "offer_seen", offer)
    X = np.random.default_rng(0).uniform(1, 2, (100, 3))
    seen = Search(X, X[:, 0], config=SearchConfig(max_time=20.0, n_jobs=1))._state
    granted = []
    for look in (look_early, look_directly, go_on, look_again, go_on, look_again, go_on):
        if look is look_directly:
            with counted(seen):
                now[0] += 0.2 * slow
        before = now[0]
        look(seen, Clock.unlimited())
        granted.append(now[0] - before)
    assert seen.looks_spent == pytest.approx(now[0])
    first = sum(granted[:2]) + 0.2 * slow
    growing = 3 * seen.config.clock.growing_share * seen.config.direct_seconds  # they have little, but in any case
    assert now[0] < max(seen.config.looks_seconds, first) + growing + 0.1 * slow
    assert granted[1] >= seen.config.clock.first_least * seen.config.direct_seconds
