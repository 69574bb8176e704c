"""EQL's network: the smoothed norm, division units."""

import jax
import jax.numpy as jnp
import numpy as np

from gmeql.evaluation.baselines.eql.network import layer, smoothed_l05


def test_smoothed_norm_joins_smoothly_and_counts_weights():
    a = 0.05
    near = [float(smoothed_l05(jnp.array([w]), a)) for w in (a - 1e-4, a + 1e-4)]
    assert abs(near[0] - near[1]) < 1e-3
    slope = jax.grad(lambda w: smoothed_l05(w, a))
    assert abs(float(slope(jnp.array([a - 1e-5]))[0]) - float(slope(jnp.array([a + 1e-5]))[0])) < 1e-2
    assert float(slope(jnp.array([0.0]))[0]) == 0.0  # the plain root would be infinite here
    assert np.isclose(float(smoothed_l05(jnp.array([4.0, -9.0]), a)), 5.0)


def test_division_unit_cuts_and_punishes_small_denominators():
    sums = jnp.array([[1.0, 2.0], [1.0, 0.01], [1.0, -1.0]])
    out, penalty = layer(sums, ("div",), 0.1)
    np.testing.assert_allclose(out[:, 0], [0.5, 0.0, 0.0])
    np.testing.assert_allclose(float(penalty), (0.09 + 1.1) / 3, rtol=1e-6)
