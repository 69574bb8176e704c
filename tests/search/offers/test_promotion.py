"""From the islands to the front: exact formulas are told from near misses, every member is refitted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from thinned import thinned
from searches import SMALL, parabola, waves

from gmeql.formula.nodes import Constant, Variable, build
from gmeql.formula.parsing import parse_tree

from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.groups.table import Grouping
from gmeql.search.islands.island import Island
from gmeql.search.polish.scoring import refit
from gmeql.search.offers import promotion
from gmeql.search.offers.promotion import (
    finish,
    is_exact,
    offer_elites,
    polish_formula,
    polish_island,
    polish_leading,
    reweigh,
)
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search.islands.steps import take_steps


LATE = Clock(0.0, closing=0.0, judging=0.0, deadline=0.0)
"""A clock whose time is over."""


def never() -> bool:
    return False


def always() -> bool:
    return True


def state(X: np.ndarray, y: np.ndarray, **options: Any) -> SearchState:
    return Search(X, y, config=SearchConfig(**(SMALL | options)))._state


def searched_island(made: SearchState, steps: int = 6) -> Island:
    """An island that has found something."""
    island = made.portfolio.open_island(made.rng)
    made.islands.append(island)
    for _ in range(steps):
        take_steps([island], [made.portfolio.task(island)], made.tried, n_threads=1)[0].absorb(island)
    return island


def test_an_exact_formula_is_polished_to_the_end() -> None:
    X, y = parabola()
    made = state(X, y)
    island = searched_island(made)
    assert is_exact(made, island)
    polish_island(made, island, never)
    (member,) = [m for m in made.progress().front if m.loss < 1e-12]
    assert str(member.expression) == "1.5*x1**2 - 0.5*x2"


def test_a_near_miss_is_not_exact() -> None:
    """The same formula with a term of 1e-9 more: taken to convergence the rest shows."""
    X, y = parabola()
    made = state(X, y + 3e-8 * np.sin(50 * X[:, 1]))
    island = searched_island(made)
    assert np.sqrt(made.portfolio.loss(island)) < 1e-7 * y.std()
    assert not is_exact(made, island)


def test_elites_of_every_complexity_are_offered() -> None:
    X, y = waves()
    made = state(X, y)
    island = searched_island(made)
    offer_elites(made, island)
    front = made.progress().front
    assert len(front) > 3
    for member in front:
        assert member.loss == pytest.approx(np.sqrt(np.mean((member.expression(X) - y) ** 2)), rel=1e-9)
    made.candidates = 77
    offer_elites(made, island)  # nothing new
    assert made.progress().front == front and made.last_gain == 0


def test_losses_beyond_a_float_are_infinite_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    made = state(*parabola())
    island = searched_island(made)
    island.repository.losses[:] = 1e300
    monkeypatch.setattr(made.portfolio, "unit", lambda island: 1e20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        offer_elites(made, island)


def test_a_few_cuts_or_all_of_them() -> None:
    """Ballast goes either way; constants are rounded only in the thorough treatment."""
    X, y = parabola()
    ballast = build("mul", Constant(0.3), build("sin", Variable(1)))
    terms = (build("mul", Constant(1.4), build("square", Variable(0))), build("mul", Constant(-0.6), Variable(1)))
    root = build("add", *terms, ballast)
    for thorough in (False, True):
        made = state(X, y)
        polish_formula(made, root, never, thorough=thorough)
        best = made.progress().best
        assert best.loss < 1e-10 and best.complexity < 12
        assert (str(best.expression) == "1.5*x1**2 - 0.5*x2") or not thorough


def test_gains_are_noted() -> None:
    made = state(*parabola())
    made.candidates = 4321
    polish_formula(made, build("square", Variable(0)), never, thorough=True)
    assert made.last_gain == 4321


def test_leading_members_are_polished_while_there_is_time() -> None:
    X, y = parabola()
    root = build(
        "add", build("mul", Constant(1.499), build("square", Variable(0))), build("mul", Constant(-0.5), Variable(1))
    )
    for out_of_time, text in ((always, None), (never, "1.5*x1**2 - 0.5*x2")):
        made = state(X, y)
        made.offer(refit([root], made.rows.polished, max_steps=0))
        before = made.progress().best
        polish_leading(made, 3, out_of_time)
        after = made.progress().best
        assert after == before if text is None else str(after.expression) == text


def test_reweighing_ranks_the_front_by_the_new_weights() -> None:
    X, y = waves()
    y = y.copy()
    y[::10] += 5.0
    made = state(X, y, loss="huber", least_reweighing=0.0)
    offer_elites(made, searched_island(made))
    rows = made.rows.reweighted(made.leaderboard.best.root)
    assert rows is not made.rows
    reweigh(made, rows)
    assert made.rows is rows
    for member in made.progress().front:
        expected = np.sqrt(np.average((member.expression(X) - y) ** 2, weights=rows.weights))
        assert member.loss == pytest.approx(expected, rel=1e-6)


def test_the_end_refits_on_all_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (3000, 2))
    y = 2 * X[:, 0] + np.sin(X[:, 1]) + 0.1 * rng.standard_normal(3000)
    made = state(X, y, search_rows=64, polish_rows=200)
    offer_elites(made, searched_island(made))
    before = [member.loss for member in made.progress().front]
    made.reason = "max_candidates"
    finish(made, Clock.unlimited())
    after = made.progress().front
    assert [member.loss for member in after] != before
    for member in after:
        assert member.loss == pytest.approx(np.sqrt(np.mean((member.expression(X) - y) ** 2)), rel=1e-6)


def test_a_constant_that_says_nothing_goes_even_without_time() -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(1, 3, (80, 2))
    y = 2.3 * X[:, 0] ** 2 / X[:, 1] + 1.1 * X[:, 0] + 0.1 * rng.standard_normal(80)
    made = state(X, y)
    long = parse_tree("2.3*x1**2/x2 + 1.1*x1 + 0.004", ("x1", "x2"))
    made.offer(refit([long], made.rows.polished, keep_recognised=False))
    before = made.leaderboard.best.complexity
    finish(made, LATE)
    assert made.leaderboard.best.complexity == before - 2


def test_members_that_no_time_is_left_for_leave_the_front() -> None:
    """Losses on all rows and on a sample do not compare; the briefest formulas are judged whatever the time."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (3000, 2))
    y = 2 * X[:, 0] + np.sin(X[:, 1]) + 0.1 * rng.standard_normal(3000)
    made = state(X, y, search_rows=64, polish_rows=200)
    offer_elites(made, searched_island(made))
    assert len(made.leaderboard.members) > 3
    made.reason = "max_time"
    finish(made, LATE)
    front = made.progress().front
    assert 2 <= len(front) <= 3  # two, and the mean
    for member in front:
        assert member.loss == pytest.approx(np.sqrt(np.mean((member.expression(X) - y) ** 2)), rel=1e-6)


