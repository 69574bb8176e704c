"""One step of Algorithm 1 for one seed: sample, evaluate, store, train online, draw, train offline.

`step` reads like the inner loops of the algorithm; what it carries is a `State`, what it reports an `Info`. Both stages
run it: stage 1 leaves the weights and the offline training out.

Where this leaves the paper, for every preset: an instance whose loss is not finite is dropped from the averages (it
would turn every shared parameter into nan), and the selections of elites are stored as logarithms (see `concrete`).

Shapes: P sampled instances, R offline instances, K elites, C connections, M choices, W weights, N rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.network import repository
from gmeql.network.architecture import Architecture
from gmeql.network.repository import Repository
from gmeql.paper import concrete, relaxed
from gmeql.paper.two_stage.config import TwoStageConfig

Array = Any
Tree = TypeVar("Tree")
INITIALISATION = 0x5EED0000
"""Keeps the random numbers of initialisation apart from those of the steps."""


class Knobs(NamedTuple):
    """The numbers that may differ from seed to seed of one compiled run, each a scalar (batched: [S])."""

    resample_fraction: Array
    temperature: Array
    logits_rate: Array
    weights_rate: Array
    offline_rate: Array
    logits_scale: Array
    weights_mean: Array
    weights_scale: Array
    gradient_clip: Array
    fill_first: Array
    use_elites: Array
    use_offline: Array
    refresh_elites: Array
    squared_difference: Array


class Moments(NamedTuple):
    """Adam's running mean and mean square of a gradient."""

    mean: Array
    square: Array


class Best(NamedTuple):
    """T*: the instance of the lowest relaxed loss ever sampled, with the weights it had then.

    Attributes:
        loss: relaxed MAE when it was sampled.
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
        elites: repository of log-selections [K, C, M].
        best: T*.
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


class Info(NamedTuple):
    """What a step reports: mean and lowest loss of its instances, and the lowest so far."""

    mean: Array
    lowest: Array
    best: Array


@dataclass(frozen=True)
class TrainingProgram:
    """What is fixed when a chunk is compiled."""

    architecture: Architecture
    config: TwoStageConfig
    dtype: str
    refreshes: bool
    steps: int

    @property
    def mask(self) -> np.ndarray:
        return self.architecture.choice_mask

    @property
    def shape(self) -> tuple[int, int]:
        return self.architecture.n_connections, self.architecture.max_choices


class Noise(NamedTuple):
    """All randomness of one step."""

    gumbel: Array
    elite: Array
    label: Array
    offline: Array


def draw_noise(program: TrainingProgram, seed: Array, step: Array) -> Noise:
    """Draw a step's random numbers in one call (each call costs compile time and a kernel)."""
    config, (connections, choices) = program.config, program.shape
    shapes = (
        (config.samples_per_step, connections, choices),
        (config.samples_per_step,),
        (config.samples_per_step, connections),
        (config.offline_batch,),
    )
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), step + 1)
    uniforms = concrete.uniform(jax.random.bits(key, (int(ends[-1]),), jnp.uint32), program.dtype)
    gumbel, *others = (part.reshape(shape) for part, shape in zip(jnp.split(uniforms, ends[:-1]), shapes, strict=True))
    return Noise(concrete.gumbel(gumbel), *others)


def initialise(program: TrainingProgram, knobs: Knobs, state: State) -> State:
    """Fresh logits, weights and moments; the elites and T* stay."""
    connections, choices = program.shape
    count = connections * choices
    key = jax.random.fold_in(jax.random.key(state.seed ^ jnp.uint32(INITIALISATION), impl="threefry2x32"), state.step)
    draws = jax.random.normal(key, (count + program.architecture.n_weights,), program.dtype)
    logits = knobs.logits_scale * draws[:count].reshape(connections, choices)
    weights = knobs.weights_mean + knobs.weights_scale * draws[count:]
    zeros = partial(jax.tree.map, jnp.zeros_like)
    return state._replace(
        age=jnp.zeros_like(state.age),
        logits=jnp.where(program.mask, logits, 0.0),
        weights=weights,
        online_logits=zeros(state.online_logits),
        online_weights=zeros(state.online_weights),
        offline_logits=zeros(state.offline_logits),
    )


