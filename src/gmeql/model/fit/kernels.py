"""The search's compiled kernels made ready: compiled once on a machine, by one process, and loaded by all.

Without the kernels of the fit no formula is judged. They are compiled first, and a search begins when they are on disk; the
others are compiled beside it. Whoever needs one of those before it is there waits for it (`fitters/compiled.py`).
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.fitters import waiting
from gmeql.fitters.threads import available_cores
from gmeql.network.architecture import architecture_preset

if TYPE_CHECKING:
    from gmeql.search.search import Search

FIRST = "gmeql.fitters.kernel."
"""Where the functions stand that a search needs before anything else."""
ORDER = (FIRST, "gmeql.search.direct.", "gmeql.search.sampling.")
"""Those that direct methods call come before those of the islands: data can be looked at before anything is drawn."""
POLITE = 10
"""How far processes step back that compile what is not needed at once."""


def are_missing() -> bool:
    """Whether kernels must be compiled before a search can begin."""
    return not (keep_kernels.cache_info().currsize or keep_first_kernels.cache_info().currsize or _are_on_disk(FIRST))


@lru_cache(maxsize=1)
def keep_kernels() -> None:
    """Compile the search's kernels in processes of their own, where this machine never did (some ten seconds, once).

    A process that compiles a kernel may link other copies of its parts than one that loads it from disk, and those can
    round otherwise: the same seed would give another formula. So that all give the same, all load. Where nothing can be
    kept on disk, every process compiles for itself when it first needs a kernel.
    """
    _keep(_are_on_disk)


@lru_cache(maxsize=1)
def keep_first_kernels() -> None:
    """The same for those without which no search can begin; the others follow beside it."""
    _keep(partial(_are_on_disk, FIRST))


@lru_cache(maxsize=1)
def begin_to_compile() -> None:
    """Have kernels that are missing compiled, without waiting for them: what is imported meanwhile takes as long."""
    from gmeql.fitters.compiled import common_folder

    if (folder := common_folder()) is not None and not _are_on_disk() and (turn := waiting.Turn.of(folder)) is not None:
        _compile_beside(turn)


def _keep(are_there: Callable[[], bool]) -> None:
    """Wait until kernels are on disk, for those of another process or of our own."""
    from gmeql.fitters.compiled import can_be_kept, common_folder
    from gmeql.fitters.kernel.levenberg_marquardt import fit_many

    if (folder := common_folder()) is None or not can_be_kept(fit_many) or are_there():
        return
    turn = waiting.Turn.of(folder)
    if turn is None:  # all compile side by side: that takes longer, and does no harm
        with suppress(OSError):
            _python(f"{COMPILE}()").wait()
        return
    until, has_tried = time.monotonic() + waiting.LONGEST_WAIT, False
    while not are_there() and time.monotonic() < until:
        if turn.is_taken():
            time.sleep(waiting.LOOK_EVERY)
        elif has_tried or turn.is_done():
            return  # they never reach the disk
        else:
            has_tried = True
            _compile_beside(turn)


COMPILE = "from gmeql.model.fit.kernels import compile_kernels; compile_kernels"


def _compile_beside(turn: waiting.Turn) -> None:
    """Start a process that compiles all that is missing, unless another one does; it has the turn as long as it lives."""
    with suppress(OSError):
        file = turn.take()
        if file is None:
            return
        try:
            process = _python(f"{COMPILE}({file})", file)
        finally:
            os.close(file)
        threading.Thread(target=process.wait, name="gmeql-compiling", daemon=True).start()


def _are_on_disk(where: str = "") -> bool:
    """Whether all functions of the kernels are there for this processor, or those whose names begin in some way."""
    from gmeql.fitters.compiled import is_on_disk

    return all(is_on_disk(function) for name, (function, _) in _kernels().items() if name.startswith(where))


@lru_cache(maxsize=1)
def _kernels() -> dict[str, tuple[Any, Callable[[], Any]]]:
    """By name, those that are needed first and take longest to compile first: each function, and what compiles it."""
    from gmeql.fitters import cpu
    from gmeql.fitters.compiled import parts_of
    from gmeql.fitters.kernel.levenberg_marquardt import fit_many
    from gmeql.search.direct.middle import kernels as middle
    from gmeql.search.direct.middle import meeting, remainders, two_terms
    from gmeql.search.sampling.compile import compile_from_python
    from gmeql.search.sampling.draw import draw_candidates
    from gmeql.search.sampling.moves import count_choices
    from gmeql.search.sampling.tried import count_tries, raise_counts

    entries: list[tuple[Any, Callable[[], Any]]] = [
        (fit_many, cpu.compile_kernel),
        (draw_candidates, _draw),
        (middle.fill_tables, meeting.compile_look_up),
        (middle.look_up, meeting.compile_meeting),
        (remainders.pass_over, two_terms.compile_pass),
    ]
    folders = [Path(function.py_func.__code__.co_filename).parent for function, _ in entries[:3]]
    parts = [part for folder in folders for part in parts_of(folder)]
    parts.sort(key=lambda part: -len(part.dispatcher.py_func.__code__.co_code))
    entries += [(part.dispatcher, partial(part.dispatcher.compile, part.signature)) for part in parts]
    entries += [(compile_from_python, _compile_structure), (count_choices, _count_choices)]
    entries += [(count_tries, _count_tries), (raise_counts, _raise_counts)]
    named = [
        (f"{function.py_func.__module__}.{function.py_func.__name__}", (function, call)) for function, call in entries
    ]
    return dict(
        sorted(named, key=lambda each: [place for place, where in enumerate(ORDER) if each[0].startswith(where)])
    )


def _draw() -> None:
    """Candidates of an island."""
    from gmeql.fitters.programs import input_slots
    from gmeql.search.config import IslandConfig
    from gmeql.search.islands.island import Island
    from gmeql.search.islands.tried import TriedStructures

    state = np.ones(1, np.uint64)
    network = architecture_preset("general", n_variables=1)
    island = Island(architecture=network, reading="identity", config=IslandConfig(), number=1, random_state=state)
    island.inputs, _ = input_slots(np.arange(1.0, 9.0)[:, None])
    island.draw(TriedStructures(bits=2), max_complexity=60, table_key=0)


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


def compile_kernels(file: int | None = None) -> None:
    """Compile all kernels, as many functions at a time as there are cores: each in a process, since Numba takes one at a
    time. Functions call each other by addresses, so each can be compiled before those that it calls are.

    `file` is locked as long as this process lives. Ctrl-C in a terminal reaches all its processes; only the search's is to
    act on it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting.compile_here()
    gc.disable()  # one part in fifteen of the time, in processes that end when all is compiled
    names = list(_kernels())
    with suppress(OSError):
        _compile_side_by_side(names, file)
    for name in names:  # whatever is missing
        _compile_one(name)
    if file is not None:
        waiting.say_done(file)


