"""Steps of islands: draw, fit, finish the best. What threads do one step at a time, a worker does many ahead.

Within a stage islands do not know of each other, so `advance` is a function of one island and of what all had tried
when the stage began. Whoever absorbs its steps one by one ends with the very island that took them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.cpu import fit_batches
from gmeql.fitters.grouped import fit_groups, overall_losses, split_rows
from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.threads import thread_pool
from gmeql.search.islands.candidates import Candidates
from gmeql.search.islands.island import Island
from gmeql.search.islands.tried import TriedStructures

FINISHED_PER_STEP = 2
"""Best candidates of a step that are taken to convergence."""
FINISH_TOLERANCE = 1e-6
"""Relative gain of a step below which such a fit ends."""
EXHAUSTED_SHARE = 4
"""An island that draws less than its candidates over this found little new, and is closed."""


@dataclass(frozen=True)
class StepTask:
    """What an island's candidates are fitted to: inputs [S, N], target and weights [N]; and which are drawn at all."""

    inputs: NDArray[np.float64]
    target: NDArray[np.float64]
    weights: NDArray[np.float64]
    table_key: int
    """Keeps the tries of its view and reading apart from others' in the table of tried structures."""
    max_complexity: int
    screen_rows: int
    groups: NDArray[np.int64] | None = None
    """Group number of each row [N], where every group has constants of its own."""


@dataclass
class Step:
    """The fitted candidates of one step, before the island absorbs them."""

    drawn: int
    candidates: Candidates
    """All that were drawn; in a step that travelled, only those that matter to the island."""

    def absorb(self, island: Island) -> None:
        """Let the island keep the best and learn from them."""
        island.absorb(self.candidates, exhausted=self.drawn < island.config.candidates_per_step // EXHAUSTED_SHARE)


@dataclass
class TrimmedStep:
    """A step fit to travel: candidates that became elites, and what else the island needs to stand where it stood."""

    drawn: int
    random_state: NDArray[np.uint64]
    fingerprints: NDArray[np.uint64]
    kept: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, step: Step, island: Island) -> TrimmedStep:
        """The part of a step that `island`, which has drawn it and not yet absorbed it, will need."""
        good = np.flatnonzero(step.candidates.losses < island.worst)
        if step.drawn and not len(good):
            good = np.array([0])  # an island that drew in vain still learns
        rows = step.candidates.take(good)
        width = int(rows.n_constants.max(initial=0))
        return cls(
            drawn=step.drawn,
            random_state=island.random_state.copy(),
            fingerprints=step.candidates.hashes.copy(),
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
        island.tried.make_room(len(self.fingerprints))
        island.tried.add(self.fingerprints)
        kept = self.kept
        candidates = Candidates.allocate(len(kept["rows"]), island.architecture.n_connections)
        for name in ("choices", "n_constants", "complexities", "losses"):
            getattr(candidates, name)[:] = kept[name]
        width = kept["constants"].shape[1]
        candidates.weight_ids[:, :width] = kept["weight_ids"]
        candidates.constants[:, :width] = kept["constants"]
        candidates.hashes[:] = self.fingerprints[kept["rows"]]
        return Step(self.drawn, candidates)


def take_steps(
    islands: Sequence[Island],
    tasks: Sequence[StepTask],
    shared_tried: TriedStructures,
    *,
    n_threads: int,
) -> list[Step]:
    """One step of each island; the candidates of all share the threads, or each island has one to itself."""
    if not islands:
        return []
    if 1 < n_threads <= len(islands):
        alone = partial(take_steps, shared_tried=shared_tried, n_threads=1)
        both = zip(islands, tasks, strict=True)
        return [step for (step,) in thread_pool(n_threads).map(lambda one: alone([one[0]], [one[1]]), both)]
    # islands do not know of each other here, so they draw and finish side by side
    each: Any = thread_pool(n_threads).map if n_threads > 1 and len(islands) > 1 else map
    drawn: list[Candidates] = list(
        each(lambda island, task: island.draw(shared_tried, task.max_complexity, task.table_key), islands, tasks)
    )
    config = islands[0].config
    if tasks[0].groups is not None:
        for island, task, candidates in zip(islands, tasks, drawn, strict=True):
            _fit_to_groups(candidates, task, island.worst, config.max_steps, config.tolerance, n_threads)
        list(each(_finish_best, islands, tasks, drawn))
        return [Step(len(candidates.losses), candidates) for candidates in drawn]
    jobs = [
        FitJob(candidates, FitData(task.inputs, task.target, task.weights), island.worst)
        for island, task, candidates in zip(islands, tasks, drawn, strict=True)
    ]
    options: dict[str, Any] = dict(
        max_steps=config.max_steps, tolerance=config.tolerance, screen_rows=tasks[0].screen_rows
    )
    fit_batches(jobs, **options, n_threads=n_threads)
    list(each(_finish_best, islands, tasks, drawn))
    return [Step(len(candidates.losses), candidates) for candidates in drawn]


def _fit_to_groups(
    candidates: Candidates, task: StepTask, hopeless: float, max_steps: int, tolerance: float, n_threads: int
) -> None:
    """Fit candidates to every group by itself, in place; the constants left are those of the group met best."""
    assert task.groups is not None
    groups = split_rows(FitData(task.inputs, task.target, task.weights), task.groups)
    fitted = fit_groups(
        candidates, groups, max_steps=max_steps, tolerance=tolerance, hopeless=hopeless, n_threads=n_threads
    )
    candidates.losses[:] = overall_losses(fitted, groups, candidates.n_constants)
    candidates.constants[:] = fitted.leading_constants


def _finish_best(island: Island, task: StepTask, candidates: Candidates) -> None:
    """Take the step's best candidates to convergence; the others stay where their few steps led."""
    if not len(candidates.losses):
        return
    best = np.argsort(candidates.losses, kind="stable")[:FINISHED_PER_STEP]
    best = best[candidates.losses[best] < island.worst]
    if len(best):
        chosen = candidates.take(best)
        steps = island.config.finish_steps
        if task.groups is not None:
            _fit_to_groups(chosen, task, np.inf, steps, FINISH_TOLERANCE, n_threads=1)
        else:
            job = FitJob(chosen, FitData(task.inputs, task.target, task.weights), np.inf)
            fit_batches([job], max_steps=steps, tolerance=FINISH_TOLERANCE, screen_rows=None, n_threads=1)
        candidates.losses[best] = chosen.losses
        candidates.constants[best] = chosen.constants


def advance(island: Island, task: StepTask, shared_tried: TriedStructures, n_steps: int) -> list[TrimmedStep]:
    """Up to `n_steps` steps of one island, until it is finished. `island` is used up."""
    steps: list[TrimmedStep] = []
    while len(steps) < n_steps and not island.finished:
        (step,) = take_steps([island], [task], shared_tried, n_threads=1)
        steps.append(TrimmedStep.of(step, island))
        step.absorb(island)
    return steps
