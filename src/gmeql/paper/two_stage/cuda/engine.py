"""Chunks of steps on a CUDA card: a block trains a seed, and nothing leaves the card until the chunk is over."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gmeql.fitters.cuda import driver as cards
from gmeql.fitters.cuda.driver import Driver
from gmeql.network.architecture import Architecture
from gmeql.network.repository import Repository
from gmeql.paper.two_stage.config import TwoStageConfig
from gmeql.paper.two_stage.cuda.network import lacks
from gmeql.paper.two_stage.cuda.source import KNOB_ORDER, RUN, THREADS, block_bytes, source
from gmeql.paper.two_stage.state import Best, Info, Knobs, Moments, State, TrainingProgram, item_shape

LARGEST_BLOCK = 227 * 1024
"""Shared memory that a block may have on cards since 2022; earlier ones have less and say so when they are asked."""


def why_not(architecture: Architecture, config: TwoStageConfig, dtype: str) -> str:
    """Why a run cannot train here; empty where it can."""
    if dtype != "float32":
        return f"the kernel computes in float32, the run in {dtype}"
    missing = lacks(architecture)
    if missing:
        return f"the kernel has no {', '.join(missing)}"
    if block_bytes(architecture, config) > LARGEST_BLOCK:
        return "the network and its elites do not fit into a block's memory"
    return cards.why_not()


class CudaSteps:
    """Steps of many seeds on one card; tables and knobs stay there."""

    def __init__(self, driver: Driver, knobs: Knobs, columns: np.ndarray, targets: np.ndarray) -> None:
        self.driver, self.rows = driver, columns.shape[2]
        self.known: dict[str, tuple[np.ndarray, Any]] = {}
        """What the last chunk left, here, where nobody may change it, and there: it need not be sent again."""
        numbers = np.stack([np.asarray(getattr(knobs, name), np.float32) for name in KNOB_ORDER], axis=1)
        self.fixed = {
            "columns": driver.put(columns),
            "targets": driver.put(targets),
            "knobs": driver.put(numbers),
            "rank_weights": driver.put(np.asarray(knobs.rank_weights, np.float32)),
        }

    def __call__(self, program: TrainingProgram, stage2: bool, state: State) -> tuple[State, Info]:
        """The state after `program.steps` steps, and the points of the curves."""
        architecture, config = program.architecture, program.config
        given = _arrays(state)
        seeds, points = len(given["seed"]), program.steps // config.curve_every
        room = (config.capacity + config.samples_per_step) * math.prod(item_shape(architecture, config))
        sent = {name: self._sent(name, array) for name, array in given.items()}
        there = sent | self.fixed
        there["pool"] = self.driver.zeros(4 * seeds * room)
        there["curves"] = self.driver.put(np.zeros((seeds, max(points, 1), 3), np.float32))
        run = np.zeros(1, RUN)
        for name, array in there.items():
            run[name] = self.driver.pointer(array)
        run["n_seeds"], run["n_rows"], run["n_steps"], run["stage2"] = seeds, self.rows, program.steps, stage2
        run["curve_every"] = config.curve_every
        self.driver.launch(
            source(architecture, config),
            "steps",
            blocks=seeds,
            threads=THREADS,
            shared=block_bytes(architecture, config),
            arguments=(self.driver.put(run),),
        )
        curves = self.driver.get(there["curves"])[:, :points]
        found = {name: self.driver.get(there[name]) for name in given if name != "seed"}
        for array in found.values():
            array.flags.writeable = False
        self.known = {name: (array, sent[name]) for name, array in found.items()}
        return _with_arrays(state, found), Info(*np.moveaxis(curves, 2, 0))

    def _sent(self, name: str, array: np.ndarray) -> Any:
        here, there = self.known.get(name, (None, None))
        return there if here is array else self.driver.put(array)


def _arrays(state: State) -> dict[str, np.ndarray]:
    """What the kernel reads and writes of a state, under its names."""
    named: dict[str, Any] = {name: getattr(state, name) for name in ("seed", "step", "age", "logits", "weights")}
    for moments in ("online_logits", "online_weights"):
        named |= {f"{moments}_{name}": array for name, array in getattr(state, moments)._asdict().items()}
    named |= {f"offline_{name}": array for name, array in state.offline_logits._asdict().items()}
    losses, marks, items = state.elites
    named |= {"elite_losses": losses, "elite_marks": marks, "elite_items": items}
    named |= {f"best_{name}": getattr(state.best, name) for name in ("loss", "log_selections", "weights", "step")}
    return {name: np.ascontiguousarray(array) for name, array in named.items()}


def _with_arrays(state: State, found: dict[str, np.ndarray]) -> State:
    """The state with what the kernel wrote."""
    best = Best(
        found["best_loss"],
        state.best.hard_loss,
        found["best_log_selections"],
        found["best_weights"],
        found["best_step"],
    )
    return state._replace(
        step=found["step"],
        age=found["age"],
        logits=found["logits"],
        weights=found["weights"],
        online_logits=Moments(found["online_logits_mean"], found["online_logits_square"]),
        online_weights=Moments(found["online_weights_mean"], found["online_weights_square"]),
        offline_logits=Moments(found["offline_mean"], found["offline_square"]),
        elites=Repository(found["elite_losses"], found["elite_marks"], found["elite_items"]),
        best=best,
    )
