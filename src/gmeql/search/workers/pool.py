"""The pool: islands' steps are assigned to workers, and a worker that dies is replaced."""

from __future__ import annotations

import hashlib
import itertools
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql._version import __version__
from gmeql.formula.operators import OPERATORS
from gmeql.search.islands.island import Island
from gmeql.search.islands.steps import Step, StepTask, TrimmedStep
from gmeql.search.islands.tried import TriedStructures
from gmeql.search.workers.backends import Backend, WorkerSlot, active_backend
from gmeql.search.workers.worker import Assignment, Message, carry_out, packed, start


@dataclass(frozen=True)
class PoolConfig:
    """Numbers of a pool: when to wait, when to give up, what to keep."""

    max_deaths: int = 5
    """Workers that may die over one assignment, or one after the other while they start, before the search gives up."""
    start_seconds: float = 300.0
    """How long a pool waits for its first worker. A machine that never ran gmeql compiles its kernels in that time."""
    poll_seconds: float = 0.25
    """How long the pool waits at a time before it looks for workers that are gone."""
    kept_arrays: int = 64
    """Arrays a worker keeps; the oldest leave first."""
    kept_news: int = 16
    """Reports of islands that a worker may miss before it is sent the table of tried structures whole."""


POOL = PoolConfig()
_log = logging.getLogger(__name__)


class WorkerError(RuntimeError):
    """Work could not be done by others: no worker came, or too many died."""


@dataclass
class _Pending:
    """An assignment that is to be done, with the arrays that its names stand for."""

    island: int
    assignment: Assignment
    arrays: dict[str, np.ndarray]
    deaths: int = 0


@dataclass
class _Worker:
    """One place to work, and what is known to be there."""

    slot: WorkerSlot
    search: str
    future: Future[Any]
    pending: _Pending | None = None
    ready: bool = False
    version: int | None = None
    """Of the table of tried structures it has; None when it has none."""
    arrays: dict[str, None] = field(default_factory=dict)
    """Names of the arrays it has, the youngest last."""