def _compile_side_by_side(names: list[str], file: int | None) -> None:
    """Hand the functions out to processes, which take the next one from a pipe: they live as long as there are any."""
    takes, gives = os.pipe()
    os.write(gives, bytes(FIRST_PLACE + place for place in range(len(names))))
    os.close(gives)
    if sys.platform == "linux":
        _prepare_compiler()
        children = [_fork(takes, names, file) for _ in range(available_cores())]
        for child in children:
            os.waitpid(child, 0)
    else:
        code = "from gmeql.model.fit.kernels import compile_share; compile_share()"
        for process in [_python(code, takes=takes) for _ in range(available_cores())]:
            process.wait()
    os.close(takes)


FIRST_PLACE = 48
"""Places of functions in a pipe are bytes from here on, so that no system takes one for the end of a text."""


def _fork(takes: int, names: list[str], file: int | None) -> int:
    """A child that compiles as long as there is something to take; whose process waits for nobody, nor is waited for."""
    child = os.fork()
    if child:
        return child
    try:
        if file is not None:
            os.close(file)
        compile_share(takes, names)
    finally:
        os._exit(0)


def compile_share(takes: int = 0, names: list[str] | None = None) -> None:
    """Compile the functions whose places come by a pipe, until nothing more comes."""
    waiting.compile_here()
    gc.disable()
    names = list(_kernels()) if names is None else names
    is_polite = False
    while place := os.read(takes, 1):
        name = names[place[0] - FIRST_PLACE]
        if not is_polite and not name.startswith(FIRST) and hasattr(os, "nice"):
            os.nice(POLITE)
            is_polite = True
        _compile_one(name)


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
    """Load the compiled parts of the search, which else the first fit would do at the expense of its `max_time`.

    What is being compiled beside is loaded when it is needed; the search's clock stands still then.
    """
    from gmeql.fitters import cpu

    keep_first_kernels()
    cpu.compile_kernel()
    if _are_on_disk():
        for _ in _smallest_search().run():
            pass


def _smallest_search() -> Search:
    """A search that calls all kernels, and ends at once."""
    from gmeql.search.config import SearchConfig
    from gmeql.search.search import Search

    rows = np.arange(1.0, 9.0)
    return Search(rows[:, None], np.sin(rows), config=SearchConfig(max_candidates=1, n_jobs=1))


def _python(code: str, *files: int, takes: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Another process of this Python, which sees the same packages, says nothing, and has some open files."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=same_packages(),
        stdin=takes,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=files,
    )


def same_packages() -> dict[str, str]:
    """The environment in which another process of this Python finds the packages that this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
