"""Who carries: threads by default, else the active joblib backend; real processes give the result of threads."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from concurrent.futures import BrokenExecutor, CancelledError
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.formula.registration import register_operator, unregister_operator
from gmeql.search.workers import worker
from gmeql.search.workers.backends import DaskThreads, LokyProcesses, active_backend


def test_threads_are_the_default() -> None:
    assert active_backend(2) is None
    for backend in ("threading", "sequential"):
        with joblib.parallel_config(backend):
            assert active_backend(2) is None
    with joblib.parallel_config(n_jobs=3):  # a number of jobs is not a backend
        assert active_backend(None) is None


def n_workers(n_jobs: int | None) -> int:
    active = active_backend(n_jobs)
    assert active is not None and isinstance(active[0], LokyProcesses)
    return active[1]


@pytest.mark.parametrize("name", ["loky", "multiprocessing"])
def test_how_many_workers(name: str) -> None:
    with joblib.parallel_config(name):
        assert active_backend(1) is None
        assert n_workers(8) == 8
    with joblib.parallel_config(name, n_jobs=3):
        assert n_workers(None) == 3
        assert n_workers(2) == 2


def _inside() -> bool:
    return active_backend(4) is None


@pytest.mark.slow
def test_a_fit_inside_a_worker_stays_there() -> None:
    with joblib.parallel_config("loky"):
        assert joblib.Parallel(n_jobs=2)(joblib.delayed(_inside)() for _ in range(2)) == [True, True]


class BrokenExecutorSlot:
    """An executor whose process died at rest, or has not started."""

    def submit(self, *args: Any) -> Any:
        raise BrokenExecutor("gone")


def test_a_process_that_died_at_rest_is_a_death_and_not_an_error() -> None:
    backend = LokyProcesses()
    error = backend.submit(BrokenExecutorSlot(), abs, -1).exception()
    assert error is not None and backend.is_death(error) and not backend.is_death(ValueError())
    assert not backend.is_gone(BrokenExecutorSlot())  # not yet started is not gone


def _dies_in_the_middle_of_an_answer() -> None:
    frame = sys._getframe()
    while "result_queue" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    frame.f_locals["result_queue"]._writer._send(struct.pack("!i", 1000) + b"the first of these")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of messages break by themselves")
def test_nobody_waits_for_the_rest_of_an_answer() -> None:
    """Python ended its work and hung: it joins the thread that reads answers."""
    backend = LokyProcesses()
    slot = backend.open_slot()
    future = backend.submit(slot, _dies_in_the_middle_of_an_answer)
    reader, (process,) = slot._executor_manager_thread, slot._processes.values()
    process.join(60)
    assert backend.is_gone(slot) and reader.is_alive()
    backend.close_slot(slot, "a search", busy=True)
    reader.join(60)
    assert not reader.is_alive()
    assert backend.is_death(future.exception(timeout=60))


class Task:
    """A result of a Dask cluster that is there at once, or an error."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.cancelled = False

    def result(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def cancel(self) -> None:
        self.cancelled = True


class Client:
    """As much of a Dask client as is used: threads of workers, and work tied to one of them."""

    def __init__(self, **threads: int) -> None:
        self.threads = threads
        self.calls: list[tuple[Any, ...]] = []
        self.error: BaseException | None = None

    def nthreads(self) -> dict[str, int]:
        return self.threads

    def submit(self, function: Any, *args: Any, workers: list[str], allow_other_workers: bool, pure: bool) -> Task:
        assert not allow_other_workers and not pure
        self.calls.append((function, *args, workers[0]))
        return Task(function(*args) if self.error is None else self.error)


def test_dask_gives_out_each_thread_once_machines_in_turn() -> None:
    backend = DaskThreads(Client(a=2, b=1))
    assert backend.open_slot() is None  # nobody has looked yet
    backend.refresh()
    slots = [backend.open_slot() for _ in range(4)]
    assert [(s.address, s.thread) for s in slots if s is not None] == [("a", 0), ("b", 0), ("a", 1)]
    assert slots[3] is None
    backend.close_slot(slots[1], "none", busy=True)
    assert backend.open_slot() == slots[1]


def test_dask_slots_whose_address_left_are_gone() -> None:
    client = Client(a=1)
    backend = DaskThreads(client)
    backend.refresh()
    slot = backend.open_slot()
    assert slot is not None and not backend.is_gone(slot)
    client.threads = {}
    backend.refresh()
    assert backend.is_gone(slot)


def test_dask_carries_answers_and_errors_over() -> None:
    client = Client(a=1)
    backend = DaskThreads(client)
    backend.refresh()
    slot = backend.open_slot()
    assert backend.submit(slot, abs, -3).result(timeout=10) == 3
    client.error = CancelledError()
    with pytest.raises(CancelledError):
        backend.submit(slot, abs, -3).result(timeout=10)
    client.error = None
    backend.close_slot(slot, "a search", busy=False)  # one that rests also lets go of the search's data
    assert client.calls[-1] == (worker.forget, "a search", "a")
    assert slot.futures[0].cancelled


def fitted(n_candidates: int, **options: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (80, 2))
    y = np.sin(3 * X[:, 0]) / (1 + X[:, 1] ** 2) + 0.3 * rng.standard_normal(80)
    model = GMEQLRegressor(max_candidates=n_candidates, max_time=None, random_state=0, n_jobs=2, **options).fit(X, y)
    return [(m.expression.exact(), m.loss) for m in model.front_], model.candidates_, model.stop_reason_


PROGRAM = Path(__file__).parents[3] / "benchmarks" / "cluster_kills.py"


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "kills"), [("loky", 3), ("dask", 3), ("ray", 3)])
def test_fits_survive_the_death_of_a_worker(backend: str, kills: int) -> None:
    """A real cluster, a worker killed by SIGKILL in the middle of its assignment: the front is that of threads."""
    if backend != "loky":
        pytest.importorskip({"dask": "distributed", "ray": "ray"}[backend])
    command = [sys.executable, str(PROGRAM), "--backend", backend, "--kills", str(kills), "--candidates", "8000"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert f"{kills} of {kills} kills survived" in answer.stdout


@pytest.mark.slow
def test_operators_of_ones_own_travel() -> None:
    register_operator("bump", lambda xp, x: xp.exp(-x * x), derivative=lambda xp, x: -2 * x * xp.exp(-x * x))
    try:
        options = dict(functions=["+", "*", "bump"])
        on_threads = fitted(700, **options)
        with joblib.parallel_config("loky"):
            assert fitted(700, **options) == on_threads
    finally:
        unregister_operator("bump")
