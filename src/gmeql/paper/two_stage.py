"""Method "paper": Algorithm 1, the two-stage training of a GMEQL network.

Stage 1 re-initialises the network ``stage1_rounds`` times and trains the logits alone; what it hands on is the elite
repository. Stage 2 starts from fresh parameters and trains logits and weights online (on newly sampled instances) and
the logits also offline (on elites). ``_step`` reads like the algorithm: sample, evaluate, store, train online, draw,
train offline.

One compiled function runs a chunk of steps for any number of seeds side by side; between chunks the host sees a
``Progress``, from whose ``state`` a run can be taken up again. Step t of seed s uses random numbers that depend on s
and t alone, so a seed's run is the same alone, in a batch, in any chunk size and after a resume.

Where this leaves the paper, for every preset: an instance whose loss is not finite is dropped from the averages (it
would turn every shared parameter into nan), and the selections of elites are stored as logarithms (see ``concrete``).

Shapes: S seeds, P sampled instances, R offline instances, K elites, C connections, M choices, W weights, N rows.

>>> import numpy as np
>>> from gmeql.network.architecture import Architecture
>>> X = np.linspace(-1, 1, 20)[:, None]
>>> config = TwoStageConfig(stage1_rounds=1, stage1_steps=10, stage2_steps=40, samples_per_step=8, capacity=16)
>>> for progress in run(Architecture(1, (("square", "sin"),)), X, X[:, 0] ** 2, seeds=[0], config=config):
...     pass
>>> progress.done, progress.result.choices.shape
(True, (1, 3))
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.network import repository
from gmeql.network.architecture import Architecture, as_architecture
from gmeql.network.repository import Repository
from gmeql.paper import concrete, relaxed

Array = Any

OFFLINE_RULES = ("density", "squared_difference")
SMALLEST_SAMPLE = 2


@dataclass(frozen=True)
class TwoStageConfig:
    """Every number of Algorithm 1. Defaults are the text's (section 5); ``released()`` gives the authors' code's.

    Attributes:
        stage1_rounds, stage1_steps, stage2_steps: n, m and q.
        samples_per_step, offline_batch: p and r.
        capacity, power_law_exponent: size of the repository and how elites are drawn by rank (section 4.2).
        resample_fraction: share of an elite's connections that are sampled anew (section 4.2).
        temperature: of the relaxation (section 3).
        logits_rate, weights_rate, offline_rate: Adam's learning rates.
        adam_decay, adam_square_decay, adam_epsilon: Adam's defaults.
        logits_scale, weights_mean, weights_scale: parameters start at N(0, scale) and N(mean, scale) (footnote 1).
        gradient_clip: every entry of a gradient is clipped to this magnitude.
        fill_first: sample all connections until the repository is full.
        use_stage1, use_elites, use_offline: switches of the paper's ablations (figure 2 i, j, k).
        refresh_elites: give the elites that are drawn their loss under the present weights; stored losses go stale as
            the shared weights move.
        offline_rule: "density" (equation 7) or "squared_difference" (appendix B).
        curve_every: every how many steps a point of the curves is kept.
        chunk_steps: steps between two progress events.
    """

    stage1_rounds: int = 3
    stage1_steps: int = 2000
    stage2_steps: int = 48_000
    samples_per_step: int = 40
    offline_batch: int = 40
    capacity: int = 400
    power_law_exponent: float = 1.5
    resample_fraction: float = 0.2
    temperature: float = 2 / 3
    logits_rate: float = 1e-3
    weights_rate: float = 1e-3
    offline_rate: float = 1e-3
    adam_decay: float = 0.9
    adam_square_decay: float = 0.999
    adam_epsilon: float = 1e-8
    logits_scale: float = 1.0
    weights_mean: float = 0.0
    weights_scale: float = 1.0
    gradient_clip: float = math.inf
    fill_first: bool = False
    use_stage1: bool = True
    use_elites: bool = True
    use_offline: bool = True
    refresh_elites: bool = False
    offline_rule: str = "density"
    curve_every: int = 100
    chunk_steps: int = 1000

    def __post_init__(self) -> None:
        for name in ("stage1_rounds", "stage1_steps", "stage2_steps"):
            _check(isinstance(getattr(self, name), int) and getattr(self, name) >= 0, self, name, "a whole number >= 0")
        for name in ("samples_per_step", "offline_batch", "capacity", "curve_every", "chunk_steps"):
            _check(isinstance(getattr(self, name), int) and getattr(self, name) >= 1, self, name, "a whole number >= 1")
        for name in ("logits_rate", "weights_rate", "offline_rate", "logits_scale", "weights_scale"):
            _check(0 <= getattr(self, name) < math.inf, self, name, "a number >= 0")
        for name in ("temperature", "power_law_exponent", "adam_epsilon"):
            _check(0 < getattr(self, name) < math.inf, self, name, "a number > 0")
        for name in ("adam_decay", "adam_square_decay"):
            _check(0 <= getattr(self, name) < 1, self, name, "in [0, 1)")
        _check(0 < self.resample_fraction <= 1, self, "resample_fraction", "in (0, 1]")
        _check(self.gradient_clip > 0, self, "gradient_clip", "a number > 0 (inf: no clipping)")
        _check(math.isfinite(self.weights_mean), self, "weights_mean", "a finite number")
        _check(self.offline_rule in OFFLINE_RULES, self, "offline_rule", f"one of {', '.join(OFFLINE_RULES)}")
        _check(self.total_steps > 0, self, "stage2_steps", "at least 1 when there is no stage 1")

    @classmethod
    def paper(cls, **changes: Any) -> TwoStageConfig:
        """The numbers of the paper's text."""
        return cls(**changes)

    @classmethod
    def released(cls, **changes: Any) -> TwoStageConfig:
        """The numbers of the authors' released code where it differs from the text."""
        base = cls(
            stage1_rounds=6,
            stage1_steps=8000,
            stage2_steps=50_000,
            resample_fraction=1.0,
            offline_rate=3e-4,
            logits_scale=0.5,
            weights_mean=1.0,
            weights_scale=0.02,
            gradient_clip=1.0,
            fill_first=True,
        )
        return replace(base, **changes)

    @property
    def segments(self) -> tuple[int, ...]:
        """Steps of each stretch that starts from fresh parameters: the rounds of stage 1, then stage 2."""
        stage1 = (self.stage1_steps,) * self.stage1_rounds if self.use_stage1 else ()
        return (*(steps for steps in stage1 if steps), self.stage2_steps)

    @property
    def total_steps(self) -> int:
        return sum(self.segments)


