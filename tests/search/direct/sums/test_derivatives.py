"""Derivatives of small terms: seen where D is allowed, and only there."""

from __future__ import annotations

import numpy as np

from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.direct.sums.derivatives import propose
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.polish.scoring import JudgedRows, refit

X = np.random.default_rng(0).uniform(0.4, 3.0, (120, 2))
Y = 0.5 + 3.0 * np.exp(-X[:, 0]) * (0.5 / np.sqrt(X[:, 0]) - np.sqrt(X[:, 0]))
"""0.5 + 3 D(sqrt(x1) exp(-x1), x1)."""


def proposed(functions: FunctionSet, y: np.ndarray = Y, seconds: float = 1.0) -> list:
    table = DirectTable(X, y, np.ones(len(y)))
    return list(propose(table, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))


def test_the_derivative_of_a_product_is_seen_at_once() -> None:
    found = proposed(FunctionSet((*DEFAULT_FUNCTIONS, "D")))
    rows = JudgedRows.of(X, Y, None, ["x1", "x2"])
    fitted = refit(found, rows, keep_recognised=False, max_steps=60)
    assert min(scored.loss for scored in fitted) < 1e-20


def test_without_d_among_the_functions_nothing_is_proposed() -> None:
    assert not proposed(FunctionSet())
    assert not proposed(FunctionSet((*DEFAULT_FUNCTIONS, "D")), seconds=0.0)


def test_only_allowed_functions_are_used() -> None:
    assert not any("exp" in repr(root) for root in proposed(FunctionSet(["+", "*", "/", "sqrt", "square", "D"])))
