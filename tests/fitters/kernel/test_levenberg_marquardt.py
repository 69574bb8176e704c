"""The compiled fit: its solver against NumPy, exactly as many steps as are forced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fitting_problems import problems
from numba import njit

from gmeql.fitters.cpu import fit_arrays
from gmeql.fitters.kernel import levenberg_marquardt
from gmeql.fitters.opcodes import MAX_CONSTANTS
from gmeql.fitters.programs import stack


@njit
def _solve_damped(hessian, gradient, damping, n, factor, step):
    """Python cannot call a part of the kernel itself."""
    return levenberg_marquardt._solve_damped(hessian, gradient, damping, n, factor, step)


def test_damped_steps_are_those_of_numpy_and_singular_systems_are_told() -> None:
    rng = np.random.default_rng(0)
    hessian, factor = np.zeros((2, MAX_CONSTANTS, MAX_CONSTANTS))
    gradient, step = np.zeros((2, MAX_CONSTANTS))
    root = rng.normal(size=(5, 5))
    hessian[:5, :5], gradient[:5] = root @ root.T, rng.normal(size=5)
    assert _solve_damped(hessian, gradient, 0.01, 5, factor, step)
    own = hessian[:5, :5]
    np.testing.assert_allclose(step[:5], np.linalg.solve(own + 0.01 * np.diag(np.diag(own)), gradient[:5]), rtol=1e-9)
    hessian[:2, :2] = [[1.0, 2.0], [2.0, 4.0]]
    assert not _solve_damped(hessian, gradient, 0.0, 2, factor, step)
    assert _solve_damped(hessian, gradient, 0.1, 2, factor, step)  # damping makes it positive definite


def test_forced_fits_take_all_their_steps() -> None:
    programs, slots, starts, targets = problems()
    codes, lengths, n_free, _ = stack(programs)
    ones = np.ones(slots.shape[1])
    options = dict(max_steps=9, tolerance=0.5)
    free = fit_arrays(codes, lengths, n_free, starts.copy(), slots, targets[0], ones, **options)
    forced = fit_arrays(codes, lengths, n_free, starts.copy(), slots, targets[0], ones, **options, forced=True)
    has_constants = n_free > 0
    assert (forced.steps[has_constants] == 10).all() and (forced.steps[~has_constants] == 1).all()
    assert free.steps.sum() < forced.steps.sum()
    assert (forced.losses <= free.losses * (1 + 1e-9)).all()


def test_a_start_that_is_not_finite_is_told_at_once() -> None:
    programs, slots, starts, targets = problems()
    slots = np.array(slots)
    slots[0, 3] = np.nan  # x of one row
    codes, lengths, n_free, _ = stack(programs[:1])
    result = fit_arrays(
        codes,
        lengths,
        n_free,
        starts[:1].copy(),
        slots,
        targets[0],
        np.ones(slots.shape[1]),
        max_steps=5,
        tolerance=1e-9,
    )
    assert result.losses[0] == np.inf and result.steps[0] == 1


FITS = """
import numpy as np
from fitting_problems import data, scaled, x, y
from random_trees import call
from gmeql.fitters import fit
from gmeql.fitters.programs import from_expression
from gmeql.formula.operators import OPERATORS

names = [n for n, o in OPERATORS.items() if o.arity == 1] + ["mul", "div", "pow"]
waves = [call("cos", scaled(0.3, v)) for v in (x, y)]
roots = [call("add", scaled(0.4, call(n, *waves[: OPERATORS[n].arity])), 0.1) for n in names]
X, slots = data()
result = fit([from_expression(root, 3) for root in roots], None, slots, X[:, 2], X[:, 1], max_steps=4)
print([loss.hex() for loss in result.losses], [c.hex() for c in result.constants.ravel() if c])
"""


@pytest.mark.slow
def test_a_process_that_compiles_fits_what_one_that_loads_fits(tmp_path: Path) -> None:
    """To the last digit: the compiler may order sums and products differently in the two."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]),
    }
    outputs = [
        subprocess.run([sys.executable, "-c", FITS], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1] and outputs[0].count("0x") > 50
