"""Programs fitted to several groups: each group's constants, the second start, what is given up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from gmeql.fitters.grouped import fit_groups, overall_losses, split_rows
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.programs import from_expression, input_slots, stack
from gmeql.formula.parsing import parse_tree


def batch(*formulas: str) -> SimpleNamespace:
    codes, lengths, n_free, start = stack([from_expression(parse_tree(text, ["x"]), 1) for text in formulas])
    return SimpleNamespace(programs=codes, lengths=lengths, n_constants=n_free, constants=start)


def data_of(x: np.ndarray, y: np.ndarray) -> FitData:
    return FitData(input_slots(x[:, None])[0], y, np.ones(len(y)))


class TestFitGroups:
    def test_each_group_gets_its_own_constants(self) -> None:
        x, groups = np.tile(np.linspace(1, 3, 20), 3), np.repeat([0, 1, 2], 20)
        slopes, offsets = np.array([1.0, 2.0, -3.0]), np.array([0.5, -1.0, 4.0])
        parts = split_rows(data_of(x, slopes[groups] * x + offsets[groups]), groups)
        programs = batch("1.1*x + 0.9", "1.1*x")
        fitted = fit_groups(programs, parts, max_steps=20, tolerance=1e-9)
        found = np.sort(fitted.constants[:, 0, :2], axis=1)
        np.testing.assert_allclose(found, np.sort(np.stack([slopes, offsets], axis=1), axis=1), atol=1e-6)
        losses = overall_losses(fitted, parts, programs.n_constants)
        assert losses[0] < 1e-12 < losses[1]

    def test_a_group_in_a_local_minimum_is_led_home_by_another(self) -> None:
        """From a frequency of 1 the fast wave is out of reach; from its neighbour's it is not."""
        x = np.linspace(0, 6, 60)
        parts = (data_of(x, np.sin(1.2 * x)), data_of(x, np.sin(2.1 * x)), data_of(x, np.sin(2.9 * x)))
        alone = fit_groups(batch("sin(1.1*x)"), parts[2:], max_steps=30, tolerance=1e-9)
        together = fit_groups(batch("sin(2.2*x)"), parts, max_steps=30, tolerance=1e-9)
        assert alone.losses[0, 0] > 0.1
        assert together.losses[2, 0] < 1e-12

    def test_what_is_hopeless_in_the_first_groups_is_given_up(self) -> None:
        x, groups = np.tile(np.linspace(1, 3, 20), 3), np.repeat([0, 1, 2], 20)
        parts = split_rows(data_of(x, (1.0 + groups) * x**2), groups)
        fitted = fit_groups(batch("1.1*x**2", "1.1*sin(5.1*x)"), parts, max_steps=20, tolerance=1e-9, hopeless=1e-3)
        assert np.isfinite(fitted.losses[:, 0]).all()
        assert np.isinf(fitted.losses[2, 1])

    def test_a_group_of_few_rows_says_nothing_for_a_formula_of_many_constants(self) -> None:
        x = np.array([1.0, 2.0])
        parts = (data_of(x, np.array([3.0, 7.0])),)
        programs = batch("1.1*x + 0.9")
        fitted = fit_groups(programs, parts, max_steps=20, tolerance=1e-9)
        assert fitted.losses[0, 0] < 1e-12
        assert overall_losses(fitted, parts, programs.n_constants)[0] >= 1.0
