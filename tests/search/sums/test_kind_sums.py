"""Whole categories in sums of columns: own levels, own slopes, and neither where rows do not ask for it."""

from __future__ import annotations

import numpy as np

from gmeql import GMEQLRegressor
from gmeql.formula.nodes import Call, evaluate, tree_complexity, used_columns
from gmeql.search.sums.kind_sums import sums_of_kinds
from gmeql.search.judging.structure import linear_columns


def kinds(rng: np.random.Generator, rows: int, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A number, a category, a number of no use [N, 2 + count], and the kind of each row."""
    kind = rng.integers(0, count, rows)
    X = np.column_stack([rng.uniform(0, 10, rows), *(kind == k for k in range(count)), rng.standard_normal(rows)])
    return X.astype(float), kind


def test_slopes_of_kinds_are_found_whole_with_a_common_level_or_without(rng: np.random.Generator) -> None:
    X, kind = kinds(rng, 150)
    y = np.array([2.0, 0.5, -1.0])[kind] * X[:, 0] + 3 + rng.standard_normal(150)
    *_, found = sums_of_kinds(X, y, np.ones(150), most_columns=14, products=True)
    assert tree_complexity(found.root) == 17  # dose, two products, a constant: no level of any kind
    y += np.array([0.0, 5.0, 9.0])[kind]
    *_, found = sums_of_kinds(X, y, np.ones(150), most_columns=14, products=True)
    assert tree_complexity(found.root) == 25 and 4 not in used_columns(found.root)
    assert found.nats < 6 < tree_complexity(found.root)
    plain = sums_of_kinds(X, y, np.ones(150), most_columns=14, products=False)
    assert all(linear_columns(each.root) is not None for each in plain)


def test_two_categories_that_say_something_else_together_than_each_alone(rng: np.random.Generator) -> None:
    first, second = rng.integers(0, 3, 240), rng.integers(0, 2, 240)
    tables = [*(first == k for k in range(3)), *(second == k for k in range(2))]
    X = np.column_stack([rng.uniform(0, 10, 240), *tables]).astype(float)
    for cells in ([[0.0, 0.0], [0.0, 8.0], [3.0, 3.0]], [[2.0, -2.0], [-2.0, 2.0], [0.0, 0.0]]):
        means = np.array(cells)[first, second]
        y = 1.4 * X[:, 0] + means + rng.standard_normal(240)
        *_, found = sums_of_kinds(X, y, np.ones(240), most_columns=14, products=True)
        values = evaluate(found.root, lambda k: X[:, k], np.float64, np)
        assert float(np.sqrt(np.mean((values - y + (y - 1.4 * X[:, 0] - means)) ** 2))) < 0.35
    y = 1.4 * X[:, 0] + np.array([0.0, 4.0, 7.0])[first] + 3.0 * second + rng.standard_normal(240)
    *_, found = sums_of_kinds(X, y, np.ones(240), most_columns=14, products=True)
    assert linear_columns(found.root) is not None  # nothing is said of cells where none differs


def test_a_category_of_many_kinds_is_one_choice(rng: np.random.Generator) -> None:
    X, kind = kinds(rng, 200, 8)
    y = X[:, 0] + rng.permutation(3.0 * np.arange(8))[kind] + rng.standard_normal(200)
    *_, found = sums_of_kinds(X, y, np.ones(200), most_columns=14, products=True)
    columns = linear_columns(found.root)
    assert columns is not None and len(columns) == 8 and 9 not in columns


def test_none_without_a_category_or_on_noise(rng: np.random.Generator) -> None:
    X, _ = kinds(rng, 100)
    y = rng.standard_normal(100)
    assert sums_of_kinds(X[:, [0, 4]], y, np.ones(100), most_columns=14, products=True) == []
    longest = sums_of_kinds(X, y, np.ones(100), most_columns=14, products=True)
    assert all(len(used_columns(each.root)) <= 1 for each in longest)
    assert sums_of_kinds(X[:6], y[:6], np.ones(6), most_columns=14, products=True) == []


def test_a_fit_says_what_a_statistician_would(rng: np.random.Generator) -> None:
    """Not the sum of all three kinds, of which no factor is determined."""
    kind = rng.choice(3, 120, p=[0.3, 0.45, 0.25])
    X = np.column_stack([rng.uniform(0, 10, 120), *(kind == k for k in range(3))]).astype(float)
    y = 1.5 * X[:, 0] + np.array([4.0, -2.0, 1.0])[kind] + rng.standard_normal(120)
    model = GMEQLRegressor(max_candidates=1500, max_time=None, random_state=0, n_jobs=1).fit(X, y)
    assert linear_columns(model.expression_.root) == {0, 1, 3}
    table = np.column_stack([np.ones(120), X[:, [0, 1, 3]]])
    expected = table @ np.linalg.lstsq(table, y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), expected, atol=0.1)  # rounded within what the rows know
    assert isinstance(model.expression_.root, Call)


def test_kinds_that_rows_do_not_tell_from_the_reference_become_one_with_it(rng: np.random.Generator) -> None:
    """`0.45*north` stood in a formula whose interval held 0, since the whole category had been taken in."""
    kept = []
    for _ in range(10):
        kind = rng.choice(4, 160, p=[0.4, 0.2, 0.2, 0.2])
        X = np.column_stack([rng.uniform(0, 10, 160), *(kind == k for k in range(4))]).astype(float)
        y = 1.5 * X[:, 0] + np.array([0.0, 0.0, 3.0, -2.0])[kind] + rng.standard_normal(160)
        *_, found = sums_of_kinds(X, y, np.ones(160), most_columns=14, products=True)
        kept.append(set(used_columns(found.root)))
        assert {3, 4} <= kept[-1] and found.nats < 8
    assert sum(2 in columns for columns in kept) <= 2
    y += np.array([0.0, 1.5, 0.0, 0.0])[kind]
    *_, found = sums_of_kinds(X, y, np.ones(160), most_columns=14, products=True)
    assert set(used_columns(found.root)) >= {2, 3, 4}


def test_kinds_that_are_one_may_be_the_reference(rng: np.random.Generator) -> None:
    """Of three machines two wear alike: `1.2*load + 0.9*load*m3 + 3`, whichever has most rows."""
    for shares in ([0.5, 0.2, 0.3], [0.3, 0.2, 0.5]):
        kind = rng.choice(3, 400, p=shares)
        X = np.column_stack([rng.uniform(0, 10, 400), *(kind == k for k in range(3))]).astype(float)
        y = np.array([1.2, 1.2, 2.1])[kind] * X[:, 0] + 3 + 0.5 * rng.standard_normal(400)
        *_, found = sums_of_kinds(X, y, np.ones(400), most_columns=14, products=True)
        assert set(used_columns(found.root)) == {0, 3} and tree_complexity(found.root) == 11, shares
        levels = np.array([4.0, 1.0, 1.0])[kind] + rng.standard_normal(400)
        *_, found = sums_of_kinds(X, levels, np.ones(400), most_columns=14, products=True)
        assert set(used_columns(found.root)) == {1}, shares
