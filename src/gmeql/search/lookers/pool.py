"""The processes that look, shared by the searches of this process: started when first needed, kept for the next search.

They are programs of their own that know nothing of the main script, so nothing of it runs twice. A process that dies takes its
job with it; that look has then seen nothing.
"""

from __future__ import annotations

import atexit
import itertools
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, BinaryIO, cast

from gmeql.search.lookers.jobs import Job
from gmeql.search.lookers.process import DONE, FAILED, FOUND, READY, send

START = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from gmeql.search.lookers.process import main; main()"
)
"""Ctrl-C in a terminal reaches all its processes; only the search's is to act on it."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""The matrices are small, and there are as many processes as cores shall be busy."""
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Ticket:
    """A job that was handed in: what it found so far, to be taken from the left, and whether it is over."""

    job: Job
    found: deque[Any] = field(default_factory=deque)
    is_over: bool = False
    is_cancelled: bool = False


@dataclass(eq=False)
class _Place:
    """One process and the ticket it is busy with."""

    process: subprocess.Popen[bytes]
    listener: threading.Thread = field(init=False)
    is_ready: bool = False
    is_gone: bool = False
    number: int = 0
    ticket: Ticket | None = None


class Lookers:
    """Processes that take jobs."""

    def __init__(self) -> None:
        self._places: list[_Place] = []
        self._queue: list[tuple[float, int, Ticket]] = []  # a heap: rank, place among all that came, ticket
        self._came = itertools.count()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._failed = False
        self.pid = os.getpid()

    def start(self, n: int) -> None:
        """Have `n` processes, without waiting for them."""
        with self._lock:
            self._places = [place for place in self._places if not place.is_gone]
            while len(self._places) < n and not self._failed:
                self._open()

    def _open(self) -> None:
        """Start one process; the first that cannot be started is the last that is tried."""
        command = [sys.executable, "-c", START, json.dumps([path for path in sys.path if isinstance(path, str)])]
        pipes: dict[str, Any] = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            process = subprocess.Popen(command, **pipes, env=os.environ | ONE_THREAD)
        except (OSError, ValueError) as error:
            _log.info("no process could be started that looks beside the search: %s", error)
            self._failed = True
            return
        place = _Place(process)
        self._places.append(place)
        place.listener = threading.Thread(target=self._listen, args=(place,), name="gmeql-looker", daemon=True)
        place.listener.start()

    @property
    def has_failed(self) -> bool:
        """Whether no process can be had."""
        return self._failed

    def n_ready(self) -> int:
        """Processes that take jobs."""
        return sum(place.is_ready and not place.is_gone for place in self._places)

    def take(self, job: Job, rank: float = 0.0) -> Ticket:
        """Hand a job in: to a process that has nothing to do, or to the next one that is done with another.

        Of those that wait the lowest rank goes first, of equal ones the first that came.
        """
        ticket = Ticket(job)
        with self._lock:
            heappush(self._queue, (rank, next(self._came), ticket))
            self._hand_out()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Let a job end soon; nobody waits for what it finds."""
        with self._lock:
            ticket.is_cancelled = True
            busy = [place for place in self._places if place.ticket is ticket]
            ticket.is_over = ticket.is_over or not busy
            for place in busy:
                self._tell(place, None)

    def _hand_out(self) -> None:
        """Jobs that wait to processes that have none; the lock is held."""
        for place in self._places:
            while self._queue and place.is_ready and not place.is_gone and place.ticket is None:
                *_, ticket = heappop(self._queue)
                if not ticket.is_cancelled:
                    place.number, place.ticket = next(self._numbers), ticket
                    self._tell(place, ticket.job)

    def close(self) -> None:
        """End all processes, unless they are a parent's."""
        if self.pid != os.getpid():
            return
        for place in self._places:
            place.is_gone = True
            place.process.kill()
            place.listener.join()

    def _tell(self, place: _Place, job: Job | None) -> None:
        """Send a process its job, or None: that it may end the one it has."""
        try:
            send(cast(BinaryIO, place.process.stdin), (place.number, job))
        except (OSError, ValueError):
            self._lose(place)

    def _listen(self, place: _Place) -> None:
        """In a thread for each process: note what it says."""
        assert place.process.stdout is not None
        while True:
            try:
                kind, number, value = pickle.load(place.process.stdout)  # noqa: S301  what our own process wrote
            except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                break
            with self._lock:
                self._note(place, kind, number, value)
                self._hand_out()
        with self._lock:
            self._lose(place)
            for pipe in (place.process.stdin, place.process.stdout):
                with suppress(OSError):  # what it was still to be told
                    cast(BinaryIO, pipe).close()
        place.process.wait()

    def _note(self, place: _Place, kind: str, number: int, value: Any) -> None:
        """One message of a process; what is of an earlier job is passed over."""
        ticket = place.ticket
        place.is_ready = place.is_ready or kind == READY
        if ticket is None or number != place.number:
            return
        if kind == FOUND:
            ticket.found.append(value)
        if kind == FAILED:
            _log.warning("a look beside the search failed: %s", value)
        if kind in (DONE, FAILED):
            place.ticket, ticket.is_over = None, True

    def _lose(self, place: _Place) -> None:
        """A process is gone, with what it was busy with. One that never was ready says that others will not be either."""
        self._failed = self._failed or not (place.is_ready or place.is_gone)
        place.is_gone = True
        if place.ticket is not None:
            place.ticket.is_over = True
            place.ticket = None
        if all(each.is_gone for each in self._places):
            for *_, ticket in self._queue:
                ticket.is_over = True
            self._queue.clear()


_shared: Lookers | None = None


def shared_lookers() -> Lookers:
    """Those of this process."""
    global _shared
    if _shared is None or _shared.pid != os.getpid():  # those of a process that was forked are its parent's
        _shared = Lookers()
        atexit.register(_shared.close)
    return _shared
