"""Integral forms."""

from __future__ import annotations

import numpy as np
import pytest
from gridded_fields import T, between_ends, heat_grid

from gmeql.differential.fields.grid import read_grid
from gmeql.differential.fields.weak import Bumps, bump


def test_derivatives_of_a_bump_integrate_to_nothing_and_match_differences() -> None:
    half, step = 20, 0.1
    assert abs(bump(half, step, 1).sum()) < 1e-12 and abs(bump(half, step, 2).sum()) < 1e-6
    differences = np.gradient(bump(half, step, 0) / step, step)
    assert bump(half, step, 1)[1:-1] / step == pytest.approx(differences[1:-1], abs=0.05)


def test_both_sides_agree_for_the_law_that_the_field_obeys() -> None:
    grid = heat_grid()
    bumps = Bumps(grid, grid.values, 2)
    left = bumps.left(grid.values[0])
    right = 0.3 * bumps.by_parts(lambda orders: 1.0 if not any(orders) else 0.0, (2,), grid.values[0])
    assert right == pytest.approx(left, abs=1e-6 * np.abs(left).max())
    assert len(bumps.fold) == len(left) and len(np.unique(bumps.fold)) > 1 and bumps.independent >= 4


def test_factors_of_the_coordinate_are_differentiated_along() -> None:
    x, u = between_ends()
    grid = read_grid(u, x, T)
    bumps = Bumps(grid, grid.values, 1)
    left = bumps.left(u)

    def factor(orders: tuple[int, ...]) -> np.ndarray:
        return np.broadcast_to((1 / x if orders == (0,) else -1 / x**2)[:, None], u.shape)

    assert bumps.by_parts(factor, (1,), u) == pytest.approx(left, abs=1e-5 * np.abs(left).max())
    assert (bumps.places[0][0], bumps.places[0][-1]) >= (bumps.half_widths[0], 0)


def test_plain_values_are_weighed_by_the_bump() -> None:
    grid = heat_grid()
    bumps = Bumps(grid, grid.values, 1)
    area = np.prod([bump(m, h, 0).sum() for m, h in zip(bumps.half_widths, grid.steps, strict=True)])
    assert bumps.plain(np.full_like(grid.values[0], 2.0)) == pytest.approx(2 * area)
