"""A network as CUDA source: values, slopes and hashes of `relaxed.forward` and `Architecture.fingerprints`."""

import ctypes

import jax
import numpy as np
import pytest
from host_cuda import library, needs_compiler

from gmeql.formula.operators import get_operator
from gmeql.network.architecture import Architecture, architecture_preset
from gmeql.paper import relaxed
from gmeql.paper.two_stage import TwoStageConfig
from gmeql.paper.two_stage.cuda.network import FORMS, lacks
from gmeql.paper.two_stage.cuda.source import source

EVERY = Architecture(
    2, (("id", "square", "cube", "pow4", "pow5", "pow6"), ("sin", "cos", "sqrt", "sum"), ("add", "sub", "mul", "div"))
)
CALLS = """
extern "C" float evaluate_one(const float* s, const float* w, const float* x, const float* y, int rows, float* g, float* h) {
    return evaluate_instance<true>(s, w, Rows{x, y, rows, 0, rows}, g, h);
}
extern "C" unsigned int hash_one(const int* choice, int half) { return fingerprint(choice, half); }
"""


def compiled(architecture):
    return library(source(architecture, TwoStageConfig(capacity=4, samples_per_step=2, offline_batch=2)) + CALLS)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def evaluated(built, selections, weights, columns, targets):
    """Loss, gradient by selections and gradient by weights."""
    built.evaluate_one.restype = ctypes.c_float
    arrays = [np.ascontiguousarray(a, np.float32) for a in (selections, weights, columns, targets)]
    slopes = [np.zeros_like(arrays[0]), np.zeros_like(arrays[1])]
    loss = built.evaluate_one(*map(pointer, arrays), columns.shape[1], *map(pointer, slopes))
    return loss, *slopes


@needs_compiler
def test_values_and_slopes_are_those_of_the_relaxed_network():
    built, rng = compiled(EVERY), np.random.default_rng(1)
    scores = np.where(EVERY.choice_mask, rng.normal(size=EVERY.choice_mask.shape), -np.inf)
    selections = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    weights, columns = rng.uniform(0.5, 1.2, EVERY.n_weights), rng.uniform(0.2, 1.5, (2, 50))
    targets = rng.normal(size=(1, 50))
    loss_of = jax.jit(
        jax.value_and_grad(lambda s, w: relaxed.mean_absolute_error(EVERY, s, w, columns, targets), argnums=(0, 1))
    )
    with jax.enable_x64(True):
        loss, (by_selection, by_weight) = loss_of(selections, weights)
    found = evaluated(built, selections, weights, columns, targets)
    assert found[0] == pytest.approx(float(loss), rel=1e-5)
    np.testing.assert_allclose(found[1] * EVERY.choice_mask, by_selection, rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(found[2], by_weight, rtol=2e-3, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("denominator", [0.0, 1e-13, 1e-4, -0.5])
def test_quotients_and_roots_are_protected_alike(denominator):
    network = Architecture(2, (("div",), ("sqrt",)))
    built, selections = compiled(network), np.zeros(network.choice_mask.shape)
    selections[[0, 1, 2, 3], [0, 1, 0, 0]] = 1.0
    columns, weights = np.array([[0.3, -2.0], [denominator] * 2]), np.ones(network.n_weights)
    loss, *_ = evaluated(built, selections, weights, columns, np.zeros((1, 2)))
    inner = get_operator("div").protected(np, columns[0], columns[1])
    assert loss == pytest.approx(float(np.mean(get_operator("sqrt").protected(np, inner))), rel=1e-5)


@needs_compiler
def test_equal_expressions_have_the_hash_of_the_repository():
    built, rng = compiled(EVERY), np.random.default_rng(2)
    built.hash_one.restype = ctypes.c_uint
    choices = rng.integers(0, EVERY.n_choices, (30, EVERY.n_connections)).astype(np.int32)
    expected = EVERY.fingerprints(choices)
    found = [[built.hash_one(pointer(row), half) for half in (0, 1)] for row in choices]
    np.testing.assert_array_equal(found, expected)


def test_the_papers_networks_have_all_their_functions_here():
    for name in ("released", "general", "power_sum", "wave_sum", "wave_product", "modulated_product", "root_of_ratio"):
        assert lacks(architecture_preset(name, 3)) == ()
    assert lacks(Architecture(1, (("exp", "prod"), ("log",)))) == ("exp", "log", "prod")
    assert all(len(form.slopes) == get_operator(name).arity for name, form in FORMS.items())
