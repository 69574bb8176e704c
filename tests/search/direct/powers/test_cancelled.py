"""Targets that are differences of nearly equal numbers, down to their rounding."""

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.direct.powers.cancelled import propose
from gmeql.search.direct.table import DirectTable, Effort


def proposals(X: np.ndarray, y: np.ndarray, seconds: float = 1.0) -> list[Expression]:
    table = DirectTable(X, y, np.ones(len(y)))
    functions = FunctionSet(None)
    found = propose(table, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0))
    return [Expression(root, tuple(f"x{j}" for j in range(X.shape[1]))) for root in found]


def spread(rng: np.random.Generator, low: float, high: float, rows: int = 600) -> np.ndarray:
    return np.exp(rng.uniform(np.log(low), np.log(high), rows))


LAWS = {
    "cosine": (lambda a, b, c: 2 * a * (1 - np.cos(b * c)), (1e-18, 1e-16), (0.1, 10.0), (1e-10, 1e-8)),
    "exponential": (lambda a, b, c: 3.7 * a**2 / (np.exp(b / c) - 1), (0.1, 10.0), (1e-8, 1e-7), (1e4, 1e6)),
    "root": (lambda a, b, c: a * c**2 * (1 / np.sqrt(1 - b**2 / c**2) - 1), (1e-3, 1.0), (1.0, 50.0), (3e8, 4e8)),
    "negative": (lambda a, b, c: a * (np.cos(0.25 * b * c) - 1), (0.1, 10.0), (0.1, 10.0), (1e-8, 1e-7)),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_staircase_of_a_difference_tells_the_difference(law):
    rng = np.random.default_rng(1)
    f, *ranges = LAWS[law]
    X = np.column_stack([spread(rng, *limits) for limits in ranges])
    y = f(*X.T)
    found = proposals(X, y)
    assert found
    fresh = np.column_stack([spread(rng, *limits) for limits in ranges])
    missed = np.abs(found[0](fresh) - f(*fresh.T)) > 1e-9 * np.abs(f(*fresh.T)).max()
    assert missed.mean() < 0.01, str(found[0])  # a stair's edge may lie between rows


def test_nothing_is_seen_in_targets_without_stairs():
    rng = np.random.default_rng(2)
    X = np.column_stack([spread(rng, 0.1, 10.0) for _ in range(3)])
    smooth = X[:, 0] * (1 - np.cos(X[:, 1] * X[:, 2]))
    counts = np.round(5 * X[:, 0] * X[:, 1])
    classes = (X[:, 0] > 1).astype(float)
    for y in (smooth, smooth * (1 + 1e-3 * rng.standard_normal(len(X))), classes):
        assert proposals(X, y) == []
    for found in proposals(X, counts):  # stairs of their own, of height 1
        assert np.mean(np.abs(found(X) - counts) < 0.1) > 0.99
