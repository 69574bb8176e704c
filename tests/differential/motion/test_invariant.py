from __future__ import annotations

import numpy as np
import pytest
from motions import hunters
from scipy.integrate import solve_ivp

import gmeql

T = np.linspace(0.0, 8.0, 80)


def swing(start: float) -> np.ndarray:
    return solve_ivp(lambda _, z: [z[1], -0.9 * np.sin(z[0])], (0, 8), [start, 0.0], t_eval=T, rtol=1e-10).y.T


def test_the_energy_of_a_pendulum():
    found = gmeql.invariant([swing(1.5), swing(0.7)], [T, T], feature_names=["q", "v"])
    assert "cos(q)" in str(found) and "v**2" in str(found)
    values = [found(run) for run in (swing(1.5), swing(0.7))]
    assert all(np.ptp(part) < 1e-3 * abs(values[0].mean() - values[1].mean()) for part in values)
    assert found.drift < 1e-3 and found.variation < 1e-3


def test_a_quantity_with_logarithms():
    t, X = hunters()
    found = gmeql.invariant(X, t, feature_names=["x", "y"])
    assert np.ptp(found(X)) < 1e-2 * np.ptp(X.sum(axis=1))


def test_noise_leaves_it_readable():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.cos(2 * T), -2 * np.sin(2 * T)])
    found = gmeql.invariant(X + 0.02 * rng.standard_normal(X.shape), T, feature_names=["q", "v"])
    assert found.expression.complexity <= 9 and "q**2" in str(found) and "v**2" in str(found)


def test_nothing_conserved_is_said():
    apart = np.column_stack([np.sin(5 * T), np.sin(5 * np.sqrt(2.0) * T + 1.0)])
    with pytest.raises(ValueError, match="nothing is conserved"):
        gmeql.invariant(apart, T, max_terms=2)
    with pytest.raises(ValueError, match="at least two states"):
        gmeql.invariant(np.sin(T), T)
