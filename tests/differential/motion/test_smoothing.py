from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gmeql.differential.motion.smoothing import KERNELS, input_values, smooth
from gmeql.differential.motion.trajectories import check_trajectories


@pytest.mark.parametrize("kernel", KERNELS)
def test_derivatives_of_kernels_are_those_of_differences(kernel):
    d, h = np.array([-1.3, -0.2, 0.4, 2.0]), 1e-5
    for order in (1, 2):
        slope = (kernel(d + h, 0.7, order - 1) - kernel(d - h, 0.7, order - 1)) / (2 * h)
        assert np.allclose(slope, kernel(d, 0.7, order), atol=1e-8)


def test_points_without_noise_are_interpolated():
    t = np.linspace(0.0, 6.0, 60)
    (curve,) = smooth(check_trajectories(np.sin(t), t))
    assert np.abs(curve.slopes[:, 0] - np.cos(curve.t)).max() < 1e-5
    assert np.abs(curve.bends[:, 0] + np.sin(curve.t)).max() < 1e-3
    assert curve.noise.max() < 1e-3 and (curve.slope_errors == 0).all()


def test_noise_is_estimated_and_its_slope_errors_are_honest():
    t = np.linspace(0.0, 6.0, 120)
    rng = np.random.default_rng(1)
    (curve,) = smooth(check_trajectories(np.sin(t) + 0.1 * rng.standard_normal(len(t)), t))
    assert 0.08 < curve.noise.mean() < 0.12
    off = np.abs(curve.slopes[:, 0] - np.cos(curve.t)) / curve.slope_errors[:, 0]
    assert np.mean(off < 3.0) > 0.9 and np.abs(curve.X[:, 0] - np.sin(curve.t)).max() < 0.12


def test_noise_in_proportion_to_a_positive_state_is_seen_as_such():
    t = np.linspace(0.0, 5.0, 150)
    rng = np.random.default_rng(0)
    (curve,) = smooth(check_trajectories(np.exp(t) * (1 + 0.05 * rng.standard_normal(len(t))), t))
    share = curve.noise[:, 0] / np.exp(t)
    assert np.all((share > 0.03) & (share < 0.07))


def test_trajectories_share_one_noise_estimate():
    rng = np.random.default_rng(2)
    t = np.linspace(0.0, 3.0, 15)
    runs = [np.sin(t + k) + 0.05 * rng.standard_normal(15) for k in range(8)]
    curves = smooth(check_trajectories(runs, [t] * 8))
    levels = [curve.noise.mean() for curve in curves]
    assert np.ptp(levels) < 1e-12 and 0.03 < levels[0] < 0.07


def test_inputs_do_not_overshoot_a_step():
    t = np.arange(10.0)
    step = (t >= 5).astype(float)[:, None]
    values = input_values(t, step)(np.linspace(-1.0, 12.0, 200))
    assert values.min() >= 0.0 and values.max() <= 1.0


def test_small_matrices_are_taken_apart_by_one_thread(monkeypatch):
    threads, eigh = [], np.linalg.eigh

    def counted(matrix):
        threads.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return eigh(matrix)

    monkeypatch.setattr(np.linalg, "eigh", counted)
    t = np.linspace(0.0, 3.0, 20)
    with threadpool_limits(2, user_api="blas"):
        smooth(check_trajectories(np.sin(t), t))
    assert threads and set(threads) == {1}
