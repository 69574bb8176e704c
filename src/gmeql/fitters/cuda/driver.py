"""The accelerators of this machine: what is sent there, launched there and fetched from there. CuPy is loaded only here."""

from __future__ import annotations

import atexit
import copy
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

MOST_MEMORY = 0.25
"""Share of what is free on a device that a part of a search may take: others work there, too."""
QUEUES = 9
"""Kernels that may run side by side."""
PATIENT_QUEUES = (1, 2, 3, 4)
"""Queues for long work, which all that is on the others overtakes; so is work that was recorded."""
CONNECTIONS = 32
"""Queues of the device itself, as many as there can be; the driver reads it when it starts. With its eight, work of one
generation waited for that of others."""
QUICK = "// compiled quickly"
"""First line of sources with little arithmetic, of which the compiler shall not make the most."""
QUICK_OPTION, QUICK_SINCE = "--Ofast-compile=min", (12, 9)
"""What tells it so, and the first version that is known to listen: half the time, for code that starts every search."""


class AcceleratorError(RuntimeError):
    """An accelerator failed: no memory, no driver, a kernel that does not compile there."""


class Driver(Protocol):
    """One accelerator. Arrays there are whatever `put` returns.

    Launches on one queue run one after the other, those on different queues side by side; copies are on queue 0.
    """

    processors: int
    """Multiprocessors, each of which holds several blocks."""

    def put(self, array: np.ndarray) -> Any:
        """A copy of an array there."""

    def zeros(self, n_bytes: int) -> Any:
        """Memory there, all 0."""

    def fill(self, there: Any, array: np.ndarray | None) -> None:
        """Overwrite an array there, with 0 where nothing is given."""

    def pointer(self, there: Any) -> int:
        """Its address."""

    def free_bytes(self) -> int:
        """Memory there that nobody has taken."""

    def prepare(self, source: str, name: str) -> None:
        """Compile a kernel ahead."""

    def launch(
        self,
        source: str,
        name: str,
        *,
        blocks: int,
        threads: int,
        shared: int,
        arguments: tuple[Any, ...],
        queue: int = 0,
    ) -> None:
        """Start the kernel `name` of a source; `shared` bytes of memory for each block. Arguments are arrays there."""

    def order(self, later: int, earlier: int) -> None:
        """What is launched on queue `later` from now on waits for all that was launched on queue `earlier`."""

    def record(self, launches: Callable[[], None]) -> Callable[[], None]:
        """What `launches` launches, as one launch that can be repeated; every queue it uses ends in queue 0."""

    def get(self, there: Any) -> np.ndarray:
        """Wait, and a copy of an array here."""

    def beside(self, number: int) -> Driver:
        """The same accelerator with queues of its own: what is launched there does not wait for what is launched here.

        The same number gives the same one.
        """


