"""The Concrete relaxation of a categorical choice: Gumbel noise, relaxed selections, their density and its gradient.

Section 3 and appendices A and B of the paper (Maddison et al. 2016). Every function treats the last axis as the
choices of one connection and broadcasts over the others. `mask` marks the real choices where arrays are padded to a
common width; a padded choice has selection 0 and gradient 0.

Selections are carried as logarithms. In float32 a relaxed one-hot vector underflows to exact zeros, and
`0 ** -temperature` in the paper's formulas is then infinite; its logarithm is an ordinary number.

>>> import jax.numpy as jnp
>>> logits = jnp.log(jnp.array([0.7, 0.2, 0.1]))
>>> relaxed = log_selection(logits, jnp.zeros(3), temperature=1.0)
>>> [round(float(v), 3) for v in jnp.exp(relaxed)]
[0.7, 0.2, 0.1]
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

Array = Any

PADDED = -1e9
"""Logarithm of a padded choice's selection: far below any real one, still finite in float32."""


def uniform(bits: Array, dtype: Any) -> Array:
    """Numbers strictly inside (0, 1) from 32 random bits each; float32 keeps 23 of them, so 1.0 never occurs."""
    if jnp.dtype(dtype) == jnp.float64:
        return (bits.astype(dtype) + 0.5) * 2.0**-32
    return ((bits >> jnp.uint32(9)).astype(dtype) + 0.5) * 2.0**-23


def gumbel(uniforms: Array) -> Array:
    """Standard Gumbel noise G = -log(-log(U)) from uniforms in (0, 1)."""
    return -jnp.log(-jnp.log(uniforms))


def log_selection(logits: Array, noise: Array, temperature: Array, mask: Array | None = None) -> Array:
    """Logarithm of the relaxed selection V = softmax((Z + G) / λ), equation (2) of the paper."""
    scores = (logits + noise) / temperature
    if mask is not None:
        scores = jnp.where(mask, scores, PADDED)
    return jax.nn.log_softmax(scores, axis=-1)


def logits_gradient(selection: Array, selection_gradient: Array, temperature: Array) -> Array:
    """Chain rule from a selection V back to its logits: V (g - V·g) / λ."""
    centred = selection_gradient - jnp.sum(selection * selection_gradient, axis=-1, keepdims=True)
    return selection * centred / temperature


def log_density(logits: Array, log_selected: Array, temperature: Array, mask: Array | None = None) -> Array:
    """Log-density of a relaxed selection X under the logits Z (appendix B).

    log (M-1)! + (M-1) log λ + Σ_a (z_a - (λ+1) log x_a) - M log Σ_b exp(z_b - λ log x_b)
    """
    mask = jnp.ones(jnp.broadcast_shapes(logits.shape, log_selected.shape), bool) if mask is None else mask
    count = jnp.sum(mask, axis=-1).astype(logits.dtype)
    log_selected = jnp.where(mask, log_selected, 0.0)
    terms = jnp.where(mask, logits - (temperature + 1.0) * log_selected, 0.0)
    pull = jnp.where(mask, logits - temperature * log_selected, -jnp.inf)
    constant = jax.scipy.special.gammaln(count) + (count - 1.0) * jnp.log(temperature)
    return constant + jnp.sum(terms, axis=-1) - count * jax.scipy.special.logsumexp(pull, axis=-1)


def log_density_gradient(logits: Array, log_selected: Array, temperature: Array, mask: Array | None = None) -> Array:
    """Gradient of the log-density with respect to the logits in closed form, equation (7) of the paper.

    With s_l = exp(z_l) V_l^-λ / Σ_b exp(z_b) V_b^-λ the paper's Σ_{a≠l} s_a - (M-1) s_l is 1 - M s_l.
    """
    if mask is None:
        return 1.0 - logits.shape[-1] * jax.nn.softmax(logits - temperature * log_selected, axis=-1)
    count = jnp.sum(mask, axis=-1, keepdims=True).astype(logits.dtype)
    share = jax.nn.softmax(jnp.where(mask, logits - temperature * log_selected, PADDED), axis=-1)
    return jnp.where(mask, 1.0 - count * share, 0.0)


def density_optimum(log_selected: Array, temperature: Array) -> Array:
    """Logits at which the density gradient of one selection vanishes: exp(z) = V^λ (appendix B)."""
    return temperature * log_selected


def squared_difference_gradient(
    logits: Array, log_selected: Array, temperature: Array, mask: Array | None = None
) -> Array:
    """Gradient of appendix B's J' = Σ_a (exp(z_a) - V_a^λ)² with respect to the logits, one selection."""
    target = jnp.exp(density_optimum(log_selected, temperature))
    gradient = 2.0 * jnp.exp(logits) * (jnp.exp(logits) - target)
    return gradient if mask is None else jnp.where(mask, gradient, 0.0)
