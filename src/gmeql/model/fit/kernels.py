"""The search's compiled kernels made ready: compiled once on a machine, by one process, and loaded by all."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from gmeql.fitters.threads import available_cores
from gmeql.network.architecture import architecture_preset
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search

LOCK_NAME = "gmeql-compiling.lock"
"""Beside the compiled fit; whoever compiles has it locked."""
LONGEST_WAIT = 600.0
"""Seconds that a process waits for another one's kernels before it compiles its own: a crowded machine takes minutes."""
LOOK_EVERY = 0.1


COMPILING = "compiling the search's kernels, once on this machine"
"""What people are told while `keep_kernels` takes its time."""


def are_missing() -> bool:
    """Whether kernels must be compiled before a search can begin."""
    return not keep_kernels.cache_info().currsize and not _are_on_disk()


@lru_cache(maxsize=1)
def keep_kernels() -> None:
    """Compile the search's kernels in processes of their own, where this machine never did (some ten seconds, once).

    A process that compiles a kernel may link other copies of its parts than one that loads it from disk, and those can
    round otherwise: the same seed would give another formula. So that all give the same, all load. Where nothing can be
    kept on disk, every process compiles for itself when it first needs a kernel.
    """
    from gmeql.fitters.compiled import can_be_kept
    from gmeql.fitters.kernel.levenberg_marquardt import fit_many

    if not can_be_kept(fit_many) or _are_on_disk():
        return
    with _alone_in(Path(fit_many._cache.cache_path)) as turn:
        if not _are_on_disk() and not turn.is_done_by_another():
            with suppress(OSError), _python("from gmeql.model.fit.kernels import compile_kernels; compile_kernels()"):
                pass
            turn.say_done()


def _are_on_disk() -> bool:
    """Whether the fit, the draw and the look-up, with all their parts, are there for this processor."""
    from gmeql.fitters.compiled import is_on_disk

    return all(is_on_disk(function) for function, _ in _kernels().values())


def _kernels() -> dict[str, tuple[Any, Callable[[], Any]]]:
    """By name, those that take longest to compile first: each function of the kernels, and what compiles it."""
    from gmeql.fitters import cpu
    from gmeql.fitters.compiled import parts_of
    from gmeql.fitters.kernel.levenberg_marquardt import fit_many
    from gmeql.search.direct.middle import kernels as middle
    from gmeql.search.direct.middle import meeting
    from gmeql.search.sampling.compile import compile_from_python
    from gmeql.search.sampling.draw import draw_candidates
    from gmeql.search.sampling.moves import count_choices
    from gmeql.search.sampling.tried import count_tries, raise_counts

    entries: list[tuple[Any, Callable[[], Any]]] = [
        (fit_many, cpu.compile_kernel),
        (draw_candidates, lambda: _smallest_search().draw_once()),
        (middle.fill_tables, meeting.compile_look_up),
        (middle.look_up, meeting.compile_meeting),
    ]
    folders = [Path(function.py_func.__code__.co_filename).parent for function, _ in entries[:3]]
    parts = [part for folder in folders for part in parts_of(folder)]
    parts.sort(key=lambda part: -len(part.dispatcher.py_func.__code__.co_code))
    entries += [(part.dispatcher, partial(part.dispatcher.compile, part.signature)) for part in parts]
    entries += [(compile_from_python, _compile_structure), (count_choices, _count_choices)]
    entries += [(count_tries, _count_tries), (raise_counts, _raise_counts)]
    return {
        f"{function.py_func.__module__}.{function.py_func.__name__}": (function, call) for function, call in entries
    }


def _compile_structure() -> None:
    """A wiring to its program."""
    from gmeql.search.sampling.arrays import FormulaRules, wiring_of
    from gmeql.search.sampling.compile import compile_once

    network = architecture_preset("general", n_variables=1)
    rules = FormulaRules(np.zeros(network.n_variables, np.int64), with_offset=False, max_nesting=1)
    compile_once(np.zeros(network.n_connections, np.int64), wiring_of(network), rules)