@pytest.mark.parametrize(("seconds", "judged"), [(13.9, 3), (13.7, 2), (0.1, 2)])
def test_time_is_left_to_tell_what_the_judged_members_promise(
    seconds: float, judged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member takes two refits of a second each, and for its rank and promise 1.3 times as long: 2 + 2 + 2 + 3 * 2.6 s."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (3000, 2))
    y = 2 * X[:, 0] + np.sin(X[:, 1]) + 0.1 * rng.standard_normal(3000)
    made = state(X, y, search_rows=64, polish_rows=200)
    texts = "2.9*x1", "2.9*x1 + 0.6", "2*x1 + 0.9*sin(x2)"
    made.offer(refit([parse_tree(text, ("x1", "x2")) for text in texts], made.rows.polished, keep_recognised=False))
    assert sum(member.complexity > 1 for member in made.leaderboard.members.values()) == 3
    now, fitted = [100.0], []

    def slow(*given: Any, **options: Any) -> list[Any]:
        now[0] += 1.0
        fitted.append(given)
        return refit(*given, **options)

    monkeypatch.setattr(promotion, "refit", slow)
    monkeypatch.setattr("gmeql.search.clock.moment", lambda: now[0])
    promotion.judge_on_all_rows(made, Clock(100.0, deadline=100.0 + seconds))
    assert len(fitted) == 2 * judged


@pytest.mark.parametrize("n_rows", thinned([60, 160], quick=(1,)))  # all of them polished on, and some
def test_groups_keep_their_own_constants_where_a_search_ends_without_time(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(1.0, 3.0, (n_rows, 2)), np.arange(n_rows) % 4
    y = np.array([1.0, 2.0, 5.0, 9.0])[codes] * X[:, 0] ** 2 + 0.5 * X[:, 1] + 0.01 * rng.standard_normal(n_rows)
    search = Search(
        X, y, groups=Grouping.of(codes.tolist()), config=SearchConfig(**SMALL, max_candidates=600, polish_rows=80)
    )
    next(iter(search.run()))
    made = search._state
    root = parse_tree("2.5*x1**2 + 0.4*x2 + 0.003*x1", ("x1", "x2"))
    made.offer(refit([root], made.rows.polished, keep_recognised=False))
    assert made.leaderboard.best.source is not None  # constants of groups' own stand in its formula
    finish(made, LATE)
    assert len(made.leaderboard.members) > 1
    assert all(np.isfinite(member.loss) for member in made.progress().front)
