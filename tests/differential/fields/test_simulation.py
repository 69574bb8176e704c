"""Laws integrated on their grid."""

from __future__ import annotations

import numpy as np
import pytest
from gridded_fields import T, between_ends, heat, heat_grid

from gmeql.differential.fields.derivatives import take_derivatives
from gmeql.differential.fields.grid import read_grid
from gmeql.differential.fields.simulation import simulate
from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree


def test_heat_on_a_circle() -> None:
    grid = heat_grid()
    names = take_derivatives(grid, 2, "auto").names
    law = Expression(parse_tree("0.3*u_xx", names), names)
    found = simulate([law], grid, grid.values[..., 0], grid.axes[-1], 2)
    assert found[0] == pytest.approx(heat(), abs=1e-4)


def test_ends_that_do_not_close_follow_the_data() -> None:
    x, u = between_ends()
    grid = read_grid(u, x, T)
    names = take_derivatives(grid, 1, "auto").names
    law = Expression(parse_tree("u_x/x", names), names)
    found = simulate([law], grid, grid.values[..., 0], grid.axes[-1][:20], 1)
    assert found[0] == pytest.approx(u[:, :20], abs=2e-2)


def test_a_law_that_blows_up_ends_in_nan() -> None:
    grid = heat_grid()
    names = take_derivatives(grid, 2, "auto").names
    law = Expression(parse_tree("u**3 + 1", names), names)
    assert np.isnan(simulate([law], grid, 1 + grid.values[..., 0], np.linspace(0, 5, 20), 2)[..., -1]).all()
