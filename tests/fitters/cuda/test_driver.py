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
