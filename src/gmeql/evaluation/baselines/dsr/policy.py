"""The recurrent policy: it writes expressions token by token under constraints, and learns from the best of them.

Shapes: B expressions of a batch, L tokens, Q tokens in the library.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.evaluation.baselines.dsr.config import DSRConfig, Library
from gmeql.formula.operators import WHOLE_POWERS

_TRIGONOMETRIC = ("sin", "cos")
_INVERSE = {"exp": "log", "log": "exp", "sqrt": "square", "square": "sqrt"}


def initial_policy(config: DSRConfig, library: Library, seed: int) -> dict[str, np.ndarray]:
    """LSTM weights zero, output weights Glorot: the first batch is uniform over what the constraints allow."""
    rng = np.random.default_rng([seed, 30])
    inputs, hidden, size = 2 * (library.size + 1), config.hidden_units, library.size
    limit = math.sqrt(6 / (hidden + size))
    return {
        "kernel": np.zeros((inputs + hidden, 4 * hidden), np.float32),
        "bias": np.zeros(4 * hidden, np.float32),
        "output": rng.uniform(-limit, limit, (hidden, size)).astype(np.float32),
        "output_bias": np.zeros(size, np.float32),
    }


def _cell(policy: Any, state: Any, parent: Any, sibling: Any, size: int) -> Any:
    """One LSTM step (forget bias 1) and the logits of the next token."""
    c, h = state
    x = jnp.concatenate([jax.nn.one_hot(parent, size + 1), jax.nn.one_hot(sibling, size + 1), h], axis=-1)
    i, g, f, o = jnp.split(x @ policy["kernel"] + policy["bias"], 4, axis=-1)
    c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (c, h), h @ policy["output"] + policy["output_bias"]


def prior(config: DSRConfig, library: Library) -> tuple[np.ndarray, np.ndarray]:
    """Logits [L, Q] added to the policy's: at every place, and where a token without arguments would end the text.

    They level the arities and favour lengths around `soft_length`: before that place exp(-(t - location)^2 / (2 scale))
    times as many texts end, after it so many functions begin, as in the published program.
    """
    arity = np.array(library.arity)
    always, ending = np.zeros((2, config.max_length, library.size), np.float32)
    if config.uniform_arity:
        always -= np.log([np.sum(arity == a) for a in arity])
    if config.soft_length is not None:
        location, scale = config.soft_length
        t = np.arange(config.max_length)
        bend = -((t - location) ** 2) / (2 * scale)
        ending[:, arity == 0] = np.where(t < location, bend, 0.0)[:, None]
        always[:, arity > 0] += np.where(t < location, 0.0, bend)[:, None]
    return always, ending


class SampledTexts(NamedTuple):
    """Sampled expressions and what the policy saw; leading axis L, then B. `tokens` is `empty` after the end; `bends` are
    the logits of `prior`."""

    tokens: Any
    parents: Any
    siblings: Any
    allowed: Any
    bends: Any


def sample(policy: Any, key: Any, usable: Any, config: DSRConfig, library: Library) -> SampledTexts:
    """Draw a batch of expressions from one policy under the constraints. `usable` [Q] switches tokens off."""
    B, L, Q, empty = config.batch_size, config.max_length, library.size, library.empty
    arity = jnp.array(library.arity)
    terminal = arity == 0
    trigonometric = jnp.array([name in _TRIGONOMETRIC for name in library.names] + [False])
    pointless = jnp.array(
        [
            [
                _INVERSE.get(parent) == child or (parent in WHOLE_POWERS and child in WHOLE_POWERS)
                for child in library.names
            ]
            for parent in (*library.names, "")
        ]
    )
    unary = jnp.array([a == 1 for a in library.arity] + [False])
    tokens_range = jnp.arange(Q)
    is_constant = tokens_range == library.constant
    depth = L // 2 + 1  # of the stack of second children still to write
    levels = jnp.arange(depth)
    gumbel = jax.random.gumbel(key, (L, B, Q))

    def step(carry: Any, inputs: Any) -> Any:
        state, stack_parent, stack_sibling, stack_trig, height, parent, sibling, trig, first, constants, alive = carry
        noise, t, always, ending = inputs
        allowed = jnp.broadcast_to(usable, (B, Q))
        allowed &= (t + 1 + height)[:, None] + arity <= L
        allowed &= ~(terminal & ((height == 0) & (t + 1 < config.min_length))[:, None])
        allowed &= ~(trigonometric[:Q] & trig[:, None])
        allowed &= ~pointless[parent]
        only_constants = unary[parent] | (sibling == library.constant)
        allowed &= ~(is_constant & (only_constants | (constants >= config.max_constants))[:, None])
        state, logits = _cell(policy, state, parent, sibling, Q)
        bends = always + jnp.where((height == 0)[:, None], ending, 0.0)
        token = jnp.argmax(jnp.where(allowed, logits + bends + noise, -jnp.inf), axis=-1)
        seen = SampledTexts(jnp.where(alive, token, empty), parent, sibling, allowed, bends)

        top = levels == (height - 1)[:, None]
        stack_sibling = jnp.where(top & first[:, None], token[:, None], stack_sibling)
        a = arity[token]
        pushed = (levels == height[:, None]) & (a == 2)[:, None]
        stack_parent = jnp.where(pushed, token[:, None], stack_parent)
        stack_sibling = jnp.where(pushed, empty, stack_sibling)
        stack_trig = jnp.where(pushed, trig[:, None], stack_trig)
        pop_parent, pop_sibling = (jnp.sum(jnp.where(top, s, 0), axis=1) for s in (stack_parent, stack_sibling))
        ended = a == 0
        alive &= ~(ended & (height == 0))
        carry = (
            state,
            stack_parent,
            stack_sibling,
            stack_trig,
            jnp.maximum(height + (a == 2) - ended, 0),
            jnp.where(ended, pop_parent, token),
            jnp.where(ended, pop_sibling, empty),
            jnp.where(ended, jnp.any(top & stack_trig, axis=1), trig | trigonometric[token]),
            a == 2,
            constants + (token == library.constant),
            alive,
        )
        return carry, seen

    zeros = jnp.zeros((B, config.hidden_units))
    blank = jnp.full((B,), empty)
    start = (
        (zeros, zeros),
        jnp.zeros((B, depth), int),
        jnp.zeros((B, depth), int),
        jnp.zeros((B, depth), bool),
        jnp.zeros(B, int),
        blank,
        blank,
        jnp.zeros(B, bool),
        jnp.zeros(B, bool),
        jnp.zeros(B, int),
        jnp.ones(B, bool),
    )
    _, batch = jax.lax.scan(step, start, (gumbel, jnp.arange(L), *map(jnp.asarray, prior(config, library))))
    return batch


def log_likelihood(policy: Any, batch: SampledTexts, config: DSRConfig, library: Library) -> tuple[Any, Any]:
    """Log-probability and entropy, each [B], that the policy gives to the expressions of a batch."""
    Q = library.size

    def step(state: Any, inputs: tuple[SampledTexts, Any]) -> Any:
        seen, weight = inputs
        state, logits = _cell(policy, state, seen.parents, seen.siblings, Q)
        alive = seen.tokens != library.empty
        log_p = jax.nn.log_softmax(jnp.where(seen.allowed, logits + seen.bends, -1e9))
        chosen = jnp.take_along_axis(log_p, jnp.minimum(seen.tokens, Q - 1)[:, None], axis=1)[:, 0]
        entropy = -jnp.sum(jnp.where(seen.allowed, jnp.exp(log_p) * log_p, 0.0), axis=1)
        return state, (jnp.where(alive, chosen, 0.0), jnp.where(alive, weight * entropy, 0.0))

    zeros = jnp.zeros((batch.tokens.shape[1], config.hidden_units))
    decay = config.entropy_decay ** np.arange(config.max_length)
    _, (log_p, entropy) = jax.lax.scan(step, (zeros, zeros), (batch, jnp.asarray(decay, jnp.float32)))
    return log_p.sum(0), entropy.sum(0)


def policy_step(
    policy: Any, moments: Any, batch: SampledTexts, rewards: Any, config: DSRConfig, library: Library
) -> Any:
    """One Adam step along the risk-seeking gradient (paper, eq. 2): the best `risk` share, baseline its worst."""
    count = max(2, round(config.risk * config.batch_size))
    best, index = jax.lax.top_k(rewards, count)
    elite = SampledTexts(*(part[:, index] for part in batch))

    def loss(policy: Any) -> Any:
        log_p, entropy = log_likelihood(policy, elite, config, library)
        return -jnp.mean((best - best[-1]) * log_p) - config.entropy_weight * jnp.mean(entropy)

    gradient = jax.grad(loss)(policy)
    first, second, number = moments
    number = number + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, gradient)
    rate = config.learning_rate * jnp.sqrt(1 - 0.999**number) / (1 - 0.9**number)
    policy = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), policy, first, second)
    return policy, (first, second, number)