def sample(program: TrainingProgram, knobs: Knobs, state: State, noise: Noise) -> tuple[Array, Array, Array]:
    """P new instances: elites with a share of their connections sampled anew (section 4.2).

    Returns log-selections [P, C, M], labels [P, C] (which connections were sampled) and the drawn slots [P].
    """
    config = program.config
    connections = program.shape[0]
    slots = repository.draw(state.elites, noise.elite, config.power_law_exponent, jnp)
    full = jnp.isfinite(state.elites.losses[-1])
    inherits = (slots >= 0) & knobs.use_elites & (full | ~knobs.fill_first)
    slots = jnp.where(inherits, slots, -1)
    parents = repository.take(state.elites, jnp.maximum(slots, 0))

    count = jnp.maximum(jnp.round(knobs.resample_fraction * connections), 1.0)
    order = jnp.sum(noise.label[:, None, :] < noise.label[:, :, None], axis=-1)
    labels = (order < count) | ~inherits[:, None]
    fresh = concrete.log_selection(state.logits, noise.gumbel, knobs.temperature, program.mask)
    return jnp.where(labels[..., None], fresh, parents), labels, slots


def _adam(
    program: TrainingProgram, moments: Moments, gradient: Array, rate: Array, age: Array
) -> tuple[Array, Moments]:
    """The step that Adam subtracts and its new moments; `age` counts from 0."""
    config = program.config
    mean = config.adam_decay * moments.mean + (1 - config.adam_decay) * gradient
    square = config.adam_square_decay * moments.square + (1 - config.adam_square_decay) * gradient**2
    time_now = (age + 1).astype(gradient.dtype)
    mean_now = mean / (1 - config.adam_decay**time_now)
    square_now = square / (1 - config.adam_square_decay**time_now)
    return rate * mean_now / (jnp.sqrt(square_now) + config.adam_epsilon), Moments(mean, square)


def step(
    program: TrainingProgram, knobs: Knobs, columns: Array, targets: Array, stage2: Array, state: State
) -> tuple[State, Info]:
    """One round of Algorithm 1's inner loops: sample, evaluate, store, train online, draw, train offline."""
    architecture, config, mask = program.architecture, program.config, program.mask
    noise = draw_noise(program, state.seed, state.step)
    clip = partial(jnp.clip, min=-knobs.gradient_clip, max=knobs.gradient_clip)

    # Sample p network instances, evaluate their MAE.
    log_selections, labels, slots = sample(program, knobs, state, noise)
    selections = jnp.exp(log_selections)
    loss_of = partial(relaxed.mean_absolute_error, architecture)
    evaluate = jax.vmap(jax.value_and_grad(loss_of, argnums=(0, 1)), in_axes=(0, None, None, None))
    losses, (selection_gradients, weight_gradients) = evaluate(selections, state.weights, columns, targets)
    valid = jnp.isfinite(losses)
    losses = jnp.where(valid, losses, jnp.inf)

    # Store them in the repository according to MAE; keep T* with the weights it had.
    elites = state.elites
    if program.refreshes:
        elites = _refresh(program, knobs, elites, slots, state.weights, columns, targets)
    fingerprints = architecture.fingerprints(relaxed.choices_of(architecture, log_selections), jnp)
    elites = repository.insert(elites, losses, fingerprints, log_selections, jnp)
    best = _better(state, losses, log_selections)

    # Train logits (and in stage 2 weights) to lower the average MAE; only labelled connections' logits move.
    shares = jnp.maximum(jnp.sum(valid), 1).astype(losses.dtype)
    logit_gradients = concrete.logits_gradient(selections, selection_gradients, knobs.temperature)
    logit_gradient = clip(jnp.sum(_finite(logit_gradients, valid, labels), axis=0) / shares)
    weight_gradient = clip(jnp.sum(_finite(weight_gradients, valid), axis=0) / shares)
    update, online_logits = _adam(program, state.online_logits, logit_gradient, knobs.logits_rate, state.age)
    moved = jnp.any(labels & valid[:, None], axis=0)[:, None] & mask
    logits = jnp.where(moved, state.logits - update, state.logits)
    online_logits = choose(moved, online_logits, state.online_logits)
    update, online_weights = _adam(program, state.online_weights, weight_gradient, knobs.weights_rate, state.age)
    weights = jnp.where(stage2, state.weights - update, state.weights)
    online_weights = choose(stage2, online_weights, state.online_weights)

    # Stage 2: draw r elites and train the logits offline on them.
    drawn = repository.draw(elites, noise.offline, config.power_law_exponent, jnp)
    instances = repository.take(elites, jnp.maximum(drawn, 0))
    offline = offline_gradient(knobs, logits, instances, mask)
    update, offline_logits = _adam(program, state.offline_logits, clip(offline), knobs.offline_rate, state.age)
    trains = stage2 & knobs.use_offline & (drawn[0] >= 0)
    logits = jnp.where(trains, logits - update, logits)
    offline_logits = choose(trains, offline_logits, state.offline_logits)

    mean = jnp.sum(jnp.where(valid, losses, 0.0)) / shares
    info = Info(jnp.where(jnp.any(valid), mean, jnp.inf), jnp.min(losses), best.loss)
    return State(
        seed=state.seed,
        step=state.step + 1,
        age=state.age + 1,
        logits=logits,
        weights=weights,
        online_logits=online_logits,
        online_weights=online_weights,
        offline_logits=offline_logits,
        elites=elites,
        best=best,
    ), info


