"""Derivatives as columns."""

from __future__ import annotations

import numpy as np
import pytest
from gridded_fields import T, X, between_ends, heat, heat_grid, with_noise

from gmeql.differential.fields.derivatives import (
    all_orders,
    half_width,
    jet_name,
    local_derivative,
    spectral_derivative,
    take_derivatives,
)
from gmeql.differential.fields.grid import read_grid


def test_names_and_orders() -> None:
    assert jet_name("u", (2, 1), "xy") == "u_xxy" and jet_name("u", (0, 0), "xy") == "u"
    assert all_orders(2, 2) == [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]


def test_columns_are_the_derivatives_of_the_field() -> None:
    jets = take_derivatives(heat_grid(), 4, "auto")
    assert jets.names == ("x", "u", "u_x", "u_xx", "u_xxx", "u_xxxx") and jets.margin[0] == 0
    second, fourth = jets.columns[jets.index(0, (2,))], jets.columns[jets.index(0, (4,))]
    assert jets.rates[0] == pytest.approx(0.3 * second, abs=1e-8)
    u = heat()
    assert second + fourth == pytest.approx(6.0 * np.exp(-1.2 * T) * np.cos(2 * X)[:, None], abs=1e-9)
    assert jets.columns[1] is not None and jets.smooth[0] == pytest.approx(u)


def test_axes_that_do_not_close_have_local_derivatives_of_high_order() -> None:
    x, u = between_ends()
    jets = take_derivatives(read_grid(u, x, T), 1, "auto")
    assert jets.columns[jets.index(0, (1,))] / x[:, None] == pytest.approx(jets.rates[0], abs=1e-6)
    assert jets.margin[0] > 0


def test_noise_widens_local_polynomials_and_is_smoothed() -> None:
    u = heat()
    noisy = with_noise(u, 0.05)
    assert half_width(noisy, 0, True, "auto") > half_width(u, 0, False, "auto")
    jets = take_derivatives(read_grid(noisy, X, T), 2, "auto")
    assert np.std(jets.smooth[0] - u) < 0.4 * np.std(noisy - u)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_both_kinds_of_derivative_agree_on_a_smooth_periodic_field(order: int) -> None:
    u = heat()
    spectral = spectral_derivative(u, 0, order, X[1])
    local = local_derivative(u, 0, order, X[1], 4, periodic=True)
    assert local == pytest.approx(spectral, abs=2e-4)
