"""Targets that are nearly a product of powers on many rows, and a function of another one on all."""

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.direct.powers.corrected import propose
from gmeql.search.direct.table import DirectTable, Effort
from spread_laws import largest_error, rows_of, spread


def proposals(X: np.ndarray, y: np.ndarray, functions: FunctionSet | None = None) -> list[Expression]:
    table = DirectTable(X, y, np.ones(len(y)))
    functions = functions or FunctionSet(None)
    found = propose(table, functions=functions, effort=Effort(1.0), rng=np.random.default_rng(0))
    return [Expression(root, tuple(f"x{j}" for j in range(X.shape[1]))) for root in found]


LAWS = {
    "a millionth": (lambda n, m, b, t: n * m * np.tanh(3 * m * b / t), (1, 9), (0.001, 0.1), (0.1, 1), (10, 1000)),
    "half saturated": (lambda n, m, b, t: n * m * np.tanh(m * b / t), (1, 9), (0.1, 10), (0.1, 10), (0.1, 10)),
    "both ends": (lambda q, d: np.sqrt(9.81 * q * np.tanh(q * d)), (0.01, 10), (0.1, 100)),
    "Langevin": (lambda n, z: n * (1 / np.tanh(0.4 * z) - 1 / (0.4 * z)), (1, 9), (0.01, 100)),
    "Einstein": (lambda n, z: n * z**2 * np.exp(z) / (np.exp(z) - 1) ** 2, (1, 9), (0.1, 20)),
    "Bose": (lambda a, f, t: a * f**3 / (np.exp(0.048 * f / t) - 1), (1, 9), (0.1, 10), (0.5, 50)),
    "difference": (lambda a, u, v: 5.67e-8 * a * (u**4 - v**4), (0.1, 10), (100, 1000), (100, 1000)),
    "negative": (lambda a, v: -a / np.sqrt(1 - v**2 / 9e16), (1, 9), (1e5, 1e8)),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_small_rest_tells_the_function(law):
    rng = np.random.default_rng(3)
    found = proposals(*rows_of(rng, LAWS[law]))
    assert found
    assert largest_error(found[0], rng, LAWS[law]) < 1e-8, str(found[0])


def test_columns_of_both_signs_keep_theirs():
    rng = np.random.default_rng(4)
    X = np.column_stack([spread(rng, 0.1, 10) for _ in range(2)]) * rng.choice([-1, 1], (600, 2))
    y = X[:, 0] * np.exp(0.02 * X[:, 1])
    assert np.abs(proposals(X, y)[0](X) / y - 1).max() < 1e-12


def test_nothing_is_seen_in_plain_products_noise_and_zeros():
    rng = np.random.default_rng(5)
    X = np.column_stack([spread(rng, 0.1, 10) for _ in range(3)])
    product = 2.5 * X[:, 0] * X[:, 1] / X[:, 2]
    law = X[:, 0] * np.tanh(X[:, 1] / X[:, 2])
    noisy = law * (1 + 0.01 * rng.standard_normal(len(law)))
    pieces = np.where(X[:, 1] > 1, product, 0.0)
    for y in (product, noisy, rng.standard_normal(600), pieces, np.ones(600)):
        assert proposals(X, y) == []
    assert proposals(X[:30], law[:30]) == []


def test_only_allowed_functions_are_proposed():
    rng = np.random.default_rng(6)
    X = np.column_stack([spread(rng, 0.1, 10) for _ in range(2)])
    y = np.tanh(X[:, 0] / X[:, 1])
    assert proposals(X, y)
    assert proposals(X, y, FunctionSet(["add", "mul", "div", "exp"])) == []
