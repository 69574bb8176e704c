"""What a front promises is the same, told at once or when somebody asks."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import Variable, build
from gmeql.search.config import SearchConfig
from gmeql.search.data.rows import SearchRows
from gmeql.search.events import Member
from gmeql.search.front import promises
from gmeql.search.front.leaderboard import Leaderboard
from gmeql.search.judging.deferred import Deferred, carried
from gmeql.search.polish.scoring import refit


def judged(rows: SearchRows, *, late: bool) -> tuple[Member, ...]:
    board = Leaderboard.start(rows.config, rows)
    board.offer(refit([build("mul", Variable(0), Variable(1))], rows.polished), rows)
    board.look_out(rows, late=late)
    return board.front(rows)


@pytest.fixture
def rows(rng: np.random.Generator) -> SearchRows:
    X = rng.uniform(1, 3, (60, 2))
    return SearchRows.of(X, X[:, 0] * X[:, 1], config=SearchConfig())


def test_a_late_promise_is_worked_out_when_asked_for_and_is_the_same(
    rows: SearchRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = judged(rows, late=False)
    assert not any(isinstance(carried(member), Deferred) for member in at_once)
    asked: list[int] = []
    real = promises.outlooks
    monkeypatch.setattr(promises, "outlooks", lambda *given, **named: [asked.append(1), real(*given, **named)][1])
    late = judged(rows, late=True)
    assert len(late) == 2 and not asked
    assert [member.outlook for member in late] == [member.outlook for member in at_once] and asked == [1]


def test_large_tables_are_not_kept_for_it(rows: SearchRows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "MOST_KEPT", rows.X.size - 1)
    assert not any(isinstance(carried(member), Deferred) for member in judged(rows, late=True))
