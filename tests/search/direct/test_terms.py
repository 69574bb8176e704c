"""Sums of terms as a direct method: laws of several terms, readings of the target, nothing in noise, little without effort."""

from __future__ import annotations

import numpy as np
import pytest
from thinned import thinned

from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms import propose

RNG = np.random.default_rng(2)
X = np.column_stack([RNG.uniform(-2, 2, 400), RNG.uniform(0, 20, 400), RNG.uniform(-2, 2, 400)])
x, t, v = X.T
FREE = Effort(seconds=1.2)


def table(y, columns=X) -> DirectTable:
    return DirectTable(columns, y, np.ones(len(y)))


def proposed(given: DirectTable, functions=None, effort=FREE) -> list:
    rng = np.random.default_rng(0)
    return list(propose(given, functions=functions or FunctionSet(), effort=effort, rng=rng))


@pytest.mark.parametrize(
    "y",
    thinned([
        -0.05 * v**3 - 2.06 * x - 0.02 * x * t + 0.42 * np.sin(t) - 0.29 * np.cbrt(np.abs(v)),
        -0.83 * v - 2.45 * x**3 - 0.41 * np.log(np.abs(v) + 1) + 0.34 * np.sin(t),
    ], quick=(1,)),
)  # fmt: skip
def test_laws_of_oscillators(y) -> None:
    given = table(y)
    assert given.error(proposed(given)[0]) < 1e-12


def test_a_root_of_a_sum_is_read_as_a_square() -> None:
    given = table(np.sqrt(5 + 0.3 * x**2 + 0.1 * t), X[:, :2])
    assert given.error(proposed(given)[0]) < 1e-12


def test_nothing_is_seen_in_noise() -> None:
    assert proposed(table(RNG.normal(size=400), X[:, :1])) == []
    assert proposed(table(RNG.standard_t(2, size=400), X[:, :1])) == []


def test_a_noisy_law_is_proposed_though_not_exact() -> None:
    y = 2 * x + np.sin(t)
    given = table(y + 0.05 * RNG.normal(size=400), X[:, :2])
    errors = [given.error(root) for root in proposed(given)]
    assert errors and min(errors) < 1.1 * 0.05 / given.spread


def test_only_functions_that_are_allowed() -> None:
    given = table(2 * t + np.exp(-np.abs(x)), X[:, :2])
    assert proposed(given, FunctionSet(["sin"])) == []
    exact = [
        root for root in proposed(given, FunctionSet(["add", "mul", "square", "exp"])) if given.error(root) < 1e-10
    ]
    assert exact == []


def test_work_is_bounded() -> None:
    assert proposed(table(x + t), effort=Effort(seconds=1e-6)) == []
    assert proposed(table(x + t), effort=Effort(seconds=60.0, out_of_time=lambda: True)) == []
    assert proposed(table(x[:8] + t[:8], X[:8])) == []
