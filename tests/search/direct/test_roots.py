"""Polynomials with a root beside them are read off the table, and nothing else is taken for one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.roots import propose
from gmeql.search.direct.table import DirectTable, Effort


def proposed(f: Callable[..., np.ndarray], functions: FunctionSet | None = None) -> tuple[DirectTable, list]:
    rng = np.random.default_rng(1)
    X = rng.uniform(-5, 5, (1500, f.__code__.co_argcount))
    with np.errstate(all="ignore"):
        y = f(*X.T)
    kept = np.isfinite(y)
    table = DirectTable(X[kept], y[kept], np.ones(int(kept.sum())))
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
def test_a_polynomial_and_a_root(f: Callable[..., np.ndarray], complexity: int) -> None:
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