def _check(holds: bool, config: TwoStageConfig, name: str, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{name} must be {allowed}, got {getattr(config, name)!r}")


PRESETS = {"paper": TwoStageConfig.paper, "released": TwoStageConfig.released}

_SHARED = (  # fields that shape the compiled program or the schedule: alike for all seeds of one run
    "stage1_rounds", "stage1_steps", "stage2_steps", "samples_per_step", "offline_batch", "capacity",
    "power_law_exponent", "adam_decay", "adam_square_decay", "adam_epsilon", "use_stage1", "curve_every", "chunk_steps",
)  # fmt: skip


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


# --- one step of one seed ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Program:
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


class _Noise(NamedTuple):
    """All randomness of one step."""

    gumbel: Array
    elite: Array
    label: Array
    offline: Array


def _noise(program: _Program, seed: Array, step: Array) -> _Noise:
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
    return _Noise(concrete.gumbel(gumbel), *others)


def _initialise(program: _Program, knobs: Knobs, state: State) -> State:
    """Fresh logits, weights and moments; the elites and T* stay."""
    connections, choices = program.shape
    count = connections * choices
    key = jax.random.fold_in(jax.random.key(state.seed ^ jnp.uint32(_INITIALISATION), impl="threefry2x32"), state.step)
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


_INITIALISATION = 0x5EED0000
"""Keeps the random numbers of initialisation apart from those of the steps."""


def _sample(program: _Program, knobs: Knobs, state: State, noise: _Noise) -> tuple[Array, Array, Array]:
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


def _adam(program: _Program, moments: Moments, gradient: Array, rate: Array, age: Array) -> tuple[Array, Moments]:
    """The step that Adam subtracts and its new moments; ``age`` counts from 0."""
    config = program.config
    mean = config.adam_decay * moments.mean + (1 - config.adam_decay) * gradient
    square = config.adam_square_decay * moments.square + (1 - config.adam_square_decay) * gradient**2
    time_now = (age + 1).astype(gradient.dtype)
    mean_now = mean / (1 - config.adam_decay**time_now)
    square_now = square / (1 - config.adam_square_decay**time_now)
    return rate * mean_now / (jnp.sqrt(square_now) + config.adam_epsilon), Moments(mean, square)


def _step(program: _Program, knobs: Knobs, columns: Array, targets: Array, stage2: Array, state: State):
    """One round of Algorithm 1's inner loops: sample, evaluate, store, train online, draw, train offline."""
    architecture, config, mask = program.architecture, program.config, program.mask
    noise = _noise(program, state.seed, state.step)
    clip = partial(jnp.clip, min=-knobs.gradient_clip, max=knobs.gradient_clip)

    # Sample p network instances, evaluate their MAE.
    log_selections, labels, slots = _sample(program, knobs, state, noise)
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
    online_logits = _where(moved, online_logits, state.online_logits)
    update, online_weights = _adam(program, state.online_weights, weight_gradient, knobs.weights_rate, state.age)
    weights = jnp.where(stage2, state.weights - update, state.weights)
    online_weights = _where(stage2, online_weights, state.online_weights)

    # Stage 2: draw r elites and train the logits offline on them.
    drawn = repository.draw(elites, noise.offline, config.power_law_exponent, jnp)
    instances = repository.take(elites, jnp.maximum(drawn, 0))
    offline = _offline_gradient(knobs, logits, instances, mask)
    update, offline_logits = _adam(program, state.offline_logits, clip(offline), knobs.offline_rate, state.age)
    trains = stage2 & knobs.use_offline & (drawn[0] >= 0)
    logits = jnp.where(trains, logits - update, logits)
    offline_logits = _where(trains, offline_logits, state.offline_logits)

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


def _where(condition: Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def _offline_gradient(knobs: Knobs, logits: Array, instances: Array, mask: np.ndarray) -> Array:
    """Descent direction of the offline objective over R elites, log-selections [R, C, M] -> [C, M] (section 4.3)."""
    ascent = concrete.log_density_gradient(logits, instances, knobs.temperature, mask)
    squared = concrete.squared_difference_gradient(logits, instances, knobs.temperature, mask)
    return jnp.mean(jnp.where(knobs.squared_difference, squared, -ascent), axis=0)


def _refresh(
    program: _Program, knobs: Knobs, elites: Repository, slots: Array, weights: Array, columns: Array, targets: Array
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
    return _where(losses[winner] < state.best.loss, found, state.best)


# --- chunks of steps, many seeds --------------------------------------------------------------------------------

COMPILATIONS = [0]
"""How many chunks were traced in this process; a test bounds it."""


def _chunk_of_one(program: _Program, knobs: Knobs, columns: Array, targets: Array, fresh: Array, stage2: Array, state):
    """Run ``program.steps`` steps of one seed, from fresh parameters if ``fresh``; also bring T*'s hard loss up to date."""
    COMPILATIONS[0] += 1
    state = _where(fresh, _initialise(program, knobs, state), state)
    step = partial(_step, program, knobs, columns, targets, stage2)
    state, info = jax.lax.scan(lambda carry, _: step(carry), state, None, length=program.steps)
    every = program.config.curve_every
    info = jax.tree.map(lambda curve: curve[every - 1 :: every], info)
    choices = relaxed.choices_of(program.architecture, state.best.log_selections)
    hard = relaxed.hard_selections(program.architecture, choices, program.dtype)
    loss = relaxed.mean_absolute_error(program.architecture, hard, state.best.weights, columns, targets)
    best = state.best._replace(hard_loss=jnp.where(jnp.isfinite(loss), loss, jnp.inf))
    return state._replace(best=best), info


@lru_cache(maxsize=64)
def _compiled_chunk(program: _Program) -> Any:
    """The chunk over all seeds: the one place where seeds become a batch axis."""
    return jax.jit(jax.vmap(partial(_chunk_of_one, program), in_axes=(0, 0, 0, None, None, 0)))


def initial_state(architecture: Architecture, config: TwoStageConfig, seeds: Sequence[int], dtype: str) -> State:
    """State before the first step, as NumPy arrays with leading axis S."""
    shape = (architecture.n_connections, architecture.max_choices)
    count = len(seeds)

    def zeros(*tail: int) -> np.ndarray:
        return np.zeros((count, *tail), dtype)

    one = repository.empty(config.capacity, np.zeros(shape, dtype), np, dtype)
    elites = Repository(*(np.broadcast_to(leaf, (count, *leaf.shape)) for leaf in one))
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
        elites=elites,
        best=Best(infinite, infinite, zeros(*shape), zeros(*weights), counter),
    )


# --- the run ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curves:
    """Training curves, one column per seed: the step numbers [T] and losses [T, S]."""

    steps: np.ndarray
    mean: np.ndarray
    lowest: np.ndarray
    best: np.ndarray


@dataclass(frozen=True)
class Result:
    """What a run found, one row per seed.

    Attributes:
        seeds: [S].
        choices: hard structure of T*, [S, C].
        weights: the weights T* had, [S, W].
        loss: relaxed MAE of T*, [S]; ``inf`` where no instance had a finite loss.
        hard_loss: MAE of the hard structure with those weights, [S].
        found_at: step at which T* was sampled, [S].
        log_selections: T* itself, [S, C, M].
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
        """The inverse of ``to_arrays``."""
        blank = initial_state(Architecture(1, (("id",),)), TwoStageConfig(capacity=1), [0], "float32")
        structure = jax.tree.structure((blank, _curve_leaves(_no_curves(1))))
        names = [f"leaf_{number:02d}" for number in range(structure.num_leaves)]
        if set(names) != set(arrays):
            raise ValueError(f"a two-stage state holds arrays {names[0]} to {names[-1]}, got {sorted(arrays)}")
        state, curves = jax.tree.unflatten(structure, [np.asarray(arrays[name]) for name in names])
        return cls(state, Curves(*curves))


@dataclass(frozen=True)
class Progress:
    """A run between two chunks.

    ``state`` resumes it (``run(..., state=progress.state)``); ``result`` is what it has found so far.
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
        """Relaxed loss of T* of each seed, [S]."""
        return np.asarray(self.state.arrays.best.loss)

    @property
    def result(self) -> Result:
        state, best = self.state.arrays, self.state.arrays.best
        log_selections = np.asarray(best.log_selections)
        real = np.where(self.architecture.choice_mask, log_selections, -np.inf)
        return Result(
            architecture=self.architecture,
            seeds=np.asarray(state.seed),
            choices=np.argmax(real, axis=-1),
            weights=np.asarray(best.weights),
            loss=np.asarray(best.loss),
            hard_loss=np.asarray(best.hard_loss),
            found_at=np.asarray(best.step),
            log_selections=log_selections,
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
    state: RunState | None = None,
) -> Iterator[Progress]:
    """Train by Algorithm 1, many seeds side by side; yields a ``Progress`` after every chunk of steps.

    Args:
        architecture: an Architecture, a preset's name, or layers of operator names.
        X: data [N, V], or one table per seed [S, N, V].
        y: targets [N] or [N, n_outputs], with a leading S where X has one.
        seeds: one run each.
        config: one for all seeds, or one per seed; numbers that shape the compiled program must then agree.
        dtype: "float32" or "float64".
        state: continue from an earlier ``Progress.state``.

    Raises:
        ValueError: for bad input, before anything is compiled.
    """
    seeds = _checked_seeds(seeds)
    columns, targets = _checked_data(X, y, len(seeds))
    architecture = as_architecture(architecture, columns.shape[1], targets.shape[1])
    configs = _checked_configs(config, len(seeds))
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    if architecture.n_connections == 0:
        raise ValueError("the architecture has no connections to choose; use at least one node that is not Σ or Π")
    _check_range(columns, targets, dtype)
    if state is not None:
        _check_state(state, architecture, configs[0], seeds, dtype)
    return _run(architecture, columns.astype(dtype), targets.astype(dtype), seeds, configs, dtype, state)


def _run(
    architecture: Architecture,
    columns: np.ndarray,
    targets: np.ndarray,
    seeds: Sequence[int],
    configs: list[TwoStageConfig],
    dtype: str,
    resumed: RunState | None,
) -> Iterator[Progress]:
    config = configs[0]
    refreshes = any(each.refresh_elites for each in configs)
    knobs = _stack_knobs(configs, dtype)
    state = initial_state(architecture, config, seeds, dtype) if resumed is None else resumed.arrays
    curves = _no_curves(len(seeds), dtype) if resumed is None else resumed.curves
    step = int(np.max(state.step))
    start = time.perf_counter()
    with jax.enable_x64(dtype == "float64"):
        columns, targets, knobs = jax.device_put((columns, targets, knobs))
    for first, steps, fresh, stage in _plan(config):
        if first < step:
            continue
        program = _Program(architecture, _shared_config(config), dtype, refreshes, steps)
        with jax.enable_x64(dtype == "float64"):
            state, info = _compiled_chunk(program)(knobs, columns, targets, fresh, stage == 2, state)
            info = jax.tree.map(np.asarray, info)  # waits for the chunk
        step = first + steps
        curves = _extend(curves, info, first, config.curve_every)
        yield Progress(
            architecture, RunState(state, curves), step, config.total_steps, stage, time.perf_counter() - start
        )


def _plan(config: TwoStageConfig) -> Iterator[tuple[int, int, bool, int]]:
    """Chunks of a run: first step, steps, whether parameters start afresh, stage.

    Whole chunks plus one remainder per segment, so a schedule compiles at most three programs.
    """
    first = 0
    for number, segment in enumerate(config.segments):
        stage = 2 if number == len(config.segments) - 1 else 1
        for begin in range(0, segment, config.chunk_steps):
            steps = min(config.chunk_steps, segment - begin)
            yield first + begin, steps, begin == 0, stage
        first += segment


def _shared_config(config: TwoStageConfig) -> TwoStageConfig:
    """The config reduced to what shapes the compiled program, so that settings and budgets share one."""
    shaping = ("samples_per_step", "offline_batch", "capacity", "power_law_exponent", "adam_decay",
               "adam_square_decay", "adam_epsilon", "curve_every")  # fmt: skip
    return TwoStageConfig(**{name: getattr(config, name) for name in shaping})


def _stack_knobs(configs: list[TwoStageConfig], dtype: str) -> Knobs:
    def column(name: str) -> np.ndarray:
        values = [c.offline_rule == "squared_difference" if name == "squared_difference" else getattr(c, name)
                  for c in configs]  # fmt: skip
        return np.array(values, bool if isinstance(values[0], bool) else dtype)

    return Knobs(*(column(name) for name in Knobs._fields))


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


# --- validation -------------------------------------------------------------------------------------------------


def _checked_seeds(seeds: Sequence[int]) -> list[int]:
    seeds = [int(seed) for seed in seeds]
    if not seeds or min(seeds) < 0 or max(seeds) >= 2**32:
        raise ValueError(f"seeds must be one or more whole numbers in [0, 2**32), got {seeds!r}")
    return seeds


def _checked_configs(config: TwoStageConfig | Sequence[TwoStageConfig] | None, count: int) -> list[TwoStageConfig]:
    if config is None or isinstance(config, TwoStageConfig):
        return [config or TwoStageConfig()] * count
    configs = list(config)
    if len(configs) != count:
        raise ValueError(f"config must be one TwoStageConfig or one per seed ({count}), got {len(configs)}")
    for name in _SHARED:
        if len({getattr(each, name) for each in configs}) > 1:
            raise ValueError(f"{name} must be the same for all seeds of one run; start one run per value")
    return configs


def _checked_data(X: Array, y: Array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns [S, V, N] and targets [S, n_outputs, N] from X [N, V] or [S, N, V]; ValueError for data no run can use."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if X.ndim not in (2, 3):
        raise ValueError(f"X must have shape [rows, variables] or [seeds, rows, variables], got {X.shape}")
    if X.ndim == 2:
        X, y = np.broadcast_to(X, (count, *X.shape)), np.broadcast_to(y, (count, *y.shape))
    if len(X) != count or len(y) != count:
        raise ValueError(f"X and y must hold one table for each of the {count} seeds, got {len(X)} and {len(y)}")
    if y.ndim == 2:
        y = y[:, :, None]
    if y.ndim != 3 or y.shape[1] != X.shape[1]:
        raise ValueError(f"y must have one row for each of the {X.shape[1]} rows of X, got shape {y.shape[1:]}")
    if X.shape[1] < SMALLEST_SAMPLE:
        raise ValueError(f"X must have at least {SMALLEST_SAMPLE} rows, got {X.shape[1]}")
    if X.shape[2] < 1 or y.shape[2] < 1:
        raise ValueError(f"X and y must have at least one column, got {X.shape[2]} and {y.shape[2]}")
    for name, values in (("X", X), ("y", y)):
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            _, row, column = bad[0]
            raise ValueError(
                f"{name} must be finite, got {values[tuple(bad[0])]} in row {row}, column {column}; "
                "drop or fill such rows first"
            )
    if np.any(np.ptp(y, axis=1) == 0):
        raise ValueError("y is constant: there is nothing to learn; its formula is that constant")
    return np.swapaxes(X, 1, 2), np.swapaxes(y, 1, 2)


def _check_range(columns: np.ndarray, targets: np.ndarray, dtype: str) -> None:
    largest = max(np.abs(columns).max(), np.abs(targets).max())
    if largest > np.finfo(dtype).max:
        raise ValueError(f"X and y must fit into {dtype}, got a magnitude of {largest:.3g}; scale the data first")


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
    starts = {first for first, *_ in _plan(config)} | {config.total_steps}
    if len(steps) != 1 or int(steps[0]) not in starts:
        raise ValueError(f"state stands at step {steps.tolist()}, which is no chunk boundary of this config")
