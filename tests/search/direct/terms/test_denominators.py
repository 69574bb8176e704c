"""Small terms below the line: which there are, and that none is a sum of the others."""

from __future__ import annotations

import numpy as np

from gmeql.formula.nodes import Constant, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.vocabulary import VOCABULARY, propose
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.terms.denominators import Below, small_terms


def test_small_terms_are_no_sums_of_each_other() -> None:
    """The square of a column of two values is one: with it sums vanish that say nothing about any target."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([-0.044, 0.051], 100), rng.uniform(1, 2, 100)])
    first, second = Variable(0), Variable(1)
    expected = [Constant(1.0), first, second, build("mul", first, second), build("square", second)]
    assert [node for node, _ in small_terms(X)] == expected
    table = DirectTable(X, (1 + X[:, 0] * X[:, 1]) / (2 + X[:, 0] + X[:, 1]), np.ones(100))
    found = list(propose(table, functions=FunctionSet(), effort=Effort(0.5), rng=rng))
    assert found and table.error(found[0]) < VOCABULARY.verified


def test_kinds_of_terms_and_their_values() -> None:
    X = np.random.default_rng(1).uniform(1, 2, (50, 3))
    below = Below(X)
    assert [node for node, _ in below.few] == [Constant(1.0), Variable(0), Variable(1), Variable(2)]
    assert below.of_three[: len(below.small)] == below.small
    np.testing.assert_allclose(below.of_three[-1][1], X.prod(axis=1))
    np.testing.assert_allclose(below.powers[-1][1], X[:, 2] ** 3)
