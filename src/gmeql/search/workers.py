"""Islands on other processes and machines: pieces of work, carried by the joblib backend that is active.

``with joblib.parallel_config("ray")`` (or "dask", "loky") around a fit says who carries; without it there is no crew and
the search stays on the threads of its own process. The backend is asked for places to work, not for ``Parallel``: there
one dead worker fails the whole call, here it costs the piece it held, which goes to another.

A piece is one island and a number of steps. Each worker keeps what it was sent: the arrays that islands are fitted to,
by their content, and the table of tried structures, of which later pieces bring only the news. The crew keeps the list of
what each worker has; a worker that turns out to have less, because its process is a new one, is sent everything again.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql.fitters.programs import input_slots
from gmeql.formula.operators import OPERATORS, Operator
from gmeql.network.architecture import architecture_preset
from gmeql.network.repository import size
from gmeql.search.island import Island, IslandConfig, Tries
from gmeql.search.steps import Ground, Step, TrimmedStep, advance

MAX_DEATHS = 5
"""Workers that may die over one piece, or one after the other while they start, before the search gives up."""
START_SECONDS = 300.0
"""How long a crew waits for its first worker. A machine that never ran gmeql compiles its kernels in that time."""
POLL_SECONDS = 0.25
KEPT_ARRAYS = 64
"""Arrays a worker keeps; the oldest leave first."""
KEPT_NEWS = 16
"""Rungs that a worker may miss before it is sent the table of tried structures whole."""


_log = logging.getLogger(__name__)


class WorkerError(RuntimeError):
    """Work could not be done by others: no worker came, or too many died."""


# --- on the worker --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Some steps of one island. Arrays are named by their content."""

    island: dict[str, Any]
    config: IslandConfig
    steps: int
    inputs: str
    target: str
    weights: str
    salt: int
    max_complexity: int
    screen_rows: int


@dataclass(frozen=True)
class Message:
    """A piece, and what the worker still needs for it."""

    site: str
    piece: Piece
    arrays: dict[str, np.ndarray]
    forget: tuple[str, ...]
    has: int | None
    """The version of the table of tried structures the worker should have; None when the whole table comes along."""
    version: int
    bits: int
    whole: dict[str, np.ndarray] | None
    news: tuple[np.ndarray, ...]


@dataclass
class _Site:
    """What a worker holds of one search."""

    known: Tries
    version: int
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


_SITES: dict[str, _Site] = {}


def greet(operators: list[Operator]) -> str:
    """Make this process ready: the user's own operators, compiled kernels. Returns the version of gmeql."""
    from gmeql._version import __version__

    for operator in operators:
        OPERATORS[operator.name] = operator
    island = Island(architecture=architecture_preset("general", 1), transform="identity", config=IslandConfig(), number=1,
                    random_state=np.array([1], np.uint64))  # fmt: skip
    rows = np.arange(1.0, 9.0)
    island.inputs = input_slots(rows[:, None])[0]
    advance(island, Ground(island.inputs, np.sin(rows), np.ones(8), 0, 60, 8), Tries(12), 2)
    return __version__


def serve(message: Message) -> list[TrimmedStep] | None:
    """Do a piece of work. None when this process does not have what the message takes for granted."""
    site = _SITES.get(message.site)
    if message.whole is not None:
        site = _SITES[message.site] = _Site(Tries.from_dict(message.whole, message.bits), message.version)
    elif site is None or site.version != message.has:
        return None
    for fingerprints in message.news:
        site.known.add(fingerprints)
    site.version = message.version
    # some backends hand over memory that may not be written, for which the kernels would be compiled once more
    site.arrays.update({key: np.array(array) for key, array in message.arrays.items()})
    for key in message.forget:
        site.arrays.pop(key, None)
    piece = message.piece
    if not {piece.inputs, piece.target, piece.weights} <= set(site.arrays):
        return None
    island = _unpacked(piece.island, piece.config)
    island.inputs = site.arrays[piece.inputs]
    ground = Ground(island.inputs, site.arrays[piece.target], site.arrays[piece.weights], piece.salt,
                    piece.max_complexity, piece.screen_rows)  # fmt: skip
    return advance(island, ground, site.known, piece.steps)


