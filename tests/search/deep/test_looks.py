"""The thread that looks on an accelerator: jobs by rank, one after the other, and no fault of one costs another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from deep_looks import ALL, REACH, table
from host_cuda import HostDriver, needs_compiler

from gmeql.fitters.cuda.driver import AcceleratorError
from gmeql.search.deep.looks import DeepLook, DeepLooks
from gmeql.search.lookers.pool import Ticket


@dataclass
class Told:
    """A job that notes when it runs, and may wait or fail."""

    name: str
    order: list[str]
    gate: threading.Event | None = None
    error: Exception | None = None
    was_cancelled: list[bool] = field(default_factory=list)

    def run(self, is_cancelled: Callable[[], bool]) -> Iterator[Any]:
        self.order.append(self.name)
        if self.gate is not None:
            assert self.gate.wait(10)
        self.was_cancelled.append(is_cancelled())
        yield self.name
        if self.error is not None:
            raise self.error


def waited(ticket: Ticket) -> list[Any]:
    limit = time.monotonic() + 20
    while not ticket.is_over and time.monotonic() < limit:
        time.sleep(0.005)
    assert ticket.is_over
    return list(ticket.found)


def take(looks: DeepLooks, job: Told, rank: float = 0.0) -> Ticket:
    return looks.take(cast("DeepLook", job), rank)


def test_the_lowest_rank_goes_first_and_what_was_cancelled_not_at_all() -> None:
    looks, order, gate = DeepLooks(), list[str](), threading.Event()
    first = Told("first", order, gate)
    tickets = [take(looks, first)]
    while not order:
        time.sleep(0.005)
    tickets += [
        take(looks, Told(name, order), rank) for name, rank in (("c", 2.0), ("a", 0.5), ("b", 1.0), ("off", 0.0))
    ]
    looks.cancel(tickets[0])
    looks.cancel(tickets[-1])
    looks.close()
    gate.set()
    found = [waited(ticket) for ticket in tickets]
    assert order == ["first", "a", "b", "c"] and found == [["first"], ["c"], ["a"], ["b"], []]
    assert first.was_cancelled == [True]


@pytest.mark.parametrize("error", [AcceleratorError("out of memory"), ValueError("a fault")])
def test_a_job_that_fails_has_seen_what_it_saw_and_others_go_on(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    looks, order = DeepLooks(), list[str]()
    failing, fine = take(looks, Told("failing", order, error=error)), take(looks, Told("fine", order))
    assert waited(failing) == ["failing"] and waited(fine) == ["fine"]
    looks.close()
    assert bool(caplog.records) == isinstance(error, ValueError)


@needs_compiler
def test_a_table_is_looked_at() -> None:
    given = table(lambda a, b: np.sqrt(a) / (1 + b * np.cos(a)), 2)
    looks = DeepLooks()
    (root, *_) = waited(looks.take(DeepLook(HostDriver(), given, ALL, REACH)))
    looks.close()
    assert given.error(root) < 1e-10


@needs_compiler
def test_nothing_is_looked_for_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    given = table(lambda a, b: np.sqrt(a) / (1 + b * np.cos(a)), 2)
    job = DeepLook(HostDriver(), given, ALL, REACH)
    assert REACH.extent.n_bytes > 2 * 16 * 2**REACH.extent.bits
    monkeypatch.setattr(HostDriver, "free_bytes", lambda self: 4 * REACH.extent.n_bytes)
    assert list(job.run(lambda: False))
    monkeypatch.setattr(HostDriver, "free_bytes", lambda self: 3 * REACH.extent.n_bytes)
    assert list(job.run(lambda: False)) == []
