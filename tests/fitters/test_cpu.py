"""The CPU engine: threads, screening, kept and passing blocks change no fit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from fitting_problems import ROWS, data, problems, scaled, x
from random_trees import call

from gmeql.fitters import fit, reference
from gmeql.fitters.compiled import is_on_disk
from gmeql.fitters.cpu import compile_kernel, fit_arrays, fit_batches
from gmeql.fitters.jobs import FitJob
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.kernel.levenberg_marquardt import fit_many
from gmeql.fitters.kernel.memory import BLOCK, KEPT
from gmeql.fitters.programs import from_expression, stack


def test_equal_weights_and_many_rows_take_other_paths_to_the_same_fit() -> None:
    """Weights of 1 save products with them; more rows than the kernel keeps are computed anew in each pass."""
    programs, slots, starts, targets = problems()
    times = KEPT * BLOCK // slots.shape[1] + 2
    target = targets[0] + 0.1 * np.cos(9 * slots[0])
    options = dict(max_steps=3, tolerance=1e-12)
    expected = reference.fit(programs, starts, slots, target, **options)
    equal = fit(programs, starts, slots, target, **options)
    nearly = fit(programs, starts, slots, target, np.full(len(target), 3.0), **options)
    many = fit(programs, starts, np.tile(slots, times), np.tile(target, times), **options)
    for result in (equal, nearly, many):
        np.testing.assert_allclose(result.losses, expected.losses, rtol=1e-9)
        np.testing.assert_allclose(result.constants, expected.constants, rtol=1e-7, atol=1e-9)
        assert result.steps.tolist() == expected.steps.tolist()


def test_the_number_of_threads_changes_nothing() -> None:
    programs, slots, starts, targets = problems()
    programs, starts = programs * 4, np.tile(starts, (4, 1))
    one = fit(programs, starts, slots, targets[0], max_steps=5, n_threads=1)
    two = fit(programs, starts, slots, targets[0], max_steps=5, n_threads=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_hopeless_candidates_end_early_and_screened_ones_see_few_rows() -> None:
    programs, slots, starts, targets = problems()
    codes, lengths, n_free, _ = stack(programs)
    ones = np.ones(slots.shape[1])
    options = dict(max_steps=20, tolerance=1e-12)
    free = fit_arrays(codes, lengths, n_free, starts.copy(), slots, 50 + targets[0], ones, **options)
    hopeless = fit_arrays(codes, lengths, n_free, starts.copy(), slots, 50 + targets[0], ones, hopeless=1e-9, **options)
    assert hopeless.steps.sum() < free.steps.sum()
    screened = fit_arrays(
        codes, lengths, n_free, starts.copy(), slots, 50 + targets[0], ones, hopeless=1e-9, screen_rows=16, **options
    )
    few = fit_arrays(
        codes, lengths, n_free, starts.copy(), np.ascontiguousarray(slots[:, :16]), 50 + targets[0][:16], ones[:16],
        hopeless=1e-9, **options,
    )  # fmt: skip
    worse = few.losses >= 2e-9
    assert worse.any()
    np.testing.assert_array_equal(screened.losses[worse], few.losses[worse])


def test_a_glance_at_rows_that_vary_more_than_all_loses_nothing() -> None:
    """The loss to beat is that on all rows; rows ten times as large must not be held to it."""
    _, slots = data()
    scale = np.where(np.arange(ROWS) < ROWS // 4, 10.0, 1.0)
    slots[0] = scale * (slots[0] - slots[0].mean())
    target = slots[0] + 0.5 * scale * np.cos(40 * slots[1])
    program = from_expression(scaled(1.0, x), 3)
    arrays = [np.repeat(a, 2, axis=0) for a in stack([program])]
    whole = fit_arrays(*(a.copy() for a in arrays), slots, target, np.ones(ROWS), max_steps=5, tolerance=1e-9)
    goal = 1.2 * whole.losses[0]
    glance = fit_arrays(
        *arrays, slots, target, np.ones(ROWS), max_steps=5, tolerance=1e-9, hopeless=goal, screen_rows=ROWS // 4
    )
    few = fit_arrays(
        *(a.copy() for a in stack([program])), np.ascontiguousarray(slots[:, : ROWS // 4]), target[: ROWS // 4],
        np.ones(ROWS // 4), max_steps=5, tolerance=1e-9,
    )  # fmt: skip
    assert few.losses[0] > 2 * goal  # by its loss alone it would have been given up
    np.testing.assert_allclose(glance.losses, whole.losses, rtol=1e-6)


def test_batches_are_fitted_in_place_each_to_its_own_data() -> None:
    programs, slots, starts, targets = problems()
    codes, lengths, n_free, _ = stack(programs)
    ones = np.ones(slots.shape[1])

    def batch() -> SimpleNamespace:
        n = len(lengths)
        return SimpleNamespace(
            programs=codes, lengths=lengths, n_constants=n_free, constants=starts.copy(), losses=np.full(n, np.inf),
            codes=np.zeros(n, np.int64), steps=np.zeros(n, np.int64),
        )  # fmt: skip

    options = dict(max_steps=4, tolerance=1e-9)
    for n_threads in (1, 2):
        jobs = [FitJob(batch(), FitData(slots, target, ones), np.inf) for target in targets[:3]]
        fit_batches(jobs, **options, screen_rows=None, n_threads=n_threads)
        for job in jobs:
            alone = fit_arrays(codes, lengths, n_free, starts.copy(), *job.data, **options)
            np.testing.assert_array_equal(job.batch.losses, alone.losses)
            np.testing.assert_array_equal(job.batch.constants, alone.constants)


def test_a_used_kernel_is_on_disk() -> None:
    compile_kernel()
    assert is_on_disk(fit_many)


def test_columns_of_a_matrix_are_fitted_as_numbers_that_lie_side_by_side() -> None:
    """The kernel's parts take no others; a target or weights that were a column ended in an error of the compiler."""
    X, slots = data()
    program = [from_expression(call("add", scaled(0.4, x), 0.1), 3)]
    apart = fit(program, None, slots, X[:, 2], X[:, 1])
    together = fit(program, None, slots, X[:, 2].copy(), X[:, 1].copy())
    assert not X[:, 2].flags.c_contiguous and apart.losses[0] == together.losses[0]
