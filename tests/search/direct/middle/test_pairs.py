"""Pairs of small formulas under noise: the law among its look-alikes, screening against plain least squares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from thinned import thinned
from noisy_laws import table

from gmeql.formula.nodes import Node, calls
from gmeql.network.families import FunctionSet
from gmeql.search.direct.middle import pairs
from gmeql.search.direct.middle.pairs import ALONE, BARE, FACTOR, PRODUCT, SUM
from gmeql.search.direct.readings import DIRECT_READINGS
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.polish.scoring import JudgedRows

ALL = FunctionSet()


def proposed(given: DirectTable, functions: FunctionSet = ALL, seconds: float = 0.6) -> list[Node]:
    return list(pairs.propose(given, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("f", "low", "high"),
    thinned([
        (lambda a, b: (1 + a * b) / (1 + a), 0.5, 4.0),
        (lambda a, b: 1 / (1 + a * (1 - np.cos(b))), 0.5, 3.0),
        (lambda a, b: np.sqrt(a**2 + b**2), 0.2, 3.0),
        (lambda u: np.tanh(u), 0.1, 4.0),
        (lambda u: 1 / np.sqrt(1 - u**2), 0.05, 0.8),
    ], quick=(0, 3)),
)  # fmt: skip
def test_the_law_is_proposed_in_ten_percent_noise(f: Callable[..., np.ndarray], low: float, high: float) -> None:
    fresh = table(f, low, high, rows=600)
    assert min(fresh.error(root) for root in proposed(table(f, low, high, noise=0.1, rows=600))) < 0.02


@pytest.mark.parametrize("kind", [BARE, ALONE, PRODUCT, FACTOR, SUM])
def test_a_pair_is_what_least_squares_makes_of_it(kind: int) -> None:
    given = table(lambda a, b: np.exp(-a) + b, 0.5, 2.0, noise=0.1, rows=100)
    weights = np.linspace(0.5, 1.5, 100)
    found = pairs._Pairs.of(given.X, ALL, 60)
    q, f = len(found.q_values) - 2, 5
    places = np.array([kind]), np.array([q]), np.array([f])
    solved = found._solved(*places, given.y, weights)
    factor, offset = float(solved.factor[0]), float(solved.offset[0])
    left = given.values(found._node(kind, q, f, factor, offset)) - given.y
    np.testing.assert_allclose(np.sum(weights * left**2), solved.squares[0], rtol=1e-9)
    for other in ((factor * 1.01, offset), (factor, offset + 0.01)):
        worse = given.values(found._node(kind, q, f, *other)) - given.y
        n_free = pairs.N_CONSTANTS[kind]
        if n_free == 2 or (n_free == 1 and other[1] == offset):
            assert np.sum(weights * worse**2) > solved.squares[0]


def test_factors_and_formulas_differ_in_more_than_scale() -> None:
    found = pairs._Pairs.of(table(lambda a, b: a * b, 0.5, 2.0, rows=600).X, ALL, 300)
    for values in (found.f_values, found.q_values):
        forms = values / values[:, :1]
        assert np.isfinite(values).all()
        assert len(np.unique(np.round(forms, 7), axis=0)) == len(values) > 30
    assert found.q_inverse.any() and not found.q_inverse.all()


def test_a_reading_is_taken_around_what_is_known() -> None:
    """Around the law itself 1/y has no bias: the mean error of the reading is none, however small y is."""
    clean = table(lambda u: u, 0.5, 3.0, rows=4000)
    rng = np.random.default_rng(1)
    noisy = clean.y + 0.2 * rng.standard_normal(4000)
    rows = JudgedRows.of(clean.X, noisy, None, ("x0",))
    for name in ("inv", "square", "log"):
        read = pairs._read(name, clean.y, rows)
        assert read is not None
        target, weights = read
        error = np.sqrt(weights) * (target - DIRECT_READINGS[name].forward(clean.y))
        np.testing.assert_allclose(np.abs(error), np.abs(noisy - clean.y), rtol=1e-6)
    assert pairs._read("log", clean.y - 1.0, rows) is None


def test_only_what_is_allowed_and_only_for_noise() -> None:
    given = table(lambda u: np.tanh(u), 0.1, 4.0, noise=0.1, rows=600)
    for root in proposed(given, FunctionSet(["mul", "add", "div", "sqrt"])):
        assert not {call.operator for call in calls(root)} & {
            "tanh",
            "exp",
            "log",
            "sin",
            "cos",
            "asin",
            "acos",
            "atan",
        }
    assert proposed(given, seconds=0.01) == []
    exact = DirectTable(given.X, given.y, given.weights, unexplained=1e-6)
    assert proposed(exact) == []
    assert (
        list(pairs.propose(given, functions=ALL, effort=Effort(1.0, lambda: True), rng=np.random.default_rng(0))) == []
    )


def test_a_reading_that_a_row_outweighs_has_no_pairs() -> None:
    X = np.random.default_rng(0).uniform(1, 2, (40, 2))
    weights = np.where(np.arange(40) == 3, 1e12, 1.0)
    assert pairs._Pairs.of(X, FunctionSet(), 50).leading("identity", X[:, 0], weights) == []
