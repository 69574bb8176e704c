"""What is read off a network is what it computes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gmeql.evaluation.baselines.eql import KIM_UNITS, PAPER_UNITS, EQLConfig
from gmeql.evaluation.baselines.eql.expressions import read_off
from gmeql.evaluation.baselines.eql.network import initial_weights, network
from sampled_tables import uniform_table


@pytest.mark.parametrize("units", [KIM_UNITS, PAPER_UNITS], ids=["kim", "paper"])
def test_expression_read_off_computes_what_the_network_computes(units):
    config = EQLConfig(units=units)
    weights = [w[0].astype(float) for w in initial_weights(config, 2, [3])]
    rng = np.random.default_rng(0)
    weights = [w * (rng.random(w.shape) < 0.3) for w in weights]
    x_scales, y_scale = np.array([2.0, 0.5]), 3.0
    X = uniform_table(2, 2, 40, 0.2, 1.0)
    with jax.enable_x64(True):
        scaled = [jnp.asarray(w) for w in weights]
        expected, _ = network(scaled, jnp.asarray(X / x_scales), config.flat_units, 0.0)
    expression = read_off(weights, ("a", "b"), x_scales, y_scale, config)
    got = expression(X)
    fine = np.isfinite(got)  # a denominator below zero divides in the formula and is cut in the network
    assert fine.mean() > 0.5
    if units is KIM_UNITS:
        np.testing.assert_allclose(got, y_scale * np.asarray(expected), rtol=1e-7, atol=1e-7)


def test_pruned_weights_leave_no_trace_in_the_formula():
    config = EQLConfig(units=(("id", 1), ("square", 1)), hidden_layers=1)
    weights = [np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0], [3.0]])]
    expression = read_off(weights, ("a", "b"), np.ones(2), 1.0, config)
    assert expression.variables == (1,)
    np.testing.assert_allclose(expression(np.array([[5.0, 0.5]])), [3.0])
