"""The factor before a logarithm, by what a span leaves."""

import numpy as np
import pytest

from gmeql.network.families import FunctionSet
from gmeql.search.direct.library import brief_vocabulary
from gmeql.search.direct.logarithms import factors_of_logarithm
from gmeql.search.direct.nested import propose
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.vocabulary import Span

FUNCTIONS = FunctionSet(None)


def columns(rows: int = 600, n: int = 3) -> np.ndarray:
    return np.random.default_rng(4).uniform(0.1, 9.0, (rows, n))


@pytest.mark.parametrize("factor", [2.5, -0.13, 40.0])
def test_the_factor_is_found_to_rounding(factor):
    X = columns()
    a, b, c = X.T
    terms = brief_vocabulary(X, FUNCTIONS.allows, most_terms=40)
    found = list(factors_of_logarithm(factor * np.log(a * b + c + 3), Span(terms.values, terms.node).left))
    assert min(abs(one / factor - 1) for one in found) < 1e-9


def test_other_targets_have_none():
    X = columns()
    a, b, c = X.T
    terms = brief_vocabulary(X, FUNCTIONS.allows, most_terms=40)
    left = Span(terms.values, terms.node).left
    for y in (np.sin(a * b) + c, a / (1 + b * c), np.ones(len(X)), 2 * np.log(a * b + c + 3) + 1e-4 * np.sin(50 * a)):
        assert list(factors_of_logarithm(y, left)) == []


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c: 2.5 * np.log(1.3 * a + 4.2 * b**2 + c),
        lambda a, b, c: c - a**2 + 0.36 * np.log(a * b + c + 1),
        lambda a, b, c: c + 0.36 * np.sqrt(np.log(a * b + c + 1)),
    ],
)
def test_logarithms_with_a_factor_behind_steps(f):
    X = columns(1000)
    table = DirectTable(X, f(*X.T), np.ones(len(X)))
    roots = list(propose(table, functions=FUNCTIONS, effort=Effort(1.0), rng=np.random.default_rng(0)))
    assert table.error(roots[0]) < 1e-9
