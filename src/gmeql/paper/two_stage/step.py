"""One step of Algorithm 1 for one seed: sample, evaluate, store, train online, draw, train offline.

`step` reads like the inner loops of the algorithm; what it carries is a `State`, what it reports an `Info`. Both stages
run it: stage 1 leaves the weights and the offline training out.

Where this leaves the paper, for every preset: an instance whose loss is not finite is dropped from the averages (it
would turn every shared parameter into nan), and the selections of elites are stored as logarithms (see `concrete`).

Shapes: P sampled instances, R offline instances, K elites, C connections, M choices, W weights, N rows.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.network import repository
from gmeql.network.repository import Repository
from gmeql.paper import concrete, relaxed
from gmeql.paper.two_stage.state import Best, Info, Knobs, Moments, State, TrainingProgram, item_shape

Array = Any
Tree = TypeVar("Tree")
INITIALISATION = 0x5EED0000
"""Keeps the random numbers of initialisation apart from those of the steps."""


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


def initialise(program: TrainingProgram, knobs: Knobs, stage2: Array, state: State) -> State:
    """The start of a round or stage: fresh logits, weights and moments. T* stays, and the elites unless rounds merge."""
    connections, choices = program.shape
    count = connections * choices
    key = jax.random.fold_in(jax.random.key(state.seed ^ jnp.uint32(INITIALISATION), impl="threefry2x32"), state.step)
    draws = jax.random.normal(key, (count + program.architecture.n_weights,), program.dtype)
    logits = knobs.logits_scale * draws[:count].reshape(connections, choices)
    weights = knobs.weights_mean + knobs.weights_scale * draws[count:]
    zeros = partial(jax.tree.map, jnp.zeros_like)
    kept = repository.insert(state.kept, *state.elites, jnp)
    blank = state.elites._replace(losses=jnp.full_like(state.elites.losses, jnp.inf))
    elites = choose(knobs.merge_rounds, choose(stage2, kept, blank), state.elites)
    return state._replace(
        elites=elites,
        kept=kept,
        age=jnp.zeros_like(state.age),
        logits=jnp.where(program.mask, logits, 0.0),
        weights=weights,
        online_logits=zeros(state.online_logits),
        online_weights=zeros(state.online_weights),
        offline_logits=zeros(state.offline_logits),
    )


class Sampled(NamedTuple):
    """P instances: which connections of each were sampled (labels [P, C]) and what the others inherit.

    `slots` [P] are the elites they come from (-1: none), `parents` [P, C, M] those elites' log-selections.
    `weights` are those they are evaluated at: the shared ones [W], or each instance's [P, W].
    """

    slots: Array
    parents: Array
    labels: Array
    weights: Array


def sample(program: TrainingProgram, knobs: Knobs, elites: Repository, weights: Array, noise: Noise) -> Sampled:
    """P new instances: elites with a share of their connections sampled anew (section 4.2)."""
    connections = program.shape[0]
    slots = repository.draw_by(elites, noise.elite, knobs.rank_weights, knobs.worst_up, jnp)
    full = jnp.isfinite(elites.losses[-1])
    inherits = (slots >= 0) & knobs.use_elites & (full | ~knobs.fill_first)
    slots = jnp.where(inherits, slots, -1)
    parents = _taken(program, knobs, elites, slots)

    count = jnp.maximum(jnp.round(knobs.resample_fraction * connections), 1.0)
    order = jnp.sum(noise.label[:, None, :] < noise.label[:, :, None], axis=-1)
    chosen = jnp.where(knobs.bernoulli, noise.label < knobs.resample_fraction, order < count)
    if program.config.elite_weights:
        own = repository.take(elites, jnp.maximum(slots, 0))[:, connections:].reshape(len(slots), -1)
        weights = jnp.where(inherits[:, None], own[:, : program.architecture.n_weights], weights)
    return Sampled(slots, parents, chosen | ~inherits[:, None], weights)


def _taken(program: TrainingProgram, knobs: Knobs, elites: Repository, slots: Array) -> Array:
    """Log-selections of the elites in some slots, [slots, C, M].

    V = softmax((Z + G) / λ), so λ log V is Z + G but for a constant: with `anneal_elites` that is kept, and today's
    temperature makes the selection of it.
    """
    kept = repository.take(elites, jnp.maximum(slots, 0))[:, : program.shape[0]]
    scores = jnp.where(program.mask, kept / knobs.temperature, concrete.PADDED)
    return jnp.where(knobs.anneal_elites, jax.nn.log_softmax(scores, axis=-1), kept)


def log_selections_of(program: TrainingProgram, knobs: Knobs, logits: Array, sampled: Sampled, noise: Noise) -> Array:
    """The instances [P, C, M] under these logits: labelled connections by equation 2, the others inherited."""
    fresh = concrete.log_selection(logits, noise.gumbel, knobs.temperature, program.mask)
    return jnp.where(sampled.labels[..., None], fresh, sampled.parents)


def _adam(
    program: TrainingProgram, knobs: Knobs, moments: Moments, gradient: Array, rate: Array, age: Array
) -> tuple[Array, Moments]:
    """The step that Adam subtracts and its new moments; `age` counts from 0."""
    config = program.config
    mean = config.adam_decay * moments.mean + (1 - config.adam_decay) * gradient
    square = config.adam_square_decay * moments.square + (1 - config.adam_square_decay) * gradient**2
    time_now = (age + 1).astype(gradient.dtype)
    mean_now = mean / (1 - config.adam_decay**time_now)
    grown = 1 - config.adam_square_decay**time_now
    epsilon = config.adam_epsilon / jnp.where(knobs.epsilon_hat, jnp.sqrt(grown), 1.0)
    return rate * mean_now / (jnp.sqrt(square / grown) + epsilon), Moments(mean, square)


class Trained(NamedTuple):
    """Parameters after online training, and the instances to store: log-selections, the weights they had, losses, and
    the weights that are kept with them."""

    logits: Array
    weights: Array
    online_logits: Moments
    online_weights: Moments
    log_selections: Array
    weights_of: Array
    losses: Array
    kept_weights: Array


def step(
    program: TrainingProgram, knobs: Knobs, columns: Array, targets: Array, stage2: Array, state: State
) -> tuple[State, Info]:
    """One round of Algorithm 1's inner loops: sample, evaluate, store, train online, draw, train offline."""
    architecture, mask = program.architecture, program.mask
    knobs = _of_today(knobs, stage2, state.age)
    noise = draw_noise(program, state.seed, state.step)

    every_row = columns, targets
    columns, targets = batch_of(program, state.step, columns, targets)

    # Sample p network instances, evaluate their MAE, train logits (and in stage 2 weights) to lower its average.
    sampled = sample(program, knobs, state.elites, state.weights, noise)
    train = _train_in_turn if program.config.update_order == "in_turn" else _train_together
    trained = train(program, knobs, columns, targets, stage2, state, sampled, noise)
    logits, losses = trained.logits, trained.losses

    # Store them in the repository according to MAE; keep T* with the weights it had.
    elites = state.elites
    if program.refreshes:
        elites = _refresh(program, knobs, elites, sampled.slots, state.weights, columns, targets)
    fingerprints = architecture.fingerprints(relaxed.choices_of(architecture, trained.log_selections), jnp)
    kept = trained.log_selections * jnp.where(knobs.anneal_elites, knobs.temperature, 1.0)
    elites = repository.insert(elites, losses, fingerprints, _items(program, kept, trained.kept_weights), jnp)
    scores = losses
    if program.hard_best:
        choices = relaxed.choices_of(architecture, trained.log_selections)
        hard = relaxed.hard_selections(architecture, choices, program.dtype)
        scores = jnp.where(knobs.hard_best, _losses(program, hard, trained.weights_of, *every_row), losses)
    best = _better(state, trained, scores)

    # Stage 2: draw r elites and train the logits offline on them.
    drawn = repository.draw_by(elites, noise.offline, knobs.rank_weights, knobs.worst_up, jnp)
    instances = _taken(program, knobs, elites, drawn)
    offline = _clip(knobs, offline_gradient(knobs, logits, instances, mask))
    update, offline_logits = _adam(program, knobs, state.offline_logits, offline, knobs.offline_rate, state.age)
    trains = stage2 & knobs.use_offline & (drawn[0] >= 0)
    logits = jnp.where(trains, logits - update, logits)
    offline_logits = choose(trains, offline_logits, state.offline_logits)

    valid = jnp.isfinite(losses)
    mean = jnp.sum(jnp.where(valid, losses, 0.0)) / jnp.maximum(jnp.sum(valid), 1).astype(losses.dtype)
    info = Info(jnp.where(jnp.any(valid), mean, jnp.inf), jnp.min(losses), best.loss)
    return state._replace(
        step=state.step + 1,
        age=state.age + 1,
        logits=logits,
        weights=trained.weights,
        online_logits=trained.online_logits,
        online_weights=trained.online_weights,
        offline_logits=offline_logits,
        elites=elites,
        best=best,
    ), info


