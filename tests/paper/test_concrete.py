"""The relaxation against theory: appendix A by sampling, appendix B by automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gmeql.paper import concrete as relaxation

SAMPLES = 100_000


class concrete:
    uniform = staticmethod(jax.jit(relaxation.uniform, static_argnums=1))
    gumbel = staticmethod(jax.jit(relaxation.gumbel))
    log_selection = staticmethod(jax.jit(relaxation.log_selection))
    logits_gradient = staticmethod(jax.jit(relaxation.logits_gradient))
    log_density = staticmethod(jax.jit(relaxation.log_density))
    log_density_gradient = staticmethod(jax.jit(relaxation.log_density_gradient))
    density_optimum = staticmethod(jax.jit(relaxation.density_optimum))
    squared_difference_gradient = staticmethod(jax.jit(relaxation.squared_difference_gradient))


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def random_case(seed, connections=7, choices=6):
    """Logits, log-selections from real noise, and a mask with 2 to `choices` real entries a row."""
    rng = np.random.default_rng(seed)
    logits = jnp.asarray(rng.normal(size=(connections, choices)))
    counts = rng.integers(2, choices + 1, connections)
    mask = np.arange(choices) < counts[:, None]
    noise = concrete.gumbel(jnp.asarray(rng.uniform(size=(connections, choices))))
    return logits, noise, mask


@pytest.mark.parametrize("temperature", [0.1, 2 / 3, 2.0])
def test_appendix_a_argmax_frequencies_are_the_softmax(temperature):
    logits = jnp.array([1.2, -0.3, 0.0, 0.7, -2.0, 9.9])
    mask = np.array([True, True, True, True, True, False])
    bits = jax.random.bits(jax.random.key(4), (SAMPLES, 6), jnp.uint32)
    noise = concrete.gumbel(concrete.uniform(bits, jnp.float32))
    relaxed = concrete.log_selection(logits, noise, temperature, mask)
    counts = np.bincount(np.argmax(np.asarray(relaxed), axis=1), minlength=6)
    expected = np.append(np.asarray(jax.nn.softmax(logits[:5])), 0.0)
    errors = np.sqrt(expected * (1 - expected) / SAMPLES)
    assert (np.abs(counts / SAMPLES - expected) <= 4 * errors).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniforms_stay_inside_the_open_interval(x64, dtype):
    ends = concrete.uniform(jnp.array([0, 2**32 - 1], jnp.uint32), jnp.dtype(dtype))
    assert 0 < ends[0] < ends[1] < 1
    assert np.isfinite(concrete.gumbel(ends)).all()


def test_gumbel_noise_has_the_gumbel_distribution():
    uniforms = concrete.uniform(jax.random.bits(jax.random.key(0), (SAMPLES,), jnp.uint32), jnp.float32)
    noise = np.sort(np.asarray(concrete.gumbel(uniforms), float))
    distance = np.abs(np.exp(-np.exp(-noise)) - (np.arange(SAMPLES) + 0.5) / SAMPLES).max()
    assert distance < 1.95 / np.sqrt(SAMPLES)  # Kolmogorov-Smirnov, 0.1 %


@pytest.mark.parametrize("temperature", [0.1, 2 / 3, 2.0])
def test_selection_is_a_distribution_over_the_real_choices(temperature):
    logits, noise, mask = random_case(1)
    selection = np.exp(np.asarray(concrete.log_selection(logits, noise, temperature, mask)))
    np.testing.assert_allclose(selection.sum(axis=1), 1.0, rtol=1e-6)
    assert (selection[~mask] == 0).all()


total_slope = jax.jit(jax.grad(lambda logits, *given: jnp.sum(relaxation.log_density(logits, *given))))


@pytest.mark.parametrize("temperature", [0.1, 2 / 3, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_appendix_b_gradient_equals_automatic_differentiation(x64, temperature, seed):
    logits, noise, mask = random_case(seed)
    chosen = concrete.log_selection(logits, noise, temperature, mask)
    closed = concrete.log_density_gradient(logits, chosen, temperature, mask)
    total = total_slope(logits, chosen, temperature, mask)
    np.testing.assert_allclose(closed, total, atol=1e-10, rtol=0)
    assert np.abs(closed).max() > 0.1


def test_density_is_the_one_the_paper_states(x64):
    z, x, t = np.array([0.3, -1.0, 0.5]), np.array([0.2, 0.5, 0.3]), 2 / 3
    a = np.exp(z)
    product = np.prod(a * x ** (-t - 1) / np.sum(a * x**-t))
    stated = np.log(2.0 * t**2 * product)
    found = concrete.log_density(jnp.asarray(z), jnp.log(jnp.asarray(x)), t)
    np.testing.assert_allclose(found, stated, rtol=1e-12)


def test_closed_form_is_the_papers_sum(x64):
    z, x, t = np.array([0.3, -1.0, 0.5, 0.1]), np.array([0.2, 0.4, 0.3, 0.1]), 0.5
    pull = np.exp(z) * x**-t
    stated = [(pull.sum() - p - 3 * p) / pull.sum() for p in pull]
    found = concrete.log_density_gradient(jnp.asarray(z), jnp.log(jnp.asarray(x)), t)
    np.testing.assert_allclose(found, stated, atol=1e-14)


@pytest.mark.parametrize("temperature", [0.1, 2 / 3, 2.0])
def test_appendix_b_optimum_has_no_gradient(x64, temperature):
    logits, noise, mask = random_case(5)
    chosen = concrete.log_selection(logits, noise, temperature, mask)
    best = concrete.density_optimum(chosen, temperature)
    assert np.abs(concrete.log_density_gradient(best, chosen, temperature, mask)).max() < 1e-10
    assert np.abs(concrete.squared_difference_gradient(best, chosen, temperature, mask)).max() < 1e-10


def test_squared_difference_gradient_equals_automatic_differentiation(x64):
    logits, noise, mask = random_case(6)
    chosen = concrete.log_selection(logits, noise, 0.5, mask)

    def objective(z):
        return jnp.sum(jnp.where(mask, (jnp.exp(z) - jnp.exp(chosen) ** 0.5) ** 2, 0.0))

    closed = concrete.squared_difference_gradient(logits, chosen, 0.5, mask)
    np.testing.assert_allclose(closed, jax.jit(jax.grad(objective))(logits), atol=1e-10)


def test_selection_gradient_equals_automatic_differentiation(x64):
    logits, noise, mask = random_case(7)
    slopes = jnp.asarray(np.random.default_rng(0).normal(size=logits.shape))

    def pulled(z):
        return jnp.sum(slopes * jnp.exp(concrete.log_selection(z, noise, 2 / 3, mask)))

    selection = jnp.exp(concrete.log_selection(logits, noise, 2 / 3, mask))
    found = concrete.logits_gradient(selection, slopes, 2 / 3)
    np.testing.assert_allclose(found, jax.jit(jax.grad(pulled))(logits), atol=1e-12)


def test_extreme_logits_keep_everything_finite():
    logits = jnp.array([200.0, -200.0, 0.0], jnp.float32)
    chosen = concrete.log_selection(logits, jnp.zeros(3, jnp.float32), 0.1)
    assert np.isfinite(chosen).all()
    assert np.isfinite(concrete.log_density_gradient(-logits, chosen, 0.1)).all()
