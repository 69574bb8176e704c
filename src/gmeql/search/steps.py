"""Steps of islands: draw, fit, finish the best. What threads do one step at a time, a worker does many ahead.

Within a rung islands do not know of each other, so ``advance`` is a function of one island and of what was known when
the rung began. Whoever absorbs its steps one by one ends with the very island that took them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.search.island import Batch, Island, Tries


@dataclass(frozen=True)
class Ground:
    """What an island's candidates are fitted to: inputs [S, N], target and weights [N]; and which are drawn at all."""

    inputs: np.ndarray
    target: np.ndarray
    weights: np.ndarray
    salt: int
    """Its reading's own corner of the table of tried structures."""
    max_complexity: int
    screen_rows: int


@dataclass
class Step:
    """The fitted candidates of one step, before the island absorbs them."""

    drawn: int
    batch: Batch
    """All that were drawn; after ``trimmed`` only those that matter to the island."""

    def absorb(self, island: Island) -> None:
        island.absorb(self.batch, exhausted=self.drawn < island.config.candidates_per_step // 4)


@dataclass
class TrimmedStep:
    """A step fit to travel: candidates that became elites, and what else the island needs to stand where it stood."""

    drawn: int
    random_state: np.ndarray
    fingerprints: np.ndarray
    kept: dict[str, np.ndarray]

    @classmethod
    def of(cls, step: Step, island: Island) -> TrimmedStep:
        """``island`` has drawn the step and not yet absorbed it."""
        batch = step.batch
        good = np.flatnonzero(batch.losses < island.worst)
        if step.drawn and not len(good):
            good = np.array([0])  # an island that drew in vain still learns
        rows = batch.take(good)
        width = int(rows.n_constants.max(initial=0))
        return cls(
            drawn=step.drawn,
            random_state=island.random_state.copy(),
            fingerprints=batch.hashes.copy(),
            kept={
                "rows": good.astype(np.int32),
                "choices": rows.choices.astype(np.int16),
                "n_constants": rows.n_constants.astype(np.int16),
                "weight_ids": rows.weight_ids[:, :width].astype(np.int16),
                "constants": rows.constants[:, :width].copy(),
                "complexities": rows.complexities.astype(np.int32),
                "losses": rows.losses,
            },
        )

    def replay(self, island: Island) -> Step:
        """The step as the island would have taken it itself."""
        island.random_state[:] = self.random_state
        island.own.make_room(len(self.fingerprints))
        island.own.add(self.fingerprints)
        kept = self.kept
        batch = Batch.allocate(len(kept["rows"]), island.architecture.n_connections)
        for name in ("choices", "n_constants", "complexities", "losses"):
            getattr(batch, name)[:] = kept[name]
        width = kept["constants"].shape[1]
        batch.weight_ids[:, :width] = kept["weight_ids"]
        batch.constants[:, :width] = kept["constants"]
        batch.hashes[:] = self.fingerprints[kept["rows"]]
        return Step(self.drawn, batch)


def take_steps(
    islands: Sequence[Island], grounds: Sequence[Ground], known: Tries, *, n_threads: int, on_device: bool = False
) -> list[Step]:
    """One step of each island; the candidates of all share the threads, or the accelerator."""
    from gmeql.fitters.cpu import fit_batches, thread_pool

    if not islands:
        return []
    # islands do not know of each other here, so they draw and finish side by side
    each = thread_pool(n_threads).map if n_threads > 1 and len(islands) > 1 else map
    batches = list(
        each(lambda island, ground: island.draw(known, ground.max_complexity, ground.salt), islands, grounds)
    )
    config = islands[0].config
    jobs = [
        (batch, ground.inputs, ground.target, ground.weights, island.worst)
        for island, ground, batch in zip(islands, grounds, batches, strict=True)
    ]
    options: dict[str, Any] = dict(
        max_steps=config.max_steps, tolerance=config.tolerance, screen_rows=grounds[0].screen_rows
    )
    if on_device:
        from gmeql.fitters import device

        device.fit_batches(jobs, **options)
    else:
        fit_batches(jobs, **options, n_threads=n_threads)
    list(each(_finish_best, islands, grounds, batches))
    return [Step(len(batch.losses), batch) for batch in batches]


def _finish_best(island: Island, ground: Ground, batch: Batch) -> None:
    """Take the step's best candidates to convergence; the others stay where their few steps led."""
    from gmeql.fitters.cpu import fit_batches

    if not len(batch.losses):
        return
    best = np.argsort(batch.losses, kind="stable")[:2]
    best = best[batch.losses[best] < island.worst]
    if len(best):
        chosen = batch.take(best)
        fit_batches([(chosen, ground.inputs, ground.target, ground.weights, np.inf)],
                    max_steps=island.config.finish_steps, tolerance=1e-6, screen_rows=None, n_threads=1)  # fmt: skip
        batch.losses[best] = chosen.losses
        batch.constants[best] = chosen.constants


def advance(island: Island, ground: Ground, known: Tries, n_steps: int) -> list[TrimmedStep]:
    """Up to ``n_steps`` steps of one island, until it is finished. ``island`` is used up."""
    steps: list[TrimmedStep] = []
    while len(steps) < n_steps and not island.finished:
        (step,) = take_steps([island], [ground], known, n_threads=1)
        steps.append(TrimmedStep.of(step, island))
        step.absorb(island)
    return steps