def batch_of(program: TrainingProgram, step: Array, columns: Array, targets: Array) -> tuple[Array, Array]:
    """The rows [V, N] and [O, N] that one step sees: all, or the next `batch_rows`, round and round."""
    rows, count = columns.shape[1], program.config.batch_rows
    if count is None or count >= rows:
        return columns, targets
    places = (step * count + jnp.arange(count)) % rows
    return columns[:, places], targets[:, places]


def _of_today(knobs: Knobs, stage2: Array, age: Array) -> Knobs:
    """The knobs at one step: in stage 2 temperature and the weights' rate fall by constant factors to their final values."""
    share = jnp.minimum(age.astype(knobs.temperature.dtype) / jnp.maximum(knobs.stage2_steps - 1, 1), 1.0)

    def fallen(first: Array, final: Array) -> Array:
        start = jnp.where(first > 0, first, 1.0)  # a rate of 0 stays 0
        return jnp.where(stage2, first * (final / start) ** share, first)

    return knobs._replace(
        temperature=fallen(knobs.temperature, knobs.final_temperature),
        weights_rate=fallen(knobs.weights_rate, knobs.final_weights_rate),
    )


def _train_together(
    program: TrainingProgram,
    knobs: Knobs,
    columns: Array,
    targets: Array,
    stage2: Array,
    state: State,
    sampled: Sampled,
    noise: Noise,
) -> Trained:
    """Algorithm 1: all gradients at the point where the instances were sampled; those instances are stored."""
    log_selections = log_selections_of(program, knobs, state.logits, sampled, noise)
    losses, by_selection, by_weight = _evaluate(program, log_selections, sampled.weights, columns, targets)
    logits, online_logits = _move_logits(program, knobs, state, sampled, log_selections, losses, by_selection)
    weights, online_weights = _move_weights(program, knobs, stage2, state, losses, by_weight)
    own = sampled.weights - jnp.where(stage2, _own_step(program, knobs, online_weights, by_weight, state.age), 0.0)
    return Trained(logits, weights, online_logits, online_weights, log_selections, sampled.weights, losses, own)


