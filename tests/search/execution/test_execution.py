"""Where steps are taken: which islands together, how far ahead, and no accelerator where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from searches import SMALL, waves

from gmeql.fitters.cuda.driver import AcceleratorError
from gmeql.formula.nodes import Call, Variable
from gmeql.search.execution import execution
from gmeql.search.accelerator import cards
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.execution.execution import Executor
from gmeql.search.groups.table import Grouping
from gmeql.search.islands.island import Island
from gmeql.search.polish.scoring import Scored
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.islands.steps import StepTask


class Ledger:
    """A pool that only writes down what it is asked for."""

    def __init__(self, has: set[int] | None = None) -> None:
        self.known = has or set()
        self.assigned: dict[int, int] = {}
        self.shared: list[int] = []

    def has(self, number: int) -> bool:
        return number in self.known

    def assign(self, island: Island, task: StepTask, n_steps: int) -> None:
        self.assigned[island.number] = n_steps

    def take(self, island: Island, give_up: Any) -> None:
        return None

    def share_tried(self, fingerprints: np.ndarray) -> None:
        self.shared.append(len(fingerprints))


def opened(n: int = 6, **options: Any) -> tuple[SearchState, Executor]:
    state = Search(*waves(), config=SearchConfig(**(SMALL | options)))._state
    state.islands = [state.portfolio.open_island(state.rng) for _ in range(n)]
    return state, Executor(state.config)


def assigned(state: SearchState, executor: Executor, ledger: Ledger) -> list[int]:
    executor.pool = ledger  # type: ignore[assignment]
    waiting = state.behind()
    steps = executor.draw_and_fit(state, executor.together(waiting), waiting, lambda: False)
    assert list(steps) == [None] * len(executor.together(waiting))
    return [ledger.assigned.get(island.number, 0) for island in state.islands]


def test_workers_get_the_rest_of_the_stage() -> None:
    state, executor = opened(stage_ages=(7, 9))
    state.islands[1].age = 3
    state.islands[2].age = 7
    assert assigned(state, executor, Ledger()) == [7, 4, 0, 7, 7, 7]
    assert assigned(state, executor, Ledger({state.islands[0].number})) == [0, 4, 0, 7, 7, 7]


def test_workers_get_no_more_than_the_budget_is_sure_to_reach() -> None:
    """Three steps each of the four islands that go together are 12 · 128 candidates; nothing is left for the others."""
    state, executor = opened(stage_ages=(7,), max_candidates=12 * 128)
    assert assigned(state, executor, Ledger()) == [3, 3, 3, 3, 0, 0]
    state.candidates = 12 * 128 - 1
    assert assigned(state, executor, Ledger()) == [1, 1, 1, 1, 0, 0]


def test_all_hear_of_what_was_tried() -> None:
    state, executor = opened(n=3)
    executor.pool = ledger = Ledger()  # type: ignore[assignment]
    state.islands[0].draw(state.tried, 60, 0)
    drawn = len(state.islands[0].tried.fingerprints)
    executor.share_tried(state)
    assert ledger.shared == [drawn, 0, 0] and int(state.tried.counts.sum()) == drawn > 0


# --- accelerators -------------------------------------------------------------------------------------------------------


class TaughtCard:
    """Notes what it is told of structures tried elsewhere, and tells of one of its own."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def learn(self, fingerprints: np.ndarray, counts: np.ndarray) -> None:
        self.heard.append(len(fingerprints))

    def known(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([7], np.uint64), np.array([2], np.uint8)


TAUGHT = TaughtCard()


class Cards:
    """Stand-ins: how many candidates a stage draws, or the failure that ends it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, drawn: int = 100, error: str = "") -> None:
        def advance(cards, islands, tasks, *, goal_age, enough):
            if error:
                raise AcceleratorError(error)
            enough(np.array([island.best for island in islands]), drawn)
            return drawn

        monkeypatch.setattr(execution, "required_cards", lambda: [TAUGHT])
        monkeypatch.setattr(execution, "advance", advance)


def test_an_accelerator_takes_all_islands_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Cards(monkeypatch)
    state, _ = opened()
    assert len(Executor(SearchConfig()).together(state.islands)) == 4
    executor = Executor(SearchConfig(device="gpu"))
    assert executor.together(state.islands) == state.islands and executor.takes_stages(state, state.islands)
    assert executor.advance(state, state.islands, lambda: False) == 100 and executor.on_cards


def test_cards_hear_once_of_what_was_tried_and_tell_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    Cards(monkeypatch)
    TAUGHT.heard.clear()
    state, _ = opened()
    state.tried.add(np.array([5, 5, 9], np.uint64))
    executor = Executor(SearchConfig(device="gpu"))
    for _ in range(2):
        executor.advance(state, state.islands, lambda: False)
    assert TAUGHT.heard == [2]
    executor.collect_tried(state)
    keys, counts = state.tried.known()
    assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == {5: 2, 9: 1, 7: 2}


def test_groups_with_constants_of_their_own_stay_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    Cards(monkeypatch)
    state, _ = opened()
    executor = Executor(SearchConfig(device="gpu"))
    assert executor.takes_stages(state, state.islands)
    state.rows = replace(state.rows, groups=Grouping.of(np.arange(len(state.rows.y)) % 2))
    assert not executor.takes_stages(state, state.islands)


def test_what_an_accelerator_cannot_hold_stays_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    Cards(monkeypatch)
    monkeypatch.setattr(execution, "can_hold", lambda island: False)
    state, _ = opened()
    assert not Executor(SearchConfig(device="gpu")).takes_stages(state, state.islands)


def test_a_card_that_fails_is_given_up_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    Cards(monkeypatch, error="out of memory")
    state, _ = opened()
    executor = Executor(SearchConfig(device="gpu"))
    with pytest.warns(RuntimeWarning, match="the accelerator failed .out of memory.; the search goes on"):
        assert executor.advance(state, state.islands, lambda: False) == 0
    assert not executor.on_cards


class Going:
    """Stands for a generation: one island's loss falls."""

    error = ""

    def __init__(self, cards, islands, tasks, *, ages, units, enough, n_whole) -> None:
        assert ages == (8, 18) and n_whole == 16 and len(units) == len(tasks) == len(islands)
        assert not enough(np.full(len(islands), 1.0), 50) and enough(np.zeros(len(islands)), 50)

    def fetch(self) -> int:
        if self.error:
            raise AcceleratorError(self.error)
        return 50


def test_accelerators_take_generations_where_time_is_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    Cards(monkeypatch)
    monkeypatch.setattr(execution, "Generation", Going)
    state, _ = opened()
    executor = Executor(SearchConfig(device="gpu", max_time=60))
    assert executor.takes_generations(state)
    generation = executor.start(state, state.islands, (8, 18), lambda: False)
    assert generation is not None and executor.fetch(generation) == 50 and executor.on_cards
    executor.processor_rate = 60.0
    executor.keep_if_faster(70, 1.0)
    assert executor.on_cards
    executor.keep_if_faster(50, 1.0)
    assert not executor.on_cards  # the processor is faster
    for config in (
        SearchConfig(device="gpu", max_candidates=100),
        SearchConfig(max_time=60, device="cpu"),
        SearchConfig(device="gpu", max_time=60, loss="huber"),
    ):
        assert not Executor(config).takes_generations(state)


def test_a_generation_that_fails_gives_up_the_card_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_, **__) -> None:
        raise AcceleratorError("full")

    Cards(monkeypatch)
    state, _ = opened()
    executor = Executor(SearchConfig(device="gpu", max_time=60))
    monkeypatch.setattr(execution, "Generation", type("Failing", (Going,), {"error": "gone"}))
    generation = executor.start(state, state.islands, (8, 18), lambda: False)
    assert generation is not None
    with pytest.warns(RuntimeWarning, match="the accelerator failed .gone."):
        assert executor.fetch(generation) == 0
    assert not executor.on_cards
    executor = Executor(SearchConfig(device="gpu", max_time=60))
    monkeypatch.setattr(execution, "Generation", failing)
    with pytest.warns(RuntimeWarning, match="the accelerator failed .full."):
        assert executor.start(state, state.islands, (8, 18), lambda: False) is None
    assert not executor.on_cards


