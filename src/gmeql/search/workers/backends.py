"""Who carries: the places to work that a joblib backend has to offer, and what each backend needs.

`Backend` is what the pool asks for; loky, Ray and Dask each answer in their own way. `active_backend` reads which of
them joblib would use now.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import dataclass, field
from typing import Any

from gmeql.search.workers.worker import forget

WorkerSlot = Any
"""Whatever a backend knows a place to work by: an executor, an actor, a thread of a worker."""
LEAVING_SECONDS = 2.0
"""How long the end of a search waits for the workers of a Dask cluster to let go of its data."""


class Backend:
    """Places to work that one backend has to offer."""

    name = ""

    def refresh(self) -> None:
        """Called before `open_slot` and now and then: see which places there are."""

    def open_slot(self) -> WorkerSlot | None:
        """One more place to work, or None when there is none."""
        raise NotImplementedError

    def submit(self, slot: WorkerSlot, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have the function called there."""
        raise NotImplementedError

    def is_death(self, error: BaseException) -> bool:
        """Whether the error of a future means that its worker is no more, rather than that the work was wrong."""
        raise NotImplementedError

    def is_gone(self, slot: WorkerSlot) -> bool:
        """Whether a place is known to be no more though its future says nothing."""
        return False

    def close_slot(self, slot: WorkerSlot, search: str, *, busy: bool) -> None:
        """Give a place back, whatever it is doing, with the data it holds of a search."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when all places have been given back."""


class LokyProcesses(Backend):
    """Processes of this machine, each an executor of its own: a pool of them would break as a whole."""

    name = "loky"

    def open_slot(self) -> WorkerSlot:
        from joblib.externals.loky import ProcessPoolExecutor

        return ProcessPoolExecutor(max_workers=1, initializer=_ignore_interrupts)

    def submit(self, slot: WorkerSlot, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any]
        try:
            future = slot.submit(function, *args)
        except BrokenExecutor as error:  # its process died while it had nothing to do
            future = Future()
            future.set_exception(error)
        return future

    def is_death(self, error: BaseException) -> bool:
        return isinstance(error, BrokenExecutor)

    def is_gone(self, slot: WorkerSlot) -> bool:
        processes = list((getattr(slot, "_processes", None) or {}).values())
        return bool(processes) and not any(process.is_alive() for process in processes)

    def close_slot(self, slot: WorkerSlot, search: str, *, busy: bool) -> None:
        questions, answers = slot._call_queue, slot._result_queue
        slot.shutdown(wait=False, kill_workers=True)
        # Of a process that died in the middle of an answer a thread waits for the rest, and of one that died before it read a
        # question for room to write it; Python would wait for those threads at its end. Nobody but the process writes answers.
        if answers is not None:
            answers._writer.close()
        if questions is not None:
            questions.cancel_join_thread()


def _ignore_interrupts() -> None:
    """Ctrl-C in a terminal reaches all its processes; only the one that leads the search is to act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class RayActors(Backend):
    """Actors of a Ray cluster."""

    name = "ray"

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        import ray

        self.ray = ray
        if not ray.is_initialized():
            ray.init()
        self.options = {"num_cpus": 1, "scheduling_strategy": "SPREAD"} | (options or {})

    def open_slot(self) -> WorkerSlot:
        return self.ray.remote(_Actor).options(**self.options).remote()

    def submit(self, slot: WorkerSlot, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = slot.call.remote(function, *args).future()
        return future

    def is_death(self, error: BaseException) -> bool:
        from ray.exceptions import RayError, RayTaskError

        return isinstance(error, RayError) and not isinstance(error, RayTaskError)

    def close_slot(self, slot: WorkerSlot, search: str, *, busy: bool) -> None:
        self.ray.kill(slot)


class _Actor:
    """A process that calls what it is told to."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


@dataclass(frozen=True)
class _DaskSlot:
    """One thread of a worker. Work is tied to it, so that it is known what is there."""

    address: str
    thread: int
    futures: list[Any] = field(default_factory=list, compare=False)


