"""What a direct method is given: errors relative to the spread, and a clock that has the last word."""

from __future__ import annotations

import math
import pickle
import time
from dataclasses import fields
from itertools import count, islice

import numpy as np
import pytest
from thinned import thinned

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.methods import DIRECT_METHODS
from gmeql.search.direct.table import DirectTable, Effort, worked


def table() -> DirectTable:
    X = np.linspace(1, 3, 50)[:, None]
    return DirectTable(X, 2 * X[:, 0], np.ones(50))


def test_error_is_relative_to_the_spread_of_the_target() -> None:
    assert table().error(build("mul", Constant(2.0), Variable(0))) == 0.0
    assert math.isclose(table().error(Constant(4.0)), 1.0)


def test_a_formula_without_a_value_on_some_row_has_infinite_error() -> None:
    assert table().error(build("log", build("sub", Variable(0), Constant(2.0)))) == math.inf


def test_a_constant_target_has_a_spread() -> None:
    assert DirectTable(np.ones((4, 1)), np.full(4, 7.0), np.ones(4)).spread == 1.0


def test_another_process_gets_what_a_table_was_made_of() -> None:
    """What is worked out later is not sent: a thread that sends a table met `dictionary changed size during iteration`."""
    given = table()
    assert given.spread > 0 and given.varies
    sent = pickle.loads(pickle.dumps(given))  # noqa: S301
    assert set(vars(sent)) == {field.name for field in fields(DirectTable)}
    np.testing.assert_array_equal(sent.X, given.X)
    assert sent.spread == given.spread


def test_weights_count() -> None:
    one = DirectTable(np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 30.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert one.error(Variable(0)) == 0.0


def test_timed_effort_ends_at_its_moment() -> None:
    assert Effort.timed(1.0, until=worked() - 1).out_of_time()
    assert not Effort.timed(1.0, until=worked() + 1000).out_of_time()
    assert not Effort(0.0).out_of_time()


def test_a_busy_machine_takes_nothing_from_a_method_up_to_three_times_its_share() -> None:
    effort = Effort.timed(0.1, until=worked() + 0.1)
    time.sleep(0.15)  # others have the processor
    assert not effort.out_of_time()
    time.sleep(0.2)
    assert effort.out_of_time()


def test_more_work_is_kept_for_a_method_on_a_trail() -> None:
    more, alone = Effort(5.0), Effort(1.0)
    assert Effort(1.0, more=lambda: more).on_trail() is more
    assert Effort.timed(1.0, until=worked() + 9, more=lambda: more).on_trail() is more
    assert alone.on_trail() is alone


@pytest.mark.parametrize("name", DIRECT_METHODS)
def test_counts_decide_where_no_time_is_set_not_the_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(0.5, 6, (150, 2))
    given = DirectTable(X, X[:, 1] * np.cos(9 * X[:, 0]) + np.sqrt(X[:, 0]), np.ones(150))

    def proposed() -> list[Node]:
        method = DIRECT_METHODS[name]
        found = method(given, functions=FunctionSet(), effort=Effort(0.15), rng=np.random.default_rng(0))
        return list(islice(found, 200))

    at_ease = proposed()
    ticks = count(0.0, 0.2)  # a machine on which whatever is timed takes a fifth of a second
    for clock in ("process_time", "perf_counter", "monotonic", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: next(ticks))
    assert proposed() == at_ease


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", DIRECT_METHODS)
@pytest.mark.parametrize("noise", thinned([0.5, 0.0], 1))
def test_columns_of_categories_stop_no_method(name: str, noise: float) -> None:
    rng = np.random.default_rng(0)
    belongs = (rng.integers(0, 3, 200)[:, None] == np.arange(3)).astype(float)
    X = np.column_stack([belongs, rng.uniform(0, 10, 200)])
    y = X @ [5.0, -5.0, 0.0, 2.0] + noise * rng.standard_normal(200)
    method = DIRECT_METHODS[name]
    given = DirectTable(X, y, np.ones(200))
    found = method(given, functions=FunctionSet(), effort=Effort(0.2), rng=np.random.default_rng(0))
    assert all(given.error(root) >= 0 for root in islice(found, 100))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", DIRECT_METHODS)
def test_targets_of_hundreds_of_magnitudes_stop_no_method(name: str) -> None:
    X = np.random.default_rng(0).uniform(-10, 10, (200, 3))
    y = X[:, 1] * np.exp(np.clip((X[:, 0] - X[:, 1]) / X[:, 0], -500, 500))
    given = DirectTable(X, y, np.ones(200))
    found = DIRECT_METHODS[name](given, functions=FunctionSet(), effort=Effort(0.2), rng=np.random.default_rng(0))
    assert all(given.error(root) >= 0 for root in islice(found, 100))