def _train_in_turn(
    program: TrainingProgram,
    knobs: Knobs,
    columns: Array,
    targets: Array,
    stage2: Array,
    state: State,
    sampled: Sampled,
    noise: Noise,
) -> Trained:
    """The released code: weights, then logits at the new weights, then the instances evaluated at both and stored."""
    log_selections = log_selections_of(program, knobs, state.logits, sampled, noise)
    losses, _, by_weight = _evaluate(program, log_selections, state.weights, columns, targets)
    weights, online_weights = _move_weights(program, knobs, stage2, state, losses, by_weight)
    losses, by_selection, _ = _evaluate(program, log_selections, weights, columns, targets)
    logits, online_logits = _move_logits(program, knobs, state, sampled, log_selections, losses, by_selection)
    log_selections = log_selections_of(program, knobs, logits, sampled, noise)
    losses = _losses(program, jnp.exp(log_selections), weights, columns, targets)
    return Trained(logits, weights, online_logits, online_weights, log_selections, weights, losses, weights)


def _evaluate(
    program: TrainingProgram, log_selections: Array, weights: Array, columns: Array, targets: Array
) -> tuple[Array, Array, Array]:
    """Losses [P] of instances (inf where not finite), their gradients by selections [P, C, M] and weights [P, W]."""
    loss_of = partial(relaxed.mean_absolute_error, program.architecture)
    each = 0 if weights.ndim == 2 else None
    evaluate = jax.vmap(jax.value_and_grad(loss_of, argnums=(0, 1)), in_axes=(0, each, None, None))
    losses, gradients = evaluate(jnp.exp(log_selections), weights, columns, targets)
    return jnp.where(jnp.isfinite(losses), losses, jnp.inf), *gradients


def _losses(program: TrainingProgram, selections: Array, weights: Array, columns: Array, targets: Array) -> Array:
    """Losses [P] of instances; inf where not finite."""
    each = 0 if weights.ndim == 2 else None
    loss_of = jax.vmap(partial(relaxed.mean_absolute_error, program.architecture), in_axes=(0, each, None, None))
    losses = loss_of(selections, weights, columns, targets)
    return jnp.where(jnp.isfinite(losses), losses, jnp.inf)


def _move_logits(
    program: TrainingProgram,
    knobs: Knobs,
    state: State,
    sampled: Sampled,
    log_selections: Array,
    losses: Array,
    by_selection: Array,
) -> tuple[Array, Moments]:
    """Logits after one online step; only those of labelled connections move (section 4.2)."""
    valid = jnp.isfinite(losses)
    gradients = concrete.logits_gradient(jnp.exp(log_selections), by_selection, knobs.temperature)
    gradient = _average(knobs, jnp.where(sampled.labels[..., None], gradients, 0.0), valid)
    update, moments = _adam(program, knobs, state.online_logits, gradient, knobs.logits_rate, state.age)
    moved = jnp.any(sampled.labels & valid[:, None], axis=0)[:, None] & program.mask
    return jnp.where(moved, state.logits - update, state.logits), choose(moved, moments, state.online_logits)


