"""Direct methods as a step of the search: once, on every table, within their share, and resumable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.formula.parsing import parse_tree
from gmeql.search.clock import Clock
from gmeql.search.config import FrontConfig, SearchConfig
from gmeql.search.direct.methods import AT_FIRST, DIRECT_METHODS, EARLY, LAST, QUICK, SOON, ask
from gmeql.search.groups.table import Grouping
from gmeql.search.search import Search
from gmeql.search.polish.scoring import refit
from gmeql.search.offers import seeing
from gmeql.search.offers.moments import is_time_to_look_again
from gmeql.search.offers.seeing import (
    SEEN_QUICKLY,
    go_on,
    look_again,
    look_at_once,
    look_directly,
    look_early,
    views_of_leading,
)
from gmeql.search.offers.tables import noisy_views_of, table_of
from gmeql.search.state import SearchState
from gmeql.search.stopping import has_exact_formula
from gmeql.search.judging.structure import linear_columns
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.views import View

NO_LONGER_LATER = [name for name in SEEN_QUICKLY if name != "two terms"]  # methods that have all their time at first


def pagie(n_rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(-3, 3, (n_rows, 2))
    return X, 1 / (1 + X[:, 0] ** -4) + 1 / (1 + X[:, 1] ** -4)


def state(X: np.ndarray, y: np.ndarray, **options: Any) -> SearchState:
    return Search(X, y, config=SearchConfig(max_candidates=40_000, n_jobs=1, **options))._state


def test_a_fraction_is_seen_without_a_single_candidate() -> None:
    seen = state(*pagie())
    look_directly(seen, Clock.unlimited())
    assert has_exact_formula(seen) and seen.candidates == 0 and seen.direct_done
    assert seen.rows.polished.is_exact(seen.leaderboard.best.loss)


def test_sums_of_columns_are_there_before_the_first_candidate() -> None:
    X = np.random.default_rng(0).standard_normal((100, 5))
    seen = state(X, X @ np.array([1.0, -2.0, 0.5, 3.0, 1.5]) + np.sin(X[:, 0] * X[:, 1]))
    look_at_once(seen, Clock.unlimited())
    assert seen.candidates == 0 and not seen.direct_done
    assert max(len(linear_columns(m.root) or ()) for m in seen.leaderboard.members.values()) == 5
    alone = state(X, X[:, 0], direct=())
    look_at_once(alone, Clock.unlimited())
    assert len(alone.leaderboard.members) == 1


def test_linear_algebra_is_asked_early_and_once() -> None:
    X, y = pagie()
    seen = state(X, y)
    assert look_early(seen, Clock.unlimited())
    assert has_exact_formula(seen) and not seen.direct_done and seen.candidates == 0
    waves = state(X, np.sin(5 * X[:, 0] * X[:, 1]))
    assert not look_early(waves, Clock.unlimited())
    spent = waves.direct_spent
    assert 0 < spent < waves.config.direct_seconds
    assert not look_early(waves, Clock.unlimited()) and waves.direct_spent == spent


def test_what_was_asked_early_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noting(name: str) -> Any:
        def propose(*_: Any, **__: Any) -> Iterator[Any]:
            asked.append(name)
            return iter(())

        return propose

    for name in DIRECT_METHODS:
        monkeypatch.setitem(DIRECT_METHODS, name, noting(name))
    seen = state(*pagie())
    look_early(seen, Clock.unlimited())
    look_directly(seen, Clock.unlimited())
    early = [name for name in EARLY if name not in SEEN_QUICKLY]  # which have no more time than before all looks
    assert asked[: len(early)] == early
    assert sorted(asked) == sorted(name for name in AT_FIRST if name not in ("derivatives", *NO_LONGER_LATER))


def planck(noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A function of one column of quotients times another, four columns as they are."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (1000, 4))
    y = X[:, 0] * X[:, 1] / (np.exp(X[:, 0] * X[:, 1] / (X[:, 2] * X[:, 3])) - 1)
    return X, y + noise * np.sqrt(np.mean(y**2)) * rng.standard_normal(1000)


SMALL = View((parse_tree("a*b/(c*d)", ("a", "b", "c", "d")),), parse_tree("c*d", ("a", "b", "c", "d")))


@pytest.mark.parametrize(("noise", "is_asked"), [(0.0, False), (0.1, True)])
def test_pairs_are_asked_at_once_where_even_the_smallest_table_is_noisy(noise: float, is_asked: bool) -> None:
    seen = state(*planck(noise))
    assert noisy_views_of(seen) == []
    seen.portfolio.add_tables([seen.portfolio.table(SMALL, seen.rows)])
    views = noisy_views_of(seen)
    assert [view for view, _ in views] == ([SMALL] if is_asked else [])
    assert sum(share for _, share in views) <= 1 - seen.config.clock.early_share


def test_what_symmetries_leave_is_asked_for_what_is_plain_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """An orbit, near its pole: a smooth fit of the small table errs by 4 %, so that all time for it went to what noise hides."""
    monkeypatch.setitem(DIRECT_METHODS, "pairs", lambda *_, **__: pytest.fail("asked for what noise hides"))
    X = np.random.default_rng(0).uniform(1, 5, (300, 4))
    seen = state(X, X[:, 0] * (1 - (X[:, 1] / 6) ** 2) / (X[:, 1] / 6 * np.cos(X[:, 2] - X[:, 3]) + 1))
    orbit = View((Variable(1), parse_tree("c - d", ("a", "b", "c", "d"))), Variable(0))
    seen.portfolio.add_tables([seen.portfolio.table(orbit, seen.rows)])
    look_directly(seen, Clock.unlimited())
    assert has_exact_formula(seen)


def test_a_law_behind_noise_is_met_in_its_small_table() -> None:
    X, y = planck(0.1)
    seen = state(X, y, direct=("pairs",))
    seen.portfolio.add_tables([seen.portfolio.table(SMALL, seen.rows)])
    look_directly(seen, Clock.unlimited())
    clean = planck(0.0)[1]
    values = Expression(seen.leaderboard.best.root, seen.rows.names)(X)
    assert np.sqrt(np.mean((values - clean) ** 2)) < 0.02 * np.std(clean)


def test_readings_of_a_small_noisy_table_are_around_its_smooth_fit() -> None:
    X, y = planck(0.1)
    seen = state(X, y)
    table = table_of(SMALL, seen)
    clean = planck(0.0)[1] / (X[:, 2] * X[:, 3])
    order = np.argsort(table.y)
    truth = clean[np.argsort(y / (X[:, 2] * X[:, 3]))]
    assert np.sqrt(np.mean((table.explained[order] - truth) ** 2)) < 0.1 * np.std(clean)
    assert table.unexplained > 0.3  # of the best formula, which is the mean


def test_methods_can_be_left_out() -> None:
    seen = state(*pagie(), direct=())
    look_directly(seen, Clock.unlimited())
    assert len(seen.leaderboard.members) == 1


def test_an_architecture_is_the_users_word() -> None:
    assert state(*pagie(), architecture=[["add", "mul"]]).direct_done


def test_the_state_remembers_that_it_was_done() -> None:
    X, y = pagie()
    seen = state(X, y)
    for done in (True, False):
        seen.direct_done = done
        plain = seen.to_dict()
        assert SearchState.from_dict(plain, X, y).direct_done is done
    del plain["direct_done"]  # as earlier versions wrote it
    assert SearchState.from_dict(plain, X, y).direct_done is False


def test_the_config_goes_through_plain_data() -> None:
    config = SearchConfig(direct=("rational",))
    assert SearchConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [({"max_time": 30}, 30.0), ({"max_candidates": 100_000}, 25.0), ({"max_time": 1, "max_candidates": 10**9}, 1.0)],
)
def test_their_share_follows_the_budget(budget: dict[str, Any], seconds: float) -> None:
    config = SearchConfig(**budget)
    assert config.direct_seconds == pytest.approx(config.clock.direct_share * seconds)


@pytest.mark.slow
def test_a_search_ends_with_what_was_seen() -> None:
    search = Search(*pagie(), names=("x", "y"), config=SearchConfig(max_candidates=40_000, n_jobs=1))
    *_, last = search.run()
    assert last.reason == "exact" and last.candidates < 20_000


def test_a_view_that_hides_rows_is_not_looked_at() -> None:
    """A factor over hundreds of magnitudes gives most rows the weight 0, and a mean over such rows is no number."""
    X = np.column_stack([np.linspace(-400, 0, 300), np.random.default_rng(0).uniform(1, 2, 300)])
    seen = state(X, X[:, 1])
    hiding, showing = View((Variable(1),), build("exp", Variable(0))), View((Variable(0),), Variable(1))
    assert table_of(hiding, seen) is None and table_of(showing, seen) is not None
    assert seeing.plan(seen, list(QUICK), 1.0, [hiding]) == []
    assert {look.view for look in seeing.plan(seen, list(QUICK), 1.0, [hiding, showing])} == {showing}


@pytest.mark.parametrize("noise", [0.0, pytest.param(0.05, marks=pytest.mark.slow)])
def test_what_is_seen_in_one_group_is_fitted_to_all(noise: float) -> None:
    """A law that islands meet seldom: own frequencies and phases, a shared rate."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(6), 60)
    t, w, p = rng.uniform(0, 9, 360), rng.uniform(0.7, 1.6, 6), rng.uniform(0, 0.3, 6)
    y = np.exp(-0.34 * t) * np.cos(w[codes] * t + p[codes])
    y += noise * y.std() * rng.standard_normal(360)
    config = SearchConfig(max_candidates=10_000, n_jobs=1)
    seen = Search(t[:, None], y, config=config, groups=Grouping.of(codes))._state
    look_at_once(seen, Clock.unlimited())
    best = seen.leaderboard.best
    assert seen.direct_done and seen.candidates == 0
    assert best.own is not None and best.own.shape == (6, 2)
    assert has_exact_formula(seen) == (noise == 0)
    for values in (w, p):
        closest = min(np.abs(best.own - values[:, None]).max(axis=0))
        assert closest < (1e-6 if noise == 0 else 0.1)


