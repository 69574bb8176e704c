"""Cells: their keys, their tables."""

import numpy as np
import pytest

from gmeql.evaluation.paper.cells import SETTINGS, Cell, setting_of, table, test_table
from gmeql.network.architecture import PRESETS
from gmeql.paper import two_stage


def test_a_cell_names_its_record_and_refuses_unknown_words():
    assert Cell("b6", "dsr", noise=0.1, seed=3, budget="full").key == "full/b6/dsr/standard/noise0.1/seed3"
    with pytest.raises(ValueError, match="setting"):
        Cell("b1", "gmeql", "no_such")
    with pytest.raises(ValueError, match="method"):
        Cell("b1", "nets")


def test_the_noise_falls_on_the_training_targets_of_the_same_points():
    (X, y), (X_noisy, y_noisy) = table(Cell("b2", "gmeql", seed=4)), table(Cell("b2", "eql", noise=0.5, seed=4))
    np.testing.assert_array_equal(X, X_noisy)
    assert np.std(y_noisy - y) == pytest.approx(0.5, rel=0.15)
    for clean, noisy in zip(test_table(Cell("b2", "gmeql")), test_table(Cell("b2", "gmeql", noise=0.5)), strict=True):
        np.testing.assert_array_equal(clean, noisy)
    assert not np.array_equal(test_table(Cell("b2", "gmeql"))[0], table(Cell("b2", "gmeql"))[0])


def test_settings_name_a_preset_and_a_network_for_every_problem():
    assert setting_of("gmeql") == "raced" and setting_of("dsr") == "standard"
    for setting in SETTINGS.values():
        assert setting.preset in two_stage.PRESETS
        two_stage.PRESETS[setting.preset](**setting.changes)
        assert {setting.preset_of(f"b{i}") for i in range(1, 9)} <= set(PRESETS)
    assert SETTINGS["standard"].preset_of("b1") == "released" and SETTINGS["raced"].preset_of("b1") == "power_sum"
