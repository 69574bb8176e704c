"""The fitted search: one seed one result, exact resume, hard data, budgets."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from thinned import thinned
from host_cuda import HostDriver, needs_compiler
from searches import SMALL, check_front, parabola, run, stored, texts, waves

from gmeql.formula.nodes import Call, Constant, calls
from gmeql.search.execution import execution
from gmeql.search.accelerator.stage import Card
from gmeql.search.config import SearchConfig
from gmeql.search.events import Progress
from gmeql.search.polish.recognition import is_recognised
from gmeql.search import search as search_module
from gmeql.search.search import Search
from gmeql.search.state import SearchState

PLAIN: dict[str, Any] = SMALL | dict(functions=("add", "mul", "sin"))
"""Settings of a search whose end takes a third of the time: formulas of few functions are soon polished and judged."""


def test_losses_are_those_of_the_formulas() -> None:
    X, y = waves()
    weights = np.random.default_rng(2).uniform(0.1, 2.0, len(y))
    final = run(Search(X, y, sample_weight=weights, config=SearchConfig(max_candidates=1500, **PLAIN)))
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
        config = SearchConfig(**(PLAIN | dict(n_jobs=n_jobs)), max_candidates=1500)
        ends.append(run(Search(X, y, config=config, seed=5)))
    assert texts(ends[0]) == texts(ends[1]) and ends[0].candidates == ends[1].candidates


def test_linear_algebra_takes_one_thread_and_gives_the_caller_back_what_he_had(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = waves()
    seen: list[int] = []

    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    def noted(self: Search) -> None:
        seen.extend(threads())
        return whole_round(self)

    whole_round = Search._round
    monkeypatch.setattr(Search, "_round", noted)
    with threadpool_limits(2, user_api="blas"):
        for _ in Search(X, y, config=SearchConfig(max_candidates=300, **PLAIN)).run():
            assert threads() == {2}
    assert set(seen) == {1}


def test_of_few_candidates_enough_are_left_to_look_at_the_data() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(1.0, 5.0, (200, 4))  # the centre of two masses: islands alone need many more candidates
    y = (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]) / (X[:, 0] + X[:, 2])
    final = run(Search(X, y, names=("m", "r", "n", "s"), config=SearchConfig(max_candidates=10_000, n_jobs=1)))
    assert final.reason == "exact" and str(final.best.expression) == "(m*r + n*s)/(m + n)"


def test_other_seeds_search_elsewhere() -> None:
    X, y = waves()
    ends = [run(Search(X, y, config=SearchConfig(max_candidates=800, **PLAIN), seed=seed)) for seed in (0, 1, 0)]
    assert texts(ends[0]) == texts(ends[2]) != texts(ends[1])


@lru_cache
def uninterrupted(config: SearchConfig) -> Progress:
    return run(Search(*waves(), config=config, seed=3))


@pytest.mark.parametrize(("rounds", "loss"), thinned([(2, "squared"), (5, "huber"), (1, "squared"), (5, "squared")], 1))
def test_resumed_search_ends_as_the_uninterrupted_one(rounds: int, loss: str) -> None:
    """Stopped within the first stage, between two, and in later generations that see more rows."""
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
    config = SearchConfig(max_candidates=600, **PLAIN)
    search = Search(X, y, config=config, seed=3)
    run(search)
    longer = SearchConfig(max_candidates=1500, **PLAIN)
    state = search.state()
    again = Search.from_state(state, X, y, config=longer)
    final = run(again)
    assert final.reason == "max_candidates" and final.candidates >= 1500 > search.candidates
    assert final.front[-1].loss <= search.front[-1].loss


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_max_candidates_is_overrun_by_less_than_a_round() -> None:
    X, y = waves()
    config = SearchConfig(max_candidates=1000, **PLAIN)
    final = run(Search(X, y, config=config))
    assert final.reason == "max_candidates"
    assert 1000 <= final.candidates < 1000 + config.islands * config.island.candidates_per_step


def test_max_time_is_read_off_the_clock_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock of our own: every look at it takes 40 ms. The search ends in the round in which the time is spent."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.04
        return now

    monkeypatch.setattr(time, "perf_counter", clock)
    X, y = waves()
    events = list(Search(X, y, config=SearchConfig(max_time=2.0, **SMALL)).run())
    final = events[-1]
    assert final.reason == "max_time" and len(events) > 2
    assert all(not event.done and event.elapsed < 2.0 for event in events[:-1])
    assert final.elapsed < 3.0


def test_patience_ends_a_search_without_gain() -> None:
    X, y = waves()
    final = run(Search(X, y, config=SearchConfig(patience=700, max_candidates=100_000, **PLAIN)))
    assert final.reason == "no gain" and final.candidates < 100_000


def test_a_small_network_is_exhausted() -> None:
    X, y = waves()
    network = [["id", "square"], ["add"]]
    final = run(
        Search(X, y, config=SearchConfig(architecture=network, max_candidates=100_000, max_idle_rounds=10, **SMALL))
    )
    assert final.reason == "exhausted" and final.candidates < 2000


def test_time_kept_for_polishing_that_is_not_needed_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = waves()
    y = y + 0.3 * np.random.default_rng(0).standard_normal(len(y))
    search = Search(X, y, config=SearchConfig(max_time=6.0, **SMALL))
    polished: list[int] = []
    monkeypatch.setattr(search_module, "polish_front", lambda state, clock: polished.append(state.candidates))
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: 0.01 * next(ticks))
    final = run(search)
    assert final.reason == "max_time" and len(polished) > 1 and sorted(set(polished)) == polished


def test_closing_the_iterator_is_a_clean_stop() -> None:
    X, y = waves()
    search = Search(X, y, config=SearchConfig(max_candidates=5000, **PLAIN))
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


def test_unknown_functions_and_networks_are_refused() -> None:
    X, y = parabola()
    with pytest.raises(ValueError, match="unknown operator 'sine'"):
        Search(X, y, config=SearchConfig(functions=("add", "sine")))
    with pytest.raises(ValueError, match="layer 1: unknown operator 'sine'"):
        Search(X, y, config=SearchConfig(architecture=[["sine"]]))


# --- where constants are fitted -----------------------------------------------------------------------------------------


@needs_compiler
def test_an_island_that_was_exact_is_not_polished_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loss is rounding, which falls by half now and then while the search waits for a shorter twin."""
    made = Search(*parabola(40), config=SearchConfig(**SMALL, max_candidates=100))
    state = made._state
    island = state.portfolio.open_island(state.rng)
    state.islands, state.lowest = [island], 0.0
    polished = []
    monkeypatch.setattr(search_module, "polish_island", lambda *_: polished.append(True))
    monkeypatch.setattr(search_module, "is_exact", lambda *_: True)
    unit = state.portfolio.unit(island)
    floor = (state.config.front.exact * state.rows.polished.spread) ** 2 / unit
    for before, best, times in ((np.inf, 0.1 * floor, 1), (0.9 * floor, 0.1 * floor, 1), (2 * floor, 0.1 * floor, 2)):
        island.best = best
        made._show(island, before, is_first=False)
        assert len(polished) == times


