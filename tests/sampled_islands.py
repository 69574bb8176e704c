"""Islands on their own, with rows to evaluate on, for tests of what they draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from gmeql.fitters.cpu import fit_arrays
from gmeql.fitters.kernel.memory import BLOCK, make_work
from gmeql.fitters.kernel.tape import jacobian_one
from gmeql.fitters.programs import input_slots
from gmeql.network.architecture import Architecture
from gmeql.search.islands.candidates import Candidates
from gmeql.search.config import IslandConfig
from gmeql.search.islands.island import Island
from gmeql.search.islands.tried import TriedStructures

N_ROWS = 40


def island(network: Architecture, seed: int = 1, low: float = 0.5, **options: Any) -> Island:
    """An island on its own with rows to evaluate on."""
    made = Island(
        architecture=network, reading="identity", config=IslandConfig(**options), number=1,
        random_state=np.array([seed], np.uint64),
    )  # fmt: skip
    X = np.random.default_rng(0).uniform(low, 2.0, (N_ROWS, network.n_variables))
    made.inputs = input_slots(X)[0]
    return made


def nothing() -> TriedStructures:
    """What is known before anything was tried."""
    return TriedStructures(16)


def output(batch: Candidates, b: int, inputs: np.ndarray) -> np.ndarray:
    """What candidate b computes on every row."""
    result = np.empty(inputs.shape[1])
    jacobian_one(
        batch.programs[b],
        batch.lengths[b],
        batch.constants[b],
        0,
        inputs,
        make_work(len(inputs), BLOCK),
        result,
        np.empty((0, 0)),
    )
    return result


def fitted(host: Island, batch: Candidates) -> Candidates:
    """The batch with its constants fitted to some target, as the search does it."""
    target = np.sin(2 * host.inputs[0]) + host.inputs[0]
    result = fit_arrays(
        batch.programs, batch.lengths, batch.n_constants, batch.constants, host.inputs, target, np.ones(N_ROWS),
        max_steps=5, tolerance=1e-4,
    )  # fmt: skip
    batch.losses[:] = result.losses
    return batch
