"""One step of Algorithm 1: whole runs against a slow NumPy version, what stages train, instances that are not finite."""

import dataclasses

import jax
import numpy as np
import pytest

import reference
from gmeql.paper.two_stage import TwoStageConfig, run
from gmeql.paper.two_stage.state import TrainingProgram, initial_state, stack_knobs
from gmeql.paper.two_stage.step import draw_noise, initialise
from two_stage_runs import SMALL, TINY, TWO_OUTPUTS, data, finish, small_run


RELEASED = dataclasses.asdict(TwoStageConfig.released())


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        (TINY, {}),
        pytest.param(TINY, {"refresh_elites": True, "resample_fraction": 0.5}, marks=pytest.mark.slow),
        (TINY, {"use_elites": False, "use_stage1": False}),
        (TINY, {"use_offline": False, "gradient_clip": 0.02, "fill_first": True}),
        pytest.param(TWO_OUTPUTS, {"offline_rule": "squared_difference", "temperature": 1.0}, marks=pytest.mark.slow),
        pytest.param(
            TWO_OUTPUTS,
            {"weights_mean": 1.0, "weights_scale": 0.1, "logits_scale": 0.5, "resample_fraction": 1.0},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            TINY,
            {
                "draw_law": "released",
                "resample_law": "bernoulli",
                "resample_fraction": 0.3,
                "power_law_exponent": 0.7,
                "average_choices": True,
                "gradient_clip": 0.05,
                "epsilon_hat": True,
                "final_temperature": 0.2,
                "anneal_elites": True,
                "final_weights_rate": 0.001,
                "best_form": "hard",
                "elite_weights": True,
                "batch_rows": 5,
            },
            marks=pytest.mark.slow,
        ),
        pytest.param(
            TINY,
            {"elite_weights": True, "batch_rows": 5, "best_form": "hard", "gradient_clip": 0.3},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            TINY, {"update_order": "in_turn", "merge_rounds": True, "refresh_elites": True}, marks=pytest.mark.slow
        ),
        pytest.param(
            TWO_OUTPUTS,
            {name: value for name, value in RELEASED.items() if name not in SMALL},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_whole_run_equals_the_slow_version(architecture, changes):
    config = TwoStageConfig(**{**SMALL, **changes})
    X, y = data(architecture.n_outputs)
    seed = 11
    progress = finish(architecture, X, y, seeds=[seed], config=config, dtype="float64")
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[0], progress.state.arrays)

    program = TrainingProgram(architecture, config, "float64", config.refresh_elites, config.best_form == "hard", 1)
    knobs = jax.tree.map(lambda leaf: leaf[0], stack_knobs([config], "float64"))
    blank = jax.tree.map(lambda leaf: leaf[0], initial_state(architecture, config, [seed], "float64"))

    fresh_at = jax.jit(lambda step: initialise(program, knobs, True, blank._replace(step=step)))
    noise_at = jax.jit(lambda step: draw_noise(program, np.uint32(seed), step))

    def initial(step):
        with jax.enable_x64(True):
            fresh = fresh_at(np.int32(step))
        return np.asarray(fresh.logits), np.asarray(fresh.weights)

    def noise(step):
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, noise_at(np.int32(step)))

    slow = reference.two_stage(architecture, X, y, config, initial, noise)
    near = dict(rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(progress.result.curves.mean[:, 0], slow["means"], **near)
    np.testing.assert_allclose(state.logits, slow["logits"] * architecture.choice_mask, **near)
    np.testing.assert_allclose(state.weights, slow["weights"], **near)
    filled = len(slow["elites"])
    np.testing.assert_allclose(state.elites.losses[:filled], [e["loss"] for e in slow["elites"]], **near)
    assert np.isinf(state.elites.losses[filled:]).all()
    scale = config.final_temperature if config.anneal_elites else 1.0  # then scores are kept, to be made selections of
    kept = state.elites.items[:filled, : architecture.n_connections]
    stored = np.exp(kept / scale) * architecture.choice_mask
    stored /= stored.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(stored, [e["selections"] for e in slow["elites"]], **near)
    if config.elite_weights:
        own = state.elites.items[:filled, architecture.n_connections :].reshape(filled, -1)[:, : architecture.n_weights]
        np.testing.assert_allclose(own, [e["kept_weights"] for e in slow["elites"]], **near)

    best, result = slow["best"], progress.result
    assert result.found_at[0] == best["step"]
    np.testing.assert_allclose(result.loss[0], best["loss"], **near)
    np.testing.assert_allclose(result.weights[0], best["weights"], **near)
    hard = reference.hard(architecture, best["selections"])
    np.testing.assert_array_equal(result.choices[0], hard.argmax(axis=1))
    hard_loss = reference.loss(architecture, hard, best["weights"], X, y).real
    np.testing.assert_allclose(result.hard_loss[0], hard_loss, **near)


@pytest.mark.slow
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


def test_overflowing_instances_do_not_poison_the_run():
    X, y = data()
    state = finish(TINY, X * 1e25, y, seeds=[0, 1, 2], config=TwoStageConfig(**SMALL)).state.arrays
    assert np.isfinite(state.logits).all() and np.isfinite(state.weights).all()
    assert not np.isnan(state.elites.losses).any()


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
