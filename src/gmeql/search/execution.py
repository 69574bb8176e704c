"""Where islands' steps are taken: on the threads of this process, on an accelerator, or by workers.

Workers (`workers/`) take the rest of a stage ahead, island by island. Whoever takes them, the steps are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gmeql.search.config import SearchConfig
from gmeql.search.island import Island
from gmeql.search.state import SearchState
from gmeql.search.steps import Step, take_steps
from gmeql.search.tried import TriedStructures
from gmeql.search.workers.pool import WorkerPool, find_pool


class Executor:
    """Takes steps of islands for one search."""

    def __init__(self, config: SearchConfig) -> None:
        self.config = config
        self.pool: WorkerPool | None = None
        if config.on_device:
            _require_accelerator()

    @contextmanager
    def open(self, tried: TriedStructures) -> Iterator[None]:
        """With workers, where a joblib backend has some; returns when the first is ready."""
        most = self.config.islands_per_generation
        pool = None if self.config.on_device else find_pool(self.config.n_jobs, tried, most)
        if pool is None:
            yield
            return
        try:
            pool.open()
            self.pool = pool
            yield
        finally:
            self.pool = None
            pool.close()

    def together(self, waiting: list[Island]) -> list[Island]:
        """The islands that take a step in this round: those furthest behind, on an accelerator all."""
        return waiting if self.config.on_device else waiting[: self.config.islands]

    def draw_and_fit(
        self, state: SearchState, active: list[Island], waiting: list[Island], give_up: Callable[[], bool]
    ) -> Sequence[Step | None]:
        """One step of each active island; None where time ran out while a worker had it."""
        if self.pool is None:
            tasks = [state.portfolio.task(island) for island in active]
            return take_steps(
                active, tasks, state.tried, n_threads=self.config.n_threads, on_device=self.config.on_device
            )
        self._assign_ahead(self.pool, state, waiting)
        return [self.pool.take(island, give_up) for island in active]

    def share_tried(self, state: SearchState) -> None:
        """Let all islands and workers know what each island tried."""
        for island in state.islands:
            fingerprints = island.share_tried(state.tried)
            if self.pool is not None:
                self.pool.share_tried(fingerprints)

    def _assign_ahead(self, pool: WorkerPool, state: SearchState, waiting: list[Island]) -> None:
        """Have workers take the rest of the stage, as far as the budget of candidates is sure to reach."""
        config = self.config
        goal = config.stage_ages[state.stage]
        per_step = config.island.candidates_per_step
        left = math.inf if config.max_candidates is None else config.max_candidates - state.candidates
        for first in range(0, len(waiting), config.islands):
            together = waiting[first : first + config.islands]
            steps = goal if math.isinf(left) else max(math.ceil(left / (per_step * len(together))), 0)
            for island in together:
                n = min(goal - island.age, steps)
                if n > 0 and not pool.has(island.number):
                    pool.assign(island, state.portfolio.task(island), n)
                left -= per_step * n


def _require_accelerator() -> None:
    """Refuse device="gpu" where JAX sees none."""
    from gmeql.fitters.device.batches import available  # JAX is loaded only where it is used

    if not available():
        raise ValueError(
            "device='gpu', but JAX sees no accelerator; install JAX for it (the extra jax[cuda] on NVIDIA) "
            "or use device='auto' or 'cpu'"
        )
