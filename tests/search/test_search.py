"""The fitted search: one seed one result, exact resume, hard data, budgets."""

from __future__ import annotations

import json
import math
import warnings
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest

from gmeql.search.island import Island
from gmeql.search.config import SearchConfig
from gmeql.search.events import Member, Progress
from gmeql.search.search import Search
from gmeql.search.steps import advance

SMALL = dict(islands_per_generation=4, table_bits=14, n_jobs=1)
"""A search small enough for tests."""


def waves(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Nothing exact is found in a small budget here."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3.0, (n, 2))
    return X, np.sin(3 * X[:, 0]) / (1 + X[:, 1] ** 2) + 0.3 * rng.standard_normal(n)


def parabola(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).uniform(-2.0, 3.0, (n, 2))
    return X, 1.5 * X[:, 0] ** 2 - 0.5 * X[:, 1]


def run(search: Search) -> Progress:
    for progress in search.run():
        check_front(progress.front)
    assert progress.done and progress.reason
    return progress


def check_front(front: tuple[Member, ...]) -> None:
    """Ever more complex, ever better, the constant first; losses are finite."""
    assert front[0].complexity == 1
    assert all(a.complexity < b.complexity and a.loss > b.loss for a, b in pairwise(front))
    assert all(math.isfinite(member.loss) for member in front)


def texts(progress: Progress) -> list[tuple[str, float, int]]:
    return [(m.expression.exact(), m.loss, m.complexity) for m in progress.front]


def test_losses_are_those_of_the_formulas() -> None:
    X, y = waves()
    weights = np.random.default_rng(2).uniform(0.1, 2.0, len(y))
    final = run(Search(X, y, sample_weight=weights, config=SearchConfig(max_candidates=1500, **SMALL)))
    for member in final.front:
        expected = math.sqrt(np.average((member.expression(X) - y) ** 2, weights=weights))
        assert member.loss == pytest.approx(expected, rel=1e-9)
        assert member.complexity == member.expression.complexity


def test_an_exact_formula_ends_the_search() -> None:
    X, y = parabola()
    final = run(Search(X, y, names=("a", "b"), config=SearchConfig(max_candidates=200_000, **SMALL)))
    assert final.reason == "exact" and final.candidates < 50_000
    assert str(final.best.expression) == "1.5*a**2 - 0.5*b"


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    X, y = waves()
    ends = []
    for n_jobs in (1, 2):
        config = SearchConfig(**(SMALL | dict(n_jobs=n_jobs)), max_candidates=3000)
        ends.append(run(Search(X, y, config=config, seed=5)))
    assert texts(ends[0]) == texts(ends[1]) and ends[0].candidates == ends[1].candidates


def test_other_seeds_search_elsewhere() -> None:
    X, y = waves()
    ends = [run(Search(X, y, config=SearchConfig(max_candidates=1500, **SMALL), seed=seed)) for seed in (0, 1, 0)]
    assert texts(ends[0]) == texts(ends[2]) != texts(ends[1])


def stored(value):
    """A state through JSON, as a file would keep it: arrays as lists with their type."""

    def plain(item):
        if isinstance(item, np.ndarray):
            return {"array": item.tolist(), "dtype": str(item.dtype), "shape": list(item.shape)}
        return (
            {k: plain(v) for k, v in item.items()}
            if isinstance(item, dict)
            else ([plain(v) for v in item] if isinstance(item, list | tuple) else item)
        )

    def back(item):
        if isinstance(item, dict) and "array" in item:
            return np.array(item["array"], item["dtype"]).reshape(item["shape"])
        return (
            {k: back(v) for k, v in item.items()}
            if isinstance(item, dict)
            else ([back(v) for v in item] if isinstance(item, list) else item)
        )

    return back(json.loads(json.dumps(plain(value))))


@lru_cache
def uninterrupted(config: SearchConfig) -> Progress:
    return run(Search(*waves(), config=config, seed=3))


@pytest.mark.parametrize(("rounds", "loss"), [(1, "squared"), (2, "squared"), (5, "squared"), (5, "huber")])
def test_resumed_search_ends_as_the_uninterrupted_one(rounds: int, loss: str) -> None:
    """Stopped within the first rung, between two, and in later generations that see more rows."""
    X, y = waves()
    config = SearchConfig(max_candidates=3500, stage_ages=(2, 4), search_rows=32, loss=loss, **SMALL)
    whole = uninterrupted(config)
    first = Search(X, y, config=config, seed=3)
    events = first.run()
    for _ in range(rounds):
        progress = next(events)
    events.close()
    assert not progress.done
    second = Search.from_state(stored(first.state()), X, y)
    assert second.candidates == first.candidates and second.front == first.front
    resumed = run(second)
    assert texts(resumed) == texts(whole) and resumed.candidates == whole.candidates


def test_a_finished_search_can_be_given_more() -> None:
    X, y = waves()
    config = SearchConfig(max_candidates=600, **SMALL)
    search = Search(X, y, config=config, seed=3)
    run(search)
    longer = SearchConfig(max_candidates=1500, **SMALL)
    state = search.state()
    again = Search.from_state(state, X, y, config=longer)
    final = run(again)
    assert final.reason == "max_candidates" and final.candidates >= 1500 > search.candidates
    assert final.front[-1].loss <= search.front[-1].loss


def test_unknown_state_versions_are_refused() -> None:
    X, y = parabola()
    state = Search(X, y, config=SearchConfig(**SMALL)).state() | {"version": 99}
    with pytest.raises(ValueError, match="version 99"):
        Search.from_state(state, X, y)


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_max_candidates_is_overrun_by_less_than_a_round() -> None:
    X, y = waves()
    config = SearchConfig(max_candidates=1000, **SMALL)
    final = run(Search(X, y, config=config))
    assert final.reason == "max_candidates"
    assert 1000 <= final.candidates < 1000 + config.islands * config.island.candidates_per_step


def test_max_time_is_read_off_the_clock_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock of our own: every look at it takes 40 ms. The search ends in the round in which the time is spent."""
    import gmeql.search.search as module

    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.04
        return now

    monkeypatch.setattr(module.time, "perf_counter", clock)
    X, y = waves()
    events = list(Search(X, y, config=SearchConfig(max_time=2.0, **SMALL)).run())
    final = events[-1]
    assert final.reason == "max_time" and len(events) > 2
    assert all(not event.done and event.elapsed < 2.0 for event in events[:-1])
    assert final.elapsed < 3.0


def test_patience_ends_a_search_without_gain() -> None:
    X, y = waves()
    final = run(Search(X, y, config=SearchConfig(patience=700, max_candidates=100_000, **SMALL)))
    assert final.reason == "no gain" and final.candidates < 100_000


def test_a_small_network_is_exhausted() -> None:
    X, y = waves()
    network = [["id", "square"], ["add"]]
    final = run(
        Search(X, y, config=SearchConfig(architecture=network, max_candidates=100_000, max_idle_rounds=10, **SMALL))
    )
    assert final.reason == "exhausted" and final.candidates < 2000


def test_closing_the_iterator_is_a_clean_stop() -> None:
    X, y = waves()
    search = Search(X, y, config=SearchConfig(max_candidates=5000, **SMALL))
    events = search.run()
    next(events)
    events.close()
    check_front(search.front)
    final = search.finish("stopped")
    assert final.done and final.reason == "stopped"


# --- hard data --------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_data_on_which_most_candidates_are_not_finite(no_warnings: None) -> None:
    """Zeros, both signs and huge values: logarithms, roots, quotients and exponentials all fail on some rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) * [1e5, 1e3, 1e6]
    X[::4] = 0.0
    y = 2e-5 * X[:, 0] + 3.0
    config = SearchConfig(functions=("add", "div", "log", "sqrt", "exp", "asin", "inv"), max_candidates=3000, **SMALL)
    final = run(Search(X, y, config=config))
    assert np.isfinite(final.best.expression(X)).all()
    assert final.best.loss < 0.1 * y.std()


