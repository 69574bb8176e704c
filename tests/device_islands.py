"""Islands that step on the accelerator's kernels, compiled for the processor."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from host_cuda import HostDriver

from gmeql.fitters.reference import evaluate
from gmeql.search.accelerator.advance import advance
from gmeql.search.accelerator.stage import Card
from gmeql.search.config import IslandConfig, SearchConfig
from gmeql.search.islands.island import Island
from gmeql.search.islands.steps import StepTask
from gmeql.search.search import Search
from gmeql.search.state import SearchState


def opened(n: int = 3, candidates: int = 48, **island) -> tuple[SearchState, list[Island]]:
    """A search over three columns and some islands of it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (70, 3))
    y = 1.3 * X[:, 0] ** 2 * np.cos(1.2 * X[:, 1]) + X[:, 2] / X[:, 0]
    config = SearchConfig(island=IslandConfig(candidates_per_step=candidates, capacity=60, **island), n_jobs=1)
    state = Search(X, y, config=config, seed=1)._state
    return state, [state.portfolio.open_island(state.rng) for _ in range(n)]


def advanced(islands: list[Island], state: SearchState, goal_age: int, n_cards: int = 1) -> int:
    cards = [Card(HostDriver(), bits=14) for _ in range(n_cards)]
    tasks = [state.portfolio.task(island) for island in islands]
    return advance(cards, islands, tasks, goal_age=goal_age, enough=lambda best, drawn: False)


def assert_losses_are_true(island: Island, task: StepTask, elites: Iterable[int]) -> None:
    for e in elites:
        program, length, constants = island.program_of(e)
        with np.errstate(all="ignore"):  # slopes come along
            output, _ = evaluate(program[:, :length], constants, len(constants), task.inputs)
        loss = np.average((output - task.target) ** 2, weights=task.weights)
        np.testing.assert_allclose(island.repository.losses[e], loss, rtol=1e-9, atol=1e-25)
