"""The slow engine: slopes against differences, steps against NumPy's solver."""

from __future__ import annotations

import numpy as np
import pytest
from fitting_problems import FORMULAS, data

from gmeql.fitters import NOT_FINITE
from gmeql.fitters.programs import from_expression
from gmeql.fitters.reference import _damped_step, evaluate, fit


@pytest.mark.parametrize("name", FORMULAS)
def test_slopes_are_differences(name: str) -> None:
    _, slots = data()
    program = from_expression(FORMULAS[name], 3)
    _, jacobian = evaluate(program.code, program.start, program.n_free, slots)
    for p in range(program.n_free):
        shift = 1e-6 * np.eye(len(program.start))[p]
        up, _ = evaluate(program.code, program.start + shift, program.n_free, slots)
        down, _ = evaluate(program.code, program.start - shift, program.n_free, slots)
        np.testing.assert_allclose(jacobian[:, p], (up - down) / 2e-6, rtol=1e-5, atol=1e-6)


def test_a_singular_system_has_no_step() -> None:
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    gradient = np.array([1.0, -1.0])
    expected = np.linalg.solve(matrix + 0.5 * np.diag([2.0, 3.0]), gradient)
    step = _damped_step(matrix, gradient, 0.5)
    assert step is not None
    np.testing.assert_allclose(step, expected, rtol=1e-12)
    assert _damped_step(np.outer([1.0, 2.0], [1.0, 2.0]), gradient, 0.0) is None


def test_values_that_are_not_finite_end_a_fit_at_its_start() -> None:
    X, slots = data()
    slots = np.array(slots)
    slots[0, 3] = np.nan
    program = from_expression(FORMULAS["line"], 3)
    result = fit([program], None, slots, X[:, 0])
    assert result.losses.tolist() == [np.inf] and result.codes.tolist() == [NOT_FINITE] and result.steps.tolist() == [1]
