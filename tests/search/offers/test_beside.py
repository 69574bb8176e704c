"""Looks by others beside the search: what is asked, in which order, and that the formula is there in the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from searches import run

from gmeql.formula.registration import register_operator, unregister_operator
from gmeql.search.clock import Clock
from gmeql.search.config import ClockConfig, SearchConfig
from gmeql.search.direct.methods import AT_FIRST, EARLY, LAST, LATER, NOISY
from gmeql.search.groups.table import Grouping
from gmeql.search.lookers.jobs import DirectLook, FormulaLook, Job, SymmetryLook
from gmeql.search.lookers.pool import Ticket
from gmeql.search.offers import beside
from gmeql.search.offers.beside import LooksBeside
from gmeql.search.offers.looking import Looking
from gmeql.search.offers.offering import Offering
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula


class HereAndNow:
    """Lookers that do every job at once, or leave it be, and note it."""

    def __init__(self, *, ready: int = 1, works: bool = True, failed: bool = False) -> None:
        self.jobs: list[Job] = []
        self.ranks: list[float] = []
        self.ready, self.works, self.has_failed = ready, works, failed
        self.cancelled: list[Ticket] = []
        self.started = 0

    def start(self, n: int) -> None:
        self.started = n

    def n_ready(self) -> int:
        return self.ready

    def take(self, job: Job, rank: float = 0.0) -> Ticket:
        self.jobs.append(job)
        self.ranks.append(rank)
        ticket = Ticket(job)
        if self.works:
            ticket.found.extend(job.run(lambda: False))
            ticket.is_over = True
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        self.cancelled.append(ticket)

    def names(self) -> list[str]:
        return [job.name for job in self.jobs if isinstance(job, DirectLook)]


def fraction() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(-3, 3, (300, 2))
    return X, 1 / (1 + X[:, 0] ** -4) + 1 / (1 + X[:, 1] ** -4)


def scaled() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).uniform(1, 3, (200, 3))
    return X, X[:, 0] * np.sin(X[:, 1] / X[:, 2]) + 0.1 * np.random.default_rng(2).standard_normal(200)


def state(X: np.ndarray, y: np.ndarray, **options: Any) -> SearchState:
    given = dict(max_time=4.0, n_jobs=2, lookers_patience=0.0) | options
    return Search(X, y, config=SearchConfig(**given))._state  # type: ignore[arg-type]


def watched(monkeypatch: pytest.MonkeyPatch, lookers: HereAndNow) -> HereAndNow:
    monkeypatch.setattr(beside, "shared_lookers", lambda: lookers)
    return lookers


def tended(state: SearchState, times: int) -> None:
    """As a search would, without islands, for ever in good time."""
    offering = Offering()
    with offering.open(state):
        looking = Looking(state.config, offering)
        with looking.open():
            for _ in range(times):
                looking.tend(state, Clock.unlimited())
                offering.settle(state)


def test_others_see_the_formula_and_the_front_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lookers = watched(monkeypatch, HereAndNow())
    seen = state(*fraction(), max_time=10.0)
    tended(seen, 12)
    assert has_exact_formula(seen) and seen.candidates == 0
    assert lookers.started == 1 and lookers.names()[: len(EARLY)] == list(EARLY)


def test_everything_is_asked_once_and_smaller_tables_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    lookers = watched(monkeypatch, HereAndNow())
    seen = state(*scaled())
    tended(seen, 60)
    assert seen.symmetries_done and seen.direct_done and len(seen.portfolio.tables) > 1
    looks = [job for job in lookers.jobs if isinstance(job, DirectLook)]
    of_all = [job.name for job in looks if job.table.n_columns == 3]
    assert sorted(of_all) == sorted(name for name in AT_FIRST if name != "derivatives")
    smaller = [job.name for job in looks if job.table.n_columns < 3]
    assert set(smaller) == {*NOISY, *(name for name in AT_FIRST if name != "derivatives")}
    assert seen.direct_spent >= seen.config.clock.first_share * seen.config.direct_seconds
    assert sum(isinstance(job, SymmetryLook) for job in lookers.jobs) == 1


def test_noise_is_looked_at_later_and_the_slow_ones_last(monkeypatch: pytest.MonkeyPatch) -> None:
    lookers = watched(monkeypatch, HereAndNow())
    seen = state(*scaled(), clock=ClockConfig(later_from=(0.25, 0.6)))
    seen.symmetries_done = seen.direct_done = True
    seen.elapsed = 0.3 * 4.0
    tended(seen, 20)
    assert seen.later_looks == 1 and set(lookers.names()) == set(LATER)
    seen.elapsed = 0.7 * 4.0
    tended(seen, 20)
    assert seen.later_looks == 2 and set(lookers.names()) == {*LATER, *LAST}
    assert sum(isinstance(job, FormulaLook) for job in lookers.jobs) == 2


def test_with_several_of_them_the_slow_ones_are_asked_at_once_behind_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lookers = watched(monkeypatch, HereAndNow())
    seen = state(*scaled(), n_jobs=4, clock=ClockConfig(later_from=(0.25, 0.6)))
    seen.elapsed = 0.7 * 4.0
    tended(seen, 60)
    slow = [
        rank for job, rank in zip(lookers.jobs, lookers.ranks, strict=True) if getattr(job, "name", "") == "strange"
    ]
    assert seen.later_looks == 2 and slow == [max(lookers.ranks)]


def test_with_several_of_them_symmetries_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    lookers = watched(monkeypatch, HereAndNow(works=False))
    tended(state(*scaled(), n_jobs=8), 1)
    assert isinstance(lookers.jobs[0], SymmetryLook) and lookers.started == 4
    first = lookers.ranks[: len(lookers.ranks) - lookers.ranks[::-1].index(3.0)]
    assert first == sorted(first) and len(set(first)) > 1  # all that is due at once, in the order in which it matters


@pytest.mark.parametrize(("n_jobs", "are_asked"), [(8, True), (2, False)])
def test_what_the_search_asked_in_little_time_is_asked_again_by_those_who_have_more(
    n_jobs: int, are_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookers = watched(monkeypatch, HereAndNow(works=False))
    seen = state(*scaled(), n_jobs=n_jobs, direct=("capped", "waves"))
    seen.direct_spent = 0.01
    tended(seen, 1)
    assert ("capped" in lookers.names()) == are_asked
    if are_asked:  # after those that nobody has asked yet
        assert lookers.names().index("capped") > lookers.names().index("waves")


def test_beside_accelerators_they_are_started_sooner() -> None:
    beside_cards, alone = (SearchConfig(max_time=20.0, n_jobs=16, device=device) for device in ("gpu", "cpu"))
    assert beside_cards.looked_alone_for < 0.25 * alone.looked_alone_for
    assert replace(alone, max_time=0.5).looked_alone_for < 0.5


def test_threads_are_lent_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    watched(monkeypatch, HereAndNow(works=False))
    looks = LooksBeside(SearchConfig(max_time=20.0, n_jobs=16, lookers_patience=0.0), Offering())
    lent = []
    for n in range(9):
        looks._running = [None] * n  # type: ignore[list-item]
        lent.append(looks.n_busy)
    assert lent == [0, 4, 4, 4, 4, 8, 8, 8, 8]
    alone = LooksBeside(SearchConfig(max_time=20.0, n_jobs=2, lookers_patience=0.0), Offering())
    assert alone.n_busy == 0
    alone._running = [None]  # type: ignore[list-item]
    assert alone.n_busy == 1


def test_at_the_end_nobody_looks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    lookers = watched(monkeypatch, HereAndNow(works=False))
    tended(state(*scaled()), 3)
    assert 0 < len(lookers.jobs) == len(lookers.cancelled)


def takes(seen: SearchState, elapsed: float = 1.0) -> bool:
    clock = Clock.unlimited()
    return LooksBeside(seen.config, Offering()).takes_looks(seen, Clock(clock.started - elapsed))


def test_others_look_only_where_that_is_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    watched(monkeypatch, HereAndNow())
    X, y = scaled()
    assert takes(state(X, y))
    assert not takes(state(X, y, n_jobs=1))
    assert not takes(state(X, y, max_candidates=5000))
    assert not takes(state(X, y, max_time=None))
    grouped = Search(
        X, y, config=SearchConfig(max_time=20, n_jobs=2), groups=Grouping.of(np.repeat(["a", "b"], 100))
    )._state
    assert not takes(grouped)
    register_operator("softly", lambda xp, x: xp.logaddexp(0.0, x), derivative=lambda xp, x: 1 / (1 + xp.exp(-x)))
    try:
        assert not takes(state(X, y))
    finally:
        unregister_operator("softly")
    monkeypatch.setattr(beside.multiprocessing, "parent_process", lambda: object())
    assert not takes(state(X, y))


def test_where_nothing_is_to_be_looked_for_nobody_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    watched(monkeypatch, HereAndNow())
    assert not takes(state(*scaled(), symmetries=False, direct=()))
    assert takes(state(*scaled(), symmetries=True, direct=()))
    assert takes(state(*scaled(), symmetries=False))


def test_islands_that_find_nothing_more_wait_for_others_who_look(monkeypatch: pytest.MonkeyPatch) -> None:
    watched(monkeypatch, HereAndNow())
    X, y = fraction()
    options: dict[str, Any] = dict(max_idle_rounds=1, patience=1, few_islands=1, stage_ages=(1,))
    search = Search(X, y, config=SearchConfig(max_time=60.0, n_jobs=2, device="cpu", **options))
    assert run(search).reason == "exact"


def test_cold_ones_are_waited_for_a_moment_and_not_at_all_in_a_short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    lookers = watched(monkeypatch, HereAndNow(ready=0))
    assert (
        takes(state(*scaled(), lookers_patience=1.0), elapsed=0.0) and lookers.started == 0
    )  # what is found at once needs nobody
    assert not takes(state(*scaled(), max_time=2.0)) and lookers.started == 0
    seen = state(*scaled())
    looks = LooksBeside(seen.config, Offering())
    started = Clock.unlimited().started
    assert looks.takes_looks(seen, Clock(started - 1.0)) and lookers.started == 1
    assert not looks.takes_looks(seen, Clock(started - 2.0 - seen.config.lookers_late))
    lookers.ready = 1
    assert looks.takes_looks(seen, Clock(started - 2.0 - seen.config.lookers_late))


def test_warm_ones_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lookers = watched(monkeypatch, HereAndNow(ready=1))
    seen = state(*scaled(), lookers_patience=1.0, max_time=2.0)
    looks = LooksBeside(seen.config, Offering())
    assert looks.takes_looks(seen, Clock.unlimited()) and lookers.started == 1
    assert looks._started is not None


def test_where_none_can_be_had_the_search_looks_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    watched(monkeypatch, HereAndNow(ready=0, failed=True))
    assert not takes(state(*scaled()))


def test_what_looks_exact_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    watched(monkeypatch, HereAndNow())
    seen, offering = state(*fraction(), max_time=8.0), Offering()
    hurried: list[bool] = []
    given_up: list[bool] = []

    def busy(_: SearchState, __: Sequence[Any]) -> None:
        while not offering.is_hurried() and not given_up:
            time.sleep(0.001)
        hurried.append(offering.is_hurried())

    with offering.open(seen):
        looking = Looking(seen.config, offering)
        with looking.open():
            offering.begin(busy, seen, (), may_skip=False)
            for _ in range(12):
                if not hurried:
                    looking.tend(seen, Clock.unlimited())
            given_up.append(True)
            offering.settle(seen)
    assert hurried == [True]
    assert has_exact_formula(seen)


@pytest.mark.slow
def test_a_whole_search_with_real_ones() -> None:
    X = np.random.default_rng(0).uniform(1, 5, (300, 4))
    y = (X[:, 0] - X[:, 0] * (X[:, 1] / 6) ** 2) / (X[:, 1] / 6 * np.cos(X[:, 2] - X[:, 3]) + 1)
    search = Search(X, y, config=SearchConfig(max_time=60, n_jobs=2, device="cpu"))
    assert run(search).reason == "exact"
