"""Processes that look, real ones: started beside, jobs in their order, deaths survived, nothing where none can be had."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable
from gmeql.search.lookers import pool
from gmeql.search.lookers.jobs import DirectLook, Job
from gmeql.search.lookers.pool import Lookers, Ticket, shared_lookers

SECONDS = 120.0
"""That anything may take on a busy machine before a test fails."""


def until(holds: Callable[[], bool]) -> bool:
    limit = time.monotonic() + SECONDS
    while not holds() and time.monotonic() < limit:
        time.sleep(0.005)
    return holds()


def look(name: str = "rational", seconds: float = 5.0) -> DirectLook:
    X = np.random.default_rng(0).uniform(-3, 3, (300, 2))
    table = DirectTable(X, (1 + X[:, 0] * X[:, 1]) / (2 + X[:, 1] ** 2), np.ones(300))
    return DirectLook(name, table, FunctionSet(), seconds, 0.0, (0, 0))


@pytest.fixture(scope="module")
def lookers() -> Iterator[Lookers]:
    made = Lookers()
    made.start(1)
    assert made.n_ready() == 0  # nobody waits for it
    assert until(lambda: made.n_ready() == 1)
    yield made
    made.close()


def test_jobs_are_done_one_after_the_other_and_what_they_find_comes_back(lookers: Lookers) -> None:
    tickets = [lookers.take(look()), lookers.take(look("linear")), lookers.take(look())]
    assert until(lambda: tickets[2].is_over) and all(ticket.is_over for ticket in tickets)
    here = list(look().run(lambda: False))
    assert list(tickets[0].found) == here == list(tickets[2].found)


def test_a_job_that_is_cancelled_before_it_began_is_over(lookers: Lookers) -> None:
    first, second = lookers.take(look("meeting", 1e6)), lookers.take(look())
    lookers.cancel(second)
    assert second.is_over and not first.is_over
    lookers.cancel(first)
    assert until(lambda: first.is_over) and not second.found


def test_of_those_that_wait_the_lowest_rank_is_next(lookers: Lookers, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Job | None] = []
    tell = lookers._tell

    def noted(place: Any, job: Job | None) -> None:
        told.append(job)
        tell(place, job)

    monkeypatch.setattr(lookers, "_tell", noted)
    tickets = [lookers.take(look(), rank) for rank in (0.0, 2.0, 0.5, 2.0, 1.0)]  # the first has the process at once
    assert until(lambda: all(ticket.is_over for ticket in tickets))
    assert [next(i for i, ticket in enumerate(tickets) if ticket.job is job) for job in told] == [0, 2, 4, 1, 3]


def test_a_job_that_fails_is_over_and_the_next_is_taken(lookers: Lookers, caplog: pytest.LogCaptureFixture) -> None:
    failing, next_one = lookers.take(look("no such method")), lookers.take(look())
    assert until(lambda: next_one.is_over)
    assert failing.is_over and not failing.found and next_one.found
    assert "no such method" in caplog.text


def test_a_process_that_dies_is_replaced_when_somebody_needs_it(lookers: Lookers) -> None:
    (place,) = lookers._places
    place.process.kill()
    assert until(lambda: place.is_gone)
    assert not lookers.has_failed and lookers.n_ready() == 0
    lookers.start(1)
    assert until(lambda: lookers.n_ready() == 1)
    ticket = lookers.take(look())
    assert until(lambda: ticket.is_over) and ticket.found


def test_the_job_of_a_process_that_dies_is_over() -> None:
    lookers = Lookers()
    lookers.start(1)
    assert until(lambda: lookers.n_ready() == 1)
    tickets: list[Ticket] = [lookers.take(look("meeting", 1e6)) for _ in range(2)]
    (place,) = lookers._places
    place.process.kill()
    assert until(lambda: all(ticket.is_over for ticket in tickets))
    lookers.close()
    assert place.process.returncode is not None  # nothing of it is left: neither an entry of its own nor its pipes
    assert place.process.stdin is not None and place.process.stdin.closed
    assert place.process.stdout is not None and place.process.stdout.closed


@pytest.mark.parametrize("executable", ["/nowhere/python", sys.executable])
def test_where_no_process_can_be_had_it_is_said(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool.sys, "executable", executable)
    monkeypatch.setattr(pool, "START", "raise SystemExit(1)")
    lookers = Lookers()
    lookers.start(2)
    assert until(lambda: lookers.has_failed) and lookers.n_ready() == 0
    lookers.close()


def test_searches_of_a_process_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_shared", None)
    first = shared_lookers()
    assert shared_lookers() is first
    monkeypatch.setattr(first, "pid", -1)  # as after a fork
    assert shared_lookers() is not first
