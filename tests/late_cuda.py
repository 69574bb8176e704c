"""An accelerator that does everything as late and in as odd an order as its queues allow: what was forgotten to be
waited for comes out wrong."""

from __future__ import annotations

import ctypes
import random
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from host_cuda import _ONE, HostDriver, library

Work = Callable[[], None]


class Event:
    """Something on a queue that others may wait for."""

    is_over = False

    def happen(self) -> None:
        self.is_over = True


class LateDriver(HostDriver):
    """Work lies on its queue until somebody asks for an array; then queues take turns at random.

    Memory holds rubbish until the queue comes to what fills it.
    """

    def __init__(self, seed: int, root: LateDriver | None = None) -> None:
        self.root = root or self
        self.seed, self.random, self.lock = seed, random.Random(seed), threading.RLock()
        self.places: list[LateDriver] = [] if root else [self]
        self.queues: dict[Any, deque[Work | Event]] = {}
        self.recording: list[tuple[Any, Work | tuple[Any, Any]]] | None = None
        self.n_repeats = 0

    def _add(self, queue: Any, work: Work | Event) -> None:
        with self.root.lock:
            self.queues.setdefault(queue, deque()).append(work)

    def put(self, array: np.ndarray) -> np.ndarray:
        there = self._rubbish(np.empty(array.shape, array.dtype))
        self.fill(there, array)
        return there

    def zeros(self, n_bytes: int) -> np.ndarray:
        there = self._rubbish(np.empty(n_bytes, np.uint8))
        self.fill(there, None)
        return there

    def _rubbish(self, there: np.ndarray) -> np.ndarray:
        there.reshape(-1).view(np.uint8)[:] = 0x81
        return there

    def fill(self, there: np.ndarray, array: np.ndarray | None) -> None:
        kept = None if array is None else np.array(array, order="C")  # the driver has copied it when it returns
        self._do(0, lambda: HostDriver.fill(self, there, kept))

    def launch(
        self, source: str, name: str, *, blocks: int, threads: int, shared: int, arguments: Any, queue: int = 0
    ) -> None:
        def work() -> None:
            with _ONE:
                getattr(library(source), name)(*(ctypes.c_void_p(self.pointer(array)) for array in arguments))

        self._do(queue, work)

    def _do(self, queue: Any, work: Work) -> None:
        if self.recording is None:
            self._add(queue, work)
        else:
            self.recording.append((queue, work))

    def order(self, later: int, earlier: int) -> None:
        if self.recording is None:
            self._order(later, earlier)
        else:
            self.recording.append((later, (later, earlier)))

    def _order(self, later: Any, earlier: Any) -> None:
        event = Event()
        self._add(earlier, event.happen)
        self._add(later, event)

    def record(self, launches: Work) -> Work:
        self.recording = recorded = []
        try:
            launches()
        finally:
            self.recording = None

        def repeat() -> None:
            """Queues of the recorded work are its own; it begins and ends with queue 0, one repeat after the other."""
            with self.root.lock:
                number = self.n_repeats = self.n_repeats + 1
                self._order((number, 0), 0)
                for queue, work in recorded:
                    if isinstance(work, tuple):
                        self._order(*((number, each) for each in work))
                    else:
                        self._add((number, queue), work)
                self._order(0, (number, 0))

        return repeat

    def get(self, there: np.ndarray) -> np.ndarray:
        """Everybody's queues take turns until this one's queue 0 is empty."""
        with self.root.lock:
            while self.queues.get(0):
                ready = [queue for place in self.root.places for queue in place.queues.values() if self._can_go(queue)]
                work = self.root.random.choice(ready).popleft()
                if not isinstance(work, Event):
                    work()
            return there.copy()

    @staticmethod
    def _can_go(queue: deque[Work | Event]) -> bool:
        return bool(queue) and not (isinstance(queue[0], Event) and not queue[0].is_over)

    def beside(self, number: int) -> LateDriver:
        made = LateDriver(self.seed + number, self.root)
        self.root.places.append(made)
        return made
