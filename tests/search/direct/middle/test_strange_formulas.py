"""Small formulas of columns and pairs of columns: each has the values of its tree, and none that is not finite is there."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import Variable, build, leaves, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.direct.middle.strange_formulas import (
    Formulas,
    inverse_sums,
    of_pairs,
    of_products,
    plain_functions,
    valued,
)

NAMES = ("a", "b", "c")
X = np.random.default_rng(4).uniform(-3.0, 3.0, (40, 3))
SOME = FunctionSet(["add", "sub", "mul", "div", "sin", "exp", "sqrt"])


def kinds() -> dict[str, Formulas]:
    return {
        "all": Formulas.of(X, SOME, 200),
        "one column": Formulas.of(X, SOME, 50, 1),
        "pairs": of_pairs(X, SOME, 400),
        "products": of_products(X, SOME, 400),
        "inverse sums": inverse_sums(X, SOME),
        "plain": plain_functions(X, SOME),
    }


@pytest.mark.parametrize("kind", kinds())
def test_values_are_those_of_the_trees(kind: str) -> None:
    found = kinds()[kind]
    assert len(found.values) and np.isfinite(found.values).all()
    for m, values in enumerate(found.values):
        np.testing.assert_allclose(row_values(found.node(m), NAMES, X), values, rtol=1e-10, atol=1e-12)


def test_formulas_of_one_column_know_no_other() -> None:
    one = kinds()["one column"]
    columns = {leaf for m in range(len(one.values)) for leaf in leaves(one.node(m)) if isinstance(leaf, Variable)}
    assert columns == {Variable(1)}


def test_products_are_of_different_columns_the_plainest_first() -> None:
    found = of_products(np.hstack([X, 4.0 - X[:, :2]]), SOME, 3000)
    columns = [[leaf for leaf in leaves(found.node(m)) if isinstance(leaf, Variable)] for m in range(400)]
    assert all(len(set(some)) == len(some) in (3, 4) for some in columns)
    assert [len(some) for some in columns[:10]] == [3] * 10  # a*b*c and the like


def test_several_together_and_only_some() -> None:
    first, second = kinds()["inverse sums"], kinds()["plain"]
    both = Formulas.together([first, second])
    assert both.node(len(first.values)) == second.node(0)
    some = both.only(np.array([1, len(first.values) + 2, 10_000]))
    assert [some.node(m) for m in range(len(some.values))] == [first.node(1), second.node(2)]
    np.testing.assert_array_equal(some.values, both.values[[1, len(first.values) + 2]])


def test_nothing_of_functions_that_are_not_allowed() -> None:
    assert len(inverse_sums(X, FunctionSet(["add", "mul"])).values) == 0
    assert valued([build("sqrt", Variable(0)), Variable(2)], X)[0][0] == Variable(2)
