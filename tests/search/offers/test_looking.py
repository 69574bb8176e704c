"""When the data are looked at, and by whom."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gmeql.fitters.waiting import COMPILING
from gmeql.formula.nodes import Constant, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.search.clock import Clock
from gmeql.search.config import ClockConfig, SearchConfig
from gmeql.search.direct.methods import EARLY
from gmeql.search.offers import looking as looking_module
from gmeql.search.offers.looking import Looking
from gmeql.search.offers.offering import Offering
from gmeql.search.offers.seeing import later_shares, plan
from gmeql.search.offers.tables import is_noisy, noisy_views_of, table_of
from gmeql.search.polish.scoring import refit
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula
from gmeql.search.symmetries.views import View


def made(**options: Any) -> tuple[SearchState, Looking]:
    X = np.random.default_rng(1).uniform(1, 3, (200, 3))
    y = X[:, 0] * np.sin(3 * X[:, 1] / X[:, 2]) + 0.1 * np.random.default_rng(2).standard_normal(200)
    config = SearchConfig(max_candidates=1000, n_jobs=1, clock=ClockConfig(islands_share=0.5), **options)
    return Search(X, y, config=config)._state, Looking(config, Offering())


def test_linear_algebra_is_asked_first_symmetries_and_all_methods_when_it_is_time() -> None:
    state, looking = made()
    looking.see(state, Clock.unlimited())
    assert state.direct_spent > 0 and not state.symmetries_done and not state.direct_done
    state.candidates = 500
    looking.see(state, Clock.unlimited())
    assert state.symmetries_done and state.direct_done and len(state.portfolio.tables) > 1


def test_while_kernels_of_the_islands_are_compiled_the_data_are_looked_at_if_time_is_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coming = [True]
    monkeypatch.setattr("gmeql.fitters.compiled.are_coming", lambda: coming[0])
    state, looking = made()
    assert not looking.see_first(state, Clock.unlimited())  # a number of candidates gives what it gives on any machine
    state, looking = made()
    config = state.config = replace(state.config, max_candidates=None, max_time=5.0)
    clock = Clock.start(config)
    assert looking.see_first(state, clock) and state.direct_spent > 0 and not state.symmetries_done
    coming[0] = False
    assert not looking.see_first(state, clock) and not state.symmetries_done  # islands come first again
    coming[0] = True
    assert looking.see_first(state, clock) and state.symmetries_done and not state.direct_done
    assert looking.see_first(state, clock) and state.direct_done
    assert not looking.see_first(state, clock)


def test_a_search_whose_islands_wait_says_so_and_looks_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr("gmeql.fitters.compiled.are_coming", lambda: len(looks) < 2)
    for name in ("look_early", "look_directly"):
        monkeypatch.setattr(looking_module, name, lambda *_, name=name: looks.append(name))
    monkeypatch.setattr(Looking, "look_for_symmetries", lambda *_: looks.append("look_for_symmetries"))
    config = SearchConfig(max_time=5.0, n_jobs=1)
    rng = np.random.default_rng(1)
    X = rng.uniform(1, 3, (200, 1))
    events = Search(X, np.sin(X[:, 0] ** 2) + rng.standard_normal(200), config=config).run()
    told = [(event.note, event.candidates > 0) for event in itertools.islice(events, 3)]
    events.close()
    assert told == [(COMPILING, False), ("", False), ("", True)]
    assert looks[:2] == ["look_early", "look_for_symmetries"]


@pytest.mark.parametrize("ready", [True, False])
def test_where_others_look_only_what_is_quick_is_asked_here_until_they_are_ready(
    ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, looking = made()
    monkeypatch.setattr(looking.beside, "takes_looks", lambda *_: True)
    monkeypatch.setattr(looking.beside, "are_ready", lambda: ready)
    state.candidates = 500
    looking.see(state, Clock.unlimited())
    assert not state.symmetries_done and not state.direct_done
    assert (state.direct_spent == 0) is ready


def test_smaller_tables_begin_anew_and_a_spent_one_is_a_formula() -> None:
    state, looking = made()
    state.rows = replace(state.rows, y=2.0 * state.rows.X[:, 0])
    state.islands = [state.portfolio.open_island(state.rng)]
    looking.take_views(state, [View((Constant(1.0),), Variable(0))], lambda: False)
    assert state.islands and len(state.leaderboard.members) > 1
    looking.take_views(state, [View((Variable(0), Variable(1)))], lambda: False)
    assert not state.islands and len(state.portfolio.tables) == 2


def test_a_table_that_a_leading_formula_suggests_is_asked_for_what_is_plain() -> None:
    """An orbit over its whole course: near the pole symmetries of the data do not show, but a rough formula has them."""
    X = np.random.default_rng(1).uniform(0, 1, (400, 4)) * np.array([1.0, 1.0, 6.28, 6.28]) + np.array([1.0, 0, 0, 0])
    config = SearchConfig(max_candidates=200_000, n_jobs=1, direct=("rational", "vocabulary"))
    y = X[:, 0] * (1 - X[:, 1] ** 2) / (1 + X[:, 1] * np.cos(X[:, 2] - X[:, 3]))
    state, looking = Search(X, y, config=config)._state, Looking(config, Offering())
    rough = parse_tree("a*(1 - 0.5*b*cos(c - d))", ("a", "b", "c", "d"))
    state.offer(refit([rough], state.rows.polished))
    state.symmetries_done = state.direct_done = True
    state.candidates = 60_000
    looking.see(state, Clock.unlimited())
    assert has_exact_formula(state)


@pytest.mark.parametrize("spent", [0.0, 1000.0])
def test_formulas_are_asked_for_tables_as_long_as_looks_have_time(
    spent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[bool] = []

    def views_of_leading(state: SearchState, asked: Any, out_of_time: Any) -> list[View]:
        limits.append(out_of_time())
        return []

    monkeypatch.setattr(looking_module, "views_of_leading", views_of_leading)
    state, _ = made(direct=(), max_time=2000.0)
    looking = Looking(replace(state.config, n_jobs=1), Offering())
    state.symmetries_done = state.direct_done = True
    state.elapsed, state.beside_spent = 1000.0, spent
    looking.see(state, Clock.start(state.config))
    assert limits == [spent > 0] and state.beside_spent > spent


@pytest.mark.parametrize("look", ["look_early", "smaller_tables", "look_directly", "look_again", "go_on"])
def test_a_fault_of_a_look_is_told_and_ends_the_looks(look: str, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def faulty(*_: Any, **__: Any) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(looking_module, look, faulty)
    monkeypatch.setattr(logging.getLogger(looking_module.__name__), "handlers", [])
    state, looking = made(direct=("linear",))
    state.symmetries_done = state.direct_done = look in ("look_again", "go_on")
    for state.candidates in (500, 999, 999):
        looking.see(state, Clock.unlimited())
    assert state.symmetries_done and state.direct_done
    assert caplog.text.count("a look at the data failed; the search goes on without looks") == 1


def test_a_noisy_table_of_many_columns_has_no_time_of_its_own() -> None:
    """A smooth law of six columns that nothing has a form for lost 4 % of its time to pairs over five and six of them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (300, 2))
    y = np.sin(X[:, 0] * X[:, 1]) + 0.2 * rng.standard_normal(300)
    product = View((parse_tree("a*b", ("a", "b")),), Constant(1.0))
    for few, is_small in ((1, True), (0, False)):
        config = SearchConfig(max_candidates=1000, n_jobs=1, clock=ClockConfig(noisy_columns=few))
        state = Search(X, y, config=config)._state
        state.portfolio.add_tables([state.portfolio.table(product, state.rows)])
        assert is_noisy(state) and bool(noisy_views_of(state)) == is_small
        theirs = config.clock.later_share * config.direct_seconds
        (_, others, _), (_, own, at_least) = later_shares(state, theirs, [product])
        assert others == theirs and (own > 0) == (at_least > 0) == is_small


def test_the_first_columns_alone_are_a_smaller_table() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (300, 3))
    config = SearchConfig(max_candidates=40_000, n_jobs=1)
    seen, alone = Search(X, X[:, 0] + rng.standard_normal(300), config=config)._state, View.raw(1)
    seen.portfolio.add_tables([seen.portfolio.table(alone, seen.rows)])
    seen.direct_done, seen.direct_spent = True, 1.0  # the columns as they are were asked early
    asked = {(look.view, look.name) for look in plan(seen, list(EARLY), 1.0, [alone, View.raw(3)])}
    assert asked == {(alone, name) for name in EARLY}
    assert is_noisy(seen) and [view for view, _ in noisy_views_of(seen)] == [alone]
    table = table_of(alone, seen)
    assert table is not None and not table.found  # formulas of three columns are none of one
