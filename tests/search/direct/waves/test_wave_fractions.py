"""Fractions with waves or exponentials above and below the line."""

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.wave_fractions import propose


def proposals(X: np.ndarray, y: np.ndarray, functions: FunctionSet | None = None) -> list[Expression]:
    table = DirectTable(X, y, np.ones(len(y)))
    functions = functions or FunctionSet(None)
    found = propose(table, functions=functions, effort=Effort(1.0), rng=np.random.default_rng(0))
    return [Expression(root, tuple(f"x{j}" for j in range(X.shape[1]))) for root in found]


def drawn(rng: np.random.Generator, ranges: list[tuple[float, float]], rows: int = 1000) -> np.ndarray:
    return np.column_stack([rng.uniform(*limits, rows) for limits in ranges])


LAWS = {
    "slits": (lambda n, d: (np.sin(n * d / 2) / np.sin(d / 2)) ** 2 / n**2, (2, 6), (1, 5)),
    "source and listener": (
        lambda v, u, a, b: (1 + v * np.cos(a)) / (1 - u * np.cos(b)),
        *((0.1, 0.4), (0.1, 0.4), (0, 3), (0, 3)),
    ),
    "a banked curve": (
        lambda t, u: (np.sin(t) + u * np.cos(t)) / (np.cos(t) - u * np.sin(t)),
        (0.1, 0.6),
        (0.1, 0.6),
    ),
    "light from the side": (lambda v, t: np.sqrt(1 - v**2 / 9) / (1 - v * np.cos(t) / 3), (0.1, 2), (0, 6)),
    "two levels": (
        lambda a, b: (a * np.exp(-a) + b * np.exp(-b)) / (np.exp(-a) + np.exp(-b)),
        *((0.3, 5), (0.3, 5)),
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_fractions_are_seen(law):
    f, *ranges = LAWS[law]
    rng = np.random.default_rng(1)
    X, fresh = drawn(rng, ranges), drawn(rng, ranges)
    found = proposals(X, f(*X.T))
    assert found
    assert np.abs(found[0](fresh) / f(*fresh.T) - 1).max() < 1e-7, str(found[0])


def test_nothing_is_seen_in_noise_other_functions_and_few_rows():
    rng = np.random.default_rng(2)
    X = drawn(rng, [(0.5, 3), (0, 6)])
    law = (1 + X[:, 0] * np.cos(X[:, 1])) / (5 - np.sin(X[:, 1]))
    assert proposals(X, law)
    for y in (law + 0.01 * rng.standard_normal(len(law)), np.log(1 + X[:, 0] * np.sqrt(X[:, 1])), np.ones(len(law))):
        assert proposals(X, y) == []
    assert proposals(X[:60], law[:60]) == []


def test_only_allowed_functions_are_proposed():
    f, *ranges = LAWS["slits"]
    X = drawn(np.random.default_rng(3), ranges)
    y = f(*X.T)
    assert proposals(X, y)
    assert proposals(X, y, FunctionSet(["add", "mul", "div", "exp"])) == []
