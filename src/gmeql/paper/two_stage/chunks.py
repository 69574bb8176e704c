"""A chunk of steps of many seeds: by JAX on any of its devices, or by one CUDA kernel where there is a card.

Both take the same steps with the same random numbers and differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.fitters.cuda import driver as cards
from gmeql.network.architecture import Architecture
from gmeql.paper import relaxed
from gmeql.paper.two_stage import cuda
from gmeql.paper.two_stage.config import Chunk, TwoStageConfig
from gmeql.paper.two_stage.state import Info, Knobs, State, TrainingProgram
from gmeql.paper.two_stage.step import choose, initialise, step

Array = Any
Chunks = Callable[[TrainingProgram, Chunk, State], tuple[State, Info]]
ENGINES = ("auto", "jax", "cuda")
"""What trains: "auto" is "cuda" where it can, else "jax"."""
COMPILATIONS = [0]
"""How many chunks were traced in this process; a test bounds it."""


def chunks_for(
    engine: str,
    architecture: Architecture,
    config: TwoStageConfig,
    dtype: str,
    knobs: Knobs,
    columns: np.ndarray,
    targets: np.ndarray,
) -> Chunks:
    """What runs the chunks of a run; ValueError for an engine that does not exist or cannot run it."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    reason = "" if engine == "jax" else cuda.why_not(architecture, config, dtype)
    if engine == "cuda" and reason:
        raise ValueError(f'engine "cuda" cannot train this: {reason}; use engine="auto"')
    if engine == "jax" or reason:
        return jax_chunks(dtype, knobs, columns, targets)
    return cuda_chunks(cards.drivers()[0], knobs, columns, targets)


def jax_chunks(dtype: str, knobs: Knobs, columns: np.ndarray, targets: np.ndarray) -> Chunks:
    """Chunks as one compiled JAX program each, on JAX's first device."""
    with jax.enable_x64(dtype == "float64"):
        columns, targets, knobs = jax.device_put((columns, targets, knobs))

    def run(program: TrainingProgram, chunk: Chunk, state: State) -> tuple[State, Info]:
        with jax.enable_x64(dtype == "float64"):
            state, info = _compiled_chunk(program)(knobs, columns, targets, chunk.fresh, chunk.stage == 2, state)
            return state, jax.tree.map(np.asarray, info)  # waits for the chunk

    return run


def cuda_chunks(driver: cards.Driver, knobs: Knobs, columns: np.ndarray, targets: np.ndarray) -> Chunks:
    """Chunks as one kernel each; what happens once a chunk is JAX's, on the processor."""
    steps = cuda.CudaSteps(driver, knobs, columns, targets)
    host = jax.local_devices(backend="cpu")[0]

    def run(program: TrainingProgram, chunk: Chunk, state: State) -> tuple[State, Info]:
        begin, end = _compiled_ends(program)
        with jax.default_device(host):
            if chunk.fresh:
                state = jax.tree.map(np.asarray, begin(knobs, chunk.stage == 2, state))
            state, info = steps(program, chunk.stage == 2, state)
            best = state.best  # alone: elites are large, and all they would do is travel
            loss = np.asarray(end(columns, targets, best.log_selections, best.weights))
            return state._replace(best=best._replace(hard_loss=loss)), info

    return run


def _chunk_of_one(
    program: TrainingProgram, knobs: Knobs, columns: Array, targets: Array, fresh: Array, stage2: Array, state: State
) -> tuple[State, Info]:
    """Run `program.steps` steps of one seed, from fresh parameters if `fresh`; also bring T*'s hard loss up to date."""
    COMPILATIONS[0] += 1
    state = choose(fresh, initialise(program, knobs, stage2, state), state)
    one = partial(step, program, knobs, columns, targets, stage2)
    state, info = jax.lax.scan(lambda carry, _: one(carry), state, None, length=program.steps)
    every = program.config.curve_every
    info = jax.tree.map(lambda curve: curve[every - 1 :: every], info)
    hard = _hard_loss(program, columns, targets, state.best.log_selections, state.best.weights)
    return state._replace(best=state.best._replace(hard_loss=hard)), info


def _hard_loss(
    program: TrainingProgram, columns: Array, targets: Array, log_selections: Array, weights: Array
) -> Array:
    """The loss of T*'s hard structure."""
    choices = relaxed.choices_of(program.architecture, log_selections)
    hard = relaxed.hard_selections(program.architecture, choices, program.dtype)
    loss = relaxed.mean_absolute_error(program.architecture, hard, weights, columns, targets)
    return jnp.where(jnp.isfinite(loss), loss, jnp.inf)


@lru_cache(maxsize=64)
def _compiled_chunk(program: TrainingProgram) -> Any:
    """The chunk over all seeds: the one place where seeds become a batch axis."""
    return jax.jit(jax.vmap(partial(_chunk_of_one, program), in_axes=(0, 0, 0, None, None, 0)))


@lru_cache(maxsize=64)
def _compiled_ends(program: TrainingProgram) -> tuple[Any, Any]:
    """What comes before the steps of a fresh chunk and after those of any, over all seeds."""
    begin = jax.jit(jax.vmap(partial(initialise, program), in_axes=(0, None, 0)))
    return begin, jax.jit(jax.vmap(partial(_hard_loss, program)))
