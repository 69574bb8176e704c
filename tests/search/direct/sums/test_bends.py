"""Sums before a root or an exponential with a constant inside are read off the table, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from drawn_tables import Function, drawn_table
from gmeql.formula.nodes import tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.bends import propose
from gmeql.search.direct.table import DirectTable, Effort


def proposed(f: Function, functions: FunctionSet | None = None, *, scale: float = 3.0) -> tuple[DirectTable, list]:
    rng = np.random.default_rng(1)
    table = drawn_table(f, 400, scale, rng)
    return table, list(propose(table, functions=functions or FunctionSet(), effort=Effort(1.0), rng=rng))


@pytest.mark.parametrize(
    ("f", "complexity"),
    [
        (lambda a, b, c: (a + b) * np.exp(1.3 * c), 9),
        (lambda a, b, c, d: (a - b * c) * np.exp(-0.37 * d**2), 14),
        (lambda a, b, c: (a - 2 * b) * np.sqrt(1 + 0.3 * c**2), 15),
        (lambda a, b, c: (a - 3.1 * b * c) / np.sqrt(8 - c**2), 20),
        (lambda a, b, c, d: a * b / np.sqrt(4 - 0.3 * c * d), 16),
    ],
)
def test_a_sum_before_a_bend(f: Function, complexity: int) -> None:
    table, (root,) = proposed(f)
    assert table.error(root) < 1e-12
    assert tree_complexity(root) <= complexity


def test_a_bend_that_is_hardly_seen() -> None:
    table, (root,) = proposed(lambda t, v, x: (t - v * x / 9) / np.sqrt(1 - v**2 / 9), scale=0.1)  # a thousandth
    assert table.error(root) < 1e-12


def test_nothing_is_seen_elsewhere() -> None:
    noise = np.random.default_rng(0)
    for f in (
        lambda a, b: np.sin(a) + b,
        lambda a, b: a * b + 2,  # no bend
        lambda a: noise.normal(size=len(a)),
        lambda a: np.full(len(a), 2.0),
    ):
        assert proposed(f)[1] == []
    assert proposed(lambda a, b, c: (a + b) * np.exp(1.3 * c), FunctionSet(["add", "mul"]))[1] == []
