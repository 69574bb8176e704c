"""Runs of Algorithm 1: seeds alone and in a batch, settings side by side, resume, compilations."""

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from gmeql.network.architecture import Architecture
from gmeql.paper.two_stage import RunState, TwoStageConfig, run
from gmeql.paper.two_stage.chunks import COMPILATIONS
from two_stage_runs import SMALL, TINY, data, finish, small_run


def compare_alone_and_in_a_batch(rtol):
    """The run of seed 6 by itself and among others; rounding apart where the compiler writes other loops for each."""
    together = small_run((5, 6, 7)).state.arrays
    alone = small_run((6,)).state.arrays
    for batched, single in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(np.asarray(batched)[1], np.asarray(single)[0], rtol=rtol, atol=rtol)
    assert not np.array_equal(together.weights[0], together.weights[1])


def test_same_seed_same_result_alone_and_in_a_batch():
    compare_alone_and_in_a_batch(rtol=1e-5)


@pytest.mark.slow
def test_the_same_to_rounding_as_jax_compiles_for_users():
    """Tests tell its compiler to be quick (`tests/conftest.py`), which rounds otherwise. On some processors it gives a batch
    loops of its own, which round once otherwise in 16 steps."""
    tests = Path(__file__).parents[2]
    code = f"import sys\nsys.path[:0] = [{str(tests)!r}, {str(Path(__file__).parent)!r}]\nimport test_run\n"
    code += "test_run.compare_alone_and_in_a_batch(rtol=1e-6)\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_settings_side_by_side_equal_settings_alone():
    X, y = data()
    settings = [
        TwoStageConfig(**SMALL, temperature=t, use_elites=e) for t, e in ((0.3, True), (1.0, False), (0.5, True))
    ]
    together = finish(TINY, X, y, seeds=[1, 2, 3], config=settings).result
    alone = finish(TINY, X, y, seeds=[2], config=settings[1]).result
    np.testing.assert_array_equal(together.log_selections[1], alone.log_selections[0])


def test_a_resumed_run_ends_like_an_unbroken_one():
    X, y = data()
    config = TwoStageConfig(**SMALL)
    events = run(TINY, X, y, seeds=[5, 6, 7], config=config)
    next(events)
    stopped = next(events)
    stored = {name: array.copy() for name, array in stopped.state.to_arrays().items()}
    resumed = finish(TINY, X, y, seeds=[5, 6, 7], config=config, state=RunState.from_arrays(stored))
    whole = small_run((5, 6, 7))
    for a, b in zip(jax.tree.leaves(resumed.state.arrays), jax.tree.leaves(whole.state.arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(resumed.result.curves.mean, whole.result.curves.mean)
    np.testing.assert_array_equal(resumed.result.curves.steps, np.arange(1, 17))


@pytest.mark.slow
def test_chunk_size_does_not_matter():
    whole, pieces = small_run((5,)).result, small_run((5,), chunk_steps=2).result
    np.testing.assert_array_equal(whole.log_selections, pieces.log_selections)
    np.testing.assert_array_equal(whole.curves.mean, pieces.curves.mean)


@pytest.mark.slow
def test_compilations_are_bounded():
    X, y = data(rows=13)  # a shape no other test uses
    before = COMPILATIONS[0]
    for temperature in (0.4, 0.8):
        config = TwoStageConfig(**SMALL, temperature=temperature)
        finish(TINY, X, y, seeds=[1], config=config)
        finish(TINY, X, y, seeds=[2], config=config)
    assert COMPILATIONS[0] - before == 1  # both stages, all rounds, seeds, settings and chunks
    finish(TINY, X, y, seeds=[1], config=TwoStageConfig(**{**SMALL, "stage2_steps": 7}))
    assert COMPILATIONS[0] - before == 2  # and one for the remainder of a stage


@pytest.mark.slow
def test_learns_a_simple_formula():
    X = np.linspace(-2, 2, 40)[:, None]
    config = TwoStageConfig.released(
        stage1_rounds=1, stage1_steps=1000, stage2_steps=5000, samples_per_step=10, offline_batch=10, capacity=20,
        weights_rate=0.01, chunk_steps=1000,
    )  # fmt: skip
    architecture = Architecture(1, (("square", "sin"), ("add",)))
    result = finish(architecture, X, 1.3 * X[:, 0] ** 2, seeds=[0, 1, 2], config=config).result
    assert result.hard_loss.min() < 0.005
    assert np.isfinite(result.loss).all()


def test_a_state_of_another_run_is_refused():
    X, y = data()
    state = small_run((5,)).state
    with pytest.raises(ValueError, match="another run"):
        run(TINY, X, y, seeds=[5], config=TwoStageConfig(**{**SMALL, "capacity": 9}), state=state)
    with pytest.raises(ValueError, match="seeds"):
        run(TINY, X, y, seeds=[4], config=TwoStageConfig(**SMALL), state=state)
    with pytest.raises(ValueError, match="leaf_00"):
        RunState.from_arrays({})


def test_a_state_written_before_rounds_were_merged_goes_on():
    X, y = data()
    config = TwoStageConfig(**SMALL)
    events = run(TINY, X, y, seeds=[5], config=config)
    arrays = next(events).state.to_arrays()
    number = len(arrays)
    old = [arrays[f"leaf_{i:02d}"] for i in range(number) if not number - 7 <= i < number - 4]  # without `kept`
    state = RunState.from_arrays({f"leaf_{i:02d}": leaf for i, leaf in enumerate(old)})
    resumed = finish(TINY, X, y, seeds=[5], config=config, state=state)
    np.testing.assert_array_equal(resumed.result.log_selections, small_run((5,)).result.log_selections)


def test_the_mode_of_the_final_logits_is_reported_beside_the_best():
    progress = small_run((5, 6, 7))
    logits = np.where(TINY.choice_mask, progress.state.arrays.logits, -np.inf)
    np.testing.assert_array_equal(progress.result.mode, logits.argmax(axis=-1))
    np.testing.assert_array_equal(progress.result.mode_weights, progress.state.arrays.weights)
