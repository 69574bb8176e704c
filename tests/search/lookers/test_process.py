"""What runs in a process that looks: one job after the other, found things as they come, errors as text."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pytest

from gmeql.search.lookers import process
from gmeql.search.lookers.process import DONE, FAILED, FOUND, READY, Looker, send


@dataclass(frozen=True)
class Counting:
    """A job that finds numbers until it is cancelled."""

    n: int

    def run(self, is_cancelled: Callable[[], bool]) -> Iterator[int]:
        yield from range(self.n)


@dataclass(frozen=True)
class Failing:
    def run(self, is_cancelled: Callable[[], bool]) -> Iterator[int]:
        yield 1
        raise ValueError("no such table")


class Line:
    """The search's ends of the pipes to a looker in a thread, which leaves by a flag instead of ending the process."""

    def __init__(self) -> None:
        (read, write), (answers, answer) = os.pipe(), os.pipe()
        self.asking: BinaryIO = os.fdopen(write, "wb")
        self.hearing: BinaryIO = os.fdopen(answers, "rb")
        self.left = threading.Event()
        looker = Looker(os.fdopen(read, "rb"), os.fdopen(answer, "wb"), self.left.set)
        self.thread = threading.Thread(target=looker.work, daemon=True)
        self.thread.start()

    def heard(self) -> Any:
        return pickle.load(self.hearing)  # noqa: S301


def test_jobs_are_taken_in_their_order_and_errors_are_told() -> None:
    line = Line()
    assert line.heard() == (READY, 0, os.getpid())
    for number, job in ((1, Counting(2)), (2, Failing()), (3, Counting(0))):
        send(line.asking, (number, job))
    assert [line.heard() for _ in range(3)] == [(FOUND, 1, 0), (FOUND, 1, 1), (DONE, 1, None)]
    assert [line.heard() for _ in range(2)] == [(FOUND, 2, 1), (FAILED, 2, "ValueError: no such table")]
    assert line.heard() == (DONE, 3, None)


def test_a_cancelled_job_ends_and_the_next_is_taken() -> None:
    line = Line()
    line.heard()
    send(line.asking, (1, Counting(10**9)))
    assert line.heard() == (FOUND, 1, 0)
    send(line.asking, (1, None))
    while (heard := line.heard()) != (DONE, 1, None):
        assert heard[:2] == (FOUND, 1)
    send(line.asking, (2, Counting(1)))
    assert [line.heard() for _ in range(2)] == [(FOUND, 2, 0), (DONE, 2, None)]


def test_it_leaves_when_the_search_is_gone() -> None:
    line = Line()
    line.heard()
    line.asking.close()
    assert line.left.wait(60)


def test_it_leaves_when_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "IDLE_SECONDS", 0.01)
    line = Line()
    line.thread.join(60)
    assert not line.thread.is_alive() and not line.left.is_set()
