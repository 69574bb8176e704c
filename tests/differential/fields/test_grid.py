"""Gridded data: checked and described."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from gridded_fields import T, X, between_ends, heat, with_noise

from gmeql.differential.fields.grid import correlation_points, noise_of, read_grid

U = heat()


@pytest.mark.parametrize(
    ("u", "options", "sentence"),
    [
        (U, {"x": None}, "give the coordinates"),
        (U[0], {}, "one to three axes of space"),
        (np.full_like(U, 2.0), {}, "is constant"),
        (np.where(U == U.min(), np.nan, U), {}, "values that are no finite numbers, the first at"),
        ([U, U[:, :-1]], {}, "one grid"),
        ("text", {}, "array of numbers"),
        ({}, {}, "holds no field"),
        (U, {"x": X[::-1]}, "x must increase"),
        (U, {"x": X**1.1}, "evenly spaced"),
        (U, {"t": T[:-1]}, "t must have 61 values"),
        (U[:, :5], {"t": T[:5]}, "at least 12 are needed"),
        (U, {"x": [X, X]}, "x has 2 axes"),
        (U, {"periodic": "maybe"}, "must be True, False, 'auto'"),
        ({"x": U}, {}, "name of an axis"),
    ],
)
def test_bad_input_is_one_clear_error(u: object, options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_grid(u, **({"x": X, "t": T} | options))


def test_rounded_coordinates_are_an_even_grid() -> None:
    """A file of five decimals was refused: its steps went from 0.13368 to 0.13369."""
    rounded = read_grid(U, np.round(X, 3), T)
    assert rounded.steps[0] == pytest.approx(X[1], rel=1e-3) and np.ptp(np.diff(rounded.axes[0])) < 1e-12


def test_names_axes_and_periodicity() -> None:
    grid = read_grid([U, 2 * U], X, T)
    assert grid.names == ("u", "v") and grid.axis_names == ("x",) and grid.periodic == (True, False)
    assert grid.steps == pytest.approx((X[1], T[1])) and grid.values.shape == (2, 64, 61)
    x, u = between_ends()
    assert read_grid({"height": u}, x, T).names == ("height",)
    assert read_grid(u, x, T).periodic == (False, False)
    assert read_grid(with_noise(U, 0.02), X, T).periodic == (True, False)
    assert read_grid(u, x, T, periodic=True).periodic == (True, False)


def test_arrays_with_named_dimensions_bring_their_axes() -> None:
    class Labelled:
        dims, name = ("time", "x"), "h"

        @property
        def coords(self) -> dict:
            return {"time": SimpleNamespace(values=T), "x": SimpleNamespace(values=X)}

        def transpose(self, *dims: str) -> SimpleNamespace:
            assert dims == ("x", "time")
            return SimpleNamespace(values=U)

    grid = read_grid(Labelled())
    assert grid.names == ("h",) and grid.values[0].tolist() == U.tolist() and grid.axes[1].tolist() == T.tolist()


def test_noise_is_seen_and_smooth_fields_have_none() -> None:
    assert noise_of(U) < 1e-8
    assert noise_of(with_noise(U, 0.02)) == pytest.approx(0.02 * U.std(), rel=0.1)


def test_the_correlation_length_of_a_wave_is_that_of_its_slope() -> None:
    assert correlation_points(np.sin(X)[:, None] + 0 * T, 0) == pytest.approx(1 / X[1], rel=0.01)
