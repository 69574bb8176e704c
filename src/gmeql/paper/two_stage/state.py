"""What a run of Algorithm 1 carries: the knobs of each seed, the state of its training, what a compiled program fixes.

Shapes: S seeds, K elites, C connections, M choices, W weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from gmeql.network import repository
from gmeql.network.architecture import Architecture
from gmeql.network.repository import Repository
from gmeql.paper.two_stage.config import TwoStageConfig

Array = Any


class Knobs(NamedTuple):
    """The numbers that may differ from seed to seed of one compiled run, each a scalar (batched: [S]).

    `rank_weights` [K] are the cumulative weights by which elites are drawn (`repository.power_law`).
    """

    rank_weights: Array
    worst_up: Array
    resample_fraction: Array
    bernoulli: Array
    temperature: Array
    final_temperature: Array
    anneal_elites: Array
    stage2_steps: Array
    logits_rate: Array
    weights_rate: Array
    final_weights_rate: Array
    offline_rate: Array
    logits_scale: Array
    weights_mean: Array
    weights_scale: Array
    gradient_clip: Array
    zero_entries: Array
    epsilon_hat: Array
    average_choices: Array
    merge_rounds: Array
    fill_first: Array
    use_elites: Array
    use_offline: Array
    refresh_elites: Array
    hard_best: Array
    squared_difference: Array


class Moments(NamedTuple):
    """Adam's running mean and mean square of a gradient."""

    mean: Array
    square: Array


class Best(NamedTuple):
    """T*: the instance of the lowest loss ever sampled, with the weights it had then.

    Attributes:
        loss: MAE when it was sampled, in the form by which it is the best (`best_form`).
        hard_loss: MAE of its hard structure with the same weights (brought up to date at the end of a chunk).
        log_selections: [C, M].
        weights: [W].
        step: when it was sampled.
    """

    loss: Array
    hard_loss: Array
    log_selections: Array
    weights: Array
    step: Array


class State(NamedTuple):
    """All that a run carries from step to step, one seed (batched: leading axis S).

    Attributes:
        seed: uint32, the source of its randomness.
        step: steps done since the run began.
        age: steps done since the parameters were last initialised.
        logits: [C, M].
        weights: [W].
        online_logits, online_weights, offline_logits: Adam's moments.
        elites: repository of log-selections [K, C, M] and what `item_shape` adds.
        best: T*.
        kept: the best of the rounds of stage 1 that are over, where each starts with an empty repository.
    """

    seed: Array
    step: Array
    age: Array
    logits: Array
    weights: Array
    online_logits: Moments
    online_weights: Moments
    offline_logits: Moments
    elites: Repository
    best: Best
    kept: Repository


class Info(NamedTuple):
    """What a step reports: mean and lowest loss of its instances, and the lowest so far."""

    mean: Array
    lowest: Array
    best: Array


@dataclass(frozen=True)
class TrainingProgram:
    """What is fixed when a chunk is compiled.

    `refreshes` and `hard_best` say whether any seed asks for the evaluations that these take.
    """

    architecture: Architecture
    config: TwoStageConfig
    dtype: str
    refreshes: bool
    hard_best: bool
    steps: int

    @property
    def mask(self) -> np.ndarray:
        return self.architecture.choice_mask

    @property
    def shape(self) -> tuple[int, int]:
        return self.architecture.n_connections, self.architecture.max_choices


def item_shape(architecture: Architecture, config: TwoStageConfig) -> tuple[int, int]:
    """What an elite is kept as: log-selections [C, M] and, where it has weights of its own, further rows that hold them."""
    choices = architecture.max_choices
    own = -(-architecture.n_weights // choices) if config.elite_weights else 0
    return architecture.n_connections + own, choices


def initial_state(architecture: Architecture, config: TwoStageConfig, seeds: Sequence[int], dtype: str) -> State:
    """State before the first step, as NumPy arrays with leading axis S."""
    shape = (architecture.n_connections, architecture.max_choices)
    count = len(seeds)

    def zeros(*tail: int) -> np.ndarray:
        return np.zeros((count, *tail), dtype)

    def blank() -> Repository:
        one = repository.empty(config.capacity, np.zeros(item_shape(architecture, config), dtype), np, dtype)
        return Repository(*(np.broadcast_to(leaf, (count, *leaf.shape)) for leaf in one))

    weights = (architecture.n_weights,)
    infinite = np.full(count, np.inf, dtype)
    counter = np.zeros(count, np.int32)
    return State(
        seed=np.asarray(seeds, np.uint32),
        step=counter,
        age=counter,
        logits=zeros(*shape),
        weights=zeros(*weights),
        online_logits=Moments(zeros(*shape), zeros(*shape)),
        online_weights=Moments(zeros(*weights), zeros(*weights)),
        offline_logits=Moments(zeros(*shape), zeros(*shape)),
        elites=blank(),
        best=Best(infinite, infinite, zeros(*shape), zeros(*weights), counter),
        kept=blank(),
    )


KNOB_SOURCES: dict[str, Callable[[TwoStageConfig], Any]] = {
    "rank_weights": lambda c: repository.power_law(c.capacity, c.power_law_exponent, c.draw_law),
    "worst_up": lambda c: c.draw_law == "released",
    "bernoulli": lambda c: c.resample_law == "bernoulli",
    "final_temperature": lambda c: c.temperature if c.final_temperature is None else c.final_temperature,
    "final_weights_rate": lambda c: c.weights_rate if c.final_weights_rate is None else c.final_weights_rate,
    "stage2_steps": lambda c: float(c.stage2_steps),
    "hard_best": lambda c: c.best_form == "hard",
    "zero_entries": lambda c: c.nan_rule == "entries",
    "squared_difference": lambda c: c.offline_rule == "squared_difference",
}
"""Knobs that are read off a config; all others are its fields of the same name."""


def stack_knobs(configs: list[TwoStageConfig], dtype: str) -> Knobs:
    """The knobs of each seed's config, with leading axis S."""

    def column(name: str) -> np.ndarray:
        read = KNOB_SOURCES.get(name, attrgetter(name))
        values = [read(each) for each in configs]
        return np.array(values, bool if isinstance(values[0], bool) else dtype)

    return Knobs(*(column(name) for name in Knobs._fields))