def test_auto_takes_a_card_when_it_is_ready_and_keeps_it_only_while_it_is_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ready:
        cards: ClassVar = [TaughtCard()]
        given_back = 0

        @staticmethod
        def is_thinkable() -> bool:
            return True

        def ready(self) -> list[TaughtCard]:
            return self.cards

        def give_back(self) -> None:
            type(self).given_back += 1

    Cards(monkeypatch)
    monkeypatch.setattr(execution, "Preparation", Ready)
    state, _ = opened()
    state.candidates = 1_000_000
    clock = Clock.start(SearchConfig(max_time=60), elapsed=5.0)
    executor = Executor(SearchConfig(max_time=60))
    executor.look_for_accelerators(state, clock)
    assert not executor.on_cards  # being made ready
    executor.look_for_accelerators(state, clock)
    assert executor.on_cards and executor.processor_rate == pytest.approx(200_000, rel=0.1)
    executor.processor_rate = 1e12
    executor.advance(state, state.islands, lambda: False)
    assert not executor.on_cards and Ready.given_back == 1  # the processor is faster
    executor.look_for_accelerators(state, clock)
    assert not executor.on_cards

    reproducible = Executor(SearchConfig(max_candidates=1000))
    for _ in range(2):
        reproducible.look_for_accelerators(state, clock)
    assert not reproducible.on_cards


