"""Accelerators that are not there."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from gmeql.fitters.cuda import driver


CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


def refuse() -> int:
    raise RuntimeError("no driver")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (None, "CuPy is not installed"),
        (SimpleNamespace(getDeviceCount=lambda: 0, CUDARuntimeError=RuntimeError), "no CUDA device was found"),
        (SimpleNamespace(getDeviceCount=refuse, CUDARuntimeError=RuntimeError), "does not answer (no driver)"),
        (SimpleNamespace(getDeviceCount=lambda: 2, CUDARuntimeError=RuntimeError), ""),
    ],
)
def test_why_there_is_none(monkeypatch: pytest.MonkeyPatch, module, words: str) -> None:
    monkeypatch.setitem(os.environ, CONNECTIONS, "8")
    fake = None if module is None else SimpleNamespace(cuda=SimpleNamespace(runtime=module))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    driver.why_not.cache_clear()
    try:
        assert words in driver.why_not() and (driver.why_not() == "") == (words == "")
    finally:
        driver.why_not.cache_clear()


@pytest.mark.parametrize("is_worker", [False, True])
def test_a_process_of_its_own_takes_all_queues_of_the_device_and_a_worker_few(
    monkeypatch: pytest.MonkeyPatch, is_worker: bool
) -> None:
    fake = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=lambda: 1)))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.delenv(CONNECTIONS, raising=False)
    monkeypatch.setattr(driver.multiprocessing, "parent_process", lambda: object() if is_worker else None)
    driver.why_not.cache_clear()
    assert driver.why_not() == "" and os.environ.get(CONNECTIONS) == (None if is_worker else "32")
    driver.why_not.cache_clear()


class Device(nullcontext):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.attributes = {"MultiProcessorCount": 4}


def fake_cupy(streams: list[int | None]) -> SimpleNamespace:
    """As much of CuPy as makes queues; says of each which priority it was given."""

    def stream(*, non_blocking: bool, priority: int | None = None) -> int:
        streams.append(priority)
        return len(streams)

    faults = SimpleNamespace(OutOfMemoryError=MemoryError, CUDARuntimeError=OSError, CUDADriverError=OSError,
                             CompileException=SyntaxError)  # fmt: skip
    cuda = SimpleNamespace(Device=Device, Stream=stream, memory=faults, runtime=faults, driver=faults, compiler=faults)
    return SimpleNamespace(cuda=cuda)


def test_long_work_has_queues_that_all_others_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[int | None] = []
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(streams))
    made = driver.CudaDriver(0)
    assert len(made.queues) == driver.QUEUES and made.repeats
    patient = [number in driver.PATIENT_QUEUES for number in range(driver.QUEUES)] + [True]
    assert streams == [0 if each else -1 for each in patient]


def test_queues_beside_are_made_once_and_while_somebody_waits_for_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[int | None] = []
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(streams))
    made = driver.CudaDriver(0)
    found: list[driver.CudaDriver] = []
    with made.lock:
        thread = threading.Thread(target=lambda: found.extend(made.beside(number) for number in (1, 2, 1)), daemon=True)
        thread.start()
        thread.join(10.0)
    first, second, again = found
    assert first is again and first is not second and first.lock is not made.lock is not second.lock
    assert set(first.queues).isdisjoint(second.queues) and first.kernels is made.kernels
    assert len(streams) == 2 * driver.QUEUES


def test_two_threads_that_need_one_source_compile_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, gate = list[str](), threading.Event()

    class Module:
        def __init__(self, *, code: str, options: tuple[str, ...]) -> None:
            compiled.append(code)
            gate.wait(0.2)

        def get_function(self, name: str) -> str:
            return name

    cupy = fake_cupy([])
    cupy.RawModule = Module
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    made = driver.CudaDriver(0)
    names = ("a", "b", "a", "c")
    threads = [threading.Thread(target=made.beside(1).prepare, args=("source", name), daemon=True) for name in names]
    threads += [threading.Thread(target=made.prepare, args=("other", "a"), daemon=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(compiled) == ["other", "source"] and len(made.kernels) == 4
