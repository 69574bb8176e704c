"""DSR's policy: constraints, what it sees, the probability of what it draws, learning."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gmeql.evaluation.baselines.dsr import DSRConfig
from gmeql.evaluation.baselines.dsr.config import library_of
from gmeql.evaluation.baselines.dsr.policy import _INVERSE, initial_policy, log_likelihood, policy_step, prior, sample
from gmeql.formula.operators import WHOLE_POWERS
from sampled_texts import SMALL, drawn_texts, subtree, text


def test_every_drawn_expression_keeps_every_constraint():
    library, _, batch = drawn_texts()
    tokens = np.asarray(batch.tokens).T
    assert len({tuple(row) for row in tokens}) > 300
    for row in tokens:
        words = text(row, library)
        assert SMALL.min_length <= len(words) <= SMALL.max_length
        assert subtree(words, library, 0) == len(words), "an incomplete or overlong text"
        assert words.count("const") <= SMALL.max_constants
        for t, word in enumerate(words):
            arity = library.arity[library.names.index(word)]
            inside = words[t + 1 : subtree(words, library, t)]
            children = [inside[0]] if arity else []
            if arity == 2:
                children.append(words[subtree(words, library, t + 1)])
            if word in ("sin", "cos"):
                assert not {"sin", "cos"} & set(inside)
            assert _INVERSE.get(word) not in children
            assert not (word in WHOLE_POWERS and set(children) & set(WHOLE_POWERS))
            assert not children or set(children) != {"const"}


def test_parents_and_siblings_are_those_of_the_tree():
    library, _, batch = drawn_texts()
    for b in range(50):
        words = text(np.asarray(batch.tokens)[:, b], library)
        names = (*library.names, None)
        for t, word in enumerate(words):
            arity = library.arity[library.names.index(word)]
            if arity:
                assert names[int(batch.parents[t + 1, b])] == word
                assert names[int(batch.siblings[t + 1, b])] is None
            if arity == 2:
                second = subtree(words, library, t + 1)
                assert names[int(batch.parents[second, b])] == word
                assert names[int(batch.siblings[second, b])] == words[t + 1]


def test_the_prior_on_length_holds_back_early_ends_and_late_functions():
    config = DSRConfig(
        functions=("add", "sin"), use_constants=False, soft_length=(4.0, 2.0), uniform_arity=False, max_length=8
    )
    library = library_of(config, 1)
    always, ending = prior(config, library)
    terminal = library.first_variable
    np.testing.assert_allclose(ending[:, terminal], [-4.0, -2.25, -1.0, -0.25, 0, 0, 0, 0])
    np.testing.assert_allclose(
        always[:, :terminal], np.repeat([[0], [0], [0], [0], [0], [-0.25], [-1.0], [-2.25]], 2, 1)
    )
    assert not always[:, terminal].any() and not ending[:, :terminal].any()
    policy = {k: jnp.asarray(v) for k, v in initial_policy(config, library, 0).items()}
    batch = sample(policy, jax.random.key(2), jnp.ones(library.size, bool), config, library)
    for tokens, bends in zip(
        np.asarray(batch.tokens).T[:20], np.asarray(batch.bends)[:, :20].swapaxes(0, 1), strict=True
    ):
        places = np.cumsum([1] + [library.arity[t] - 1 for t in tokens if t != library.empty])  # still to write
        for t, place in enumerate(places[:-1]):
            np.testing.assert_allclose(bends[t], always[t] + (ending[t] if place == 1 else 0.0))


@pytest.mark.slow  # 20,000 texts
def test_log_likelihood_is_the_probability_of_drawing():
    config = DSRConfig(functions=("add", "sin"), batch_size=20_000, min_length=1, max_length=3, max_constants=1)
    library = library_of(config, 1)
    policy = {k: jnp.asarray(v) for k, v in initial_policy(config, library, 0).items()}
    policy["output_bias"] = jnp.array([0.3, -0.5, 0.8, 0.0])
    batch = sample(policy, jax.random.key(1), jnp.ones(library.size, bool), config, library)
    log_p, entropy = log_likelihood(policy, batch, config, library)
    tokens, first, counts = np.unique(np.asarray(batch.tokens).T, axis=0, return_index=True, return_counts=True)
    p = np.exp(np.asarray(log_p))[first]
    assert np.isclose(p.sum(), 1.0, atol=1e-4), "every text this short should have been drawn"
    deviation = np.sqrt(config.batch_size * p * (1 - p)) + 1
    assert np.all(np.abs(counts - config.batch_size * p) < 5 * deviation)
    assert np.all(np.asarray(entropy) >= 0)


@pytest.mark.slow
def test_policy_moves_towards_the_rewarded():
    config = DSRConfig(
        functions=("add", "mul"),
        use_constants=False,
        batch_size=200,
        min_length=1,
        max_length=7,
        learning_rate=0.02,
        entropy_weight=0.0,
    )
    library = library_of(config, 1)
    policy = {k: jnp.asarray(v) for k, v in initial_policy(config, library, 0).items()}
    zeros = jax.tree.map(jnp.zeros_like, policy)
    moments, share, key = (zeros, zeros, jnp.zeros(())), [], jax.random.key(0)
    step = jax.jit(lambda p, m, b, r: policy_step(p, m, b, r, config, library))
    draw = jax.jit(lambda p, k: sample(p, k, jnp.ones(library.size, bool), config, library))
    for _ in range(25):
        key, sub = jax.random.split(key)
        batch = draw(policy, sub)
        products = jnp.mean(batch.tokens == library.names.index("mul"), axis=0)
        policy, moments = step(policy, moments, batch, products + 0.3 * jax.random.uniform(sub, products.shape))
        share.append(float(products.mean()))
    assert share[-1] > 0.42 > 1.5 * share[0]  # of 7 tokens at most 3 can be products