def test_whole_stages_are_taken_on_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same search; the processor stands in for the card."""
    monkeypatch.setattr(execution, "required_cards", lambda: [Card(HostDriver(), bits=14)])
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
    config = SearchConfig(
        device="gpu", device_candidates=32, device_islands=1, few_islands=4, functions=("add", "mul", "square"),
        max_candidates=2000,
    )  # fmt: skip
    seen = []
    for _ in range(2):
        search = Search(X, 2.5 * X[:, 0] ** 2 + X[:, 1], config=config, seed=1)
        final = run(search)
        seen.append((search.candidates, str(final.best.expression)))
        assert final.reason == "exact"
    assert seen[0] == seen[1] and seen[0][1] == "2.5*x1**2 + x2"


def test_a_card_that_is_ready_takes_over_after_the_stage_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation of the processor may take longer than the whole time; direct methods go on beside the card."""

    class Ready:
        def __init__(self) -> None:
            self.cards = [Card(HostDriver(), bits=14)]

        @staticmethod
        def is_thinkable() -> bool:
            return True

        def ready(self) -> list[Card]:
            return self.cards

        def give_back(self) -> None:
            self.cards = []

    def start(executor: execution.Executor, state: SearchState, *given: Any, **options: Any) -> None:
        taken.append((state.candidates, {island.age for island in state.islands}, state.direct_done))

    taken: list[tuple[int, set[int], bool]] = []
    monkeypatch.setattr(execution, "Preparation", Ready)
    monkeypatch.setattr(execution.Executor, "start", start)
    config = SearchConfig(
        max_time=60, device_patience=0.0, device_candidates=32, later_device_candidates=32, device_islands=1, few_islands=4,
        functions=("add", "mul", "sin"), n_jobs=1,
    )  # fmt: skip
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
    for _ in Search(X, np.random.default_rng(1).normal(size=40), config=config, seed=1).run():
        if taken:
            break
    (drawn, ages, direct_done) = taken[0]
    assert ages == {0} and not direct_done
    assert drawn <= 4 * config.stage_ages[1] * config.island.candidates_per_step


def test_a_step_is_not_sold_as_a_law() -> None:
    """Noise around a jump is fitted best by an infinitely steep function, whose steepness nobody can know."""
    rng = np.random.default_rng(1)
    t = rng.uniform(-3.0, 3.0, (150, 1))
    y = 2 * np.sign(t[:, 0]) + 0.5 * t[:, 0] + 0.1 * rng.standard_normal(150)
    final = run(Search(t, y, names=("t",), config=SearchConfig(max_candidates=1500, max_complexity=20, **SMALL)))
    assert len(final.front) > 2
    constants = [abs(c) for member in final.front for c in member.expression.constants]
    assert max(constants) < 1e5


def test_waves_have_phases_within_half_a_turn() -> None:
    rng = np.random.default_rng(1)
    t = rng.uniform(0.0, 10.0, (150, 1))
    y = 2 * np.sin(1.7 * t[:, 0] + 4.0) + 0.1 * rng.standard_normal(150)
    final = run(Search(t, y, names=("t",), config=SearchConfig(max_candidates=8000, **SMALL)))
    waves_met = [
        call
        for member in final.front
        for call in calls(member.expression.root)
        if call.operator in ("sin", "cos") and isinstance(call.args[0], Call) and call.args[0].operator == "add"
    ]
    assert waves_met
    for wave in waves_met:
        phases = [arg.value for arg in wave.args[0].args if isinstance(arg, Constant)]
        assert all(abs(phase) <= math.pi for phase in phases)


def test_no_formula_with_as_many_constants_as_rows() -> None:
    """Eight planets: a formula of twelve constants went through all of them, and was called about as good as Kepler's."""
    x = np.array([0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.19, 30.07])
    y = np.array([87.97, 224.7, 365.26, 686.98, 4332.6, 10759.2, 30688.5, 60182.0])
    front = run(Search(x[:, None], y, config=SearchConfig(max_candidates=15_000, n_jobs=1))).front
    constants = [sum(not is_recognised(c) for c in member.expression.constants) for member in front]
    assert max(constants) < 8 and min(member.loss for member in front) < 10
