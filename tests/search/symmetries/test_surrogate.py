"""The surrogate: small errors and true slopes on smooth data, an honest error on noise, nothing on what overflows."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.search.symmetries import surrogate as module
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.surrogate import OutOfTime, Surrogate, fit_surrogate, is_one_sign, typical


def surrogate(X: np.ndarray, y: np.ndarray) -> Surrogate:
    found = fit_surrogate(X, y, units=np.ones(len(y)), spread=float(np.std(y)))
    assert found is not None
    return found


def test_a_product_of_powers_is_a_plane_in_logarithms() -> None:
    X = np.random.default_rng(0).uniform(1, 5, (60, 2))
    y = 3 * X[:, 0] ** 2 / X[:, 1]
    found = surrogate(X, y)
    assert found.error < 1e-9
    np.testing.assert_allclose(found.slopes, np.column_stack([2 * y / X[:, 0], -y / X[:, 1]]), rtol=1e-8)


def test_slopes_of_a_smooth_function_are_its_gradient() -> None:
    X = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    y = np.sin(X[:, 0]) * X[:, 1] + X[:, 0]
    found = surrogate(X, y)
    gradient = np.column_stack([np.cos(X[:, 0]) * X[:, 1] + 1, np.sin(X[:, 0])])
    assert found.error < 1e-2
    assert typical((found.slopes - gradient).ravel()) < 0.02 * typical(gradient.ravel())


def test_columns_drawn_evenly_from_zero_on_are_read_as_they_are() -> None:
    """Logarithms of such columns crowd at one end, where an angle says nothing."""
    X = np.random.default_rng(0).uniform(0, [1, 2 * np.pi, 2 * np.pi], (300, 3))
    y = (1 - X[:, 0] ** 2) / (1 + X[:, 0] * np.cos(X[:, 1] - X[:, 2]))
    found = surrogate(X, y)
    assert found.reading[1] and found.error < 0.1  # 0.2 by logarithms
    again = fit_surrogate(X, y, units=np.ones(300), spread=float(np.std(y)), reading=found.reading)
    assert again is not None and again.error == found.error


def test_noise_is_not_understood() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    assert surrogate(X, rng.standard_normal(200)).error > 0.5  # leave-one-out: no row helps to guess itself


def test_squares_are_asked_for_only_where_something_was_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, tried = rng.uniform(1, 3, (80, 2)), []
    real = module._better
    monkeypatch.setattr(module, "_better", lambda *given: [tried.append(given[3]), real(*given)][1])
    surrogate(X, rng.uniform(1, 2, 80))
    assert [heights for heights, _ in tried] == [0, 1]
    tried.clear()
    surrogate(X, np.sqrt(X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.standard_normal(80)))
    assert [heights for heights, _ in tried] == [0, 1, 2]


def test_the_error_is_in_the_raw_targets_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2, (100, 2))
    y = np.tanh(3 * X[:, 0]) + np.sin(2 * X[:, 1]) + 0.1 * rng.standard_normal(100)
    small = fit_surrogate(X, y / 10, units=np.full(100, 10.0), spread=float(np.std(y)))
    assert small is not None and small.error == pytest.approx(surrogate(X, y).error, rel=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e160])
def test_large_and_small_targets_warn_of_nothing(scale: float) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    y = scale * (np.sin(3 * X[:, 0]) + X[:, 1])
    found = fit_surrogate(X, y, units=np.ones(60), spread=scale)
    assert found is None or np.isfinite(found.slopes).all()
    assert scale != 1.0 or found is not None


def test_it_ends_when_time_is_up() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    with pytest.raises(OutOfTime):
        fit_surrogate(X, np.sin(3 * X[:, 0]), units=np.ones(60), spread=1.0, out_of_time=lambda: True)


def test_typical_leaves_out_the_largest_tenth() -> None:
    assert typical(np.array([2.0] * 9 + [1e6])) == 2.0
    assert typical(np.array([3.0])) == 3.0


def test_one_sign() -> None:
    assert is_one_sign(np.array([1.0, 2.0])) and is_one_sign(np.array([-1.0, -2.0]))
    assert not is_one_sign(np.array([0.0, 2.0])) and not is_one_sign(np.array([-1.0, 2.0]))


def test_a_surrogate_that_knows_no_more_than_a_constant_is_hopeless_whatever_the_tails():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (200, 2))
    noise, law = rng.standard_t(1.2, 200), 1 / (0.01 + (X[:, 0] - X[:, 1]) ** 2)
    of_noise, of_law = (fit_surrogate(X, y, units=np.ones(200), spread=float(np.std(y))) for y in (noise, law))
    assert of_noise.error < SYMMETRIES.hopeless and of_noise.is_hopeless and not of_law.is_hopeless


def test_a_kernel_that_rounding_left_not_definite_is_damped_more():
    """Of columns over many magnitudes and one of whole numbers; it ended all looks at the data."""
    kernel = np.array([[1.0, 1.0 + 5e-12], [1.0 + 5e-12, 1.0]])
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(kernel)
    triangle = np.tril(module._factor(kernel, 0.0, 1.0)[0])
    assert np.abs(triangle @ triangle.T - kernel).max() < 1e-9
