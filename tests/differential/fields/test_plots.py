"""Figures of laws of fields."""

from __future__ import annotations

import numpy as np
from heat import T, U, X, heat_model

from gmeql.differential.fields.grid import read_grid
from gmeql.differential.fields.plots import SLICES, slices


def test_slices_go_through_the_middle_from_the_first_time_to_the_last() -> None:
    flat = np.stack([U, 2 * U], axis=1)  # constant but for a factor along y
    grid = read_grid({"u": np.repeat(flat, 8, axis=1)}, x=[X, np.arange(16.0)], t=T, periodic=False)
    x, times, values = slices(grid, grid.values)
    assert np.array_equal(x, X) and times[0] == 0 and times[-1] == len(T) - 1 and len(times) == SLICES
    assert np.array_equal(values[0], 2 * U[:, times])


def test_the_simulation_lies_on_the_data_and_the_chosen_law_is_marked() -> None:
    figure = heat_model().plot_fields()
    assert len(figure.data) == 2 * SLICES
    for points, curve in zip(figure.data[::2], figure.data[1::2], strict=True):
        assert np.allclose(points.y, curve.y, atol=1e-4)
    assert heat_model().plot_front().data