def _count_choices() -> None:
    """Choices of an elite."""
    from gmeql.search.sampling.arrays import wiring_of
    from gmeql.search.sampling.moves import count_choices

    network = architecture_preset("general", n_variables=1)
    choices = np.zeros((1, network.n_connections), np.int64)
    count_choices(choices, np.ones(1), wiring_of(network), np.zeros((network.n_connections, network.max_choices)))


def _count_tries() -> None:
    """Structures that were tried."""
    from gmeql.search.islands.tried import TriedStructures

    TriedStructures(bits=2).add(np.ones(1, np.uint64))


def _raise_counts() -> None:
    """Structures that others tried."""
    from gmeql.search.islands.tried import TriedStructures

    TriedStructures(bits=2).merge(np.ones(1, np.uint64), np.ones(1, np.uint8))


@dataclass(frozen=True)
class _Turn:
    """A process's turn to compile, with the lock's file; none where there are no locks.

    Should something never be found on disk, whoever waited for it must not compile it once more, one after the other.
    """

    file: int | None
    stamp: int = 0

    @classmethod
    def of(cls, file: int | None) -> _Turn:
        return cls(file, 0 if file is None else os.fstat(file).st_mtime_ns)

    def is_done_by_another(self) -> bool:
        """Whether another process finished since this one came."""
        return self.file is not None and os.fstat(self.file).st_mtime_ns != self.stamp

    def say_done(self) -> None:
        if self.file is not None:
            os.utime(self.file)


@contextmanager
def _alone_in(folder: Path) -> Iterator[_Turn]:
    """Wait until no other process compiles into a folder, and keep others waiting meanwhile; not for ever.

    The system takes the lock from a process that dies, so nobody waits for the dead. Where there are no such locks, or
    the folder cannot be written to, all compile side by side: that takes longer, and does no harm.
    """
    try:
        import fcntl

        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except (ImportError, OSError):
        file = None
    try:
        until, turn = time.monotonic() + LONGEST_WAIT, _Turn.of(file)
        while file is not None and time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(LOOK_EVERY)
        yield turn
    finally:
        if file is not None:
            os.close(file)


def compile_kernels() -> None:
    """Compile all kernels, as many functions at a time as there are cores: each in a process, since Numba takes one at a
    time. Functions call each other by addresses, so each can be compiled before those that it calls are."""
    from gmeql.search.direct.middle import meeting

    gc.disable()  # one part in fifteen of the time, in processes that end when all is compiled
    names = list(_kernels())
    if available_cores() > 1:
        start = "fork" if sys.platform == "linux" else "spawn"
        if start == "fork":
            _prepare_compiler()
        with (
            suppress(OSError, BrokenProcessPool),
            ProcessPoolExecutor(available_cores(), get_context(start), initializer=gc.disable) as workers,
        ):
            for _ in workers.map(_compile_one, names):
                pass
    if not _are_on_disk():  # whatever is missing
        for _ in _smallest_search().run():
            pass
        meeting.compile_look_up()
        _count_tries()
        _raise_counts()


def _prepare_compiler() -> None:
    """Let Numba load what it looks at before it compiles anything, half a second, once for all processes forked hereafter."""
    from numba import float64, njit

    njit(error_model="numpy", nogil=True)(_half_of_first).compile((float64[::1],))


def _half_of_first(values: np.ndarray) -> float:
    return float(values[0]) * 0.5


def _compile_one(name: str) -> None:
    """Compile a function of the kernels in this process, which is for that alone."""
    from gmeql.fitters.compiled import compile_alone, is_on_disk

    function, call = _kernels()[name]
    if not is_on_disk(function):  # else it would be called, and its parts are nowhere here
        compile_alone(function, call)


@lru_cache(maxsize=1)
def load_kernels() -> None:
    """Load the compiled parts of the search, which else the first fit would do at the expense of its `max_time`."""
    keep_kernels()
    for _ in _smallest_search().run():
        pass


def _smallest_search() -> Search:
    """A search that calls all kernels, and ends at once."""
    rows = np.arange(1.0, 9.0)
    return Search(rows[:, None], np.sin(rows), config=SearchConfig(max_candidates=1, n_jobs=1))


def _python(code: str) -> subprocess.Popen[bytes]:
    """Another process of this Python, which sees the same packages and says nothing."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=same_packages(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def same_packages() -> dict[str, str]:
    """The environment in which another process of this Python finds the packages that this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
