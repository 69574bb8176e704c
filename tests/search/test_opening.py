"""How many islands a generation has, what is known beforehand, and who is seen to meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
from searches import SMALL, parabola, waves

from gmeql.formula.parsing import parse_tree
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.execution.execution import Executor
from gmeql.search.opening import open_generation
from gmeql.search.polish.scoring import refit
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula

PLAIN = SMALL | {"symmetries": False, "direct": (), "few_islands": 3}


class OnCards(Executor):
    """Takes islands to cards that it does not have."""

    on_cards = True

    def look_for_accelerators(self, *_: Any) -> bool:
        return True


def made(**options: Any) -> SearchState:
    return Search(*waves(), config=SearchConfig(**(PLAIN | options)))._state


def sizes(state: SearchState, executor: Executor, n: int) -> list[int]:
    found = []
    for _ in range(n):
        open_generation(state, executor, Clock.unlimited())
        found.append(len(state.islands))
    return found


def test_the_processor_opens_as_many_each_time() -> None:
    state = made()
    assert sizes(state, Executor(state.config), 3) == [3, 3, 3] and state.portfolio.opened == 9


def test_on_accelerators_the_first_generations_are_small() -> None:
    state = made(device_islands=2, early_device_islands=18, later_device_islands=20)
    assert sizes(state, OnCards(state.config), 5) == [6, 6, 6, 20, 20]


def test_on_accelerators_steps_are_small_at_first_and_where_a_formula_is_exact() -> None:
    numbers = dict(device_islands=2, early_device_islands=12, later_device_islands=20, device_candidates=16,
                   later_device_candidates=64)  # fmt: skip
    state = Search(*parabola(), config=SearchConfig(**(PLAIN | numbers)))._state
    executor, seen = OnCards(state.config), []
    for _ in range(3):
        open_generation(state, executor, Clock.unlimited())
        seen += [(len(state.islands), island.config.candidates_per_step) for island in state.islands[:1]]
    state.offer(refit([parse_tree("1.5*x1**2 - 0.5*x2", ("x1", "x2"))], state.rows.polished))
    open_generation(state, executor, Clock.unlimited())
    seen += [(len(state.islands), island.config.candidates_per_step) for island in state.islands[:1]]
    assert seen == [(6, 16), (6, 16), (20, 64), (6, 16)]


def test_a_formula_seen_at_once_opens_none() -> None:
    X = np.linspace(1.0, 3.0, 40)[:, None]
    state = Search(X, 2.5 * X[:, 0] / (X[:, 0] + 1.5), config=SearchConfig(**SMALL, max_time=30.0))._state
    open_generation(state, Executor(state.config), Clock.unlimited())
    assert not state.islands and has_exact_formula(state)


def test_whoever_interrupts_is_asked_before_each_island() -> None:
    state = made()
    open_generation(state, Executor(state.config), Clock.unlimited(), lambda: len(state.islands) > 1)
    assert len(state.islands) == 2
