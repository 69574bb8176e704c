"""Columns that follow from others: left out as statisticians do it, the most frequent kind being the reference."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.network.families import FunctionSet
from gmeql.search.front.choosing import sums_of_columns
from gmeql.search.sums.independent import categories, independent_columns, with_reference
from gmeql.search.sums.shrinking import shrunk_sum
from gmeql.search.judging.structure import linear_columns


def colours(rng: np.random.Generator, rows: int) -> np.ndarray:
    """A number and a category of three kinds, the second of which is the most frequent [N, 4]."""
    kind = rng.choice(3, rows, p=[0.3, 0.45, 0.25])
    return np.column_stack([rng.uniform(0, 10, rows), *(kind == k for k in range(3))]).astype(float)


def test_of_a_category_the_most_frequent_kind_is_left_out(rng: np.random.Generator) -> None:
    X = colours(rng, 200)
    assert independent_columns(X) == [0, 1, 3]
    assert independent_columns(X[:, [2, 1, 3, 0]]) == [1, 2, 3]
    assert with_reference([2, 1, 0], [3], X) == [0, 1, 3]
    assert with_reference([0, 1], [], X) == [0, 1]


def test_totals_and_other_units_follow_from_their_parts(rng: np.random.Generator) -> None:
    X = rng.standard_normal((40, 3))
    table = np.column_stack([X, X.sum(axis=1), 1e9 * X[:, 0] - 3.0, np.full(40, 7.0)])
    assert independent_columns(table) == [0, 1, 2]
    weights = np.where(np.arange(40) < 4, 0.0, 1.0)
    table[:4, 3] = 50.0  # rows that do not count say nothing
    assert independent_columns(table, weights) == [0, 1, 2]
    assert independent_columns(table) == [0, 1, 2, 3]


def test_fewer_rows_than_columns_tell_of_none_that_it_follows(rng: np.random.Generator) -> None:
    assert independent_columns(rng.standard_normal((6, 9))) == list(range(9))


def test_categories_are_told_apart(rng: np.random.Generator) -> None:
    X = colours(rng, 200)
    sex = rng.integers(0, 2, 200)
    table = np.column_stack([X, sex == 0, sex == 1, rng.standard_normal(200)]).astype(float)
    found = categories(table)
    assert found[0] == [1, 3] and len(found) == 2 and len(found[1]) == 1


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_sums_of_all_columns_have_full_rank(noise: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = colours(rng, 120)
        y = 1.5 * X[:, 0] + X[:, 1:] @ [4.0, -2.0, 1.0] + noise * rng.standard_normal(120)
        found = shrunk_sum(X, y, np.ones(120), most_columns=10)
        assert found is not None and linear_columns(found.root) == {0, 1, 3}
        *_, longest = sums_of_columns(X, y, np.ones(120), FunctionSet(("add", "mul")))
        assert linear_columns(longest) == {0, 1, 3}
