"""Method "paper": against a slow NumPy version of Algorithm 1, seeds alone and in a batch, resume, bad input."""

from functools import lru_cache

import jax
import numpy as np
import pytest
import reference

from gmeql import two_stage
from gmeql.architecture import Architecture
from gmeql.two_stage import RunState, TwoStageConfig, run

SMALL = dict(
    stage1_rounds=2, stage1_steps=4, stage2_steps=8, samples_per_step=4, offline_batch=3, capacity=6, chunk_steps=4,
    curve_every=1, logits_rate=0.05, weights_rate=0.03, offline_rate=0.04,
)  # fmt: skip
TINY = Architecture(2, (("square", "sin", "sub"), ("add", "sum")))
TWO_OUTPUTS = Architecture(2, (("mul", "cos"), ("sum", "div", "id")), n_outputs=2)


def data(n_outputs=1, rows=12, n_variables=2):
    rng = np.random.default_rng(3)
    X = rng.uniform(0.3, 2.0, (rows, n_variables))
    targets = np.stack([X[:, 0] ** 2 + 0.5 * X[:, 1], np.sin(X[:, 1]) - X[:, 0]], axis=1)
    return X, targets[:, :n_outputs]


def finish(*args, **options):
    progress = None
    for progress in run(*args, **options):
        pass
    return progress


@lru_cache
def small_run(seeds=(5, 6, 7), dtype="float32", **changes):
    X, y = data()
    return finish(TINY, X, y, seeds=seeds, config=TwoStageConfig(**{**SMALL, **changes}), dtype=dtype)


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        (TINY, {}),
        (TINY, {"refresh_elites": True, "resample_fraction": 0.5}),
        (TINY, {"use_elites": False, "use_stage1": False}),
        (TINY, {"use_offline": False, "gradient_clip": 0.02, "fill_first": True}),
        (TWO_OUTPUTS, {"offline_rule": "squared_difference", "temperature": 1.0}),
        (TWO_OUTPUTS, {"weights_mean": 1.0, "weights_scale": 0.1, "logits_scale": 0.5, "resample_fraction": 1.0}),
    ],
)
def test_whole_run_equals_the_slow_version(architecture, changes):
    config = TwoStageConfig(**{**SMALL, **changes})
    X, y = data(architecture.n_outputs)
    seed = 11
    progress = finish(architecture, X, y, seeds=[seed], config=config, dtype="float64")
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[0], progress.state.arrays)

    program = two_stage._Program(architecture, config, "float64", config.refresh_elites, 1)
    knobs = jax.tree.map(lambda leaf: leaf[0], two_stage._stack_knobs([config], "float64"))
    blank = jax.tree.map(lambda leaf: leaf[0], two_stage.initial_state(architecture, config, [seed], "float64"))

    def initial(step):
        with jax.enable_x64(True):
            fresh = two_stage._initialise(program, knobs, blank._replace(step=np.int32(step)))
        return np.asarray(fresh.logits), np.asarray(fresh.weights)

    def noise(step):
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, two_stage._noise(program, np.uint32(seed), np.int32(step)))

    slow = reference.two_stage(architecture, X, y, config, initial, noise)
    near = dict(rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(progress.result.curves.mean[:, 0], slow["means"], **near)
    np.testing.assert_allclose(state.logits, slow["logits"] * architecture.choice_mask, **near)
    np.testing.assert_allclose(state.weights, slow["weights"], **near)
    filled = len(slow["elites"])
    np.testing.assert_allclose(state.elites.losses[:filled], [e["loss"] for e in slow["elites"]], **near)
    assert np.isinf(state.elites.losses[filled:]).all()
    stored = np.exp(state.elites.items[:filled]) * architecture.choice_mask
    np.testing.assert_allclose(stored, [e["selections"] for e in slow["elites"]], **near)

    best, result = slow["best"], progress.result
    assert result.found_at[0] == best["step"]
    np.testing.assert_allclose(result.loss[0], best["loss"], **near)
    np.testing.assert_allclose(result.weights[0], best["weights"], **near)
    hard = reference.hard(architecture, best["selections"])
    np.testing.assert_array_equal(result.choices[0], hard.argmax(axis=1))
    hard_loss = reference.loss(architecture, hard, best["weights"], X, y).real
    np.testing.assert_allclose(result.hard_loss[0], hard_loss, **near)