def test_a_quick_search_never_looks_for_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError

    monkeypatch.setattr(execution, "Preparation", refuse)
    state, _ = opened()
    executor = Executor(SearchConfig(max_time=60))
    executor.look_for_accelerators(state, Clock.start(SearchConfig(max_time=60)))
    assert executor.preparation is None


def test_an_accelerator_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "why_not", lambda: "no CUDA device was found")
    with pytest.raises(ValueError, match="device='gpu', but no CUDA device was found; use device='auto' or 'cpu'"):
        Search(*waves(), config=SearchConfig(device="gpu"))


def test_where_time_is_the_budget_every_thread_has_an_island() -> None:
    state, executor = opened(n=9, n_jobs=6)
    assert len(executor.together(state.islands)) == 6
    executor.n_lent = 1
    assert executor.n_threads == 5 and len(executor.together(state.islands)) == 5
    executor.n_lent = 99
    assert executor.n_threads == 1 and len(executor.together(state.islands)) == state.config.islands
    limited, executor = opened(n=9, n_jobs=6, max_candidates=10_000)
    assert len(executor.together(limited.islands)) == limited.config.islands


def test_another_exact_island_ends_no_step_where_the_front_has_an_exact_formula() -> None:
    """That one waits for a shorter twin: every step would end with it, on an accelerator after a moment."""
    state, executor = opened(2)
    loss = state.rows.polished.floor
    enough = executor._enough(state, state.islands, lambda: False)
    assert enough(np.array([np.inf, 0.0]), 10) and not enough(np.array([np.inf, 1.0]), 10)
    state.offer([Scored(Call("sin", (Variable(0),)), loss, -np.inf)])
    assert state.rows.polished.is_exact(state.leaderboard.best.loss)
    assert not enough(np.array([np.inf, 0.0]), 10)
    assert executor._enough(state, state.islands, lambda: True)(np.array([np.inf, np.inf]), 10)


def test_what_looked_exact_and_was_not_makes_others_doubted() -> None:
    state, executor = opened(2)
    near = (state.config.front.near_exact * state.rows.polished.spread) ** 2
    (unit, *_) = units = np.array([state.portfolio.unit(island) for island in state.islands])
    assert executor._enough(state, state.islands, lambda: False)(0.5 * near / units, 10)
    executor.doubt(0.5 * near)
    enough = executor._enough(state, state.islands, lambda: False)
    assert not enough(0.1 * near / units, 10) and enough(np.array([0.004 * near / unit, np.inf]), 10)
    executor.doubt(near)  # less doubtful than what is known
    assert executor.doubted == 0.005 * near
