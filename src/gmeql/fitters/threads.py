"""Cores and threads: how many there are, how many a search may use, and the pools of threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_for(n_jobs: int | None) -> int:
    """How many threads scikit-learn's `n_jobs` means: None and -1 are all cores, -2 all but one, and so on."""
    if n_jobs is None:
        return available_cores()
    return max(1, n_jobs if n_jobs > 0 else available_cores() + 1 + n_jobs)


@lru_cache(maxsize=16)
def thread_pool(n_threads: int) -> ThreadPoolExecutor:
    """The process's pool of so many threads."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="gmeql-fit")