def _move_weights(
    program: TrainingProgram, knobs: Knobs, stage2: Array, state: State, losses: Array, by_weight: Array
) -> tuple[Array, Moments]:
    """Weights after one online step of stage 2; stage 1 leaves them."""
    gradient = _average(knobs, by_weight, jnp.isfinite(losses))
    update, moments = _adam(program, knobs, state.online_weights, gradient, knobs.weights_rate, state.age)
    return jnp.where(stage2, state.weights - update, state.weights), choose(stage2, moments, state.online_weights)


def _own_step(program: TrainingProgram, knobs: Knobs, moments: Moments, by_weight: Array, age: Array) -> Array:
    """The steps [P, W] that instances' own weights take, each by its own gradient; 0 where they have none."""
    if not program.config.elite_weights:
        return jnp.zeros_like(by_weight[0])
    grown = 1 - program.config.adam_square_decay ** (age + 1).astype(by_weight.dtype)
    gradients = _clip(knobs, jnp.where(jnp.isfinite(by_weight), by_weight, 0.0))
    return knobs.weights_rate * gradients / (jnp.sqrt(moments.square / grown) + program.config.adam_epsilon)


def _items(program: TrainingProgram, log_selections: Array, weights: Array) -> Array:
    """Instances as elites are kept (`item_shape`)."""
    if not program.config.elite_weights:
        return log_selections
    count, (rows, choices) = len(log_selections), item_shape(program.architecture, program.config)
    room = (rows - program.shape[0]) * choices
    padded = jnp.pad(weights, ((0, 0), (0, room - weights.shape[1])))
    return jnp.concatenate([log_selections, padded.reshape(count, -1, choices)], axis=1)


def _average(knobs: Knobs, gradients: Array, valid: Array) -> Array:
    """The mean gradient over instances [P, ...], clipped.

    Of instances without a finite loss and entries that are not finite nothing is counted; with `zero_entries` such an
    entry is 0 in the mean itself.
    """
    sound = valid.reshape(-1, *(1,) * (gradients.ndim - 1)) & jnp.isfinite(gradients)
    total = jnp.sum(jnp.where(sound, gradients, 0.0), axis=0)
    of_instances = total / jnp.maximum(jnp.sum(valid), 1).astype(gradients.dtype)
    of_entries = jnp.where(jnp.all(sound, axis=0), total / len(gradients), 0.0)
    return _clip(knobs, jnp.where(knobs.zero_entries, of_entries, of_instances))


def _clip(knobs: Knobs, gradient: Array) -> Array:
    return jnp.clip(gradient, -knobs.gradient_clip, knobs.gradient_clip)


def choose(condition: Array, new: Tree, old: Tree) -> Tree:
    """`jnp.where` for every array of two states of one kind."""
    chosen: Tree = jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
    return chosen


def offline_gradient(knobs: Knobs, logits: Array, instances: Array, mask: np.ndarray) -> Array:
    """Descent direction of the offline objective over R elites, log-selections [R, C, M] -> [C, M] (section 4.3)."""
    ascent = concrete.log_density_gradient(logits, instances, knobs.temperature, mask)
    squared = concrete.squared_difference_gradient(logits, instances, knobs.temperature, mask)
    gradient = jnp.mean(jnp.where(knobs.squared_difference, squared, -ascent), axis=0)
    choices = np.sum(mask, axis=1, keepdims=True)
    return jnp.where(knobs.average_choices, gradient / choices, gradient)


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
    instances = jnp.exp(_taken(program, knobs, elites, slots))
    losses = _losses(program, instances, weights, columns, targets)
    hits = (jnp.arange(elites.losses.shape[0])[:, None] == slots[None, :]) & knobs.refresh_elites  # [K, P]
    renewed = jnp.min(jnp.where(hits, losses, jnp.inf), axis=1)
    return elites._replace(losses=jnp.where(jnp.any(hits, axis=1), renewed, elites.losses))


def _better(state: State, trained: Trained, losses: Array) -> Best:
    """T* after these instances: a lower loss than any before takes its place, weights included."""
    winner = jnp.argmin(losses)
    weights = trained.weights_of if trained.weights_of.ndim == 1 else trained.weights_of[winner]
    found = Best(losses[winner], state.best.hard_loss, trained.log_selections[winner], weights, state.step)
    return choose(losses[winner] < state.best.loss, found, state.best)
