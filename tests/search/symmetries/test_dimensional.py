"""Tables of pure numbers that units allow: they hold the law, and going into them and back changes no value."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import tree_complexity
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.consistency import UnitRules
from gmeql.knowledge.units import read_unit
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search
from gmeql.search.symmetries.dimensional import dimensional_views, shortest_inner
from gmeql.search.symmetries.views import View

NAMES = ("h", "omega", "k", "T", "c")
PLANCK = UnitRules(tuple(map(read_unit, ("J*s", "1/s", "J/K", "K", "m/s"))), read_unit("J/m**2"))
LAW = parse_tree("h*omega**3/(c**2*(exp(h*omega/(k*T)) - 1))", NAMES)


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(1, 3, (60, 5))
    return X, Expression(LAW, NAMES)(X)


def test_five_columns_become_one(table: tuple[np.ndarray, np.ndarray]) -> None:
    views = dimensional_views(PLANCK, *table)
    assert views and all(len(view.columns) == 1 and len(view.units) == 4 for view in views)
    for view in views:
        assert PLANCK.keeps(view.factor) and PLANCK.is_number(view.columns[0])


def test_into_a_view_and_back_keeps_the_value(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = table
    for view in dimensional_views(PLANCK, X, y):
        inner = view.inner(LAW)
        assert np.allclose(Expression(inner, ("x1",))(view.table(X)) * view.factors(X), y)
        assert np.allclose(Expression(view.restore(inner), NAMES)(X), y)
        assert View.from_dict(view.to_dict()) == view


def test_the_shortest_form_in_pure_numbers_is_what_is_free_to_choose(table: tuple[np.ndarray, np.ndarray]) -> None:
    views = dimensional_views(PLANCK, *table)
    form = shortest_inner(LAW, views)
    assert tree_complexity(form) < 0.6 * tree_complexity(LAW)
    short = parse_tree("h*omega**2/T", NAMES)  # breaks the units: its forms are no longer it, but none is longer
    assert tree_complexity(shortest_inner(short, views)) <= tree_complexity(short)
    assert shortest_inner(LAW, []) == LAW


def test_columns_that_touch_zero_are_no_units(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = table
    X = X.copy()
    X[0, 1] = 0.0
    rules = UnitRules((read_unit("m"), read_unit("m")), read_unit("m"))
    views = dimensional_views(rules, X[:, :2], X[:, 0])
    assert [view.units for view in views] == [(0,)]
    assert dimensional_views(rules, np.zeros((5, 2)), np.ones(5)) == []


def test_pure_numbers_need_no_view() -> None:
    assert dimensional_views(UnitRules((read_unit("1"),)), np.ones((5, 1)), np.ones(5)) == []


def test_units_of_constants_are_divided_out() -> None:
    X = np.random.default_rng(0).uniform(1, 2, (20, 1))
    rules = UnitRules((read_unit("m"),), read_unit("m/s"), (read_unit("m/s**2"),))
    views = dimensional_views(rules, X, X[:, 0])
    assert [str(Expression(view.factor, ("h",))) for view in views] == ["sqrt(h)"]


def test_a_search_keeps_the_units_on_every_member_and_goes_on_from_its_state() -> None:
    from gmeql.knowledge.knowledge import Knowledge

    rng = np.random.default_rng(1)
    X = rng.uniform(1, 3, (80, 3))
    y = 0.5 * X[:, 0] * X[:, 1] ** 2 + X[:, 0] * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(80)
    rules = UnitRules(tuple(map(read_unit, ("kg", "m/s", "m/s"))), read_unit("J"))
    config = SearchConfig(max_candidates=9000, n_jobs=1, knowledge=Knowledge(rules))
    search = Search(X, y, config=config, seed=0)
    events = search.run()
    for _ in range(3):
        next(events)
    state = search.state()
    for _ in events:
        pass
    assert len(search.front) > 1 and all(rules.keeps(member.expression.root) for member in search.front)
    again = Search.from_state(state, X, y, config=config)
    for _ in again.run():
        pass
    assert [m.expression for m in again.front] == [m.expression for m in search.front]
