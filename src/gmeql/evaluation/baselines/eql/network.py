"""The network and its training step: layers of units, the smoothed norm, RMSProp."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import truncnorm

from gmeql.evaluation.baselines.eql.config import UNITS, EQLConfig


def smoothed_l05(weights: Any, smoothing: float) -> Any:
    """Sum of sqrt(|w|), with |w| replaced below `smoothing` a by -w^4/(8 a^3) + 3 w^2/(4 a) + 3 a/8 (Kim, eq. 4)."""
    size = jnp.abs(weights)
    inner = jnp.minimum(size, smoothing)
    smooth = -(inner**4) / (8 * smoothing**3) + 3 * inner**2 / (4 * smoothing) + 3 * smoothing / 8
    return jnp.sum(jnp.sqrt(jnp.where(size < smoothing, smooth, jnp.maximum(size, smoothing))))


def layer(sums: Any, units: tuple[str, ...], threshold: Any) -> tuple[Any, Any]:
    """Unit outputs [N, U] of the sums [N, S], and the division penalty."""
    outputs, penalty, column = [], 0.0, 0
    for name in units:
        unit = UNITS[name]
        a = sums[:, column] * unit.scale
        b = sums[:, column + 1] if unit.arity == 2 else a
        column += unit.arity
        if name == "one":
            out = jnp.ones_like(a)
        elif name == "id":
            out = a
        elif name == "square":
            out = a**2
        elif name == "cube":
            out = a**3
        elif name == "sin":
            out = jnp.sin(a)
        elif name == "cos":
            out = jnp.cos(a)
        elif name == "sqrt":  # sqrt(|a|), flat below 1e-4: the slope stays finite
            out = jnp.sqrt(jnp.maximum(jnp.abs(a), 1e-4))
        elif name == "exp":
            out = jnp.expm1(jnp.minimum(a, 30.0))
        elif name == "sigmoid":
            out = jax.nn.sigmoid(a)
        elif name == "mul":
            out = a * b
        else:  # Sahoo et al., eq. 4 and 5: a/b above the threshold, else 0, and a penalty for small denominators
            divides = b > threshold
            out = jnp.where(divides, a / jnp.where(divides, b, 1.0), 0.0)
            penalty = penalty + jnp.mean(jnp.maximum(threshold - b, 0.0))
        outputs.append(out * unit.gain)
    return jnp.stack(outputs, axis=1), penalty


def network(weights: list[Any], X: Any, units: tuple[str, ...], threshold: Any) -> tuple[Any, Any]:
    """Prediction [N] of one network and its division penalty."""
    hidden, penalty = X, 0.0
    for matrix in weights[:-1]:
        hidden, more = layer(hidden @ matrix, units, threshold)
        penalty = penalty + more
    return (hidden @ weights[-1])[:, 0], penalty


def training_chunk(config: EQLConfig) -> Any:
    """Compiled: some training steps of T networks. Phase numbers are arguments, so one compilation serves all."""
    return _compiled_chunk(
        dataclasses.replace(  # these are used on the host alone
            config,
            learning_rate=0.0,
            regularisation=0.0,
            prune_below=0.0,
            init_first=0.0,
            init_middle=0.0,
            init_last=0.0,
        )
    )


@functools.cache
def _compiled_chunk(config: EQLConfig) -> Any:
    units = config.flat_units

    def loss(weights: list[Any], X: Any, y: Any, masks: list[Any], strength: Any, threshold: Any) -> Any:
        masked = [w * m for w, m in zip(weights, masks, strict=True)]
        prediction, penalty = network(masked, X, units, threshold)
        norm = sum(smoothed_l05(w, config.smoothing) for w in weights)
        mse = jnp.mean((prediction - y) ** 2)
        return mse + strength * norm + config.division_penalty * penalty

    def step(carry: Any, _: Any, X: Any, y: Any, masks: Any, rate: Any, strength: Any, fresh: Any) -> Any:
        weights, squares, number, restarts = carry
        threshold = 1.0 / jnp.sqrt(number + 1.0)
        value, gradient = jax.value_and_grad(loss)(weights, X, y, masks, strength, threshold)
        sound = jnp.isfinite(value)
        for g in gradient:
            sound &= jnp.isfinite(g).all()
        limit = config.gradient_limit
        gradient = [jnp.clip(jnp.nan_to_num(g), -limit, limit) for g in gradient]
        squares = [config.decay * s + (1 - config.decay) * g**2 for s, g in zip(squares, gradient, strict=True)]
        moves = [rate * g / jnp.sqrt(s + config.epsilon) for s, g in zip(squares, gradient, strict=True)]
        moved = [w - move for w, move in zip(weights, moves, strict=True)]
        roll = restarts % 7 + 1  # other weights than the first ones, without a random draw inside the loop
        weights = [jnp.where(sound, w, jnp.roll(f, roll)) for w, f in zip(moved, fresh, strict=True)]
        squares = [jnp.where(sound, s, jnp.ones_like(s)) for s in squares]
        return (weights, squares, number + 1, restarts + ~sound), None

    @functools.partial(jax.jit, static_argnames="steps")
    def chunk(state: Any, X: Any, y: Any, masks: Any, fresh: Any, rate: Any, strength: Any, *, steps: int) -> Any:
        def one(state: Any, X: Any, y: Any, masks: Any, fresh: Any) -> Any:
            body = functools.partial(step, X=X, y=y, masks=masks, rate=rate, strength=strength, fresh=fresh)
            state, _ = jax.lax.scan(body, state, None, length=steps)
            masked = [w * m for w, m in zip(state[0], masks, strict=True)]
            prediction, _ = network(masked, X, units, 1.0 / jnp.sqrt(state[2] + 1.0))
            return state, jnp.mean(jnp.abs(prediction - y))

        return jax.vmap(one)(state, X, y, masks, fresh)

    return chunk


def initial_weights(config: EQLConfig, columns: int, seeds: Sequence[int]) -> list[np.ndarray]:
    """Truncated normal weights (redrawn beyond two standard deviations), one set per seed, drawn on the host."""
    units = config.flat_units
    sums = sum(UNITS[name].arity for name in units)
    shapes = [(columns, sums)] + [(len(units), sums)] * (config.hidden_layers - 1) + [(len(units), 1)]
    deviations = [config.init_first] + [config.init_middle] * (config.hidden_layers - 1) + [config.init_last]
    networks = []
    for seed in seeds:
        rng = np.random.default_rng([seed, 20])
        networks.append(
            [
                truncnorm.rvs(-2, 2, size=shape, random_state=rng) * d
                for shape, d in zip(shapes, deviations, strict=True)
            ]
        )
    return [np.stack(layer).astype(np.float32) for layer in zip(*networks, strict=True)]
