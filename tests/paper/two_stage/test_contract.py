"""One step of Algorithm 1 against numbers written down: selections, losses, gradients.

These are the quantities in which this package and the authors' released program agreed to 2e-15 when both were given the
same logits, weights and noise; `tests/data/algorithm1_step.json` says how its numbers were made.
"""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from gmeql.network.architecture import Architecture
from gmeql.paper import concrete
from gmeql.paper.two_stage import TwoStageConfig
from gmeql.paper.two_stage.state import TrainingProgram, stack_knobs
from gmeql.paper.two_stage.step import _average, _evaluate, offline_gradient

DATA = json.loads((Path(__file__).parents[2] / "data" / "algorithm1_step.json").read_text())
NEAR = dict(rtol=1e-12, atol=1e-14)


@pytest.fixture(scope="module")
def computed():
    """The same quantities by the compiled parts of a step, in double precision."""
    architecture = Architecture(len(DATA["X"][0]), tuple(map(tuple, DATA["layers"])))
    configs = [
        TwoStageConfig(temperature=DATA["temperature"], average_choices=averaged, nan_rule=rule)
        for averaged, rule in ((False, "instances"), (True, "entries"))
    ]
    mask = architecture.choice_mask
    program = TrainingProgram(architecture, configs[0].shape, "float64", False, False, 1)

    @jax.jit
    def quantities(knobs, logits, weights, gumbel, columns, targets):
        logs = concrete.log_selection(logits, gumbel, knobs.temperature, mask)
        losses, by_selection, by_weight = _evaluate(program, logs, weights, columns, targets)
        selections = jax.numpy.exp(logs) * mask
        by_logits = concrete.logits_gradient(selections, by_selection, knobs.temperature)
        sound = jax.numpy.isfinite(losses)
        return {
            "selections": selections,
            "losses": losses,
            "logits_gradient": _average(knobs, by_logits, sound) * mask,
            "weights_gradient": _average(knobs, by_weight, sound),
            "offline_gradient": offline_gradient(knobs, logits, logs, mask),
        }

    with jax.enable_x64(True):
        given = [np.asarray(DATA[name], float) for name in ("logits", "weights", "gumbel")]
        table = np.asarray(DATA["X"], float).T, np.asarray(DATA["y"], float)[None]
        knobs = stack_knobs(configs, "float64")
        each = [jax.tree.map(lambda leaf, s=s: leaf[s], knobs) for s in range(2)]
        return [jax.tree.map(np.asarray, quantities(one, *given, *table)) for one in each]


@pytest.mark.parametrize("name", ["selections", "losses", "logits_gradient", "weights_gradient", "offline_gradient"])
def test_a_step_computes_the_recorded_numbers(computed, name):
    np.testing.assert_allclose(computed[0][name], DATA[name], **NEAR)


def test_the_released_codes_step_differs_in_the_offline_gradient_alone(computed):
    np.testing.assert_allclose(computed[1]["offline_gradient"], DATA["offline_gradient_averaged"], **NEAR)
    for name in ("losses", "logits_gradient", "weights_gradient"):  # all finite: both rules for nan agree
        np.testing.assert_allclose(computed[1][name], DATA[name], **NEAR)
