"""When a search ends by itself: each reason, and the order among them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from searches import SMALL, parabola, waves

from gmeql.formula.nodes import Call, Constant, Node, Variable, row_values, transform
from gmeql.search.clock import Clock
from gmeql.search.config import FrontConfig, SearchConfig
from gmeql.search.events import REASONS
from gmeql.search.polish.scoring import Scored
from gmeql.search.search import Search
from gmeql.search.state import SearchState
from gmeql.search import stopping
from gmeql.search.stopping import has_exact_formula, holds_on_every_row, may_be_a_series, why_stop

GOING_ON = Clock(started=0.0)
CLOSING = Clock(started=0.0, closing=0.0)


def state(**options: Any) -> SearchState:
    return Search(*waves(), config=SearchConfig(**(SMALL | options)))._state


@pytest.mark.parametrize(
    ("options", "candidates", "clock", "idle", "reason"),
    [
        ({"max_candidates": 1000}, 999, GOING_ON, 0, ""),
        ({"max_candidates": 1000}, 1000, GOING_ON, 0, "max_candidates"),
        ({"max_candidates": 1000}, 1000, CLOSING, 99, "max_candidates"),
        ({}, 10, CLOSING, 99, "max_time"),
        ({"patience": 70}, 69, GOING_ON, 0, ""),
        ({"patience": 70}, 70, GOING_ON, 0, "no gain"),
        ({"max_idle_rounds": 5}, 10, GOING_ON, 4, ""),
        ({"max_idle_rounds": 5}, 10, GOING_ON, 5, "exhausted"),
    ],
)
def test_reasons(options: dict[str, Any], candidates: int, clock: Clock, idle: int, reason: str) -> None:
    made = state(**options)
    made.candidates = candidates
    assert why_stop(made, clock, idle) == reason
    assert not reason or reason in REASONS


def with_best(made: SearchState, root: Node, loss: float = 0.0) -> SearchState:
    """A state whose front has one formula of this loss besides the mean, and whose target is that formula's value."""
    y = row_values(root, made.rows.names, made.rows.X)
    fresh = Search(made.rows.X, y, config=made.config)._state
    scored = Scored(root, loss, -math.inf)
    fresh.leaderboard.members[scored.complexity] = scored
    return fresh


def term(coefficient: float, column: int) -> Node:
    return Call("mul", (Constant(coefficient), Variable(column)))


def test_an_exact_formula_ends_the_search() -> None:
    made = with_best(state(), term(0.123456789, 0))
    assert has_exact_formula(made) and why_stop(made, CLOSING, 99) == "exact"
    floor = with_best(state(), term(2.0, 0)).rows.polished.floor
    assert has_exact_formula(with_best(state(), term(2.0, 0), 100 * floor))
    assert not has_exact_formula(with_best(state(), term(2.0, 0), 101 * floor))


def test_a_formula_with_as_many_constants_as_rows_proves_nothing() -> None:
    root = Call("add", (term(0.123456789, 0), Constant(0.987654321)))  # two constants: more than six rows are needed
    config = SearchConfig(**SMALL, front=FrontConfig(short_loose=2))
    few, more = (Search(*parabola(n), config=config)._state for n in (6, 7))
    assert not has_exact_formula(with_best(few, root)) and has_exact_formula(with_best(more, root))


def test_a_long_exact_formula_with_odd_constants_waits_for_a_shorter_twin() -> None:
    odd, plain = (Call("add", (term(c, 0), Call("sin", (term(1.0, 1),)))) for c in (0.123456789, 0.5))
    numbers = FrontConfig(short=3, look_on_candidates=100)
    made = with_best(state(front=numbers), odd)
    assert made.leaderboard.best.complexity > 3 and not has_exact_formula(made)
    made.candidates = 200
    assert has_exact_formula(made)
    made.last_gain = 150
    assert not has_exact_formula(made)  # it was found late
    assert has_exact_formula(with_best(state(front=numbers), plain))


def test_nobody_looks_on_for_millions_of_candidates() -> None:
    """An accelerator draws them while one generation lives."""
    odd = Call("add", (term(0.123456789, 0), Call("sin", (term(1.0, 1),))))
    numbers = FrontConfig(short=3, look_on_candidates=100, look_on_most=1000)
    made = with_best(state(front=numbers), odd)
    made.last_gain, made.candidates = 1_000_000, 1_000_999
    assert not has_exact_formula(made)
    made.candidates = 1_001_000
    assert has_exact_formula(made)


