"""Sums of columns: the right ones first, as least squares has them, on a front where many are weak."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums import linear
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.judging.structure import linear_columns


def proposals(
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None = None,
    names: tuple[str, ...] = ("add", "mul"),
    **effort: object,
) -> list[Node]:
    table = DirectTable(X, y, np.ones(len(y)) if weights is None else weights)
    given = Effort(1.0, **effort)  # type: ignore[arg-type]
    return list(linear.propose(table, functions=FunctionSet(names), effort=given, rng=np.random.default_rng(0)))


def test_columns_come_by_what_they_explain_with_the_factors_of_least_squares(rng: np.random.Generator) -> None:
    X = rng.standard_normal((200, 4))
    X[:, 3] = X[:, 0] + 1e-3 * rng.standard_normal(200)  # nearly the first one, of less use
    y = 5 * X[:, 0] - 2 * X[:, 2] + 3 + 0.01 * rng.standard_normal(200)
    found = proposals(X, y)
    assert [sorted(linear_columns(root)) for root in found[:2]] == [[0], [0, 2]]
    expected = np.linalg.lstsq(np.column_stack([np.ones(200), X[:, [0, 2]]]), y, rcond=None)[0]
    table = DirectTable(X, y, np.ones(200))
    np.testing.assert_allclose(table.values(found[1]), expected[0] + X[:, [0, 2]] @ expected[1:], rtol=1e-9, atol=1e-9)


def test_weights_count_and_equal_columns_are_taken_once(rng: np.random.Generator) -> None:
    X = rng.standard_normal((50, 2))
    y = 2 * X[:, 0] + 1
    y[:5] = 100.0
    root = proposals(np.column_stack([X, X[:, 0]]), y, np.where(np.arange(50) < 5, 0.0, 1.0))
    assert len(root) == 2
    assert DirectTable(X, y, np.ones(50)).values(root[0])[7] == pytest.approx(y[7])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows_and_constant_columns_give_few_sums_or_none(n: int, rng: np.random.Generator) -> None:
    assert len(proposals(rng.standard_normal((n, 6)), rng.standard_normal(n))) <= max(n // 2 - 1, 0)
    assert proposals(np.ones((20, 3)), rng.standard_normal(20)) == []


def test_it_ends_when_time_is_up_and_where_sums_are_not_allowed(rng: np.random.Generator) -> None:
    assert proposals(rng.standard_normal((30, 3)), rng.standard_normal(30), names=("mul", "sin")) == []
    assert proposals(rng.standard_normal((30, 3)), rng.standard_normal(30), out_of_time=lambda: True) == []


def test_many_weak_columns_are_chosen_together(rng: np.random.Generator) -> None:
    X = rng.standard_normal((400, 9))
    y = X[:, :6] @ np.array([0.5, -0.5, 0.5, 0.45, -0.45, 0.4]) + rng.standard_normal(400)
    model = GMEQLRegressor(max_candidates=1500, max_time=None, random_state=0, n_jobs=1).fit(X, y)
    columns = linear_columns(model.expression_.root)
    assert columns is not None and columns >= set(range(6))


def test_slopes_that_differ_between_two_kinds_of_rows_are_seen(rng: np.random.Generator) -> None:
    kind, other = (rng.integers(0, 2, 120).astype(float) for _ in range(2))
    X = np.column_stack([rng.uniform(0, 10, 120), kind, other, rng.standard_normal(120)])
    y = 1 + 2 * X[:, 0] + 1.5 * kind * X[:, 0] + 0.3 * rng.standard_normal(120)
    table = DirectTable(X, y, np.ones(120))
    found = proposals(X, y)
    sums = [root for root in found if linear_columns(root) is None]
    assert found[: len(found) - len(sums)] == [root for root in found if root not in sums]  # plain ones come first
    assert min(table.error(root) for root in sums[:1]) * y.std() < 0.4
    matrix = np.column_stack([np.ones(120), X[:, 0], kind * X[:, 0]])
    expected = matrix @ np.linalg.lstsq(matrix, y, rcond=None)[0]
    np.testing.assert_allclose(table.values(sums[0]), expected, rtol=1e-9)
    assert all(linear_columns(root) is not None for root in proposals(X, y, names=("add", "sin")))
    assert all(linear_columns(root) is not None for root in proposals(X[:, [0, 3]], y))


def test_a_slope_that_differs_by_category_is_chosen(rng: np.random.Generator) -> None:
    kinds = rng.integers(0, 3, 90)
    X = np.column_stack([rng.uniform(5, 80, 90), kinds == 1, kinds == 2]).astype(float)
    y = 2 + np.array([0.25, 0.32, 0.45])[kinds] * X[:, 0] + rng.standard_normal(90)
    model = GMEQLRegressor(max_candidates=500, random_state=0, n_jobs=1).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 1.1


def test_values_of_other_rows_are_those_of_the_sums_themselves(rng: np.random.Generator) -> None:
    X, others = rng.standard_normal((30, 5)) * [1, 10, 1e-3, 1, 1] + [0, 50, 0, 0, 0], rng.standard_normal((7, 5))
    y, weights = X[:, 0] + X[:, 1] + rng.standard_normal(30), rng.uniform(0.5, 2.0, 30)
    found = linear.values_by_length(X, y, weights, others)
    roots = proposals(X, y, weights)
    assert found.shape == (7, 5)
    for k, root in enumerate(roots):
        np.testing.assert_allclose(found[:, k], Expression(root, tuple("abcde"))(others), rtol=1e-8)
