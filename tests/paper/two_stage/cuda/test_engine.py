"""The kernel takes the steps of `step.step`: here as plain C++, on a card by benchmarks/paper_method.py."""

import dataclasses

import jax
import numpy as np
import pytest
from host_cuda import HostDriver, needs_compiler
from two_stage_runs import SMALL, TINY, TWO_OUTPUTS, data

from gmeql.network.architecture import Architecture
from gmeql.paper.two_stage import TwoStageConfig
from gmeql.paper.two_stage.chunks import cuda_chunks, jax_chunks
from gmeql.paper.two_stage.cuda import engine
from gmeql.paper.two_stage.inputs import checked_data
from gmeql.paper.two_stage.state import TrainingProgram, initial_state, stack_knobs

SETTINGS = (
    dict(),
    dict(refresh_elites=True, final_temperature=0.2, anneal_elites=True, final_weights_rate=1e-3, best_form="hard"),
    dict(draw_law="released", resample_law="bernoulli", offline_rule="squared_difference", merge_rounds=True),
    dict(nan_rule="entries", epsilon_hat=True, average_choices=True, gradient_clip=0.1, fill_first=True),
    dict(use_elites=False, use_offline=False, refresh_elites=True),
)


def trained(chunks_of, architecture, configs, n_outputs):
    """State and curves after all chunks, one seed for each config."""
    seeds = list(range(5, 5 + len(configs)))
    columns, targets = (array.astype("float32") for array in checked_data(*data(n_outputs), len(seeds)))
    chunks = chunks_of(stack_knobs(configs, "float32"), columns, targets)
    state, curves = initial_state(architecture, configs[0], seeds, "float32"), []
    for chunk in configs[0].chunks:
        state, info = chunks(
            TrainingProgram(architecture, configs[0].shape, "float32", True, True, chunk.steps), chunk, state
        )
        curves.append(np.stack(info))
    return state, np.concatenate(curves, axis=2)


@needs_compiler
@pytest.mark.parametrize(
    ("architecture", "always"),
    [
        (TINY, {"batch_rows": 5}),
        pytest.param(TINY, {"elite_weights": True, "refresh_elites": False}, marks=pytest.mark.slow),
        pytest.param(TWO_OUTPUTS, {"update_order": "in_turn"}, marks=pytest.mark.slow),
    ],
)
def test_the_kernel_trains_as_jax_does(architecture, always):
    configs = [TwoStageConfig(**{**SMALL, **changes, **always}) for changes in SETTINGS]
    n_outputs = architecture.n_outputs
    expected, curves = trained(lambda *given: jax_chunks("float32", *given), architecture, configs, n_outputs)
    found, found_curves = trained(lambda *given: cuda_chunks(HostDriver(), *given), architecture, configs, n_outputs)
    np.testing.assert_allclose(found_curves, curves, rtol=2e-4)
    for name in expected._fields:
        pairs = zip(jax.tree.leaves(getattr(found, name)), jax.tree.leaves(getattr(expected, name)), strict=True)
        for here, there in pairs:
            np.testing.assert_allclose(np.asarray(here), np.asarray(there), rtol=5e-3, atol=5e-3, err_msg=name)


def test_what_the_kernel_cannot_train_is_said(monkeypatch):
    monkeypatch.setattr(engine.cards, "why_not", lambda: "")
    config = TwoStageConfig()
    assert engine.why_not(TINY, config, "float32") == ""
    assert "float64" in engine.why_not(TINY, config, "float64")
    assert "exp" in engine.why_not(Architecture(1, (("exp",),)), config, "float32")
    assert "memory" in engine.why_not(TINY, dataclasses.replace(config, samples_per_step=5000), "float32")
    monkeypatch.setattr(engine.cards, "why_not", lambda: "no card")
    assert engine.why_not(TINY, config, "float32") == "no card"