def test_constant_target(no_warnings: None) -> None:
    X = np.random.default_rng(0).uniform(0, 1, (20, 2))
    for value in (4.0, 0.0, -3e8):
        final = run(Search(X, np.full(20, value), config=SearchConfig(max_candidates=300, **SMALL)))
        assert final.best.complexity == 1 and final.best.expression(X).tolist() == [value] * 20


def test_one_row(no_warnings: None) -> None:
    final = run(Search(np.array([[2.0, 3.0]]), np.array([7.0]), config=SearchConfig(max_candidates=300, **SMALL)))
    assert final.best.expression(np.array([[2.0, 3.0]]))[0] == pytest.approx(7.0)


def test_one_column(no_warnings: None) -> None:
    X = np.linspace(-1, 2, 40)[:, None]
    final = run(Search(X, 3 * X[:, 0] ** 2 + 1, names=("t",), config=SearchConfig(max_candidates=20_000, **SMALL)))
    assert str(final.best.expression) == "3*t**2 + 1"


def test_fifty_columns_of_which_two_matter(no_warnings: None) -> None:
    X = np.random.default_rng(0).uniform(0.5, 2.0, (200, 50))
    y = 2 * X[:, 17] * X[:, 41]
    final = run(Search(X, y, config=SearchConfig(max_candidates=40_000, **SMALL)))
    assert final.reason == "exact" and set(final.best.expression.variables) == {17, 41}


