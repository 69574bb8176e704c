"""Cores and what `n_jobs` makes of them."""

from __future__ import annotations

import os

import pytest

from gmeql.fitters import threads


def test_only_cores_that_the_process_may_use_count(monkeypatch: pytest.MonkeyPatch) -> None:
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
