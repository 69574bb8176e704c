"""Values, slopes and constants of a batch of prefix texts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gmeql.evaluation.baselines.dsr import DSRConfig
from gmeql.evaluation.baselines.dsr.config import library_of
from gmeql.evaluation.baselines.dsr.constants import evaluate, fit_constants, links, rewards_of
from gmeql.evaluation.baselines.dsr.host import expression_of
from sampled_tables import uniform_table
from sampled_texts import SMALL, drawn_texts


@pytest.mark.slow  # compiling takes seconds
def test_device_evaluation_and_slopes_match_expressions():
    library, _, batch = drawn_texts()
    X = uniform_table(4, 2, 20, 0.5, 1.5)
    constants = np.random.default_rng(5).uniform(0.5, 1.5, (SMALL.max_constants, 1, SMALL.batch_size))
    with jax.enable_x64(True):
        tokens = batch.tokens[:, None, :]
        tree = links(tokens, library)
        values, slopes = evaluate(tokens, tree, jnp.asarray(constants), jnp.asarray(X)[None], library, True)
        plain = evaluate(tokens, tree, jnp.asarray(constants), jnp.asarray(X)[None], library, False)
    compared = 0
    for b in range(SMALL.batch_size):
        expression = expression_of(np.asarray(batch.tokens)[:, b], constants[:, 0, b], ("a", "b"), library)
        expected = expression(X)
        nearby = expression(X * (1 + 1e-12))  # the sine of a huge number is no test of anything
        tame = np.isfinite(expected).all() and np.abs(expected).max() < 1e3
        if not tame or not np.allclose(nearby, expected, 1e-9, 1e-9):
            continue
        np.testing.assert_allclose(values[0, b], expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(values[0, b], plain[0, b], rtol=1e-13)
        own = np.array(expression.constants)
        for k in range(len(own)):
            step = np.zeros(len(own))
            step[k] = 1e-6
            numeric = (expression.with_constants(own + step)(X) - expression.with_constants(own - step)(X)) / 2e-6
            if np.isfinite(numeric).all() and np.abs(numeric).max() < 1e3:
                np.testing.assert_allclose(slopes[k, 0, b], numeric, rtol=2e-4, atol=2e-4)
                compared += 1
    assert compared > 50


@pytest.mark.slow
def test_constants_are_fitted_for_every_expression():
    """c * sin(c * x0) + c * x1, written out as tokens, against its generating constants."""
    config = DSRConfig(fit_steps=15)
    library = library_of(config, 2)
    words = ["add", "mul", "const", "sin", "mul", "const", "x0", "mul", "const", "x1"]
    row = np.full(30, library.empty)
    row[: len(words)] = [library.names.index(word) for word in words]
    X = uniform_table(6, 2, 80, 0, 2)
    y = 1.3 * np.sin(1.2 * X[:, 0]) + 0.7 * X[:, 1]
    tokens = jnp.asarray(row)[:, None, None]
    tree = links(tokens, library)
    table = jnp.asarray(X, jnp.float32)[None], jnp.asarray(y, jnp.float32)[None]
    found = np.asarray(fit_constants(tokens, tree, *table, config, library))[:3, 0, 0]
    np.testing.assert_allclose(found, [1.3, 1.2, 0.7], rtol=1e-3)
    rewards, _ = rewards_of(tokens, tree, jnp.ones((6, 1, 1)), *table, library)
    error = np.sqrt(np.mean((np.sin(X[:, 0]) + X[:, 1] - y) ** 2)) / np.std(y)
    np.testing.assert_allclose(float(rewards[0, 0]), 1 / (1 + error), rtol=1e-5)