def test_a_column_that_never_changes(no_warnings: None) -> None:
    X = np.column_stack([np.linspace(1, 2, 30), np.full(30, 5.0), np.zeros(30)])
    final = run(Search(X, 2 * X[:, 0], config=SearchConfig(max_candidates=3000, **SMALL)))
    assert final.best.loss < 1e-9


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_any_magnitude(scale: float, no_warnings: None) -> None:
    X, y = parabola()
    final = run(Search(X, scale * y, config=SearchConfig(max_candidates=100_000, **SMALL)))
    assert final.reason == "exact"
    np.testing.assert_allclose(final.best.expression(X), scale * y, rtol=1e-8, atol=1e-9 * scale)


def test_more_rows_than_the_search_looks_at() -> None:
    X = np.random.default_rng(0).uniform(0, 2, (3000, 2))
    y = 2 * X[:, 0] + np.sin(X[:, 1])
    config = SearchConfig(max_candidates=60_000, search_rows=64, polish_rows=200, **SMALL)
    final = run(Search(X, y, config=config))
    for member in final.front:
        assert member.loss == pytest.approx(math.sqrt(np.mean((member.expression(X) - y) ** 2)), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones(5), np.ones(5), r"X must be \[rows, columns\]"),
        (np.ones((5, 2)), np.ones(4), r"got \(5, 2\) and \(4,\)"),
        (np.ones((0, 2)), np.ones(0), "got"),
        (np.array([[np.nan], [1.0]]), np.ones(2), "finite"),
        (np.ones((2, 1)), np.array([1.0, np.inf]), "finite"),
    ],
)
def test_bad_data_are_refused(X: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Search(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_time": 0}, "max_time must be positive or None, got 0"),
        ({"max_candidates": -1}, "max_candidates"),
        ({"patience": 0}, "patience"),
        ({"loss": "l1"}, "loss must be one of squared, huber, got 'l1'"),
        ({"max_complexity": 0}, "max_complexity must be at least 1"),
    ],
)
def test_bad_settings_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchConfig(**options)


def test_unknown_functions_and_networks_are_refused() -> None:
    X, y = parabola()
    with pytest.raises(ValueError, match="unknown operator 'sine'"):
        Search(X, y, config=SearchConfig(functions=("add", "sine")))
    with pytest.raises(ValueError, match="layer 1: unknown operator 'sine'"):
        Search(X, y, config=SearchConfig(architecture=[["sine"]]))


# --- steps taken elsewhere ----------------------------------------------------------------------------------------------


def test_steps_taken_ahead_and_replayed_lead_where_the_island_went() -> None:
    X, y = waves()
    search = Search(X, y, config=SearchConfig(stage_ages=(5, 9), **SMALL), seed=2)
    events = search.run()
    for _ in range(7):
        next(events)
    going_on = [island for island in search.islands if not island.finished]
    assert going_on
    for island in going_on:
        ground, config = search._ground(island), search.config.island
        walker, here = (Island.from_dict(stored(island.to_dict()), config) for _ in range(2))
        walker.inputs = here.inputs = island.inputs
        for step in advance(walker, ground, search.known, 4):
            step.replay(here).absorb(here)
        assert plain_state(here) == plain_state(walker) != plain_state(island)
        np.testing.assert_array_equal(here.tried.keys, walker.tried.keys)
        # and the threads of the search itself do no other steps
        while island.age < here.age:
            search._take_steps([island], [island])[0].absorb(island)
        assert plain_state(here) == plain_state(island)


def plain_state(island: Island) -> str:
    return json.dumps(island.to_dict(), default=lambda item: item.tolist())


# --- where constants are fitted -----------------------------------------------------------------------------------------


def test_an_accelerator_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from gmeql.fitters import device

    X, y = waves()
    monkeypatch.setattr(device, "available", lambda: False)
    with pytest.raises(ValueError, match="device='gpu', but JAX sees no accelerator"):
        Search(X, y, config=SearchConfig(device="gpu"))
    with pytest.raises(ValueError, match="device must be one of auto, cpu, gpu, got 'tpu'"):
        SearchConfig(device="tpu")


@pytest.mark.slow
def test_all_islands_of_a_generation_advance_together_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """On JAX's CPU backend, which stands in for an accelerator."""
    from gmeql.fitters import device

    monkeypatch.setattr(device, "available", lambda: True)
    monkeypatch.setattr(device, "_memory_limit", lambda: 2**28)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
    config = SearchConfig(device="gpu", device_candidates=40, functions=("add", "mul", "square"), max_candidates=2000)
    search = Search(X, 2.5 * X[:, 0] ** 2 + X[:, 1], config=config, seed=1)
    events = search.run()
    progress = next(events)
    assert {island.age for island in search.islands} == {1} and len(search.islands) == config.few_islands
    for progress in events:
        pass
    assert progress.reason == "exact" and str(progress.best.expression) == "2.5*x1**2 + x2"
