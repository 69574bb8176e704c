from __future__ import annotations

import numpy as np
from scipy.integrate import DOP853

from gmeql.fitters.kernel.integration import integrate
from gmeql.fitters.programs import from_expression, stack
from gmeql.formula.parsing import parse_tree

A, B = (np.ascontiguousarray(part) for part in (DOP853.A[:12, :12], DOP853.B))


def follow(text, steps, starts, parameters, lanes_of_pieces, duration=2.0, bound=1e6):
    """x' = text(x, t, p) from 0 to `duration`, cut into two intervals; [lanes] at the end of each."""
    codes, lengths, _, constants = stack([from_expression(parse_tree(text, ("x", "t", "p")), 3)])
    sizes = np.tile(duration / steps, (steps, 2)) * np.array([1.0, 0.5])  # the second piece runs half as fast
    times = np.cumsum(sizes, axis=0) - sizes
    known = (times[:, None, :] + DOP853.C[:12, None] * sizes[:, None, :])[:, :, None, :]
    ends = np.arange(1, steps + 1) % (steps // 2) == 0
    path = np.empty((1, 3, len(starts)))
    integrate(
        codes, lengths, constants, np.array([starts]), np.array([parameters]), np.array(lanes_of_pieces), sizes, ends,
        np.ascontiguousarray(known), A, B, np.array([bound]), path,
    )  # fmt: skip
    return path[0]


def test_lanes_have_starts_parameters_and_pieces_of_their_own():
    path = follow("p*x", 8, [1.0, 2.0, 1.0], [0.5, -1.0, 0.5], [0, 0, 1])
    assert np.allclose(path[0], [1.0, 2.0, 1.0])
    assert np.allclose(path[2], [np.exp(1.0), 2 * np.exp(-2.0), np.exp(0.5)], rtol=1e-10)
    assert np.allclose(path[1], [np.exp(0.5), 2 * np.exp(-1.0), np.exp(0.25)], rtol=1e-10)


def test_the_error_falls_with_the_eighth_power_of_the_step():
    errors = [abs(follow("x*cos(3*t)", steps, [1.0], [0.0], [0])[2, 0] - np.exp(np.sin(6.0) / 3)) for steps in (8, 16)]
    assert 100 < errors[0] / errors[1] < 1500


def test_many_lanes_span_blocks():
    starts = np.linspace(1.0, 2.0, 700)
    path = follow("-x", 8, starts, np.zeros(700), np.zeros(700, dtype=int))
    assert np.allclose(path[2], starts * np.exp(-2.0), rtol=1e-10)


def test_what_runs_away_is_cut_off():
    path = follow("x**2", 8, [5.0, -0.1], [0.0, 0.0], [0, 0], bound=100.0)
    assert path[2, 0] == 100.0 and -0.1 < path[2, 1] < 0.0