@lru_cache(maxsize=1)
def why_not() -> str:
    """Why no accelerator can be used; empty where one can. The first call starts the driver."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed (the extra gmeql[gpu])"
    if multiprocessing.parent_process() is None:  # sixteen workers with as many each were too many
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", str(CONNECTIONS))
    try:
        return "" if cupy.cuda.runtime.getDeviceCount() > 0 else "no CUDA device was found"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"the CUDA driver does not answer ({error})"


class CudaDriver:
    """A CUDA device, by CuPy, which compiles at run time and keeps what it compiled on disk."""

    def __init__(self, number: int) -> None:
        import cupy

        self.cupy = cupy
        self.device = cupy.cuda.Device(number)
        self.processors = int(self.device.attributes["MultiProcessorCount"])
        self.modules: dict[str, Any] = {}
        self.kernels: dict[tuple[str, str], Any] = {}
        self.lock = threading.RLock()  # what one thread records must not get launches of another
        self.others: dict[int, CudaDriver] = {}
        self.compiling: dict[str, threading.Lock] = {}  # one for each source
        self.making = threading.Lock()  # the other one is held by whoever waits for a step
        self.on_the_way: deque[tuple[Any, np.ndarray]] = deque()  # what is being copied there must not go before
        atexit.register(self.close)  # what is left to the end of the interpreter finds its library gone

    @cached_property
    def queues(self) -> list[Any]:
        """Made when first used: the driver then takes the device, while kernels are compiled."""
        with self._on_device():
            return [self._queue(is_patient=number in PATIENT_QUEUES) for number in range(QUEUES)]

    @cached_property
    def repeats(self) -> Any:
        """The queue of work that was recorded."""
        with self.device:
            return self._queue(is_patient=True)

    def _queue(self, *, is_patient: bool) -> Any:
        try:
            return self.cupy.cuda.Stream(non_blocking=True, priority=0 if is_patient else -1)
        except TypeError:  # a version that knows no priorities
            return self.cupy.cuda.Stream(non_blocking=True)

    def close(self) -> None:
        """Unload what was compiled."""
        self.kernels.clear()
        self.modules.clear()

    @contextmanager
    def _here(self, queue: int = 0) -> Iterator[None]:
        """For launches and copies of one thread at a time; kernels are compiled side by side."""
        with self.lock, self._on_device(), self.queues[queue]:
            yield

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        errors = (
            self.cupy.cuda.memory.OutOfMemoryError,
            self.cupy.cuda.runtime.CUDARuntimeError,
            self.cupy.cuda.driver.CUDADriverError,
            self.cupy.cuda.compiler.CompileException,
        )
        try:
            with self.device:
                yield
        except errors as error:
            raise AcceleratorError(str(error).splitlines()[0]) from error

    def put(self, array: np.ndarray) -> Any:
        with self._here():
            return self.cupy.asarray(np.ascontiguousarray(array).view(np.uint8 if array.dtype.names else array.dtype))

    def zeros(self, n_bytes: int) -> Any:
        with self._here():
            return self.cupy.zeros(n_bytes, np.uint8)

    def fill(self, there: Any, array: np.ndarray | None) -> None:
        with self._here():
            if array is None:
                there.fill(0)
            else:
                array = np.ascontiguousarray(array).view(there.dtype).reshape(there.shape)
                there.set(array)
                self.on_the_way.append((self.queues[0].record(), array))
                while self.on_the_way and self.on_the_way[0][0].done:
                    self.on_the_way.popleft()

    def pointer(self, there: Any) -> int:
        return int(there.data.ptr)

    def free_bytes(self) -> int:
        with self._on_device():
            return int(self.device.mem_info[0] + self.cupy.get_default_memory_pool().free_bytes())

    def prepare(self, source: str, name: str) -> None:
        self._kernel(source, name)

    def launch(
        self,
        source: str,
        name: str,
        *,
        blocks: int,
        threads: int,
        shared: int,
        arguments: tuple[Any, ...],
        queue: int = 0,
    ) -> None:
        kernel = self._kernel(source, name)
        with self._here(queue):
            if shared > kernel.max_dynamic_shared_size_bytes:
                kernel.max_dynamic_shared_size_bytes = shared
            kernel((blocks,), (threads,), arguments, shared_mem=shared)

    def order(self, later: int, earlier: int) -> None:
        with self.device:
            self.queues[later].wait_event(self.queues[earlier].record())

    def record(self, launches: Callable[[], None]) -> Callable[[], None]:
        queue = self.queues[0]
        with self._here():
            queue.begin_capture()
            try:
                launches()
            finally:
                graph = queue.end_capture()

        def replay() -> None:
            with self._here():
                self.repeats.wait_event(queue.record())
                graph.launch(self.repeats)
                queue.wait_event(self.repeats.record())

        return replay

    def get(self, there: Any) -> np.ndarray:
        with self._here():
            # this thread sleeps until then: asking again and again would take a core from the others
            self.queues[0].record(self.cupy.cuda.Event(block=True, disable_timing=True)).synchronize()
            array: np.ndarray = self.cupy.asnumpy(there)
            return array

    def beside(self, number: int) -> CudaDriver:
        with self.making:
            if number not in self.others:
                self.others[number] = other = copy.copy(self)  # with the same kernels
                for name in ("queues", "repeats"):
                    other.__dict__.pop(name, None)
                other.lock, other.others, other.on_the_way = threading.RLock(), {}, deque()
                assert other.queues  # they take a moment to make
            return self.others[number]

    def _kernel(self, source: str, name: str) -> Any:
        if (source, name) in self.kernels:
            return self.kernels[source, name]
        with self.compiling.setdefault(source, threading.Lock()), self._on_device():
            if (source, name) not in self.kernels:
                if source not in self.modules:
                    is_quick = source.startswith(QUICK) and self.cupy.cuda.nvrtc.getVersion() >= QUICK_SINCE
                    options = ("--std=c++17", *((QUICK_OPTION,) if is_quick else ()))
                    self.modules[source] = self.cupy.RawModule(code=source, options=options)
                self.kernels[source, name] = self.modules[source].get_function(name)
            return self.kernels[source, name]


@lru_cache(maxsize=1)
def drivers() -> tuple[Driver, ...]:
    """All accelerators of this machine; they share the work."""
    import cupy

    return tuple(CudaDriver(number) for number in range(cupy.cuda.runtime.getDeviceCount()))