class WorkerPool:
    """Workers that take islands' steps ahead: `assign` islands, `take` their steps one by one, `close` at the end."""

    def __init__(self, backend: Backend, n_workers: int, tried: TriedStructures) -> None:
        self.backend = backend
        self.n_workers = n_workers
        self.tried = tried
        self.version = 1
        self.deaths = 0
        self._news: deque[np.ndarray] = deque(maxlen=POOL.kept_news)
        self._workers: list[_Worker] = []
        self._queue: deque[_Pending] = deque()
        self._done: dict[int, deque[TrimmedStep]] = {}
        self._under_way: set[int] = set()
        self._failed_starts = 0
        self._refreshed_at = -1.0

    def open(self) -> None:
        """Start the workers and wait for the first that is ready."""
        started = time.monotonic()
        while not any(worker.ready for worker in self._workers):
            if time.monotonic() - started > POOL.start_seconds:
                raise WorkerError(
                    f"{self.backend.name}: no worker was ready within {POOL.start_seconds:g} s; start some, or fit on "
                    "threads by leaving out joblib.parallel_config"
                )
            self._wait()

    def close(self) -> None:
        """Give all workers back, whatever they are doing."""
        for worker in self._workers:
            self.backend.close_slot(worker.slot, worker.search, busy=worker.pending is not None or not worker.ready)
        self._workers = []
        self._queue.clear()
        self.backend.close()

    # --- what the search asks for -------------------------------------------------------------------------------------

    def has(self, number: int) -> bool:
        """Whether steps of this island are here or on their way."""
        return number in self._under_way or bool(self._done.get(number))

    def assign(self, island: Island, task: StepTask, n_steps: int) -> None:
        """Have the next steps of an island taken, from where it stands."""
        arrays = {_content_name(array): array for array in (task.inputs, task.target, task.weights)}
        inputs, target, weights = (_content_name(array) for array in (task.inputs, task.target, task.weights))
        assignment = Assignment(packed(island), island.config, n_steps, inputs, target, weights, task.table_key,
                                task.max_complexity, task.screen_rows, task.groups)  # fmt: skip
        self._under_way.add(island.number)
        self._queue.append(_Pending(island.number, assignment, arrays))
        self._hand_out()

    def take(self, island: Island, give_up: Callable[[], bool]) -> Step | None:
        """The next step of an island, as if it had taken it itself; None when waiting for it became pointless."""
        while not self._done.get(island.number):
            if give_up():
                return None
            self._wait()
        return self._done[island.number].popleft().replay(island)

    def share_tried(self, fingerprints: np.ndarray) -> None:
        """All workers hear of these structures from now on; `tried` has them already."""
        self._news.append(fingerprints)
        self.version += 1

    # --- work ---------------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait a moment for something to happen, and see to it."""
        self._fill_slots()
        self._hand_out()
        running = [worker.future for worker in self._workers if not worker.ready or worker.pending is not None]
        if running:
            wait(running, timeout=POOL.poll_seconds, return_when="FIRST_COMPLETED")
        else:
            time.sleep(POOL.poll_seconds)
        for worker in list(self._workers):
            if worker.ready and worker.pending is None:
                continue
            if worker.future.done():
                self._collect(worker)
            elif self.backend.is_gone(worker.slot):
                self._remove(worker, None)
        self._hand_out()

    def _fill_slots(self) -> None:
        """Start workers in empty places; where a cluster has none, look again from time to time."""
        now = time.monotonic()
        if len(self._workers) >= self.n_workers and now - self._refreshed_at < POOL.poll_seconds:
            return
        self._refreshed_at = now
        self.backend.refresh()
        own_operators = [operator for operator in OPERATORS.values() if operator.is_user_defined]
        while len(self._workers) < self.n_workers:
            slot = self.backend.open_slot()
            if slot is None:
                break
            self._workers.append(_Worker(slot, uuid.uuid4().hex, self.backend.submit(slot, start, own_operators)))

    def _hand_out(self) -> None:
        for worker in self._workers:
            if self._queue and worker.ready and worker.pending is None:
                worker.pending = self._queue.popleft()
                worker.future = self.backend.submit(worker.slot, carry_out, self._message(worker, worker.pending))

    def _message(self, worker: _Worker, pending: _Pending) -> Message:
        """The assignment with what the worker lacks for it, after which the worker is known to have it."""
        missing = {key: array for key, array in pending.arrays.items() if key not in worker.arrays}
        for key in pending.arrays:  # the youngest stand last
            worker.arrays.pop(key, None)
            worker.arrays[key] = None
        forget = tuple(itertools.islice(worker.arrays, max(len(worker.arrays) - POOL.kept_arrays, 0)))
        for key in forget:
            del worker.arrays[key]
        has, whole = worker.version, None
        behind = None if has is None else self.version - has
        if behind is None or behind > len(self._news):
            # the worker's data are made anew, and with them goes what it held
            has, whole, behind = None, self.tried.to_dict(), 0
            missing, forget = pending.arrays, ()
            worker.arrays = dict.fromkeys(pending.arrays)
        news = tuple(self._news)[len(self._news) - behind :]
        worker.version = self.version
        bits = len(self.tried.keys).bit_length() - 1
        return Message(worker.search, pending.assignment, missing, forget, has, self.version, bits, whole, news)

    def _collect(self, worker: _Worker) -> None:
        """See to what a worker answered."""
        try:
            answer = worker.future.result()
        except (Exception, CancelledError) as error:  # what a dead worker raises is for the backend to say
            if not self.backend.is_death(error):
                raise
            self._remove(worker, error)
            return
        if not worker.ready:
            self._accept(worker, answer)
            return
        pending, worker.pending = worker.pending, None
        assert pending is not None
        if answer is None:  # a new process in an old place
            worker.version, worker.arrays = None, {}
            self._queue.appendleft(pending)
            return
        self._under_way.discard(pending.island)
        self._done[pending.island] = deque(answer)

    def _accept(self, worker: _Worker, version: str) -> None:
        """A worker has started: it may work where it runs the same gmeql."""
        if version != __version__:
            raise WorkerError(
                f"{self.backend.name}: a worker runs gmeql {version}, this process {__version__}; install the same "
                "everywhere"
            )
        worker.ready = True
        self._failed_starts = 0

    def _remove(self, worker: _Worker, error: BaseException | None) -> None:
        """A worker died: its assignment goes back to the head of the queue, its place is filled again."""
        self.deaths += 1
        self._workers.remove(worker)
        self.backend.close_slot(worker.slot, worker.search, busy=True)
        self._refreshed_at = -1.0
        pending = worker.pending
        fate = "" if pending is None else "; its assignment goes to another"
        _log.warning("%s: a worker died%s", self.backend.name, fate)
        if pending is not None:
            pending.deaths += 1
            self._queue.appendleft(pending)
        else:
            self._failed_starts += 1
        if self._failed_starts > POOL.max_deaths or (pending is not None and pending.deaths > POOL.max_deaths):
            when = "while they started" if pending is None else "over the same assignment"
            raise WorkerError(
                f"{self.backend.name}: {POOL.max_deaths + 1} workers died {when}; look at their logs, memory is the usual "
                "cause"
            ) from error


def _content_name(array: np.ndarray) -> str:
    """A name by content: what has the same name need not be sent again."""
    digest = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16)
    digest.update(f"{array.dtype}{array.shape}".encode())
    return digest.hexdigest()


def find_pool(n_jobs: int | None, tried: TriedStructures, most: int) -> WorkerPool | None:
    """The pool that the active joblib backend offers; None where it is threads, as it is by default.

    `n_jobs` None takes the number of the backend's context, or all it has. `most` workers can be kept busy.
    """
    active = active_backend(n_jobs)
    if active is None:
        return None
    backend, wanted = active
    return WorkerPool(backend, min(wanted, most), tried)
