"""A wave of one column with a wave of another."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.crossed import propose


def proposals(X: np.ndarray, y: np.ndarray, functions: FunctionSet | None = None) -> list[Expression]:
    table = DirectTable(X, y, np.ones(len(y)))
    functions = functions or FunctionSet(None)
    found = propose(table, functions=functions, effort=Effort(0.1), rng=np.random.default_rng(0))
    return [Expression(root, tuple(f"x{j}" for j in range(X.shape[1]))) for root in found]


LAWS = {
    "a product": lambda a, b, c: 1.2 * np.sin(1.1 * a) * np.cos(0.9 * b),
    "slower than a turn": lambda a, b, c: np.sin(0.5 * a) * np.cos(0.4 * b),
    "a product with phases": lambda a, b, c: 0.8 * np.sin(2.2 * a + 0.4) * np.cos(1.7 * c - 1),
    "a product of sums, one of a square": lambda a, b, c: (2 + np.cos(3 * a)) * (1 - 0.5 * np.sin(b**2)),
    "a sum": lambda a, b, c: 1.5 * np.sin(1.1 * a) + 1.3 * np.cos(2.7 * c) - 4,
    "a wave of a difference": lambda a, b, c: 1.3 * np.cos(1.2 * a - 0.7 * b + 0.3) + 2,
    "a wave of a sum": lambda a, b, c: 1e-6 * np.sin(1.2 * b + 1.9 * c),
    "a product beside a wave": lambda a, b, c: np.sin(1.6 * a) * np.sin(2.3 * b) + 0.4 * np.cos(1.6 * a),
}


@pytest.mark.parametrize("law", LAWS)
def test_two_waves_are_seen(law):
    rng = np.random.default_rng(1)
    X, fresh = rng.uniform(-3, 3, (300, 3)), rng.uniform(-3, 3, (300, 3))
    y, expected = LAWS[law](*X.T), LAWS[law](*fresh.T)
    found = proposals(X, y)
    assert found
    assert np.abs(found[0](fresh) - expected).max() < 1e-6 * np.abs(expected).max(), str(found[0])


def test_a_product_has_no_phases_it_does_not_need():
    X = np.random.default_rng(2).uniform(0, 10, (300, 2))
    (found,) = proposals(X, 1.2 * np.sin(1.1 * X[:, 0]) * np.cos(0.9 * X[:, 1]))
    assert str(found) == "1.2*sin(1.1*x0)*cos(0.9*x1)"


def test_nothing_is_seen_in_noise_other_functions_few_rows_and_few_columns():
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (300, 3))
    law = LAWS["a product"](*X.T)
    for y in (law + 1e-4 * rng.standard_normal(300), rng.standard_normal(300), X[:, 0] * X[:, 1], np.ones(300)):
        assert proposals(X, y) == []
    assert proposals(X[:30], law[:30]) == []
    assert proposals(X[:, :1], np.sin(3 * X[:, 0])) == []
    assert proposals(X, law, FunctionSet(("add", "mul", "exp"))) == []
    assert proposals(np.where(X > 2.9, np.inf, X), law) == []
    assert proposals(np.ones((300, 2)), law) == []
