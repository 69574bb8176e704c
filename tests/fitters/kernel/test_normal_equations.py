"""What is computed once is right at every later point: the loss after a fit is that of the fitted constants."""

from __future__ import annotations

import numpy as np
import pytest
from fitting_problems import problems

from gmeql.fitters import reference
from gmeql.fitters.cpu import fit_arrays
from gmeql.fitters.kernel.memory import BLOCK, KEPT
from gmeql.fitters.programs import stack


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("times", [1, KEPT * BLOCK // 293 + 2], ids=["kept blocks", "passing blocks"])
def test_losses_are_those_of_the_fitted_constants(weighted: bool, times: int) -> None:
    programs, slots, starts, targets = problems()
    slots, target = np.tile(slots, times), np.tile(targets[0] + 0.1 * np.cos(9 * slots[0]), times)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(target)) if weighted else np.ones(len(target))
    codes, lengths, n_free, _ = stack(programs)
    result = fit_arrays(codes, lengths, n_free, starts, slots, target, weights, max_steps=4, tolerance=1e-12)
    for b, program in enumerate(programs):
        output, _ = reference.evaluate(program.code, result.constants[b], program.n_free, slots)
        expected = np.average((output - target) ** 2, weights=weights)
        np.testing.assert_allclose(result.losses[b], expected, rtol=1e-10)
