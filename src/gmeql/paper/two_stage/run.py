"""A run of Algorithm 1: rounds of stage 1, then stage 2, chunk by chunk, for any number of seeds side by side.

One compiled function runs a chunk of steps; between chunks the host sees a `TwoStageProgress`, from whose `state` a run
can be taken up again. Step t of seed s uses random numbers that depend on s and t alone, so a seed's run is the same
alone, in a batch, in any chunk size and after a resume.

Shapes: S seeds, K elites, C connections, M choices, W weights, N rows, V variables, T points of a curve.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np

from gmeql.network.architecture import Architecture, as_architecture
from gmeql.network.repository import Repository
from gmeql.paper.two_stage.chunks import Chunks, chunks_for
from gmeql.paper.two_stage.config import TwoStageConfig
from gmeql.paper.two_stage.inputs import check_range, checked_configs, checked_data, checked_seeds
from gmeql.paper.two_stage.state import Info, State, TrainingProgram, initial_state, stack_knobs

Array = Any


@dataclass(frozen=True)
class Curves:
    """Training curves, one column per seed: the step numbers [T] and losses [T, S]."""

    steps: np.ndarray
    mean: np.ndarray
    lowest: np.ndarray
    best: np.ndarray


@dataclass(frozen=True)
class TwoStageResult:
    """What a run found, one row per seed.

    Attributes:
        seeds: [S].
        choices: hard structure of T*, [S, C].
        weights: the weights T* had, [S, W].
        loss: MAE of T*, [S], relaxed or hard as `best_form` says; `inf` where no instance had a finite loss.
        hard_loss: MAE of the hard structure with those weights, [S].
        found_at: step at which T* was sampled, [S].
        log_selections: T* itself, [S, C, M].
        mode: the structure that the logits make likeliest at the end, [S, C].
        mode_weights: the weights at the end, [S, W].
        curves: training curves.
    """

    architecture: Architecture
    seeds: np.ndarray
    choices: np.ndarray
    weights: np.ndarray
    loss: np.ndarray
    hard_loss: np.ndarray
    found_at: np.ndarray
    log_selections: np.ndarray
    mode: np.ndarray
    mode_weights: np.ndarray
    curves: Curves


@dataclass(frozen=True)
class RunState:
    """A run between two chunks, as plain arrays: what a checkpoint holds."""

    arrays: State
    curves: Curves

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Flat dictionary of arrays, for any array storage."""
        leaves, _ = jax.tree.flatten((self.arrays, _curve_leaves(self.curves)))
        return {f"leaf_{number:02d}": np.asarray(leaf) for number, leaf in enumerate(leaves)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> RunState:
        """The inverse of `to_arrays`."""
        blank = initial_state(Architecture(1, (("id",),)), TwoStageConfig(capacity=1), [0], "float32")
        structure = jax.tree.structure((blank, _curve_leaves(_no_curves(1))))
        names = [f"leaf_{number:02d}" for number in range(structure.num_leaves)]
        leaves = [np.asarray(arrays[name]) for name in sorted(arrays)]
        kept, curves = len(Repository._fields), len(fields(Curves))
        if sorted(arrays) == names[:-kept]:  # written before rounds could be merged: nothing was kept
            first = len(jax.tree.leaves(blank[: State._fields.index("elites")]))
            losses, *others = leaves[first : first + kept]
            leaves[-curves:-curves] = [np.full_like(losses, np.inf), *others]
        elif sorted(arrays) != names:
            raise ValueError(f"a two-stage state holds arrays {names[0]} to {names[-1]}, got {sorted(arrays)}")
        state, curve_leaves = jax.tree.unflatten(structure, leaves)
        return cls(state, Curves(*curve_leaves))


@dataclass(frozen=True)
class TwoStageProgress:
    """A run between two chunks.

    `state` resumes it (`run(..., state=progress.state)`); `result` is what it has found so far.
    """

    architecture: Architecture
    state: RunState
    step: int
    total_steps: int
    stage: int
    elapsed: float

    @property
    def done(self) -> bool:
        return self.step >= self.total_steps

    @property
    def best_loss(self) -> np.ndarray:
        """Loss of T* of each seed, [S]."""
        return np.asarray(self.state.arrays.best.loss)

    @property
    def result(self) -> TwoStageResult:
        state, best = self.state.arrays, self.state.arrays.best
        log_selections = np.asarray(best.log_selections)

        def likeliest(scores: np.ndarray) -> np.ndarray:
            choices: np.ndarray = np.argmax(np.where(self.architecture.choice_mask, scores, -np.inf), axis=-1)
            return choices

        return TwoStageResult(
            architecture=self.architecture,
            seeds=np.asarray(state.seed),
            choices=likeliest(log_selections),
            weights=np.asarray(best.weights),
            loss=np.asarray(best.loss),
            hard_loss=np.asarray(best.hard_loss),
            found_at=np.asarray(best.step),
            log_selections=log_selections,
            mode=likeliest(np.asarray(state.logits)),
            mode_weights=np.asarray(state.weights),
            curves=self.state.curves,
        )


def run(
    architecture: Architecture | str | Sequence[Sequence[str]],
    X: Array,
    y: Array,
    *,
    seeds: Sequence[int] = (0,),
    config: TwoStageConfig | Sequence[TwoStageConfig] | None = None,
    dtype: str = "float32",
    engine: str = "auto",
    state: RunState | None = None,
) -> Iterator[TwoStageProgress]:
    """Train by Algorithm 1, many seeds side by side; yields a `TwoStageProgress` after every chunk of steps.

    Args:
        architecture: an Architecture, a preset's name, or layers of operator names.
        X: data [N, V], or one table per seed [S, N, V].
        y: targets [N] or [N, n_outputs], with a leading S where X has one.
        seeds: one run each.
        config: one for all seeds, or one per seed; numbers that shape the compiled program must then agree.
        dtype: "float32" or "float64".
        engine: what trains: "jax" on any of its devices; "cuda", one kernel for all steps of a chunk, many times as fast
            on a CUDA card, for float32 and the paper's functions; "auto", that where it can.
        state: continue from an earlier `TwoStageProgress.state`.

    Raises:
        ValueError: for bad input, before anything is compiled.
    """
    seeds = checked_seeds(seeds)
    columns, targets = checked_data(X, y, len(seeds))
    architecture = as_architecture(architecture, columns.shape[1], targets.shape[1])
    configs = checked_configs(config, len(seeds))
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    if architecture.n_connections == 0:
        raise ValueError("the architecture has no connections to choose; use at least one node that is not Σ or Π")
    check_range(columns, targets, dtype)
    if state is not None:
        _check_state(state, architecture, configs[0], seeds, dtype)
    columns, targets, knobs = columns.astype(dtype), targets.astype(dtype), stack_knobs(configs, dtype)
    chunks = chunks_for(engine, architecture, configs[0].shape, dtype, knobs, columns, targets)
    return _train(architecture, chunks, seeds, configs, dtype, state)


def _train(
    architecture: Architecture,
    chunks: Chunks,
    seeds: Sequence[int],
    configs: list[TwoStageConfig],
    dtype: str,
    resumed: RunState | None,
) -> Iterator[TwoStageProgress]:
    config = configs[0]
    refreshes = any(each.refresh_elites for each in configs)
    hard_best = any(each.best_form == "hard" for each in configs)
    state = initial_state(architecture, config, seeds, dtype) if resumed is None else resumed.arrays
    curves = _no_curves(len(seeds), dtype) if resumed is None else resumed.curves
    done = int(np.max(state.step))
    start = time.perf_counter()
    for chunk in config.chunks:
        if chunk.first < done:
            continue
        program = TrainingProgram(architecture, config.shape, dtype, refreshes, hard_best, chunk.steps)
        state, info = chunks(program, chunk, state)
        done = chunk.first + chunk.steps
        curves = _extend(curves, info, chunk.first, config.curve_every)
        elapsed = time.perf_counter() - start
        yield TwoStageProgress(architecture, RunState(state, curves), done, config.total_steps, chunk.stage, elapsed)


def _no_curves(count: int, dtype: str = "float32") -> Curves:
    blank = np.zeros((0, count), dtype)
    return Curves(np.zeros(0, np.int64), blank, blank, blank)


def _curve_leaves(curves: Curves) -> tuple[np.ndarray, ...]:
    return tuple(getattr(curves, field.name) for field in fields(Curves))


def _extend(curves: Curves, info: Info, first: int, every: int) -> Curves:
    steps = first + every * np.arange(1, info.mean.shape[1] + 1)
    return Curves(
        np.concatenate([curves.steps, steps]),
        *(np.concatenate([old, new.T]) for old, new in zip(_curve_leaves(curves)[1:], info, strict=True)),
    )


def _check_state(
    state: RunState, architecture: Architecture, config: TwoStageConfig, seeds: list[int], dtype: str
) -> None:
    expected = initial_state(architecture, config, seeds, dtype)
    for wanted, given in zip(jax.tree.leaves(expected), jax.tree.leaves(state.arrays), strict=True):
        if wanted.shape != given.shape or wanted.dtype != given.dtype:
            raise ValueError(
                f"state belongs to another run: an array is {given.dtype}{given.shape} where this architecture, config, "
                f"seeds and dtype need {wanted.dtype}{wanted.shape}"
            )
    if not np.array_equal(expected.seed, state.arrays.seed):
        raise ValueError(f"state belongs to seeds {np.asarray(state.arrays.seed).tolist()}, got {seeds}")
    steps = np.unique(np.asarray(state.arrays.step))
    starts = {chunk.first for chunk in config.chunks} | {config.total_steps}
    if len(steps) != 1 or int(steps[0]) not in starts:
        raise ValueError(f"state stands at step {steps.tolist()}, which is no chunk boundary of this config")
