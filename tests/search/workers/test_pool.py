"""Islands on workers: the same result wherever they ran, data sent once, a dead worker costs its assignment."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import pytest

from gmeql.search.islands.tried import TriedStructures
from gmeql.search.config import SearchConfig
from gmeql.search.events import Progress
from gmeql.search.search import Search
from gmeql.search.workers import pool, worker
from gmeql.search.workers.backends import Backend
from gmeql.search.workers.pool import WorkerError, find_pool
from gmeql.search.workers.worker import Message

SMALL = dict(
    islands_per_generation=5, stage_ages=(2, 4, 7), table_bits=14, max_candidates=2500, n_jobs=2, max_complexity=14
)


def waves(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Nothing exact is found in a small budget here."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (n, 2))
    return X, np.sin(3 * X[:, 0]) / (1 + X[:, 1] ** 2) + 0.3 * rng.standard_normal(n)


def run(made: Search) -> Progress:
    for progress in made.run():
        pass
    return progress


def end(**options: Any) -> tuple[Any, ...]:
    """All that a search of some noisy waves ends with, but for the time it took."""
    made = Search(*waves(), config=SearchConfig(**(SMALL | options)), seed=4)
    final = run(made)
    front = [(member.expression.exact(), member.loss, member.complexity) for member in final.front]
    return front, final.candidates, final.reason, final.islands, made.state()["tried"]["keys"].tolist()


class Death(Exception):
    pass


class Pretended(Backend):
    """Workers that answer at once, in this process; what they get and give goes through pickle, read-only."""

    name = "pretended"

    def __init__(self, deaths: tuple[int, ...] = (), forgetful: tuple[int, ...] = (), silent: bool = False) -> None:
        self.deaths, self.forgetful, self.silent = deaths, forgetful, silent
        self.messages: list[tuple[int, Message]] = []
        self.slots = 0
        self.closed: list[int] = []

    def open_slot(self) -> int:
        self.slots += 1
        return self.slots

    def submit(self, slot: int, function: Any, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(args[0], Message):
            self.messages.append((slot, args[0]))
            if self.silent:
                return future
            if len(self.messages) in self.deaths:
                future.set_exception(Death())
                return future
            if len(self.messages) in self.forgetful:
                worker.forget(args[0].search)
        future.set_result(frozen(function(*frozen(args))))
        return future

    def is_death(self, error: BaseException) -> bool:
        return isinstance(error, Death)

    def close_slot(self, slot: int, search: str, *, busy: bool) -> None:
        self.closed.append(slot)
        worker.forget(search)


def frozen(value: Any) -> Any:
    """A copy with arrays that may not be written, as from Ray's object store."""
    buffers: list[Any] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(b) for b in buffers])  # noqa: S301  our own bytes


