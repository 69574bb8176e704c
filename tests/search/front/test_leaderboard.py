"""The growing front: ever more complex, ever better; ties go to the shorter description."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build
from gmeql.formula.parsing import parse_tree
from gmeql.search.config import FrontConfig, SearchConfig
from gmeql.search.front.leaderboard import Leaderboard
from gmeql.search.polish.scoring import Scored, description_length, refit
from gmeql.search.data.rows import SearchRows
from gmeql.search.judging.soundness import unseen_loss

X = np.random.default_rng(0).uniform(0.5, 2.0, (100, 2))
Y = 2 * X[:, 0] + X[:, 1] ** 2


def rows(config: SearchConfig) -> SearchRows:
    return SearchRows.of(X, Y, config=config)


def start(**options: Any) -> tuple[Leaderboard, SearchRows]:
    config = SearchConfig(**options)
    seen = rows(config)
    return Leaderboard.start(config, seen), seen


def power_sum(n: int) -> Node:
    """A formula whose complexity grows with n: x + x² + ... of a column that no rounding swallows."""
    terms = [build("pow", Variable(0), Constant(float(k))) for k in range(2, n + 2)]
    return build("add", *terms) if n > 1 else terms[0]


UNSEEN: dict[Node, float] = {}
"""The loss to expect of the formulas that the tests offer: here, the loss they are offered with."""


@pytest.fixture(autouse=True)
def _losses_as_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmeql.search.front.leaderboard.unseen_loss", lambda root, *rows, **options: UNSEEN[root])


def scored(root: Node, loss: float, seen: SearchRows) -> Scored:
    UNSEEN[root] = loss
    return Scored(root, loss, description_length(root, loss, seen.polished))


def test_it_starts_with_the_mean() -> None:
    board, seen = start()
    (member,) = board.front(seen)
    assert member.complexity == 1 and member.loss == pytest.approx(Y.std())
    assert member.expression(X) == pytest.approx(np.full(100, Y.mean()))


@given(st.lists(st.tuples(st.integers(1, 8), st.floats(1e-6, 2.0)), max_size=30))
def test_a_more_complex_member_is_always_better(offers: list[tuple[int, float]]) -> None:
    board, seen = start()
    for n, loss in offers:
        before = board.best.length
        gained = board.offer([scored(power_sum(n), loss, seen)], seen)
        assert gained == (board.best.length < before - 0.5)
        front = board.front(seen)
        assert all(a.complexity < b.complexity and a.loss > b.loss for a, b in pairwise(front))
        assert {m.complexity for m in front} == set(board.members)
    # whatever was offered, nothing of it dominates a member
    for n, loss in offers:
        root = power_sum(n)
        for complexity, member in board.members.items():
            if complexity > Scored(root, loss, 0.0).complexity:
                assert member.loss < loss


def test_formulas_that_cannot_be_shown_are_left_out() -> None:
    board, seen = start(max_complexity=5)
    board.offer([scored(power_sum(1), math.inf, seen), scored(power_sum(1), math.nan, seen)], seen)
    board.offer([scored(power_sum(7), 1e-9, seen)], seen)
    assert len(board.members) == 1


def test_a_gain_too_small_to_see_needs_no_longer_formula() -> None:
    board, seen = start()
    board.offer([scored(power_sum(1), 1e-2, seen)], seen)
    board.offer([scored(power_sum(2), 1e-2 * (1 - 1e-7), seen)], seen)
    assert len(board.members) == 2
    board.offer([scored(power_sum(2), 1e-2 * (1 - 1e-5), seen)], seen)
    assert len(board.members) == 3


def test_what_a_better_simple_formula_outdoes_leaves() -> None:
    board, seen = start()
    board.offer([scored(power_sum(n), 10.0**-n, seen) for n in (1, 2, 3, 4)], seen)
    assert len(board.members) == 5
    board.offer([scored(power_sum(1), 2e-4, seen)], seen)
    assert [m.loss for m in board.members.values()][1:] == pytest.approx([2e-4, 1e-4])


def test_the_best_is_the_shortest_description() -> None:
    board, seen = start()
    board.offer([scored(power_sum(n), loss, seen) for n, loss in ((1, 1e-2), (2, 1e-3), (3, 0.99e-3))], seen)
    assert board.best.loss == 1e-3 and board.leading(2)[0] is board.best
    lengths = [member.length for member in board.leading(9)]
    assert lengths == sorted(lengths) and len(lengths) == 4


def roots_given_to(step: str, monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """A list that fills with the formulas that a step of the board is asked for."""
    roots: list[Node] = []
    whole = getattr(Leaderboard, step)
    monkeypatch.setattr(Leaderboard, step, lambda *given: roots.append(given[1].root) or whole(*given))
    return roots


def test_hundreds_that_fit_better_and_promise_less_are_not_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    tidied = roots_given_to("_tidied", monkeypatch)
    board, seen = start()
    board.offer([scored(power_sum(1), 1e-2, seen)], seen)
    longer = [scored(power_sum(n), 1e-3, seen) for n in (2, 6)]
    UNSEEN.update((one.root, 2e-2) for one in longer)
    tidied.clear()
    board.offer(longer, seen)
    # normal form may bring the first one down to what stands there; the other is longer by far
    assert tidied == [longer[0].root] and max(board.members) == Scored(power_sum(1), 0.0, 0.0).complexity
    UNSEEN[longer[1].root] = 1e-3
    board.offer(longer[1:], seen)
    assert tidied[1:] == [longer[1].root] and max(board.members) == longer[1].complexity


def test_a_formula_that_is_in_order_already_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = roots_given_to("_judged", monkeypatch)
    board, seen = start()
    board.offer([scored(power_sum(1), 1e-2, seen)], seen)
    judged.clear()
    long = scored(power_sum(6), 1e-3, seen)
    board.offer([long], seen)
    assert long.root in [member.root for member in board.members.values()] and judged == [long.root]


def test_terms_that_rounding_swallows_are_dropped() -> None:
    board, seen = start()
    whole = build("add", build("mul", Constant(2.0), Variable(0)), build("square", Variable(1)))
    assert isinstance(whole, Call)
    dusty = Call("add", (*whole.args, Call("mul", (Constant(1e-14), Variable(1)))))
    board.offer([scored(dusty, 1e-30, seen)], seen)
    assert max(board.members) == Scored(whole, 0.0, 0.0).complexity < Scored(dusty, 0.0, 0.0).complexity
    untouched, _ = start(front=FrontConfig(largest_tidied=2))
    untouched.offer([scored(dusty, 1e-30, seen)], seen)
    assert list(untouched.members.values())[-1].root == dusty


@pytest.mark.parametrize(("turns", "share", "kept"), [(1, 0.9, True), (20, 0.9, False), (30, 1e-6, True)])
def test_fast_waves_must_earn_their_place(turns: int, share: float, kept: bool) -> None:
    """A wave of many turns is kept where it leaves too little of the loss for chance."""
    board, seen = start()
    speed = 2 * math.pi * turns / float(np.ptp(X[:, 0]))
    wave = Call("sin", (Call("mul", (Constant(speed), Variable(0))),))
    board.offer([scored(wave, share * seen.polished.spread**2, seen)], seen)
    assert (len(board.members) == 2) == kept


def test_promising_means_better_than_what_is_half_as_complex() -> None:
    board, seen = start()
    board.offer([scored(power_sum(2), 1e-3, seen)], seen)
    simple = max(board.members)
    assert board.is_promising(0.9e-3, 1000)
    assert not board.is_promising(1.1e-3, 2 * simple)
    assert board.is_promising(1.1e-3, simple - 2)  # could become something simpler
    assert not board.is_promising(1e9, 1)


def test_ranking_anew_forgets_what_is_not_offered() -> None:
    board, seen = start()
    board.offer([scored(power_sum(n), 10.0**-n, seen) for n in (1, 2, 3)], seen)
    front = board.front(seen)
    assert board.rank_anew([scored(power_sum(3), 1e-4, seen), scored(power_sum(1), 1e-2, seen)], seen)
    assert [m.loss for m in board.members.values()][1:] == pytest.approx([1e-2, 1e-4])
    assert board.front(seen) != front


def test_members_are_written_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmeql.search.front.leaderboard.unseen_loss", unseen_loss)
    config = SearchConfig()
    noise = np.random.default_rng(1).standard_normal(100)
    seen = SearchRows.of(X, 4 * X[:, 0] / (X[:, 0] + 1.3) + 0.05 * noise, names=("S", "t"), config=config)
    board = Leaderboard.start(config, seen)
    board.offer(refit([parse_tree("3.27/(1/S + 0.78)", seen.names)], seen.polished, keep_recognised=False), seen)
    assert "*S/(S + " in str(board.front(seen)[-1].expression)


def test_a_step_is_no_steeper_than_the_rows_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmeql.search.front.leaderboard.unseen_loss", unseen_loss)
    config = SearchConfig()
    day = np.repeat(np.arange(12.0), 5)[:, None]
    y = np.where(day[:, 0] == 0, 5.0, 2.0) + 0.1 * np.random.default_rng(1).standard_normal(60)
    seen = SearchRows.of(day, y, names=("day",), config=config)
    board = Leaderboard.start(config, seen)
    board.offer(refit([parse_tree("3*exp(-1.9233e+114*day) + 2", seen.names)], seen.polished), seen)
    assert all(abs(constant) < 100 for member in board.front(seen) for constant in member.expression.constants)
    board.offer(refit([parse_tree("5 - 3*tanh(6.2551e+14*day)", seen.names)], seen.polished), seen)
    step = board.front(seen)[-1].expression
    assert max(map(abs, step.constants)) < 100
    assert step(day[[0, -1]]) == pytest.approx([5.0, 2.0], abs=0.1)
    seen = SearchRows.of(day, 3 * np.exp(-0.5 * day[:, 0]) + y, names=("day",), config=config)
    board = Leaderboard.start(config, seen)
    board.offer(refit([parse_tree("4*exp(-0.6*day) + 2", seen.names)], seen.polished, keep_recognised=False), seen)
    assert len(board.members) == 2  # a decay that many rows show


def test_offers_end_with_the_time_but_the_first_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmeql.search.front.leaderboard.unseen_loss", unseen_loss)
    config = SearchConfig()
    x = np.linspace(1.0, 3.0, 40)[:, None]
    seen = SearchRows.of(x, 2 * x[:, 0] ** 2 + 1, names=("x",), config=config)
    roots = [parse_tree(text, seen.names) for text in ("2*x**2 + 1", "8*x - 7")]
    found = [scored for root in roots for scored in refit([root], seen.polished)]
    boards = []
    for is_late in (False, True):
        boards.append(Leaderboard.start(config, seen))
        boards[-1].offer(found, seen, lambda late=is_late: late)
    assert len(boards[0].members) == 3 and len(boards[1].members) == 2
    assert boards[1].best.loss < 1e-20


def test_a_plain_sum_of_columns_is_not_kept_away_by_an_odd_form_of_one() -> None:
    """Where the odd form promises a little less error but takes more to state, the sum stands on the front, in whatever
    order they come; and a form that promises much less stays."""
    odd = parse_tree("1.23*cos(0.77*x1)*x1", ("x1", "x2"))
    total = parse_tree("0.9*x1 + 1.7*x2 + 0.3", ("x1", "x2"))
    for losses, kept in (((0.0500, 0.0505), total), ((0.0300, 0.0505), odd)):
        for order in (1, -1):
            board, seen = start()
            for root, loss in list(zip((odd, total), losses, strict=True))[::order]:
                board.offer([scored(root, loss, seen)], seen)
            roots = [m.root for m in board.members.values()]
            assert (kept in roots) and len(roots) == 2


def test_a_line_stands_on_the_front_of_any_loss() -> None:
    """Around another formula the squares that stand for a loss may not show it; at the end it has its own chance."""
    rng = np.random.default_rng(5)
    y = 2 * X[:, 0] + 1 + rng.standard_normal(100)
    config = SearchConfig(loss="quantile:0.9")
    seen = SearchRows.of(X, y, config=config)
    board = Leaderboard.start(config, seen)
    board.converge(seen)
    front = board.front(seen)
    assert [m.complexity for m in front][:2] == [1, 5] and front[1].loss < 0.8 * front[0].loss
    assert np.mean(y < front[1].expression(X)) == pytest.approx(0.9, abs=0.04)
    assert all(m.outlook is not None and m.outlook.left_out > m.loss for m in front)


def test_terms_that_cancel_beyond_the_printed_digits_do_not_reach_the_front() -> None:
    config, rng = SearchConfig(), np.random.default_rng(3)
    X = rng.uniform(0.2, 1.5, (80, 1))
    text = "19999.371234567*x - 20001.137234567*sin(x) - 3333.4172345678*x**3/(1 + 0.05*x**2)"
    root = parse_tree(text, ("x",))
    values = Expression(root, ("x",))(X)
    for noise, kept in ((0.01, False), (0.0, True)):  # exact rows know every digit
        y = values + noise * values.std() * rng.standard_normal(80)
        seen = SearchRows.of(X, y, names=("x",), config=config)
        board = Leaderboard.start(config, seen)
        loss = float(np.mean((values - y) ** 2))
        board.offer([scored(root, loss, seen)], seen)
        assert (max(board.members) > 1) == kept
