"""Waves under roots, logarithms and fraction bars are known by how often they come near their height."""

from __future__ import annotations

import numpy as np
import pytest

from drawn_tables import Function, drawn_table
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.capped import is_capped, propose


def proposed(f: Function, functions: FunctionSet | None = None) -> tuple[DirectTable, list]:
    rng = np.random.default_rng(3)
    table = drawn_table(f, 600, 8, rng)
    with np.errstate(all="ignore"):
        return table, list(propose(table, functions=functions or FunctionSet(), effort=Effort(2.0), rng=rng))


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c: 1 / (a**2 * np.sqrt(np.sin(b * c + b))),
        lambda a, b, c: np.log(np.sin(a / b - c)),
        lambda a, b, c: c + np.sin(a * b - b - c + 2.39),
        lambda a, b: np.sqrt(0.7 * np.cos(a * b + a)),
        lambda a, b, c: 1.37 + 2.1 * np.cos(a * b - c),  # beside a number
        lambda a, b, c: b / (a * c) - np.cos(a * b * np.exp(-c)),  # terms and angles that few have
        lambda a, b, c: a * b + c**3 - 2.1 * a * np.cos(a * b + c),  # behind a column, with terms beside
        lambda a, b: b * np.cos(0.22 * a + np.sin(a)),  # a function and a factor of any value in the angle
        lambda a, b, c: a / c * np.cos(2.35 * a * c - 3.6 * np.log(b)),
        lambda a, b: np.cos(3.8 - 11.74 * a / b),
        lambda a, b: (a + b) * np.cos(np.sin(2 * b**2)),  # a function of a wave, behind a sum
        lambda a, b, c: a * np.exp(1.4 * np.cos(b - c)),
    ],
)
def test_a_wave_behind_a_step(f: Function) -> None:
    table, (root,) = proposed(f)
    assert table.error(root) < 1e-8


def test_no_trail_is_followed_where_something_else_is_often_next_to_its_bounds() -> None:
    """n*k*T*log(u/v), over a product of columns, was taken for a wave for 4 s."""
    rng = np.random.default_rng(3)
    X = rng.uniform(1, 5, (1000, 5))
    table = DirectTable(X, X[:, 0] * X[:, 1] * X[:, 2] * np.log(X[:, 4] / X[:, 3]), np.ones(1000))
    followed: list[None] = []
    effort = Effort(2.0, more=lambda: followed.append(None))
    assert list(propose(table, functions=FunctionSet(), effort=effort, rng=rng)) == [] and not followed


def test_nothing_is_seen_elsewhere() -> None:
    noise = np.random.default_rng(0)
    for f in (lambda a, b: noise.normal(size=len(a)), lambda a, b: a * b + 2, lambda a, b: np.full(len(a), 3.0)):
        assert proposed(f)[1] == []
    assert proposed(lambda a, b: np.sqrt(np.cos(a * b + a)), FunctionSet(["add", "mul"]))[1] == []


def test_waves_alone_are_often_next_to_their_height() -> None:
    u = np.random.default_rng(0).uniform(-9, 9, 1000)
    assert is_capped(np.sin(u)) and is_capped(-3 * np.abs(np.cos(u**2)))
    ratings, clipped = np.random.default_rng(0).integers(1, 6, 1000) * 1.0, np.clip(u, -5, 5)
    assert not any(map(is_capped, (ratings - 3, clipped)))
    assert not any(map(is_capped, (u, u**2, np.exp(u), np.random.default_rng(1).normal(size=1000), np.ones(1000))))
