"""Which tables direct methods look at: small ones have time of their own, noisy ones less of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gmeql.formula.nodes import Constant, build
from gmeql.formula.parsing import parse_tree
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.direct.methods import AT_FIRST
from gmeql.search.offers import seeing
from gmeql.search.offers.seeing import look_at_small
from gmeql.search.offers.tables import plainest_views, small_views_of, table_of
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.symmetries.views import View

NAMES = ("a", "b", "c")


def searched(noise: float) -> SearchState:
    """A search that knows that a*b and c say everything."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (300, 3))
    y = X[:, 2] ** 2 * np.exp(0.3 * X[:, 0] * X[:, 1]) + noise * rng.standard_normal(300)
    state = Search(X, y, names=NAMES, config=SearchConfig(max_candidates=40_000, n_jobs=1))._state
    view = View((parse_tree("a*b", NAMES), parse_tree("c", NAMES)), Constant(1.0))
    state.portfolio.add_tables([state.portfolio.table(view, state.rows)])
    return state


def test_small_tables_have_time_of_a_trail() -> None:
    clock = SearchConfig().clock
    assert [share for _, share in small_views_of(searched(0.0))] == [clock.small_shares[0]]
    assert [share for _, share in small_views_of(searched(5.0))] == [clock.small_noisy_shares[0]]
    idle = searched(5.0)
    idle.portfolio.tables = idle.portfolio.tables[:1]
    idle.portfolio.add_tables([idle.portfolio.table(View.raw(2), idle.rows)])
    assert small_views_of(idle) == []  # that c says nothing is no sign of a law
    alone = Search(np.random.default_rng(0).uniform(1, 3, (300, 3)), np.arange(300.0), config=SearchConfig())._state
    assert small_views_of(alone) == []


def test_what_small_tables_took_is_no_time_of_other_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What symmetries leave was looked at for some hundredths of a second: x*tan(t) - g*x**2/(2*v**2*cos(t)**2) was missed."""
    asked: dict[str, float] = {}

    def ask(name: str, table: Any, *, effort: Any, **options: Any) -> Iterator[Any]:
        asked[name] = effort.seconds
        return iter(())

    monkeypatch.setattr(seeing, "ask", ask)
    state = searched(0.0)
    before, trail = state.direct_spent, state.config.trail_seconds
    look_at_small(state, Clock.unlimited())
    assert set(asked) == {*AT_FIRST} - {"derivatives"} and state.direct_spent == before
    assert sum(asked.values()) == pytest.approx(state.config.clock.small_shares[0] * trail)
    assert state.trail_spent == pytest.approx(sum(asked.values()))
    state.trail_spent = trail
    asked.clear()
    look_at_small(state, Clock.unlimited())
    assert not asked


def test_a_table_without_values_is_none() -> None:
    state = searched(0.0)
    hidden = View((parse_tree("log(a - 2)", NAMES),), Constant(1.0))
    assert table_of(hidden, state) is None and table_of(plainest_views(state)[0], state) is not None
    assert table_of(View((build("inv", Constant(0.0)),), Constant(1.0)), state) is None
