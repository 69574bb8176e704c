"""Cores and threads: how many there are, how many a search may use, and the pools of threads."""

from __future__ import annotations

import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux says how much of the processors a container may use: microseconds of each period, or "max"."""


def available_cores() -> int:
    """Cores this process may use: those of a container are often fewer than it sees."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(seen, _allowed())))


def _allowed() -> float:
    """Cores that the container's limit is worth; infinite without one."""
    try:
        used, period = CPU_MAX.read_text(encoding="ascii").split()
        return math.inf if used == "max" else float(used) / float(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def threads_for(n_jobs: int | None) -> int:
    """How many threads scikit-learn's `n_jobs` means: None and -1 are all cores, -2 all but one, and so on."""
    if n_jobs is None:
        return available_cores()
    return max(1, n_jobs if n_jobs > 0 else available_cores() + 1 + n_jobs)


@lru_cache(maxsize=8)
def thread_pool(n_threads: int) -> ThreadPoolExecutor:
    """The process's pool of so many threads."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="gmeql-fit")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Linear algebra in one thread, inside a `with`: its matrices are small here, and one thread always rounds alike."""
    return _controller(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Limits the libraries of linear algebra that are loaded. To look for them takes milliseconds: they are looked for anew
    where other modules have come, which may have brought one."""
    import scipy.linalg  # noqa: F401 - has a library of its own, which must not come later
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