def test_a_short_exact_formula_with_several_odd_constants_waits_briefly() -> None:
    root = Call("add", (term(0.123456789, 0), Constant(0.987654321)))
    made = with_best(state(front=FrontConfig(look_on_briefly=100)), root)
    assert made.leaderboard.best.complexity <= made.config.front.short and not has_exact_formula(made)
    made.candidates, made.last_gain = 150, 51
    assert not has_exact_formula(made)
    made.candidates = 151
    assert has_exact_formula(made)


def test_a_target_of_many_magnitudes_must_be_met_on_every_row() -> None:
    x = np.linspace(-30.0, 30.0, 60)[:, None]
    exact, swamped = Call("exp", (Variable(0),)), Call("sub", (Call("exp", (Variable(0),)), Constant(1.0)))
    made = Search(x, np.exp(x[:, 0]), config=SearchConfig(**SMALL))._state
    rows, numbers = made.rows.polished, made.config.front
    error = np.exp(x[:, 0]) - 1 - np.exp(x[:, 0])
    assert rows.is_exact(float(np.mean(error**2)))  # the largest rows hide it
    assert holds_on_every_row(Scored(exact, 0.0, 0.0), rows, numbers)
    assert not holds_on_every_row(Scored(swamped, 0.0, 0.0), rows, numbers)


def test_rounding_of_terms_that_cancel_is_no_error() -> None:
    x = np.linspace(-1.0, 1.0, 51)[:, None]
    root = Call("sub", (Call("add", (Variable(0), Constant(1e3))), Constant(1e3)))  # leaves 1e-13 where x is 0
    made = Search(x, x[:, 0], config=SearchConfig(**SMALL))._state
    assert holds_on_every_row(Scored(root, 0.0, 0.0), made.rows.polished, made.config.front)
    off = Call("add", (Variable(0), Constant(1e-9)))
    assert not holds_on_every_row(Scored(off, 0.0, 0.0), made.rows.polished, made.config.front)


def test_huge_terms_that_cancel_everywhere_excuse_nothing() -> None:
    x = np.linspace(1.0, 2.0, 51)[:, None]
    root = Call("sub", (Call("add", (Variable(0), Constant(1e20))), Constant(1e20)))  # 0 everywhere
    made = Search(x, x[:, 0], config=SearchConfig(**SMALL))._state
    assert not holds_on_every_row(Scored(root, 0.0, 0.0), made.rows.polished, made.config.front)


def test_a_series_over_a_narrow_range_is_never_taken_for_the_formula() -> None:
    x = np.random.default_rng(0).uniform(0.0, 1e-3, (200, 1))
    u = Variable(0)
    # Padé's fraction of 1/sqrt(1 - u): the same to rounding on every row
    above = Call(
        "add", (Constant(1.0), Call("add", (term(-0.75, 0), Call("mul", (Constant(0.0625), Call("square", (u,)))))))
    )
    below = Call(
        "add", (Constant(1.0), Call("add", (term(-1.25, 0), Call("mul", (Constant(0.3125), Call("square", (u,)))))))
    )
    made = Search(x, 1 / np.sqrt(1 - x[:, 0]), config=SearchConfig(**SMALL))._state
    rows, numbers = made.rows.polished, made.config.front
    loose = transform(
        Call("div", (above, below)),
        lambda leaf: Constant(leaf.value * (1 + 1e-9)) if isinstance(leaf, Constant) else leaf,
    )
    made.leaderboard.members[30] = Scored(loose, 0.0, -math.inf)
    made.candidates = 10**9
    assert holds_on_every_row(made.leaderboard.best, rows, numbers) and not has_exact_formula(made)
    truth = Call("inv", (Call("sqrt", (Call("sub", (Constant(1.000000001), term(1.000000001, 0))),)),))
    assert not may_be_a_series(Scored(truth, 0.0, 0.0), rows, numbers)


def test_the_rows_are_asked_once_whether_a_formula_holds_on_all(monkeypatch) -> None:
    x = np.linspace(1.0, 2.0, 51)[:, None]
    made = Search(x, x[:, 0], config=SearchConfig(**SMALL))._state
    asked, plain = [], stopping._holds
    monkeypatch.setattr(stopping, "_holds", lambda *given: asked.append(1) or plain(*given))
    scored, rows, numbers = Scored(Variable(0), 0.0, 0.0), made.rows.polished, made.config.front
    assert holds_on_every_row(scored, rows, numbers) and holds_on_every_row(scored, rows, numbers) and asked == [1]
    others = rows.only(np.arange(9))
    assert holds_on_every_row(scored, others, numbers) and asked == [1, 1]
