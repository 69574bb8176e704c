"""Islands on other processes: the same result wherever they ran, data sent once, a dead worker costs its piece."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.formula.operators import register_operator, unregister_operator
from gmeql.search import search, workers
from gmeql.search.search import Progress, Search, SearchConfig
from gmeql.search.workers import Crew, Message, Staff, WorkerError, find_crew

SMALL = dict(islands_per_generation=5, rungs=(2, 4, 7), table_bits=14, max_candidates=4000, n_jobs=2)


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
    return front, final.candidates, final.reason, final.islands, made.known.keys.tolist()


class Death(Exception):
    pass


class Pretended(Staff):
    """Workers that answer at once, in this process; what they get and give goes through pickle, read-only."""

    name = "pretended"

    def __init__(self, deaths: tuple[int, ...] = (), forgetful: tuple[int, ...] = (), silent: bool = False) -> None:
        self.deaths, self.forgetful, self.silent = deaths, forgetful, silent
        self.messages: list[tuple[int, Message]] = []
        self.seats = 0
        self.dismissed: list[int] = []

    def hire(self) -> int:
        self.seats += 1
        return self.seats

    def submit(self, seat: int, function: Any, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(args[0], Message):
            self.messages.append((seat, args[0]))
            if self.silent:
                return future
            if len(self.messages) in self.deaths:
                future.set_exception(Death())
                return future
            if len(self.messages) in self.forgetful:
                workers.leave(args[0].site)
        future.set_result(frozen(function(*frozen(args))))
        return future

    def is_death(self, error: BaseException) -> bool:
        return isinstance(error, Death)

    def dismiss(self, seat: int, site: str, *, busy: bool) -> None:
        self.dismissed.append(seat)
        workers.leave(site)


def frozen(value: Any) -> Any:
    """A copy with arrays that may not be written, as from Ray's object store."""
    buffers: list[Any] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(b) for b in buffers])  # noqa: S301  our own bytes


@pytest.fixture
def hired(monkeypatch: pytest.MonkeyPatch):
    """Lets searches work with a given staff."""

    def hire(staff: Staff, n: int = 3) -> None:
        monkeypatch.setattr(search, "find_crew", lambda n_jobs, known, most: Crew(staff, n, known))

    return hire


@pytest.fixture(scope="module")
def expected() -> tuple[Any, ...]:
    return end()


def test_workers_end_where_threads_do(hired: Any, expected: tuple[Any, ...]) -> None:
    staff = Pretended()
    hired(staff)
    assert end() == expected
    assert staff.seats == 3 == len(set(staff.dismissed)) and not workers._SITES


def test_with_an_exact_formula_too(hired: Any) -> None:
    X = np.random.default_rng(1).uniform(-2.0, 3.0, (60, 2))
    y = 1.5 * X[:, 0] ** 2 - 0.5 * X[:, 1]

    def found() -> tuple[Any, ...]:
        final = run(Search(X, y, config=SearchConfig(**SMALL), seed=1))
        return str(final.best.expression), final.candidates, final.reason

    on_threads = found()
    assert on_threads[2] == "exact"
    hired(Pretended())
    assert found() == on_threads


def test_dead_workers_cost_their_piece_and_nothing_else(hired: Any, expected: tuple[Any, ...]) -> None:
    staff = Pretended(deaths=(2, 3, 5, 7))
    hired(staff)
    assert end() == expected
    assert staff.seats == 3 + 4
    pieces = Counter((message.piece.island["number"], message.piece.island["age"]) for _, message in staff.messages)
    assert sum(pieces.values()) - len(pieces) == 4


def test_a_process_that_was_replaced_unseen_is_sent_everything_again(hired: Any, expected: tuple[Any, ...]) -> None:
    staff = Pretended(forgetful=(5, 9))
    hired(staff)
    assert end() == expected
    assert sum(message.whole is not None for _, message in staff.messages) == 3 + 2


