"""Targets over many magnitudes: a product of powers times a function of another one."""

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.direct.powers.exponentials import propose
from gmeql.search.direct.table import DirectTable, Effort
from spread_laws import largest_error, rows_of, spread
from thinned import thinned


def proposals(
    X: np.ndarray, y: np.ndarray, functions: FunctionSet | None = None, seconds: float = 1.0
) -> list[Expression]:
    table = DirectTable(X, y, np.ones(len(y)))
    functions = functions or FunctionSet(None)
    found = propose(table, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0))
    return [Expression(root, tuple(f"x{j}" for j in range(X.shape[1]))) for root in found]


LAWS = {
    "Arrhenius": (lambda a, t: a * np.exp(-9e3 / t), (1e8, 1e12), (200, 2000)),
    "powers before it": (lambda n, t, w: n * t**1.5 * np.exp(-7e22 * w / t), (1, 9), (3e3, 3e4), (1e-19, 1e-18)),
    "diode": (lambda i, v, t: i * (np.exp(1.16e4 * v / t) - 1), (1e-12, 1e-9), (0.001, 10), (200, 400)),
    "Planck in wavelength": (lambda l, t: 1.2e-16 / l**5 / (np.exp(0.0144 / (l * t)) - 1), (1e-7, 1e-5), (300, 3e4)),
    "Einstein": (lambda n, z: n * z**2 * np.exp(z) / (np.exp(z) - 1) ** 2, (1, 9), (0.3, 300)),
    "Langevin": (lambda n, z: n * (1 / np.tanh(0.4 * z) - 1 / (0.4 * z)), (1, 9), (0.01, 100)),
    "charging": (lambda v, t, r, c: -v * (1 - np.exp(-t / (r * c))), (1, 9), (1e-6, 1e-2), (1e2, 1e4), (1e-8, 1e-6)),
    "disk": (lambda s, z, r: s * (1 - z / np.sqrt(z**2 + r**2)), (1, 5), (1, 5), (1, 5)),
    "line": (lambda a, l, d: a * np.log((l + np.sqrt(l**2 + d**2)) / d), (1, 5), (1, 5), (1, 5)),
    "Yukawa": (lambda g, r, a: -g * np.exp(-r / a) / r**2 * (1 + r / a), (1, 9), (0.1, 10), (0.1, 10)),
    "solar cell": (lambda s, i, v: s - i * (np.exp(v / 0.03) - 1), (1, 10), (1e-10, 1e-8), (0.1, 0.6)),
    "light on a cell": (
        lambda s, l, i, v: s * l - i * (np.exp(v / 0.03) - 1),
        *((0.1, 1), (1, 10), (1e-10, 1e-8), (0.1, 0.6)),
    ),
    "less a column": (lambda w, f, t: f**2 / (np.exp(f / t) - 1) - w, (1, 5), (0.1, 10), (0.1, 10)),
    "one column": (lambda z: 4 * np.sqrt(z) / (np.exp(z) + 1), (0.01, 100)),
}


@pytest.mark.parametrize("law", thinned(LAWS, quick=range(0, len(LAWS), 2)))
def test_every_row_tells_the_function(law):
    rng = np.random.default_rng(3)
    found = proposals(*rows_of(rng, LAWS[law]))
    assert found
    assert largest_error(found[0], rng, LAWS[law]) < 1e-7, str(found[0])


def test_columns_of_both_signs_keep_theirs():
    rng = np.random.default_rng(4)
    X = np.column_stack([spread(rng, 0.1, 10) for _ in range(2)]) * rng.choice([-1, 1], (600, 2))
    y = X[:, 0] * np.exp(2 * X[:, 1])
    assert np.abs(proposals(X, y)[0](X) / y - 1).max() < 1e-12


def test_rows_below_the_least_number_are_no_obstacle():
    rng = np.random.default_rng(5)
    X = np.column_stack([spread(rng, 1, 9), spread(rng, 1, 3000)])
    y = X[:, 0] / (np.exp(np.minimum(X[:, 1], 709)) - 1) * (X[:, 1] < 709)
    assert 0 < (y == 0).sum() < 300
    kept = y != 0
    assert np.abs(proposals(X, y)[0](X)[kept] / y[kept] - 1).max() < 1e-9


def test_nothing_is_seen_in_plain_products_noise_and_zeros():
    rng = np.random.default_rng(6)
    X = np.column_stack([spread(rng, 0.1, 10) for _ in range(3)])
    product = 2.5 * X[:, 0] * X[:, 1] / X[:, 2]
    law = X[:, 0] * np.exp(5 * X[:, 1] / X[:, 2])
    for y in (product, rng.standard_normal(600), np.where(X[:, 1] > 3, product, 0.0), np.ones(600)):
        assert proposals(X, y) == []
    assert proposals(X[:30], law[:30]) == []
    assert proposals(np.zeros((600, 3)), law) == []


def test_less_effort_tries_smaller_powers():
    rng = np.random.default_rng(7)
    X = np.column_stack([spread(rng, 0.1, 10) for _ in range(3)])
    y = X[:, 0] * np.exp(5 * X[:, 1] / X[:, 2])
    assert proposals(X, y, seconds=0.01)
    assert proposals(X, y, seconds=0.001) == []
    steep = X[:, 0] * np.exp(0.05 * X[:, 1] / X[:, 2] ** 3)
    assert proposals(X, steep) and proposals(X, steep, seconds=0.01) == []


def test_only_allowed_functions_are_proposed():
    rng = np.random.default_rng(8)
    X = np.column_stack([spread(rng, 0.1, 10) for _ in range(2)])
    y = X[:, 0] * np.exp(9 * X[:, 1])
    assert proposals(X, y)
    assert proposals(X, y, FunctionSet(["add", "mul", "div", "sin"])) == []
