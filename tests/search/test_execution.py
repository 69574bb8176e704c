"""Where steps are taken: which islands together, how far ahead, and no accelerator where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from searches import SMALL, waves

from gmeql.search.config import SearchConfig
from gmeql.search.execution import Executor
from gmeql.search.island import Island
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.steps import StepTask


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


def test_an_accelerator_takes_all_islands_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from gmeql.fitters.device import batches

    monkeypatch.setattr(batches, "available", lambda: True)
    state, _ = opened()
    assert len(Executor(SearchConfig()).together(state.islands)) == 4
    assert Executor(SearchConfig(device="gpu")).together(state.islands) == state.islands


def test_an_accelerator_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from gmeql.fitters.device import batches

    monkeypatch.setattr(batches, "available", lambda: False)
    with pytest.raises(ValueError, match="device='gpu', but JAX sees no accelerator"):
        Search(*waves(), config=SearchConfig(device="gpu"))
