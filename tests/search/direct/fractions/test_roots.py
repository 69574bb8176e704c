"""Polynomials with a root beside them are read off the table, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from drawn_tables import Function, drawn_table
from gmeql.formula.nodes import tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.fractions.roots import propose
from gmeql.search.direct.table import DirectTable, Effort


def proposed(f: Function, functions: FunctionSet | None = None) -> tuple[DirectTable, list]:
    rng = np.random.default_rng(1)
    table = drawn_table(f, 1500, 5, rng)
    return table, list(propose(table, functions=functions or FunctionSet(), effort=Effort(2.0), rng=rng))


@pytest.mark.parametrize(
    ("f", "complexity"),
    [
        (lambda a, b: a + np.sqrt(b + 3), 8),
        (lambda a, b, c: a * b - 2.31 * np.sqrt(a**2 - b * c + 4.4), 20),
        (lambda a, b, c, d, e: c - d * e + np.sqrt(a - b - 2 * c * d), 22),
        (lambda a: a**2 - np.sqrt(a**2 + 1.7 * a + 9), 16),
    ],
)
def test_a_polynomial_and_a_root(f: Function, complexity: int) -> None:
    table, roots = proposed(f)
    assert table.error(roots[0]) < 1e-8
    assert tree_complexity(roots[0]) <= complexity


def test_nothing_is_seen_elsewhere() -> None:
    noise = np.random.default_rng(0)
    for f in (
        lambda a, b: np.sin(a) + b,
        lambda a, b: np.exp(a / 3) * b,
        lambda a, b: a * b + 2,  # a polynomial: no root
        lambda a: noise.normal(size=len(a)),
    ):
        assert proposed(f)[1] == []
    assert proposed(lambda a, b: a + np.sqrt(b + 3), FunctionSet(["add", "mul"]))[1] == []
