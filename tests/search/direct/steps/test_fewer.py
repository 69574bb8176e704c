"""What a step leaves is told to be of fewer columns, and seen over these, and on the rows that have digits of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import Constant, Variable, build, tree_complexity, used_columns
from gmeql.network.families import FunctionSet
from gmeql.search.direct.steps.fewer import Left, behind_one, knows_digits, over_fewer, told_by
from gmeql.search.direct.steps.nested import propose
from gmeql.search.direct.table import DirectTable, Effort

X = np.random.default_rng(1).uniform(-10, 10, (400, 4))


def table_of(f: Callable[..., np.ndarray]) -> DirectTable:
    with np.errstate(all="ignore"):
        y = f(*X.T)
    rows = np.isfinite(y)
    return DirectTable(X[rows], y[rows], np.ones(int(rows.sum())))


def test_columns_that_a_target_is_of_are_told_from_others() -> None:
    target = X[:, 0] + np.sin(X[:, 1])
    assert told_by(X[:, :2], target) < 0.3
    assert told_by(X[:, 2:], target) > 0.8
    assert told_by(X[:, :2], 1e9 * target**5) < 0.3  # by ranks


def test_rows_without_digits_are_told() -> None:
    left = np.sqrt(X[:, 1] + 11)
    known = knows_digits(left + 12.6 * np.exp(-2 * X[:, 0]), left)
    assert not known[X[:, 0] < -6].any()
    assert known[X[:, 0] > 0].all()


def test_formulas_are_of_the_columns_asked_for() -> None:
    table = table_of(lambda a, b, c, d: c / (d**2 + 3))
    roots = over_fewer(table, [2, 3], functions=FunctionSet(), effort=Effort(1.0), rng=np.random.default_rng(0))
    root = min(roots, key=table.error)
    assert table.error(root) < 1e-12
    assert set(used_columns(root)) == {2, 3}


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c, d: d**2 * (c + d) / (a + np.sin(a - b)),
        lambda a, b, c, d: -b / c + np.sqrt(b - 6.57 * a - 6.73) + 0.68 + 12.64 * np.exp(-a),
    ],
)
def test_what_a_step_leaves_is_seen(f: Callable[..., np.ndarray]) -> None:
    table = table_of(f)
    roots = list(propose(table, functions=FunctionSet(), effort=Effort(1.0), rng=np.random.default_rng(0)))
    assert table.error(roots[0]) < 1e-10
    assert tree_complexity(roots[0]) < 40


def test_nothing_is_seen_of_what_is_hidden_in_all_columns() -> None:
    rng = np.random.default_rng(2)
    table = table_of(lambda a, b, c, d: a**2 * rng.standard_normal(400))
    assert not list(propose(table, functions=FunctionSet(), effort=Effort(1.0), rng=rng))


def test_a_step_that_leaves_no_digits_is_not_looked_at() -> None:
    table = table_of(lambda a, b, c, d: 1e9 * a * c * d)
    stands = build("mul", Constant(1e9), *(Variable(j) for j in (0, 2, 3)))
    left = Left(1e-9 * table.X[:, 1], lambda root: build("add", stands, root), True, True)
    asked = dict(functions=FunctionSet(), effort=Effort(0.2), rng=np.random.default_rng(0))
    assert behind_one(table, table.X, [left], **asked) is None
