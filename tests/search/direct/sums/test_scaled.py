"""Sums behind a function with a number of its own are seen at once, behind readings and steps too."""

import numpy as np
import pytest

from gmeql.network.families import FunctionSet
from gmeql.search.direct.steps import nested
from gmeql.search.direct.sums import scaled
from gmeql.search.direct.table import DirectTable, Effort

FUNCTIONS = FunctionSet(None)


def proposed(propose, f, seconds: float = 1.0, functions: FunctionSet = FUNCTIONS):
    X = np.random.default_rng(3).uniform(0.5, 3.0, (600, 4))
    table = DirectTable(X, f(*X.T), np.ones(600))
    roots = list(propose(table, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))
    return table, roots


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c, d: 2.3 + 1.7 * np.exp(-0.3 * a * b + 0.5 * c - 0.2 * d**2),
        lambda a, b, c, d: 3.1 * np.log(1.2 + 0.7 * a * b + 0.4 * c + d**2),
        lambda a, b, c, d: 5 / (1 + np.exp(0.3 - 0.7 * a + 0.2 * b * c + 0.4 * d)),
        lambda a, b, c, d: (1 + 0.3 * a * b + 0.7 * c) ** 1.37,
        lambda a, b, c, d: -1.3 * (0.5 + a**2 + 0.6 * b * c) ** -2.3,
        lambda a, b, c, d: 2.7 * np.tanh(0.3 * a * b - 0.4 * c + 0.2),
        lambda a, b, c, d: 57.3 * np.arctan(0.3 * a * b - 0.4 * c + 0.2 * d),
        lambda a, b, c, d: 4.2 * np.exp(-2.1 * np.exp(-0.3 * a - 0.2 * b * c)),
    ],
)
def test_sums_behind_functions(f):
    table, roots = proposed(scaled.propose, f, seconds=0.05)
    assert table.error(roots[0]) < 1e-9


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c, d: 2.5 * np.log(1.3 * a + 4.2 * b**2 + c),
        lambda a, b, c, d: c - a**2 + 0.36 * np.log(a * b + c + 1),
        lambda a, b, c, d: d + 0.36 * np.sqrt(np.log(a * b + c + 1)),
    ],
)
def test_logarithms_behind_steps(f):
    table, roots = proposed(nested.propose, f)
    assert table.error(roots[0]) < 1e-9


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c, d: np.random.default_rng(0).normal(size=len(a)),
        lambda a, b, c, d: np.sin(a * b) + c,
        lambda a, b, c, d: (1 + 0.3 * a * b) ** 1.37 + 1e-3 * np.random.default_rng(0).normal(size=len(a)),
    ],
)
def test_nothing_is_seen_in_other_targets(f):
    assert proposed(scaled.propose, f)[1] == []


def test_only_allowed_functions_stand_before_the_sum():
    functions = FunctionSet(("add", "mul", "square"))
    assert proposed(scaled.propose, lambda a, b, c, d: 3 * np.log(a * b + c + 1), functions=functions)[1] == []
    assert proposed(scaled.propose, lambda a, b, c, d: 3 * np.log(a * b + c + 1), seconds=0.001)[1] == []
