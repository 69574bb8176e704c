"""Searches from start to end: budgets shared between targets, callbacks, runs that go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.model.certainty import shown
from gmeql.model.fit import fitting
from gmeql.model.fit.fitting import run_search, search_targets, share_budget
from gmeql.model.fit.inputs import TrainingRows
from gmeql.model.fit.preparation import prepare
from gmeql.search.config import SearchConfig
from gmeql.search.judging.deferred import Deferred, carried
from gmeql.search.search import Search
from thinned import thinned

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, (40, 2))
Y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(40)
DATA = prepare(X, Y)
CONFIG = SearchConfig(max_candidates=400, n_jobs=1, max_complexity=9, functions=("add", "mul"))


def test_the_budget_is_shared_evenly_among_what_is_left() -> None:
    config = SearchConfig(max_time=30.0, max_candidates=100)
    first = share_budget(config, 3, 0.0, 0)
    assert first.max_time == 10.0 and first.max_candidates == 34
    last = share_budget(config, 1, 29.0, 90)
    assert last.max_time == 1.0 and last.max_candidates == 10
    over = share_budget(config, 1, 31.0, 200)
    assert over.max_time > 0 and over.max_candidates == 1
    endless = share_budget(SearchConfig(), 2, 5.0, 5)
    assert endless.max_time is None and endless.max_candidates is None


def test_a_run_keeps_front_history_and_what_was_beaten() -> None:
    events = []
    config = SearchConfig(max_candidates=400, n_jobs=1, max_complexity=9)
    result = run_search(DATA, config=config, seed=0, callbacks=[events.append])
    events = [event for event in events if not event.note]  # a first look while kernels are compiled is no step
    assert result.candidates >= 400 and result.reason == "max_candidates" and not result.interrupted
    assert len(result.history.loss) == len(events) and events[-1].done
    assert result.front[-1].loss <= result.history.loss[-1] and result.state is not None
    shown = {member.expression.root for event in events for member in event.front}
    kept = {member.expression.root for member in (*result.front, *result.front.others)}
    assert shown <= kept


def test_a_callback_ends_the_run_and_the_next_one_goes_on_from_it() -> None:
    first = run_search(DATA, config=CONFIG, seed=0, callbacks=[lambda event: True])
    assert first.reason == "stopped by a callback" and first.candidates < 400
    more = run_search(DATA, config=CONFIG, seed=0, previous=first)
    assert more.candidates >= first.candidates + 400  # a budget on top of what the first one spent
    assert more.history.elapsed[: len(first.history.elapsed)] == first.history.elapsed


def test_a_callback_that_stops_what_has_ended_costs_no_second_polishing(monkeypatch) -> None:
    ends, end = [], Search._end
    monkeypatch.setattr(Search, "_end", lambda search, **how: ends.append(end(search, **how)))
    result = run_search(DATA, config=CONFIG, seed=0, callbacks=[lambda event: event.done])
    assert result.reason == "stopped by a callback" and len(ends) == 1


@pytest.mark.parametrize("by_checkpoint", [True, False])
def test_what_was_beaten_before_a_stop_is_known_after_it(by_checkpoint: bool, tmp_path) -> None:
    shown: list[Any] = []

    def first_ones(event: Any) -> bool:
        shown.extend(member.expression.root for member in event.front)
        return event.candidates >= 150

    folder = tmp_path / "checkpoint" if by_checkpoint else None
    first = run_search(DATA, config=CONFIG, seed=0, callbacks=[first_ones], checkpoint=folder)
    again = run_search(DATA, config=CONFIG, seed=0, checkpoint=folder, previous=None if by_checkpoint else first)
    assert shown and set(shown) <= {member.expression.root for member in (*again.front, *again.front.others)}


def test_each_target_gets_its_search_its_seed_and_its_folder(tmp_path) -> None:
    rows = TrainingRows(X, np.column_stack([Y, X[:, 0] * X[:, 1]]), None)
    results = search_targets(rows, ("a", "b"), method="fitted", config=CONFIG, seed=3, checkpoint=tmp_path)
    assert len(results) == 2 and sorted(path.name for path in tmp_path.iterdir()) == ["target-0", "target-1"]
    alone = run_search(prepare(X, Y, names=("a", "b")), config=replace(CONFIG, max_candidates=200), seed=3)
    of_each = [[(member.expression.root, member.loss) for member in one.front] for one in (results[0], alone)]
    assert of_each[0] == of_each[1]
    assert results[1].front[-1].loss == pytest.approx(0.0, abs=1e-9)


def test_an_interrupt_ends_the_searches_of_all_targets() -> None:
    def press(event: Any) -> None:
        if not pressed and not event.note:
            pressed.append(event)
            raise KeyboardInterrupt

    pressed: list[Any] = []
    rows = TrainingRows(X, np.column_stack([Y, Y + X[:, 0], Y * X[:, 1]]), None)
    with pytest.warns(fitting.InterruptedWarning):
        results = search_targets(
            rows, ("a", "b"), method="fitted", config=replace(CONFIG, max_candidates=3000), seed=0, callbacks=[press]
        )
    assert [len(result.front) > 0 for result in results] == [True] * 3
    assert all(result.candidates < 500 for result in results)


def test_progress_is_shown_for_each_target(capsys) -> None:
    rows = TrainingRows(X, np.column_stack([Y, Y]), None)
    search_targets(rows, ("a", "b"), method="fitted", config=CONFIG, seed=0, verbose=2)
    err = capsys.readouterr().err
    assert "target 1 of 2" in err and "target 2 of 2" in err


@pytest.mark.parametrize("unit", thinned([2.0**90, 1.0], 1))
def test_formulas_beyond_the_front_of_a_large_table_are_measured_on_all_rows(unit: float) -> None:
    rng = np.random.default_rng(11)
    X = rng.uniform(1, 3, (4000, 2))
    y = unit * (X[:, 0] * np.sin(2 * X[:, 1]) + 0.1 * rng.standard_normal(4000))
    X[:, 0] *= unit
    weight = rng.uniform(0.5, 2, 4000)
    few = dict(max_candidates=1000, max_complexity=10, max_time=None)
    model = GMEQLRegressor(**few, random_state=0, n_jobs=1).fit(X, y, weight)
    assert 0 < len(model.front_.others) <= fitting.MEASURED_MEMBERS + len(model.front_)
    for member in (*model.front_.others, *model.front_):
        scaled = (member(X) - y) / unit
        assert member.loss == pytest.approx(unit * np.sqrt(np.average(scaled**2, weights=weight)), rel=1e-9)


@pytest.mark.parametrize("loss", thinned(["huber", "squared", "absolute"], 1))
def test_a_run_that_had_ended_is_judged_as_when_it_ended(loss: str, tmp_path) -> None:
    config = replace(CONFIG, loss=loss)
    first, again = (run_search(DATA, config=config, seed=0, checkpoint=tmp_path) for _ in range(2))
    assert again.candidates == first.candidates and first.front.has_outlooks
    assert again.front.members == first.front.members and again.front.select() == first.front.select()


def test_of_an_exact_front_nothing_asks_what_it_promises_before_somebody_does() -> None:
    exact = X[:, 0] * X[:, 1] + 2.0
    (result,) = search_targets(
        TrainingRows(X, exact[:, None], None), ("a", "b"), method="fitted", config=CONFIG, seed=0
    )
    assert result.reason == "exact"
    assert all(isinstance(carried(member), Deferred) for member in result.front)
    assert result.front[-1].outlook is not None and result.front[-1].outlook.error < 1e-9
    (short,) = search_targets(
        TrainingRows(X, exact[:, None], None), ("a", "b"), method="fitted", config=CONFIG, seed=0, keep_states=False
    )
    assert short.is_whole and short.state is None and result.state is not None
    assert [str(member) for member in short.front] == [str(member) for member in result.front]


def test_digits_of_an_exact_front_are_looked_for_when_it_is_shown(monkeypatch) -> None:
    asked, plain = [], shown._digits
    monkeypatch.setattr(shown, "_digits", lambda *given: asked.append(1) or plain(*given))
    targets = np.column_stack([0.8 * X[:, 0] + 1.2 * X[:, 1], Y])
    rows = TrainingRows(X, targets, None)
    exact, rough = search_targets(rows, ("a", "b"), method="fitted", config=CONFIG, seed=0)
    assert (exact.reason, rough.reason) == ("exact", "max_candidates")
    assert len(asked) >= len(rough.front) and not any(one.expression._digits is None for one in exact.front)
    asked.clear()
    assert str(exact.front[-1]) == "0.8*a + 1.2*b" and asked == [1]