def _finite(gradients: Array, valid: Array, labels: Array | None = None) -> Array:
    """Gradients [P, ...] with 0 for instances without a finite loss, unlabelled connections and entries not finite."""
    keep = valid.reshape(-1, *(1,) * (gradients.ndim - 1)) & jnp.isfinite(gradients)
    if labels is not None:
        keep = keep & labels[..., None]
    return jnp.where(keep, gradients, 0.0)


def choose(condition: Array, new: Tree, old: Tree) -> Tree:
    """`jnp.where` for every array of two states of one kind."""
    chosen: Tree = jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
    return chosen


def offline_gradient(knobs: Knobs, logits: Array, instances: Array, mask: np.ndarray) -> Array:
    """Descent direction of the offline objective over R elites, log-selections [R, C, M] -> [C, M] (section 4.3)."""
    ascent = concrete.log_density_gradient(logits, instances, knobs.temperature, mask)
    squared = concrete.squared_difference_gradient(logits, instances, knobs.temperature, mask)
    return jnp.mean(jnp.where(knobs.squared_difference, squared, -ascent), axis=0)


def _refresh(
    program: TrainingProgram,
    knobs: Knobs,
    elites: Repository,
    slots: Array,
    weights: Array,
    columns: Array,
    targets: Array,
) -> Repository:
    """The elites with the drawn ones' losses taken anew under the present weights (not sorted: insert sorts)."""
    loss_of = jax.vmap(partial(relaxed.mean_absolute_error, program.architecture), in_axes=(0, None, None, None))
    drawn = jnp.exp(repository.take(elites, jnp.maximum(slots, 0)))
    losses = loss_of(drawn, weights, columns, targets)
    hits = (jnp.arange(elites.losses.shape[0])[:, None] == slots[None, :]) & knobs.refresh_elites  # [K, P]
    renewed = jnp.min(jnp.where(hits, jnp.where(jnp.isfinite(losses), losses, jnp.inf), jnp.inf), axis=1)
    return elites._replace(losses=jnp.where(jnp.any(hits, axis=1), renewed, elites.losses))


def _better(state: State, losses: Array, log_selections: Array) -> Best:
    """T* after these instances: a lower loss than any before takes its place, weights included."""
    winner = jnp.argmin(losses)
    found = Best(losses[winner], state.best.hard_loss, log_selections[winner], state.weights, state.step)
    return choose(losses[winner] < state.best.loss, found, state.best)
