"""Blocks of terms: step by step in or out, and kinds that become one."""

from __future__ import annotations

import math

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable
from gmeql.search.sums.blocks import Block, fitted_sum, merged_kinds, stated, stepwise, terms_of


def blocks(X: np.ndarray) -> list[Block]:
    return [Block((Variable(k),), X[:, [k]]) for k in range(X.shape[1])]


def test_steps_end_where_the_description_is_shortest_and_the_first_stay(rng: np.random.Generator) -> None:
    X = rng.standard_normal((120, 6))
    y = 3 * X[:, 1] - 2 * X[:, 4] + rng.standard_normal(120)
    steps = list(stepwise(blocks(X), y, np.ones(120), most=5))
    assert steps == [{1}, {1, 4}]
    *_, last = stepwise(blocks(X), y, np.ones(120), most=5, first=frozenset({0}))
    assert last == {0, 1, 4}
    assert list(stepwise(blocks(X), y, np.ones(120), most=1)) == [{1}]
    found = Expression(fitted_sum(terms_of(blocks(X), steps[-1]), y, np.ones(120)), tuple("abcdef"))
    table = np.column_stack([np.ones(120), X[:, [1, 4]]])
    np.testing.assert_allclose(found(X), table @ np.linalg.lstsq(table, y, rcond=None)[0])


def test_a_product_needs_what_it_multiplies(rng: np.random.Generator) -> None:
    X = rng.standard_normal((100, 2))
    product = Block((Variable(1),), X[:, [1]], needs=(0,))
    y = 2 * X[:, 1] + 0.1 * rng.standard_normal(100)
    assert list(stepwise([blocks(X)[0], product], y, np.ones(100), most=5)) in ([], [{0}, {0, 1}])


def test_stating_blocks_takes_the_logarithm_of_how_many_sets_there_are() -> None:
    assert stated(5, 1) == math.log(6) + math.log(5)
    assert stated(5, 5) == stated(5, 2)


def test_kinds_become_one_by_any_reference_and_stay_apart_where_rows_tell_them(rng: np.random.Generator) -> None:
    kind = np.repeat([0, 1, 2, 3], 50)
    X = np.column_stack([kind == k for k in range(4)]).astype(float)
    block = Block((Variable(1), Variable(2), Variable(3)), X[:, 1:], reference=(Variable(0), X[:, 0]))
    noise = rng.standard_normal(200)
    for levels, left in (([0, 5, 0, 0], {1}), ([9, 0, 0, 0], {0}), ([9, 5, 0, 0], {0, 1}), ([0, 3, 6, 9], None)):
        found = merged_kinds([block], frozenset({0}), np.array(levels)[kind] + noise, np.ones(200))
        assert (not found) if left is None else {term.index for term, _ in found[-1].terms} == left, levels