def leave(site: str) -> None:
    """Let go of what was held for a search."""
    _SITES.pop(site, None)


def _packed(island: Island) -> dict[str, Any]:
    """The island as data, without its empty slots."""
    data = island.to_dict()
    n = int(size(island.repository))
    return data | {
        "losses": data["losses"][:n],
        "fingerprints": data["fingerprints"][:n],
        "items": {name: values[:n] for name, values in data["items"].items()},
    }


def _unpacked(data: dict[str, Any], config: IslandConfig) -> Island:
    def filled(values: np.ndarray, value: float = 0) -> np.ndarray:
        whole = np.full((config.capacity, *values.shape[1:]), value, values.dtype)
        whole[: len(values)] = values
        return whole

    whole = data | {
        "losses": filled(data["losses"], np.inf),
        "fingerprints": filled(data["fingerprints"]),
        "items": {name: filled(values) for name, values in data["items"].items()},
    }
    return Island.from_dict(whole, config)


# --- the crew -------------------------------------------------------------------------------------------------------------


@dataclass
class _Order:
    """A piece to be done, with the arrays that its names stand for."""

    number: int
    piece: Piece
    arrays: dict[str, np.ndarray]
    deaths: int = 0


@dataclass
class _Worker:
    """One place to work, and what is known to be there."""

    seat: Any
    site: str
    future: Future[Any]
    order: _Order | None = None
    ready: bool = False
    version: int | None = None
    arrays: dict[str, None] = field(default_factory=dict)