class DaskThreads(Backend):
    """Threads of the workers of a Dask cluster.

    Work that is tied to a worker waits for ever when that worker is no more, so addresses are watched.
    """

    name = "dask"

    def __init__(self, client: Any) -> None:
        self.client = client
        self.threads: dict[str, int] = {}
        self.taken: set[_DaskSlot] = set()
        self.leaving: list[Any] = []

    def refresh(self) -> None:
        self.threads = dict(self.client.nthreads())

    def open_slot(self) -> _DaskSlot | None:
        for thread in range(max(self.threads.values(), default=0)):
            for address in sorted(a for a, n in self.threads.items() if thread < n):
                slot = _DaskSlot(address, thread)
                if slot not in self.taken:
                    self.taken.add(slot)
                    return slot
        return None

    def submit(self, slot: _DaskSlot, function: Callable[..., Any], *args: Any) -> Future[Any]:
        task = self._tied_to(slot, function, *args)
        slot.futures[:] = [task]
        result: Future[Any] = Future()

        def fetch() -> None:
            try:
                result.set_result(task.result())
            except (Exception, CancelledError) as error:  # noqa: BLE001  carried to whoever waits
                result.set_exception(error)

        # Dask has one thread for all callbacks, and fetching what a dead worker held may block it for ever
        threading.Thread(target=fetch, name="gmeql-dask", daemon=True).start()
        return result

    def _tied_to(self, slot: _DaskSlot, function: Callable[..., Any], *args: Any) -> Any:
        return self.client.submit(function, *args, workers=[slot.address], allow_other_workers=False, pure=False)

    def is_death(self, error: BaseException) -> bool:
        from distributed import CancelledError as DaskCancelledError
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        return isinstance(error, (KilledWorker, CommClosedError, CancelledError, DaskCancelledError))

    def is_gone(self, slot: _DaskSlot) -> bool:
        return slot.address not in self.threads

    def close_slot(self, slot: _DaskSlot, search: str, *, busy: bool) -> None:
        self.taken.discard(slot)
        for task in slot.futures:
            task.cancel()
        if not busy:
            self.leaving.append(self._tied_to(slot, forget, search))

    def close(self) -> None:
        from distributed import wait as wait_for

        try:
            wait_for(self.leaving, timeout=LEAVING_SECONDS)
        except TimeoutError:  # a worker that is busy otherwise, or gone: its memory is not worth waiting for
            pass
        self.leaving.clear()


def active_backend(n_jobs: int | None) -> tuple[Backend, int] | None:
    """The active joblib backend and how many workers it is asked for; None where it is threads, as it is by default.

    `n_jobs` None takes the number of the backend's context, or all it has.
    """
    from joblib.parallel import get_active_backend

    if n_jobs == 1:
        return None
    joblib_backend, context_jobs = get_active_backend(prefer="threads")
    make = _MAKERS.get(type(joblib_backend).__name__)
    if make is None or (getattr(joblib_backend, "nesting_level", None) or 0) > 0:
        return None
    backend = make(joblib_backend)
    if backend is None:
        return None
    wanted = n_jobs if n_jobs is not None else context_jobs
    if wanted is None or wanted < 0:
        wanted = joblib_backend.effective_n_jobs(-1 if wanted is None else wanted)
    return None if wanted < 2 else (backend, wanted)


def _loky(joblib_backend: Any) -> Backend:
    return LokyProcesses()


def _ray(joblib_backend: Any) -> Backend:
    return RayActors(getattr(joblib_backend, "ray_remote_args", None))


def _dask(joblib_backend: Any) -> Backend | None:
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return DaskThreads(joblib_backend.client)
    return None  # a task of the cluster itself: its worker's threads are taken by tasks such as this one


_MAKERS: dict[str, Callable[[Any], Backend | None]] = {
    "LokyBackend": _loky,
    "MultiprocessingBackend": _loky,
    "RayBackend": _ray,
    "DaskDistributedBackend": _dask,
}
"""Joblib's classes of backends by name, so that none of their libraries need be installed."""
