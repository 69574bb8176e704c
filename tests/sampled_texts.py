"""Prefix texts drawn from an untrained policy of DSR, which several test files look at."""

from functools import lru_cache

import jax
import jax.numpy as jnp

from gmeql.evaluation.baselines.dsr import DSRConfig
from gmeql.evaluation.baselines.dsr.config import library_of
from gmeql.evaluation.baselines.dsr.policy import initial_policy, sample

SMALL = DSRConfig(
    batch_size=400,
    max_length=14,
    functions=("add", "sub", "mul", "div", "sin", "cos", "exp", "log", "square", "sqrt", "cube"),
    max_constants=2,
)


@lru_cache
def drawn_texts():
    """The tokens, the policy and a batch of its texts."""
    library = library_of(SMALL, 2)
    policy = {k: jnp.asarray(v) for k, v in initial_policy(SMALL, library, 0).items()}
    batch = jax.jit(lambda key: sample(policy, key, jnp.ones(library.size, bool), SMALL, library))
    return library, policy, batch(jax.random.key(0))


def text(tokens, library):
    return [library.names[t] for t in tokens if t != library.empty]


def subtree(words, library, start):
    """End of the subtree that starts at a position of a prefix text."""
    open_slots, position = 1, start
    while open_slots:
        open_slots += library.arity[library.names.index(words[position])] - 1
        position += 1
    return position