class Crew:
    """Workers that take islands' steps ahead. ``order`` pieces, ``take`` their steps one by one, ``close`` at the end."""

    def __init__(self, staff: Staff, n_workers: int, known: Tries) -> None:
        self.staff = staff
        self.n_workers = n_workers
        self.known = known
        self.version = 1
        self.deaths = 0
        self._news: deque[np.ndarray] = deque(maxlen=KEPT_NEWS)
        self._workers: list[_Worker] = []
        self._orders: deque[_Order] = deque()
        self._done: dict[int, deque[TrimmedStep]] = {}
        self._pending: set[int] = set()
        self._failed_starts = 0
        self._looked_at = -1.0

    def open(self) -> None:
        """Start the workers and wait for the first that is ready."""
        started = time.monotonic()
        while not any(worker.ready for worker in self._workers):
            if time.monotonic() - started > START_SECONDS:
                raise WorkerError(
                    f"{self.staff.name}: no worker was ready within {START_SECONDS:g} s; start some, or fit on threads "
                    "by leaving out joblib.parallel_config"
                )
            self._turn()

    def close(self) -> None:
        for worker in self._workers:
            self.staff.dismiss(worker.seat, worker.site, busy=worker.order is not None or not worker.ready)
        self._workers = []
        self._orders.clear()
        self.staff.close()

    # --- what the search asks for -------------------------------------------------------------------------------------

    def has(self, number: int) -> bool:
        """Whether steps of this island are here or on their way."""
        return number in self._pending or bool(self._done.get(number))

    def order(self, island: Island, ground: Ground, n_steps: int) -> None:
        """Have the next steps of an island taken, from where it stands."""
        arrays = {_name(array): array for array in (ground.inputs, ground.target, ground.weights)}
        inputs, target, weights = (_name(array) for array in (ground.inputs, ground.target, ground.weights))
        piece = Piece(_packed(island), island.config, n_steps, inputs, target, weights, ground.salt,
                      ground.max_complexity, ground.screen_rows)  # fmt: skip
        self._pending.add(island.number)
        self._orders.append(_Order(island.number, piece, arrays))
        self._assign()

    def take(self, island: Island, give_up: Callable[[], bool]) -> Step | None:
        """The next step of an island, as if it had taken it itself; None when waiting for it became pointless."""
        while not self._done.get(island.number):
            if give_up():
                return None
            self._turn()
        return self._done[island.number].popleft().replay(island)

    def tell(self, fingerprints: np.ndarray) -> None:
        """All know of these structures from now on; ``known`` has them already."""
        self._news.append(fingerprints)
        self.version += 1

    # --- work ---------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Wait a moment for something to happen, and see to it."""
        self._hire()
        self._assign()
        running = [worker.future for worker in self._workers if not worker.ready or worker.order is not None]
        if running:
            wait(running, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        else:
            time.sleep(POLL_SECONDS)
        for worker in list(self._workers):
            if worker.ready and worker.order is None:
                continue
            if worker.future.done():
                self._collect(worker)
            elif self.staff.is_gone(worker.seat):
                self._bury(worker, None)
        self._assign()

    def _hire(self) -> None:
        """Fill empty places; where a cluster has none, look again from time to time."""
        now = time.monotonic()
        if len(self._workers) >= self.n_workers and now - self._looked_at < POLL_SECONDS:
            return
        self._looked_at = now
        self.staff.look()
        own = [operator for operator in OPERATORS.values() if operator.is_user_defined]
        while len(self._workers) < self.n_workers:
            seat = self.staff.hire()
            if seat is None:
                break
            self._workers.append(_Worker(seat, uuid.uuid4().hex, self.staff.submit(seat, greet, own)))

    def _assign(self) -> None:
        for worker in self._workers:
            if self._orders and worker.ready and worker.order is None:
                worker.order = self._orders.popleft()
                worker.future = self.staff.submit(worker.seat, serve, self._message(worker, worker.order))

    def _message(self, worker: _Worker, order: _Order) -> Message:
        missing = {key: array for key, array in order.arrays.items() if key not in worker.arrays}
        for key in order.arrays:  # the youngest stand last
            worker.arrays.pop(key, None)
            worker.arrays[key] = None
        forget = tuple(itertools.islice(worker.arrays, max(len(worker.arrays) - KEPT_ARRAYS, 0)))
        for key in forget:
            del worker.arrays[key]
        has, whole = worker.version, None
        behind = None if has is None else self.version - has
        if behind is None or behind > len(self._news):
            # the site is made anew, and with it goes what it held
            has, whole, behind = None, self.known.to_dict(), 0
            missing, forget = order.arrays, ()
            worker.arrays = dict.fromkeys(order.arrays)
        news = tuple(self._news)[len(self._news) - behind :]
        worker.version = self.version
        bits = len(self.known.keys).bit_length() - 1
        return Message(worker.site, order.piece, missing, forget, has, self.version, bits, whole, news)

    def _collect(self, worker: _Worker) -> None:
        try:
            answer = worker.future.result()
        except (Exception, CancelledError) as error:  # what a dead worker raises is for the staff to say
            if not self.staff.is_death(error):
                raise
            self._bury(worker, error)
            return
        if not worker.ready:
            self._welcome(worker, answer)
            return
        order, worker.order = worker.order, None
        assert order is not None
        if answer is None:  # a new process in an old place
            worker.version, worker.arrays = None, {}
            self._orders.appendleft(order)
            return
        self._pending.discard(order.number)
        self._done[order.number] = deque(answer)

    def _welcome(self, worker: _Worker, version: str) -> None:
        from gmeql._version import __version__

        if version != __version__:
            raise WorkerError(
                f"{self.staff.name}: a worker runs gmeql {version}, this process {__version__}; install the same everywhere"
            )
        worker.ready = True
        self._failed_starts = 0

    def _bury(self, worker: _Worker, error: BaseException | None) -> None:
        """A worker died: its piece goes back to the head of the queue, its place is filled again."""
        self.deaths += 1
        self._workers.remove(worker)
        self.staff.dismiss(worker.seat, worker.site, busy=True)
        self._looked_at = -1.0
        order = worker.order
        _log.warning("%s: a worker died%s", self.staff.name, "" if order is None else "; its piece goes to another")
        if order is not None:
            order.deaths += 1
            self._orders.appendleft(order)
        else:
            self._failed_starts += 1
        if self._failed_starts > MAX_DEATHS or (order is not None and order.deaths > MAX_DEATHS):
            what = "while they started" if order is None else "over the same piece of work"
            raise WorkerError(
                f"{self.staff.name}: {MAX_DEATHS + 1} workers died {what}; look at their logs, memory is the usual cause"
            ) from error


def _name(array: np.ndarray) -> str:
    """A name by content: what has the same name need not be sent again."""
    digest = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16)
    digest.update(f"{array.dtype}{array.shape}".encode())
    return digest.hexdigest()


