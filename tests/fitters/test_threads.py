"""Cores and what `n_jobs` makes of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gmeql.fitters import threads


def test_only_cores_that_the_process_may_use_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(threads, "CPU_MAX", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert threads.available_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert threads.available_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.available_cores() == 1


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 6), (-1, 6), (-2, 5), (-6, 1), (-60, 1), (1, 1), (9, 9)])
def test_n_jobs_as_scikit_learn_reads_it(n_jobs: int | None, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available_cores", lambda: 6)
    assert threads.threads_for(n_jobs) == expected


def test_a_pool_is_made_once() -> None:
    assert threads.thread_pool(2) is threads.thread_pool(2)
    assert list(threads.thread_pool(2).map(abs, [-1, -2])) == [1, 2]


@pytest.mark.parametrize(
    ("text", "cores"),
    [("200000 100000", 2), ("150000 100000", 2), ("1000 100000", 1), ("max 100000", 8), ("", 8), ("9 0", 8)],
)
def test_a_container_may_use_fewer_cores_than_it_sees(
    text: str, cores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(threads, "CPU_MAX", tmp_path / "cpu.max")
    assert threads.available_cores() == 8
    threads.CPU_MAX.write_text(text)
    assert threads.available_cores() == cores


def test_linear_algebra_has_one_thread_inside_and_as_many_as_before_outside() -> None:
    def counts() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = counts()
        for _ in range(2):  # the libraries are looked for once
            with threads.one_blas_thread():
                assert counts() == [1] * len(before)
            assert counts() == before and set(before) <= {1, 2}
