"""What a run carries: knobs read off configs, the state before the first step."""

import numpy as np

from gmeql.paper.two_stage import TwoStageConfig
from gmeql.paper.two_stage.state import initial_state, stack_knobs
from two_stage_runs import TINY


def test_knobs_hold_each_seeds_setting():
    configs = [
        TwoStageConfig(capacity=4, temperature=0.5),
        TwoStageConfig.released(capacity=4, final_temperature=0.1, stage2_steps=9),
    ]
    knobs = stack_knobs(configs, "float64")
    np.testing.assert_allclose(knobs.final_temperature, [0.5, 0.1])
    assert knobs.worst_up.tolist() == knobs.bernoulli.tolist() == knobs.zero_entries.tolist() == [False, True]
    assert knobs.stage2_steps.tolist() == [48_000, 9]
    ranks = np.arange(1, 5)
    np.testing.assert_allclose(knobs.rank_weights, [np.cumsum(ranks**-1.5), np.cumsum(ranks**1.5)])


def test_a_run_starts_with_nothing_found():
    state = initial_state(TINY, TwoStageConfig(capacity=3), [4, 9], "float32")
    assert np.isinf(state.elites.losses).all() and np.isinf(state.kept.losses).all() and np.isinf(state.best.loss).all()
    assert state.elites.losses.shape == state.kept.losses.shape == (2, 3)
    assert state.seed.tolist() == [4, 9] and state.weights.shape == (2, TINY.n_weights)
