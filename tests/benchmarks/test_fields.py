"""The solvers behind the benchmark of fields, held against travelling waves and exact solutions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from programs import program
import sympy

fields = program("benchmarks/fields.py")


def test_a_soliton_travels_unchanged() -> None:
    x, t = fields.periodic_axis(-20, 20, 256), np.linspace(0, 1, 21)
    data = fields.solve_periodic(
        [x], t, fields.soliton(x, 4, -8)[None], lambda k: [-(k**3)], lambda u, d: -3 * d(u**2, 0), 40
    )
    assert data.u[0, :, -1] == pytest.approx(fields.soliton(x, 4, -4), abs=1e-6)


def test_waves_decay_and_drift_as_they_should_in_two_dimensions() -> None:
    data = fields.advection_diffusion()
    modes = np.fft.fft2(data.u[0], axes=(0, 1))[1, 1]  # exp(i(x+y)): drift 0.75, decay 1
    assert modes[-1] / modes[0] == pytest.approx(np.exp(0.75j - 1), abs=1e-8)


def test_chebyshev_polynomials_between_ends() -> None:
    x, t = np.linspace(1, 2, 21), np.linspace(0, 0.5, 6)

    def start(v: np.ndarray) -> np.ndarray:
        return np.sin(np.pi * v)

    data = fields.solve_between_ends(x, t, start, lambda x, u, ux, uxx: uxx)
    assert data.u[0] == pytest.approx(np.exp(-(np.pi**2) * t) * np.sin(np.pi * x)[:, None], abs=1e-7)


def test_laws_are_compared_term_by_term() -> None:
    names = ("x", "u", "u_x")
    u, ux = sympy.Symbol("u"), sympy.Symbol("u_x")
    assert fields.compare(SimpleNamespace(sympy=lambda: -1.1 * u * ux), "-u*u_x", names) == (True, pytest.approx(0.1))
    assert not fields.compare(SimpleNamespace(sympy=lambda: -u * ux + u), "-u*u_x", names)[0]
