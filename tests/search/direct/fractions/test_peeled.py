"""Fractions behind one step: a function of a column before them, inside an exponential or a logarithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import calls
from gmeql.network.families import FunctionSet
from gmeql.search.direct.fractions.peeled import propose
from gmeql.search.direct.table import DirectTable, Effort


def proposed(f: Callable[..., np.ndarray], functions: FunctionSet | None = None) -> tuple[DirectTable, list]:
    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 4, (600, f.__code__.co_argcount))
    table = DirectTable(X, f(*X.T), np.ones(600))
    return table, list(propose(table, functions=functions or FunctionSet(), effort=Effort(0.5), rng=rng))


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c, z: np.cos(z) * (a - 1.3 * b**2 / (c + 2)),
        lambda a, b, z: np.exp(z) * a / (a + b**2),
        lambda a, b: a + np.log(a + 0.75 / (a + b + 0.4)),
        lambda a, b: np.log(3 + a * b) - b,
        lambda a, b: a * np.exp((a + 2) / (b + 1)),
    ],
)
def test_fractions_behind_a_step(f: Callable[..., np.ndarray]) -> None:
    table, roots = proposed(f)
    assert table.error(roots[0]) < 1e-10


def test_other_targets_and_functions_that_are_not_allowed() -> None:
    assert proposed(lambda a, b: np.sin(a * b))[1] == []
    assert proposed(lambda a: a + np.zeros_like(a) + 2)[1] == []
    without = FunctionSet(["add", "mul", "div", "exp", "log"])
    assert proposed(lambda a, z: np.cos(z) / (a + 1), without)[1] == []
    _, (root,) = proposed(lambda a, z: np.exp(z) / (a + 1), without)
    assert {call.operator for call in calls(root)} & {"exp"}
