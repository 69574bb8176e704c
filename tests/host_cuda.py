"""The accelerator's kernel as plain C++ on the processor: the same source, a warp's lanes as a loop."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import pytest

COMPILER = next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")
_ONE = threading.Lock()
"""Kernels compiled as plain C++ have memory of their own, and count without care for others."""


BUILT = Path(__file__).parents[1] / ".pytest_cache" / "kernels"
"""What was compiled, by the source: for the other test worker, and for the next run."""
OPTIONS = ("-std=c++17", "-O1", "-shared", "-fPIC", "-w")


@lru_cache(maxsize=16)
def library(source: str) -> ctypes.CDLL:
    """A source compiled as plain C++."""
    assert COMPILER is not None
    version = subprocess.run([COMPILER, "--version"], check=True, capture_output=True, text=True).stdout
    name = hashlib.sha256("\0".join((source, version, *OPTIONS)).encode()).hexdigest()[:24]
    built = BUILT / f"{name}.so"
    if not built.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=name, dir=BUILT) as folder:
            text, half = Path(folder) / "kernel.cpp", Path(folder) / "kernel.so"
            text.write_text(source)
            subprocess.run([COMPILER, *OPTIONS, str(text), "-o", str(half)], check=True, capture_output=True)
            half.replace(built)  # whole, or not there
    return ctypes.CDLL(str(built))


class HostDriver:
    """`Driver` of `gmeql.fitters.cuda.driver`, on the processor."""

    processors = 1

    def put(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, order="C")

    def zeros(self, n_bytes: int) -> np.ndarray:
        return np.zeros(n_bytes, np.uint8)

    def fill(self, there: np.ndarray, array: np.ndarray | None) -> None:
        there[...] = 0 if array is None else np.ascontiguousarray(array).view(there.dtype).reshape(there.shape)

    def pointer(self, there: np.ndarray) -> int:
        return there.ctypes.data

    def free_bytes(self) -> int:
        return 1 << 34

    def prepare(self, source: str, name: str) -> None:
        library(source)

    def launch(
        self, source: str, name: str, *, blocks: int, threads: int, shared: int, arguments: Any, queue: int = 0
    ) -> None:
        with _ONE:
            getattr(library(source), name)(*(ctypes.c_void_p(self.pointer(array)) for array in arguments))

    def order(self, later: int, earlier: int) -> None:
        """Everything happens in order here."""

    def record(self, launches: Callable[[], None]) -> Callable[[], None]:
        return launches

    def get(self, there: np.ndarray) -> np.ndarray:
        return there.copy()

    def beside(self, number: int) -> HostDriver:
        return HostDriver()
