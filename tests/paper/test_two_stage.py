"""Method "paper": against a slow NumPy version of Algorithm 1, seeds alone and in a batch, resume, bad input."""

from functools import lru_cache

import jax
import numpy as np
import pytest

import reference
from gmeql.network.architecture import Architecture
from gmeql.paper import two_stage
from gmeql.paper.two_stage import RunState, TwoStageConfig, run

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

    initialise = jax.jit(lambda step: two_stage._initialise(program, knobs, blank._replace(step=step)))
    draw_noise = jax.jit(lambda step: two_stage._noise(program, np.uint32(seed), step))

    def initial(step):
        with jax.enable_x64(True):
            fresh = initialise(np.int32(step))
        return np.asarray(fresh.logits), np.asarray(fresh.weights)

    def noise(step):
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, draw_noise(np.int32(step)))

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


def test_same_seed_same_result_alone_and_in_a_batch():
    together = small_run((5, 6, 7)).state.arrays
    alone = small_run((6,)).state.arrays
    for batched, single in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
        np.testing.assert_array_equal(np.asarray(batched)[1], np.asarray(single)[0])
    assert not np.array_equal(together.weights[0], together.weights[1])


def test_settings_side_by_side_equal_settings_alone():
    X, y = data()
    settings = [TwoStageConfig(**SMALL, temperature=t, use_elites=e) for t, e in ((0.3, True), (1.0, False))]
    together = finish(TINY, X, y, seeds=[1, 2], config=settings).result
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


def test_chunk_size_does_not_matter():
    whole, pieces = small_run((5,)).result, small_run((5,), chunk_steps=2).result
    np.testing.assert_array_equal(whole.log_selections, pieces.log_selections)
    np.testing.assert_array_equal(whole.curves.mean, pieces.curves.mean)


def test_compilations_are_bounded():
    X, y = data(rows=13)  # a shape no other test uses
    before = two_stage.COMPILATIONS[0]
    for temperature in (0.4, 0.8):
        config = TwoStageConfig(**SMALL, temperature=temperature)
        finish(TINY, X, y, seeds=[1], config=config)
        finish(TINY, X, y, seeds=[2], config=config)
    assert two_stage.COMPILATIONS[0] - before == 1  # both stages, all rounds, seeds, settings and chunks
    finish(TINY, X, y, seeds=[1], config=TwoStageConfig(**{**SMALL, "stage2_steps": 7}))
    assert two_stage.COMPILATIONS[0] - before == 2  # and one for the remainder of a stage


def test_best_is_kept_with_the_weights_it_had():
    progress = small_run((5, 6, 7), "float64", stage2_steps=20)
    result = progress.result
    X, y = data()
    for i in range(3):
        selections = np.exp(result.log_selections[i]) * TINY.choice_mask
        assert reference.loss(TINY, selections, result.weights[i], X, y).real == pytest.approx(result.loss[i], rel=1e-9)
    assert (np.diff(result.curves.best, axis=0) <= 0).all()
    np.testing.assert_array_equal(result.curves.best[-1], result.loss)
    np.testing.assert_allclose(np.minimum.accumulate(result.curves.lowest)[-1], result.loss)


def test_stage_one_leaves_the_weights_alone():
    X, y = data()
    config = TwoStageConfig(**SMALL)
    events = run(TINY, X, y, seeds=[5], config=config)
    first, second = next(events), next(events)
    assert (first.stage, second.stage) == (1, 1)
    moments = first.state.arrays.online_weights
    assert not np.any(moments.mean) and not np.any(first.state.arrays.offline_logits.mean)
    assert np.any(first.state.arrays.online_logits.mean)
    assert not np.array_equal(first.state.arrays.weights, second.state.arrays.weights)  # a new round starts afresh


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


def test_overflowing_instances_do_not_poison_the_run():
    X, y = data()
    architecture = Architecture(2, (("pow6", "id"), ("pow6", "mul", "id"), ("mul", "sum")))
    result = finish(architecture, X * 1e6, y, seeds=[0, 1], config=TwoStageConfig(**SMALL))
    state = result.state.arrays
    assert np.isfinite(state.logits).all() and np.isfinite(state.weights).all()
    assert not np.isnan(state.elites.losses).any()


def test_presets_hold_the_numbers_of_text_and_code():
    paper, released = TwoStageConfig.paper(), TwoStageConfig.released()
    assert (paper.stage1_rounds, paper.stage1_steps, paper.stage2_steps) == (3, 2000, 48_000)
    assert (paper.samples_per_step, paper.offline_batch, paper.capacity) == (40, 40, 400)
    assert (paper.resample_fraction, paper.temperature, paper.logits_rate) == (0.2, 2 / 3, 1e-3)
    assert released.total_steps == 6 * 8000 + 50_000
    assert (released.resample_fraction, released.gradient_clip, released.offline_rate) == (1.0, 1.0, 3e-4)
    assert TwoStageConfig(use_stage1=False).segments == (48_000,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": [["sin", "sinus"]]}, "layer 1.*unknown operator 'sinus'"),
        ({"architecture": []}, "at least one layer"),
        ({"architecture": [["sum"]], "y": np.zeros((12, 0))}, "at least one column"),
        (
            {"X": np.where(np.arange(24).reshape(12, 2) == 5, np.nan, 1.0)},
            "X must be finite, got nan in row 2, column 1",
        ),
        ({"y": np.arange(11.0)}, "one row for each of the 12 rows"),
        ({"y": np.full(12, 3.0)}, "y is constant"),
        ({"X": np.ones((1, 2)), "y": np.ones(1)}, "at least 2 rows, got 1"),
        ({"X": np.ones(12)}, "X must have shape"),
        ({"X": data()[0] * 1e300}, "must fit into float32"),
        ({"seeds": []}, "seeds must be one or more"),
        ({"seeds": [-1]}, "seeds must be one or more"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"seeds": [1, 2], "config": [TwoStageConfig()]}, "one per seed"),
        ({"seeds": [1, 2], "config": [TwoStageConfig(), TwoStageConfig(capacity=3)]}, "capacity must be the same"),
    ],
)
def test_bad_input_is_refused_before_any_compilation(change, message):
    X, y = data()
    arguments = {"architecture": TINY, "X": X, "y": y[:, 0], "seeds": [0], "config": TwoStageConfig(**SMALL)} | change
    before = two_stage.COMPILATIONS[0]
    with pytest.raises(ValueError, match=message):
        run(arguments.pop("architecture"), arguments.pop("X"), arguments.pop("y"), **arguments)
    assert two_stage.COMPILATIONS[0] == before


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 0.0), ("resample_fraction", 1.5), ("capacity", 0), ("offline_rule", "other"), ("stage1_rounds", -1),
     ("logits_rate", -1e-3), ("gradient_clip", 0.0), ("adam_decay", 1.0), ("samples_per_step", 2.5)],
)  # fmt: skip
def test_bad_numbers_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        TwoStageConfig(**{name: value})


def test_a_state_of_another_run_is_refused():
    X, y = data()
    state = small_run((5,)).state
    with pytest.raises(ValueError, match="another run"):
        run(TINY, X, y, seeds=[5], config=TwoStageConfig(**{**SMALL, "capacity": 9}), state=state)
    with pytest.raises(ValueError, match="seeds"):
        run(TINY, X, y, seeds=[4], config=TwoStageConfig(**SMALL), state=state)
    with pytest.raises(ValueError, match="leaf_00"):
        RunState.from_arrays({})