Use = Callable[[Backend], None]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Lets searches work with three workers of a given backend."""
    return lambda backend: monkeypatch.setattr(pool, "active_backend", lambda n_jobs: (backend, 3))


@pytest.fixture(scope="module")
def expected() -> tuple[Any, ...]:
    return end()


def test_workers_end_where_threads_do(use: Use, expected: tuple[Any, ...]) -> None:
    backend = Pretended()
    use(backend)
    assert end() == expected
    assert backend.slots == 3 == len(set(backend.closed)) and not worker._HELD


def test_with_an_exact_formula_too(use: Use) -> None:
    X = np.random.default_rng(1).uniform(-2.0, 3.0, (60, 2))
    y = 1.5 * X[:, 0] ** 2 - 0.5 * X[:, 1]

    def found() -> tuple[Any, ...]:
        final = run(Search(X, y, config=SearchConfig(**SMALL), seed=1))
        return str(final.best.expression), final.candidates, final.reason

    on_threads = found()
    assert on_threads[2] == "exact"
    use(Pretended())
    assert found() == on_threads


def test_dead_workers_cost_their_assignment_and_nothing_else(use: Use, expected: tuple[Any, ...]) -> None:
    backend = Pretended(deaths=(2, 3, 5, 7))
    use(backend)
    assert end() == expected
    assert backend.slots == 3 + 4
    islands = [message.assignment.island for _, message in backend.messages]
    assignments = Counter((island["number"], island["age"]) for island in islands)
    assert sum(assignments.values()) - len(assignments) == 4


def test_a_process_that_was_replaced_unseen_is_sent_everything_again(use: Use, expected: tuple[Any, ...]) -> None:
    backend = Pretended(forgetful=(5, 9))
    use(backend)
    assert end() == expected
    assert sum(message.whole is not None for _, message in backend.messages) == 3 + 2


def test_data_are_sent_once_to_each_worker(use: Use) -> None:
    backend = Pretended()
    use(backend)
    end()
    sent = Counter((slot, key) for slot, message in backend.messages for key in message.arrays)
    assert max(sent.values()) == 1
    assert sum(message.whole is not None for _, message in backend.messages) == 3
    news = {slot: 0 for slot, _ in backend.messages}
    for slot, message in backend.messages:
        news[slot] += sum(len(part) for part in message.news)
    assert len(backend.messages) > 3 and max(news.values()) < 4500  # each candidate's fingerprint once


def test_the_budget_bounds_what_is_assigned_in_vain(use: Use) -> None:
    backend = Pretended()
    use(backend)
    _, candidates, *_ = end(max_candidates=1000, stage_ages=(40,))
    assigned = sum(message.assignment.n_steps for _, message in backend.messages) * 128
    assert candidates <= assigned <= candidates + 5 * 128


def test_an_assignment_that_kills_whoever_takes_it_ends_the_search(use: Use) -> None:
    backend = Pretended(deaths=tuple(range(1, 100)))
    use(backend)
    with pytest.raises(WorkerError, match="pretended: 6 workers died over the same assignment"):
        end()
    assert len(backend.closed) == backend.slots


def test_errors_of_the_work_itself_are_raised(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Pretended())
    monkeypatch.setattr(worker, "advance", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        end()


def test_workers_of_another_version_are_refused(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Pretended())
    monkeypatch.setattr(pool, "__version__", "0.0.0")
    monkeypatch.setattr(pool, "start", lambda operators: "9.9.9")
    with pytest.raises(WorkerError, match=r"a worker runs gmeql 9.9.9, this process 0.0.0"):
        end()


def test_max_time_does_not_wait_for_workers(use: Use) -> None:
    use(Pretended(silent=True))
    _, candidates, reason, *_ = end(max_candidates=None, max_time=0.5)
    assert reason == "max_time" and candidates == 0


def test_a_state_taken_with_workers_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = waves()
    with monkeypatch.context() as patch:
        patch.setattr(pool, "active_backend", lambda n_jobs: (Pretended(), 3))
        first = Search(X, y, config=SearchConfig(**SMALL), seed=4)
        events = first.run()
        for _ in range(5):
            next(events)
        events.close()
    plain = Search(X, y, config=SearchConfig(**SMALL), seed=4)
    events = plain.run()
    for _ in range(5):
        next(events)
    events.close()
    resumed = [run(Search.from_state(made.state(), X, y)) for made in (first, plain)]
    assert resumed[0].front == resumed[1].front and resumed[0].candidates == resumed[1].candidates


def test_no_more_workers_than_can_be_kept_busy() -> None:
    with joblib.parallel_config("loky"):
        for asked, expected in ((8, 8), (80, 14)):
            found = find_pool(asked, TriedStructures(4), 14)
            assert found is not None and found.n_workers == expected
        assert find_pool(1, TriedStructures(4), 14) is None
    assert find_pool(2, TriedStructures(4), 14) is None


class Full(Pretended):
    """A cluster without a free place."""

    def open_slot(self) -> None:
        return None


def test_a_cluster_without_a_free_place_is_given_up(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL", replace(pool.POOL, start_seconds=0.0, poll_seconds=0.0))
    use(Full())
    with pytest.raises(WorkerError, match="pretended: no worker was ready within 0 s; start some"):
        end()


class Stillborn(Pretended):
    """Workers that die while they start."""

    def submit(self, slot: int, function: Any, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(Death())
        return future


def test_workers_that_die_while_they_start_end_the_search(use: Use) -> None:
    backend = Stillborn()
    use(backend)
    with pytest.raises(WorkerError, match="pretended: 6 workers died while they started"):
        end()
    assert len(backend.closed) == backend.slots


class Vanishing(Pretended):
    """A worker that is no more, though nothing says so but its backend."""

    def submit(self, slot: int, function: Any, *args: Any) -> Future[Any]:
        self.silent = slot == 1
        return super().submit(slot, function, *args)

    def is_gone(self, slot: int) -> bool:
        return slot == 1


def test_a_worker_that_vanished_is_replaced(
    use: Use, expected: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pool, "POOL", replace(pool.POOL, poll_seconds=0.0))
    backend = Vanishing()
    use(backend)
    assert end() == expected
    assert backend.slots == 4
    assert "pretended: a worker died; its assignment goes to another" in caplog.messages


def test_old_arrays_leave_first(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL", replace(pool.POOL, kept_arrays=4))
    backend = Pretended()
    use(backend)
    end()
    kept: dict[int, set[str]] = {}
    for slot, message in backend.messages:
        kept[slot] = (set() if message.whole is not None else kept[slot]) | set(message.arrays)
        kept[slot] -= set(message.forget)
        assignment = message.assignment
        assert {assignment.inputs, assignment.target, assignment.weights} <= kept[slot] and len(kept[slot]) <= 4
    assert any(message.forget for _, message in backend.messages)
