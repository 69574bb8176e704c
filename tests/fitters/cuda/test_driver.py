"""Accelerators that are not there."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gmeql.fitters.cuda import driver


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
    fake = None if module is None else SimpleNamespace(cuda=SimpleNamespace(runtime=module))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    driver.why_not.cache_clear()
    try:
        assert words in driver.why_not() and (driver.why_not() == "") == (words == "")
    finally:
        driver.why_not.cache_clear()


class Device:
    """Stands for CuPy's."""

    attributes = {"MultiProcessorCount": 2}  # noqa: RUF012

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def test_a_driver_beside_another_has_queues_of_its_own_and_the_same_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(Device=Device, Stream=lambda non_blocking: object())
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    one = driver.CudaDriver(1)
    queues = one.queues
    other = one.beside()
    assert other.device is one.device and other.processors == 2
    assert other.kernels is one.kernels and other.modules is one.modules
    assert not set(map(id, queues)) & set(map(id, other.queues)) and one.queues is queues
    assert other.lock is not one.lock