def noisy(n_rows: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.uniform(1.0, 4.0, (n_rows, 4))
    y = (X[:, 0] * X[:, 2] + X[:, 1] * X[:, 3]) / (X[:, 0] + X[:, 1])
    return X, y + 0.05 * np.sqrt(np.mean(y**2)) * rng.standard_normal(n_rows)


@pytest.mark.parametrize("candidates", [200_000, 80_000])
def test_tables_of_a_stand_in_show_the_law_in_noise(candidates: int) -> None:
    """A formula that is nearly right tells in which table to look; there the law is a pair of small formulas. So it is where
    the methods before had all the time of a search of 20 s."""
    X, y = noisy()
    seen = Search(X, y, config=SearchConfig(max_candidates=candidates, n_jobs=1))._state
    seen.candidates, seen.direct_done = 60_000, True
    seen.direct_spent = seen.config.direct_seconds if candidates < 100_000 else 0.0
    near = parse_tree("0.45*x1*(x3 - x4)/(0.5*x1 + 0.45*x2) + 1.01*x4", seen.rows.names)
    seen.offer(refit([near], seen.rows.polished))
    views = views_of_leading(seen)
    assert any(len(view.columns) == 2 for view in views)
    assert is_time_to_look_again(seen)
    seen.portfolio.add_tables([seen.portfolio.table(view, seen.rows) for view in views])
    assert not set(views_of_leading(seen)) & set(views)
    look_again(seen, Clock.unlimited())
    law = (X[:, 0] * X[:, 2] + X[:, 1] * X[:, 3]) / (X[:, 0] + X[:, 1])
    found = Expression(seen.leaderboard.best.root, seen.rows.names)(X)
    assert np.sqrt(np.mean((found - law) ** 2)) < 0.02 * law.std()


@pytest.mark.parametrize(("short_written", "asked"), [(40, 1), (1, 2)])
def test_no_other_method_is_asked_after_an_exact_formula_of_written_numbers(
    short_written: int, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long one with fitted constants may have a shorter twin; 0.8 and 1.2 are nobody's accident."""
    X = np.random.default_rng(0).uniform(0, 2, (100, 3))
    law = parse_tree("0.8*x3**4 + 0.8*x1**3 + 1.2*x2**2 + 1.4*x3", ("x1", "x2", "x3"))
    calls: list[str] = []

    def propose(name: str) -> Any:
        return lambda table, **options: iter([calls.append(name) or law])

    for name in DIRECT_METHODS:
        monkeypatch.setitem(DIRECT_METHODS, name, propose(name))
    y = Expression(law, ("x1", "x2", "x3"))(X)
    seen = state(X, y, direct=("rational", "forms"), front=FrontConfig(short_written=short_written))
    assert Expression(law, ("x1", "x2", "x3")).complexity > seen.config.front.short
    look_directly(seen, Clock.unlimited())
    assert len(calls) == asked and has_exact_formula(seen)


def test_another_look_is_at_tables_that_were_not_looked_at() -> None:
    X, y = noisy()
    seen = state(X, y, direct=())
    views = [View((Variable(i),), Variable(3)) for i in range(3)]
    seen.portfolio.add_tables([seen.portfolio.table(view, seen.rows) for view in views])
    look_again(seen, Clock.unlimited())
    assert seen.looked_again == [3, 2]  # the smallest, of these the newest
    again = SearchState.from_dict(seen.to_dict(), X, y)
    assert again.looked_again == [3, 2] and again.direct_spent == pytest.approx(seen.direct_spent)
    look_again(again, Clock.unlimited())
    assert again.looked_again == [3, 2, 1, 0]
    numbers = again.config.clock  # nothing was spent before; some is kept for others
    kept = sum(numbers.last_shares) + numbers.growing_share * len(numbers.growing_from)
    assert again.direct_spent == pytest.approx((1 - kept) * again.config.direct_seconds)


def test_all_looks_together_keep_within_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    granted: list[tuple[str, float]] = []

    def ask(name: str, table: Any, *, effort: Any, **options: Any) -> Iterator[Any]:
        granted.append((name, effort.seconds))
        return iter(())

    monkeypatch.setattr(seeing, "ask", ask)
    seen = state(*noisy())
    for look in (look_early, look_directly, go_on, go_on, go_on, look_again, look_again):
        look(seen, Clock.unlimited())
    seconds = seen.config.direct_seconds
    assert {name for name, _ in granted} == {*DIRECT_METHODS} - {"derivatives", *NO_LONGER_LATER}
    assert sum(each for _, each in granted) <= (1 + 1e-9) * seen.direct_spent
    assert 0.95 * seconds < seen.direct_spent <= (1 + 1e-9) * seconds
    for name, share in zip(LAST, seen.config.clock.last_shares, strict=True):
        assert dict(granted)[name] >= share * seconds - 1e-9


def test_those_asked_last_have_time_where_looks_beside_took_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waves of very many turns look like noise to all others: none was left for them."""
    granted: dict[str, float] = {}

    def ask(name: str, table: Any, *, effort: Any, **options: Any) -> Iterator[Any]:
        granted[name] = effort.seconds
        return iter(())

    monkeypatch.setattr(seeing, "ask", ask)
    seen = state(*noisy())
    seen.beside_spent = 2 * seen.config.direct_seconds
    for _ in seen.config.clock.later_from:
        look_again(seen, Clock.unlimited())
    for name, share in zip(LAST, seen.config.clock.last_shares, strict=True):
        assert granted[name] >= share * seen.config.direct_seconds - 1e-9


def test_a_method_that_was_left_out_is_not_asked_again() -> None:
    X, y = noisy()
    seen = state(X, y)
    alone = state(X, y, direct=("rational",))
    alone.direct_done = True
    look_again(alone, Clock.unlimited())
    assert len(alone.leaderboard.members) == 1
    assert state(X, y, architecture=[["add", "mul"]]).later_looks == len(seen.config.clock.later_from)


def test_the_error_so_far_is_in_the_spread_of_the_table() -> None:
    """What a view's factor explains is no part of what is left to see."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(0, 1.5, 300)), rng.uniform(0.1, 0.6, 300)])
    seen = state(X, X[:, 0] / np.sqrt(1 - X[:, 1] ** 2) * (1 + 0.02 * rng.standard_normal(300)))
    seen.offer(refit([parse_tree("1.2*x1", seen.rows.names)], seen.rows.polished))
    view = View((Variable(1),), Variable(0))
    table, raw = table_of(view, seen), table_of(View.raw(2), seen)
    assert table is not None and raw is not None
    assert table.unexplained == pytest.approx(table.error(Constant(seen.leaderboard.best.root.args[0].value)), rel=1e-6)
    assert raw.unexplained < 0.2 < 0.7 < table.unexplained


def test_formulas_are_asked_once_for_smaller_tables_and_the_first_whatever_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = noisy()
    seen = state(X, y)
    look_at_once(seen, Clock.unlimited())
    leading = [scored.root for scored in seen.leaderboard.leading(seen.config.formulas_viewed)]
    heard: list[Node] = []

    def noted(root: Node, X: np.ndarray, **_: Any) -> list[View]:
        heard.append(root)
        return []

    monkeypatch.setattr(seeing, "views_of_formula", noted)
    asked: set[Node] = set()
    for place in range(len(leading)):
        views_of_leading(seen, asked, lambda: True)
        assert asked == set(leading[: place + 1])
    views_of_leading(seen, asked)
    assert len(leading) > 1 and len(heard) == len(leading) * len(SYMMETRIES.formula_slacks)


def test_a_quick_look_leaves_out_what_is_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy()
    heard: list[bool] = []

    def noted(name: str, table: Any, **options: Any) -> Iterator[Node]:
        heard.append(options["effort"].is_quick)
        return ask(name, table, **options)

    monkeypatch.setattr(seeing, "ask", noted)
    seen = state(X, y)
    look_at_once(seen, Clock.unlimited())
    assert heard == [True, False] + [True] * (len(QUICK) + len(SOON) - 1)
    assert all(linear_columns(m.root) is not None for m in seen.leaderboard.members.values())
    look_early(seen, Clock.unlimited())
    assert not any(heard[1 + len(QUICK) + len(SOON) :])


def test_sums_of_columns_are_not_asked_for_where_the_law_is_a_short_fraction(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).uniform(1, 2, (100, 2))
    heard: list[str] = []

    def noted(name: str, table: Any, **options: Any) -> Iterator[Node]:
        heard.append(name)
        return ask(name, table, **options)

    monkeypatch.setattr(seeing, "ask", noted)
    seen = state(X, 2.5 * X[:, 0] / (X[:, 1] + 0.75))
    look_at_once(seen, Clock.unlimited())
    assert has_exact_formula(seen) and heard == ["rational"]
