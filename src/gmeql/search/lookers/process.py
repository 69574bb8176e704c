"""What runs in a process that looks: jobs come in by one pipe, and what they find goes out by another.

A thread reads, so that a job can be cancelled. If the search's process is gone, this one ends at once. A process that has had
nothing to do for long ends too, and is started anew when needed.
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from gmeql.search.lookers.jobs import Job

READY, FOUND, DONE, FAILED = "ready", "found", "done", "failed"
IDLE_SECONDS = 120.0
"""After which a process without a job leaves."""


def send(pipe: BinaryIO, message: Any) -> None:
    """One message, as the other side's `pickle.load` takes it."""
    pickle.dump(message, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()


class Looker:
    """Takes one job after the other: messages are (number, job), or (number, None) to cancel it."""

    def __init__(
        self, incoming: BinaryIO, outgoing: BinaryIO, leave: Callable[[], object] = lambda: os._exit(0)
    ) -> None:
        self._incoming, self._outgoing, self._leave = incoming, outgoing, leave
        self._jobs: queue.Queue[tuple[int, Job]] = queue.Queue()
        self._cancelled: set[int] = set()

    def work(self) -> None:
        """Until there is nothing more to do."""
        threading.Thread(target=self._read, daemon=True).start()
        send(self._outgoing, (READY, 0, os.getpid()))
        while True:
            try:
                number, job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                return
            self._take(number, job)
            self._cancelled.discard(number)

    def _take(self, number: int, job: Job) -> None:
        """Do one job, and send what it finds as it is found."""
        try:
            for found in job.run(lambda: number in self._cancelled):
                send(self._outgoing, (FOUND, number, found))
                if number in self._cancelled:
                    break
            send(self._outgoing, (DONE, number, None))
        except Exception as error:  # noqa: BLE001  the search that asked raises it
            send(self._outgoing, (FAILED, number, f"{type(error).__name__}: {error}"))

    def _read(self) -> None:
        """In a thread of its own: jobs, and which of them nobody waits for any more."""
        while True:
            try:
                number, job = pickle.load(self._incoming)  # noqa: S301  what the search wrote that started us
            except (EOFError, OSError, pickle.UnpicklingError):
                self._leave()  # nobody is there any more
                return
            if job is None:
                self._cancelled.add(number)
            else:
                self._jobs.put((number, job))


def main() -> None:
    """A process of its own: what anything prints goes nowhere, since the pipe is for messages alone."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    gc.freeze()  # looks for garbage need not go through what was imported
    try:
        Looker(incoming, outgoing).work()
    except BrokenPipeError:
        pass
    sys.stderr.flush()
    os._exit(0)
