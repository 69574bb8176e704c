"""Sums of columns beside a finished front: judged like its members, and only where a front leaves room for doubt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.nodes import tree_complexity
from gmeql.model.pareto.front import Front
from gmeql.search.config import SearchConfig
from gmeql.search.data.rows import SearchRows
from gmeql.search.front.leaderboard import Leaderboard
from gmeql.search.front.plain_sums import judged_sums
from gmeql.search.judging.structure import linear_columns


def table(rng: np.random.Generator, noise: float) -> SearchRows:
    X = rng.standard_normal((20, 6))
    y = X @ np.full(6, 0.5) + noise * rng.standard_normal(20)
    return SearchRows.of(X, y, config=SearchConfig())


def front(rows: SearchRows) -> tuple:
    board = Leaderboard.start(rows.config, rows)
    board.look_out(rows)
    return board.front(rows)


def test_every_length_is_judged_and_the_shrunk_one_says_what_it_is_worth(rng: np.random.Generator) -> None:
    rows = table(rng, 1.0)
    *others, shrunk = judged_sums(front(rows), rows)
    fitted = [m for m in others if linear_columns(m.expression.root) is not None]
    assert [tree_complexity(m.expression.root) for m in fitted] == [5, 9, 13, 17, 21, 25]
    assert all(m.outlook.freedom is None and m.outlook.error > m.loss for m in fitted)
    assert 1.5 < shrunk.outlook.freedom < 7 and shrunk.loss > fitted[-1].loss
    assert shrunk.outlook.error < fitted[-1].outlook.error


def test_what_a_user_allows_is_kept(rng: np.random.Generator) -> None:
    rows = table(rng, 1.0)
    short = replace(rows, config=replace(rows.config, max_complexity=12))
    found = judged_sums(front(short), short)
    assert {m.complexity for m in found if linear_columns(m.expression.root) is not None} == {5, 9}
    assert all(m.complexity <= 12 for m in found)
    products = replace(rows, config=replace(rows.config, functions=("mul", "sin")))
    assert judged_sums(front(products), products) == ()


@pytest.mark.parametrize("loss", ["absolute", "poisson"])
def test_other_losses_have_sums_of_their_own(rng: np.random.Generator, loss: str) -> None:
    rows = table(rng, 1.0)
    other = SearchRows.of(rows.X, np.abs(rows.given_y), config=SearchConfig(loss=loss))
    assert judged_sums(front(rows), other) == ()


def test_fronts_that_are_not_judged_get_none(rng: np.random.Generator) -> None:
    rows = table(rng, 1.0)
    assert judged_sums(Leaderboard.start(rows.config, rows).front(rows), rows) == ()


def test_a_law_of_few_columns_keeps_its_place(rng: np.random.Generator) -> None:
    for _ in range(4):
        X = rng.standard_normal((100, 6))
        y = 1 + 2 * X[:, 0] - X[:, 1] + rng.standard_normal(100)
        rows = SearchRows.of(X, y, config=SearchConfig())
        known = front(rows)
        sums = judged_sums(known, rows)
        law = next(m for m in sums if m.complexity == 9)
        spread = {"rows": 100, "target_spread": float(y.std()), "target_largest": float(np.abs(y).max())}
        chosen = Front.from_members([*known, law], **spread).with_sums(sums).select()
        columns = linear_columns(chosen.expression.root)
        assert not chosen.is_shrunk and columns is not None and {0, 1} <= columns


def test_columns_of_noise_seldom_take_the_place_of_a_constant() -> None:
    """By errors on rows left out alone it were one table in five."""
    taken = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        rows = SearchRows.of(rng.standard_normal((20, 3)), 5 + rng.standard_normal(20), config=SearchConfig())
        members = front(rows)
        constant = Front.from_members(members[:1], rows=20, target_spread=float(rows.given_y.std()), target_largest=9.0)
        shrunk = [m for m in judged_sums(members, rows) if m.outlook.freedom is not None]
        taken += len(constant.with_sums(shrunk)) > 1
    assert taken <= 2


def test_of_many_columns_that_each_say_a_little_none_is_left_out_where_formulas_may_be_long() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 30))
    y = X @ np.full(30, 0.3) + rng.standard_normal(60)
    short, long = (SearchRows.of(X, y, config=SearchConfig(most_summed=most)) for most in (None, 100))
    columns = []
    for rows in (short, long):
        (shrunk,) = (m for m in judged_sums(front(rows), rows) if m.outlook.freedom is not None)
        assert shrunk.outlook.chance == 0.0
        columns.append(len(shrunk.expression.variables))
    assert columns == [14, 30]
