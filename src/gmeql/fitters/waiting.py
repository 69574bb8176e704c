"""Waiting for kernels that another process compiles at this moment, and a clock that does not count it.

One process at a time compiles into a folder. Meanwhile it has a file there locked. The system takes the lock from a process
that dies, so nobody waits for the dead.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

COMPILING = "compiling the search's kernels, once on this machine"
"""What people are told while they wait for kernels."""
LOCK_NAME = "gmeql-compiling.lock"
"""Beside the compiled fit; whoever compiles has it locked."""
LONGEST_WAIT = 600.0
"""Seconds that a process waits for another one's kernels before it compiles its own: a crowded machine takes minutes."""
LOOK_EVERY = 0.05

_lock = threading.Lock()
_waiting = 0
_since = 0.0
_waited = 0.0
_compiles = False


def moment() -> float:
    """Seconds of `time.perf_counter`, less those in which a thread of this process waited for kernels or loaded them."""
    with _lock:
        return (_since if _waiting else time.perf_counter()) - _waited


@contextmanager
def uncounted() -> Iterator[None]:
    """The clock of `moment` stands still; it goes on when no thread is here any more."""
    global _waiting, _since, _waited
    with _lock:
        if _waiting == 0:
            _since = time.perf_counter()
        _waiting += 1
    try:
        yield
    finally:
        with _lock:
            _waiting -= 1
            if _waiting == 0:
                _waited += time.perf_counter() - _since


def compile_here() -> None:
    """This process is the one that others wait for: it waits for nobody."""
    global _compiles
    _compiles = True


def wait_for(is_there: Callable[[], bool], folder: Path) -> None:
    """Wait until something is there, as long as another process compiles into a folder."""
    turn = None if _compiles or is_there() else Turn.of(folder)
    until = time.monotonic() + LONGEST_WAIT
    while turn is not None and turn.is_taken() and not is_there() and time.monotonic() < until:
        time.sleep(LOOK_EVERY)


def is_taken_in(folder: Path) -> bool:
    """Whether another process compiles into a folder."""
    return not _compiles and (folder / LOCK_NAME).exists() and (turn := Turn.of(folder)) is not None and turn.is_taken()


class Turn:
    """The turn to compile into a folder: whether a process has it, and whether one that had it has finished."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / LOCK_NAME
        folder.mkdir(parents=True, exist_ok=True)
        os.close(self._open())
        self._before = self._stamp()

    @classmethod
    def of(cls, folder: Path) -> Turn | None:
        """That of a folder; None where there are no such locks, or where the folder cannot be written to."""
        try:
            import fcntl  # noqa: F401

            return cls(folder)
        except (ImportError, OSError):
            return None

    def take(self) -> int | None:
        """The file, open and locked; None where another process has the turn. It is given back when all have closed it to
        whom it was handed on."""
        import fcntl

        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return None
        return file

    def is_taken(self) -> bool:
        """Whether some process has the turn."""
        try:
            file = self.take()
        except OSError:  # the folder is gone
            return False
        if file is not None:
            os.close(file)
        return file is None

    def is_done(self) -> bool:
        """Whether a process has finished since this object was made. Should something never be found on disk, whoever waited
        for it must not compile it once more, one after the other."""
        return self._stamp() != self._before

    def _open(self) -> int:
        return os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)

    def _stamp(self) -> int:
        with suppress(OSError):
            return self._file.stat().st_mtime_ns
        return 0


def say_done(file: int) -> None:
    """Tell those who wait that what could be compiled is compiled; `file` is what `Turn.take` gave."""
    os.utime(file)
