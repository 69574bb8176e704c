"""The table of losses: slopes and curvatures against differences, squares that stand for them, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.search.losses.losses import LOSSES, find_loss, working
from gmeql.search.data.rows import SearchRows
from gmeql.search.config import SearchConfig

VALUED = [name for name, loss in LOSSES.items() if loss.value is not None] + ["quantile:0.9"]


def rows(loss: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    f = rng.uniform(0.5, 4, 60)
    if loss == "logistic":
        return f - 2, rng.integers(0, 2, 60).astype(float)
    return f, rng.poisson(2, 60).astype(float) + (0.0 if loss == "poisson" else 0.3)


@pytest.mark.parametrize("name", VALUED)
def test_slopes_are_those_of_the_values(name: str) -> None:
    loss, (f, y) = find_loss(name), rows(name)
    step = 1e-6
    difference = (loss.value(f + step, y) - loss.value(f - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.slope(f, y), difference, atol=1e-5)


@pytest.mark.parametrize("name", VALUED)
def test_a_step_to_the_working_target_never_increases_the_loss(name: str) -> None:
    """Where every row may take its own value, the square's minimum is no worse than where it was made."""
    loss, (f, y) = find_loss(name), rows(name)
    target, weights = working(name, f, y, explained=True)
    assert (weights > 0).all()
    assert np.sum(loss.value(f + 0.5 * (target - f), y)) < np.sum(loss.value(f, y))


@pytest.mark.parametrize("name", sorted(set(VALUED) - {"logistic"}))
def test_losses_of_numbers_keep_the_target(name: str) -> None:
    f, y = rows(name)
    np.testing.assert_allclose(working(name, f, y, explained=True)[0], y, atol=1e-9)


def test_an_own_loss_is_differentiated() -> None:
    f, y = rows("absolute")
    target, weights = working(lambda y, f: (f - y) ** 2, f, y, explained=True)
    np.testing.assert_allclose(weights, 2.0, rtol=1e-4)
    np.testing.assert_allclose(target, y, atol=1e-3)
    with pytest.raises(ValueError, match="one number for each"):
        working(lambda y, f: 1.0, f, y, explained=True)


@pytest.mark.parametrize("loss", ["cubic", 3, "quantile:2", "quantile:x", None])
def test_what_is_no_loss_is_refused_with_what_is(loss) -> None:
    with pytest.raises(ValueError, match="quantile"):
        find_loss(loss)


@pytest.mark.parametrize(("loss", "y"), [("poisson", [-1.0, 2.0]), ("logistic", [0.0, 2.0]), ("relative", [0.0, 0.0])])
def test_targets_outside_the_domain_are_refused(loss: str, y: list[float]) -> None:
    with pytest.raises(ValueError, match="needs a target"):
        SearchRows.of(np.arange(2.0)[:, None], np.array(y), config=SearchConfig(loss=loss))


def test_a_loss_made_of_jax_is_differentiated_by_jax_in_double_precision() -> None:
    jax = pytest.importorskip("jax")

    def log_cosh(y, f):
        return jax.numpy.logaddexp(f - y, y - f) - jax.numpy.log(2.0)

    rng = np.random.default_rng(0)
    f, y = rng.standard_normal(50), rng.standard_normal(50)
    own, known = find_loss(log_cosh), find_loss("log-cosh")
    np.testing.assert_allclose(own.value(f, y), known.value(f, y), atol=1e-12)
    np.testing.assert_allclose(own.slope(f, y), known.slope(f, y), atol=1e-12)
    assert own.slope(f, y).dtype == np.float64
