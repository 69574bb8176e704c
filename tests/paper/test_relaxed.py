"""The relaxed network against loops, its gradients against complex steps, and no nan anywhere."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from thinned import thinned

import reference
from gmeql.formula.operators import OPERATORS
from gmeql.network.architecture import Architecture
from gmeql.paper import relaxed

NAMES = sorted(reference.FUNCTIONS)


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def random_architecture(seed):
    rng = np.random.default_rng(seed)
    layers = []
    for _ in range(rng.integers(1, 4)):
        layer = [str(name) for name in rng.choice(NAMES, rng.integers(1, 4))]
        if rng.uniform() < 0.6:
            layer.append("sum")
        if seed % 4 == 0:
            layer.append("prod")
        layers.append(tuple(rng.permutation(layer).tolist()))
    return Architecture(
        n_variables=int(rng.integers(1, 4)), layers=tuple(layers), n_outputs=int(rng.integers(1, 4)),
        constants=(1.0, float(np.pi)) if seed % 3 == 0 else (1.0,), skip=seed % 5 == 1,
    )  # fmt: skip


def random_instance(architecture, seed, rows=9):
    rng = np.random.default_rng(100 + seed)
    shape = (architecture.n_connections, architecture.max_choices)
    selections = np.where(architecture.choice_mask, rng.uniform(0.05, 1.0, shape), 0.0)
    selections /= selections.sum(axis=1, keepdims=True)
    weights = rng.normal(size=architecture.n_weights)
    X = rng.uniform(-1.5, 1.5, (rows, architecture.n_variables))
    return selections, weights, X, rng.normal(size=(rows, architecture.n_outputs))


@pytest.mark.parametrize("seed", thinned(range(12), quick=(0, 1, 3)))
def test_forward_gradients_and_hard_pass_equal_the_slow_version(seed):
    architecture = random_architecture(seed)
    selections, weights, X, y = random_instance(architecture, seed)
    near = dict(rtol=1e-9, atol=1e-10)

    @jax.jit  # as one program: operation by operation, every new shape would be compiled on its own
    def fast(selections, weights, columns, targets):
        loss = partial(relaxed.mean_absolute_error, architecture)
        choices = relaxed.choices_of(architecture, jnp.log(selections + 1e-300))
        hard = relaxed.hard_selections(architecture, choices, "float64")
        soft_value = relaxed.forward(architecture, selections, weights, columns)
        hard_value = relaxed.forward(architecture, hard, weights, columns)
        return (
            soft_value,
            jax.value_and_grad(loss, argnums=(0, 1))(selections, weights, columns, targets),
            hard,
            hard_value,
        )

    found, (value, slopes), hard, hard_found = fast(selections, weights, X.T, y.T)
    np.testing.assert_allclose(found, reference.forward(architecture, selections, weights, X).real, **near)
    np.testing.assert_allclose(value, reference.loss(architecture, selections, weights, X, y).real, **near)
    by_selection, by_weight = reference.gradients(architecture, selections, weights, X, y)
    np.testing.assert_allclose(np.where(architecture.choice_mask, slopes[0], 0.0), by_selection, **near)
    np.testing.assert_allclose(slopes[1], by_weight, **near)

    np.testing.assert_array_equal(hard, reference.hard(architecture, selections))
    slow = reference.forward(architecture, reference.hard(architecture, selections), weights, X).real
    np.testing.assert_allclose(hard_found, slow, **near)


@pytest.mark.parametrize("seed", thinned(range(6), quick=(0, 3)))
def test_equal_fingerprints_mean_equal_expressions(seed):
    architecture = random_architecture(seed)
    rng = np.random.default_rng(seed)
    choices = rng.integers(0, architecture.n_choices, (200, architecture.n_connections))
    marks = architecture.fingerprints(choices.astype(np.int32), np)
    same = {}
    for row, mark in zip(choices, marks, strict=True):
        text = reference.expression(architecture, np.eye(architecture.max_choices)[row])
        assert same.setdefault(tuple(mark), text) == text
    assert len(set(same.values())) == len(same)
    with_jax = architecture.fingerprints(jnp.asarray(choices, jnp.int32), jnp)
    np.testing.assert_array_equal(with_jax, marks)


EDGES = [0.0, -0.0, 1.0, -1.0, -2.5, 0.5, 1e-30, -1e-30, 1e-12, 100.0]
"""Where operators change from natural to protected, or have no slope; the largest numbers are added by each test."""


def pairs_of(values, dtype):
    return jnp.asarray(np.stack([a.ravel() for a in np.meshgrid(values, values)]), dtype)


@pytest.mark.parametrize(
    ("dtype", "largest"), [pytest.param("float32", 1e10, marks=pytest.mark.slow), ("float64", 1e30)]
)
def test_no_operator_makes_the_network_or_its_gradients_overflow(dtype, largest):
    columns = pairs_of([*EDGES, largest, -largest], dtype)

    def total(architecture, selections, weights, column):
        return jnp.sum(relaxed.forward(architecture, selections, weights, column[:, None]))

    @jax.jit
    def values_and_slopes(columns):
        found = {}
        for name in OPERATORS:
            architecture = Architecture(2, ((name,), ("id",)))
            choices = jnp.asarray((np.arange(architecture.n_connections) % 2) * (architecture.n_choices > 1), jnp.int32)
            selections = relaxed.hard_selections(architecture, choices, dtype)
            weights = jnp.ones(architecture.n_weights, jnp.dtype(dtype))
            each = jax.value_and_grad(partial(total, architecture), argnums=(0, 1, 2))
            found[name] = jax.vmap(each, in_axes=(None, None, 1))(selections, weights, columns)
        return found

    for name, (value, slopes) in values_and_slopes(columns).items():
        assert np.isfinite(value).all(), name
        for slope in slopes:
            assert np.isfinite(slope).all(), name


def test_several_outputs_are_averaged():
    architecture = Architecture(1, (("id",),), n_outputs=2)
    selections = relaxed.hard_selections(architecture, jnp.zeros(3, jnp.int32), "float64")
    X, targets = jnp.ones((1, 4)), jnp.stack([jnp.full(4, 3.0), jnp.full(4, 0.0)])
    loss = relaxed.mean_absolute_error(architecture, selections, jnp.ones(3), X, targets)
    assert float(loss) == pytest.approx(1.5)