# --- who carries ----------------------------------------------------------------------------------------------------------


class Staff:
    """Places to work that one backend has to offer. A seat is whatever the backend knows a place by."""

    name = ""

    def look(self) -> None:
        """Called before ``hire`` and now and then: see which places there are."""

    def hire(self) -> Any | None:
        """One more seat, or None when there is none."""
        raise NotImplementedError

    def submit(self, seat: Any, function: Callable[..., Any], *args: Any) -> Future[Any]:
        raise NotImplementedError

    def is_death(self, error: BaseException) -> bool:
        """Whether the error of a future means that its worker is no more, rather than that the work was wrong."""
        raise NotImplementedError

    def is_gone(self, seat: Any) -> bool:
        """Whether a seat is known to be no more though its future says nothing."""
        return False

    def dismiss(self, seat: Any, site: str, *, busy: bool) -> None:
        """Give a seat back, whatever it is doing."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when all seats have been given back."""


class LokyStaff(Staff):
    """Processes of this machine, each an executor of its own: a pool of them would break as a whole."""

    name = "loky"

    def hire(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        return ProcessPoolExecutor(max_workers=1, initializer=_ignore_interrupts)

    def submit(self, seat: Any, function: Callable[..., Any], *args: Any) -> Future[Any]:
        try:
            return seat.submit(function, *args)
        except BrokenExecutor as error:  # its process died while it had nothing to do
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    def is_death(self, error: BaseException) -> bool:
        return isinstance(error, BrokenExecutor)

    def is_gone(self, seat: Any) -> bool:
        processes = list((getattr(seat, "_processes", None) or {}).values())
        return bool(processes) and not any(process.is_alive() for process in processes)

    def dismiss(self, seat: Any, site: str, *, busy: bool) -> None:
        seat.shutdown(wait=False, kill_workers=True)


def _ignore_interrupts() -> None:
    """Ctrl-C in a terminal reaches all its processes; only the one that leads the search is to act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class RayStaff(Staff):
    """Actors of a Ray cluster."""

    name = "ray"

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        import ray

        self.ray = ray
        if not ray.is_initialized():
            ray.init()
        self.options = {"num_cpus": 1, "scheduling_strategy": "SPREAD"} | (options or {})

    def hire(self) -> Any:
        return self.ray.remote(_Servant).options(**self.options).remote()

    def submit(self, seat: Any, function: Callable[..., Any], *args: Any) -> Future[Any]:
        return seat.call.remote(function, *args).future()

    def is_death(self, error: BaseException) -> bool:
        from ray.exceptions import RayError, RayTaskError

        return isinstance(error, RayError) and not isinstance(error, RayTaskError)

    def dismiss(self, seat: Any, site: str, *, busy: bool) -> None:
        self.ray.kill(seat)


class _Servant:
    """The actor: a process that calls what it is told to."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


@dataclass(frozen=True)
class _DaskSeat:
    """One thread of a worker. Work is tied to it, so that it is known what is there."""

    address: str
    thread: int
    futures: list[Any] = field(default_factory=list, compare=False)


class DaskStaff(Staff):
    """Threads of the workers of a Dask cluster.

    Work that is tied to a worker waits for ever when that worker is no more, so addresses are watched.
    """

    name = "dask"

    def __init__(self, client: Any) -> None:
        self.client = client
        self.threads: dict[str, int] = {}
        self.taken: set[_DaskSeat] = set()
        self.leaving: list[Any] = []

    def look(self) -> None:
        self.threads = dict(self.client.nthreads())

    def hire(self) -> _DaskSeat | None:
        for thread in range(max(self.threads.values(), default=0)):
            for address in sorted(a for a, n in self.threads.items() if thread < n):
                seat = _DaskSeat(address, thread)
                if seat not in self.taken:
                    self.taken.add(seat)
                    return seat
        return None

    def submit(self, seat: _DaskSeat, function: Callable[..., Any], *args: Any) -> Future[Any]:
        task = self.client.submit(function, *args, workers=[seat.address], allow_other_workers=False, pure=False)
        seat.futures[:] = [task]
        result: Future[Any] = Future()

        def fetch() -> None:
            try:
                result.set_result(task.result())
            except (Exception, CancelledError) as error:  # noqa: BLE001  carried to whoever waits
                result.set_exception(error)

        # Dask has one thread for all callbacks, and fetching what a dead worker held may block it for ever
        threading.Thread(target=fetch, name="gmeql-dask", daemon=True).start()
        return result

    def is_death(self, error: BaseException) -> bool:
        from distributed import CancelledError as DaskCancelledError
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        return isinstance(error, (KilledWorker, CommClosedError, CancelledError, DaskCancelledError))

    def is_gone(self, seat: _DaskSeat) -> bool:
        return seat.address not in self.threads

    def dismiss(self, seat: _DaskSeat, site: str, *, busy: bool) -> None:
        self.taken.discard(seat)
        for task in seat.futures:
            task.cancel()
        if not busy:
            self.leaving.append(
                self.client.submit(leave, site, workers=[seat.address], allow_other_workers=False, pure=False)
            )

    def close(self) -> None:
        from distributed import wait as wait_for

        try:
            wait_for(self.leaving, timeout=2.0)
        except TimeoutError:  # a worker that is busy otherwise, or gone: its memory is not worth waiting for
            pass
        self.leaving.clear()


def find_crew(n_jobs: int | None, known: Tries, most: int) -> Crew | None:
    """The crew that the active joblib backend offers; None where it is threads, as it is by default.

    ``n_jobs`` None takes the number of the backend's context, or all it has. ``most`` workers can be kept busy.
    """
    from joblib.parallel import get_active_backend

    if n_jobs == 1:
        return None
    backend, context_jobs = get_active_backend(prefer="threads")
    make = {
        "LokyBackend": _loky,
        "MultiprocessingBackend": _loky,
        "RayBackend": _ray,
        "DaskDistributedBackend": _dask,
    }.get(type(backend).__name__)
    if make is None or (getattr(backend, "nesting_level", None) or 0) > 0:
        return None
    staff = make(backend)
    if staff is None:
        return None
    wanted = n_jobs if n_jobs is not None else context_jobs
    if wanted is None or wanted < 0:
        wanted = backend.effective_n_jobs(-1 if wanted is None else wanted)
    if wanted < 2:
        return None
    return Crew(staff, min(wanted, most), known)


def _loky(backend: Any) -> Staff:
    return LokyStaff()


def _ray(backend: Any) -> Staff:
    return RayStaff(getattr(backend, "ray_remote_args", None))


def _dask(backend: Any) -> Staff | None:
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return DaskStaff(backend.client)
    return None  # a task of the cluster itself: its worker's threads are taken by tasks such as this one