def test_data_are_sent_once_to_each_worker(hired: Any) -> None:
    staff = Pretended()
    hired(staff)
    end()
    sent = Counter((seat, key) for seat, message in staff.messages for key in message.arrays)
    assert max(sent.values()) == 1
    assert sum(message.whole is not None for _, message in staff.messages) == 3
    news = {seat: 0 for seat, _ in staff.messages}
    for seat, message in staff.messages:
        news[seat] += sum(len(part) for part in message.news)
    assert len(staff.messages) > 3 and max(news.values()) < 4500  # each candidate's fingerprint once


def test_the_budget_bounds_what_is_ordered_in_vain(hired: Any) -> None:
    staff = Pretended()
    hired(staff)
    _, candidates, *_ = end(max_candidates=1000, rungs=(40,))
    ordered = sum(message.piece.steps for _, message in staff.messages) * 128
    assert candidates <= ordered <= candidates + 5 * 128


def test_a_piece_that_kills_whoever_takes_it_ends_the_search(hired: Any) -> None:
    staff = Pretended(deaths=tuple(range(1, 100)))
    hired(staff)
    with pytest.raises(WorkerError, match="pretended: 6 workers died over the same piece"):
        end()
    assert len(staff.dismissed) == staff.seats


def test_errors_of_the_work_itself_are_raised(hired: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hired(Pretended())
    monkeypatch.setattr(workers, "advance", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        end()


def test_workers_of_another_version_are_refused(hired: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hired(Pretended())
    monkeypatch.setattr("gmeql.__version__", "0.0.0")
    monkeypatch.setattr(workers, "greet", lambda operators: "9.9.9")
    with pytest.raises(WorkerError, match=r"a worker runs gmeql 9.9.9, this process 0.0.0"):
        end()


def test_max_time_does_not_wait_for_workers(hired: Any) -> None:
    hired(Pretended(silent=True))
    _, candidates, reason, *_ = end(max_candidates=None, max_time=0.5)
    assert reason == "max_time" and candidates == 0


def test_a_state_taken_with_workers_goes_on_without(hired: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = waves()
    with monkeypatch.context() as patch:
        patch.setattr(search, "find_crew", lambda n_jobs, known, most: Crew(Pretended(), 3, known))
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


# --- who carries ------------------------------------------------------------------------------------------------------------


def test_threads_are_the_default() -> None:
    known = workers.Tries(4)
    assert find_crew(2, known, 14) is None
    for backend in ("threading", "sequential"):
        with joblib.parallel_config(backend):
            assert find_crew(2, known, 14) is None
    with joblib.parallel_config(n_jobs=3):  # a number of jobs is not a backend
        assert find_crew(None, known, 14) is None


def test_how_many_workers() -> None:
    known = workers.Tries(4)
    with joblib.parallel_config("loky"):
        assert find_crew(1, known, 14) is None
        assert find_crew(8, known, 14).n_workers == 8
        assert find_crew(80, known, 14).n_workers == 14
    with joblib.parallel_config("loky", n_jobs=3):
        assert find_crew(None, known, 14).n_workers == 3
        assert find_crew(2, known, 14).n_workers == 2


def _inside() -> bool:
    return find_crew(4, workers.Tries(4), 14) is None


@pytest.mark.slow
def test_a_fit_inside_a_worker_stays_there() -> None:
    with joblib.parallel_config("loky"):
        assert joblib.Parallel(n_jobs=2)(joblib.delayed(_inside)() for _ in range(2)) == [True, True]


def fitted(n_candidates: int, **options: Any) -> tuple[Any, ...]:
    X, y = waves()
    model = GMEQLRegressor(max_candidates=n_candidates, max_time=None, random_state=0, n_jobs=2, **options).fit(X, y)
    return [(m.expression.exact(), m.loss) for m in model.front_], model.candidates_, model.stop_reason_


PROGRAM = Path(__file__).parents[2] / "benchmarks" / "cluster_kills.py"


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "kills"), [("loky", 3), ("dask", 3), ("ray", 3)])
def test_fits_survive_the_death_of_a_worker(backend: str, kills: int) -> None:
    """A real cluster, a worker killed by SIGKILL in the middle of its piece: the front is that of threads."""
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
