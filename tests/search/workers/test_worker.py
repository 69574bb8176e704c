"""What a worker does with messages: the steps an island would take itself, data kept, and no guess where data lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gmeql._version import __version__
from gmeql.fitters.programs import input_slots
from gmeql.formula.operators import OPERATORS
from gmeql.formula.registration import register_operator, unregister_operator
from gmeql.network.architecture import architecture_preset
from gmeql.search.islands.island import Island, IslandConfig, TriedStructures
from gmeql.search.islands.steps import StepTask, advance
from gmeql.search.workers import worker
from gmeql.search.workers.worker import Assignment, Message, carry_out, forget, packed, start, unpacked

BITS = 12
X = np.linspace(0.5, 3.0, 40)[:, None]
ARRAYS = {"inputs": input_slots(X)[0], "target": np.sin(3 * X[:, 0]) + 0.1 * X[:, 0] ** 2, "weights": np.ones(40)}


@pytest.fixture(autouse=True)
def nothing_held() -> Iterator[None]:
    yield
    forget("search")


def fresh_island() -> Island:
    island = Island(architecture=architecture_preset("general", 1), reading="identity", config=IslandConfig(), number=7,
                    random_state=np.array([5], np.uint64))  # fmt: skip
    island.inputs = ARRAYS["inputs"]
    return island


def task() -> StepTask:
    return StepTask(ARRAYS["inputs"], ARRAYS["target"], ARRAYS["weights"], 0, 60, 20)


def message(n_steps: int = 2, **changes: Any) -> Message:
    """A first message, which brings everything; `changes` make later ones of it."""
    island = fresh_island()
    assignment = Assignment(packed(island), island.config, n_steps, "inputs", "target", "weights", 0, 60, 20)
    first = Message("search", assignment, ARRAYS, (), None, 1, BITS, TriedStructures(BITS).to_dict(), ())
    return replace(first, **changes)


def same_steps(some: Any, others: Any) -> bool:
    return len(some) == len(others) and all(
        a.drawn == b.drawn
        and (a.random_state == b.random_state).all()
        and (a.fingerprints == b.fingerprints).all()
        and all((a.kept[name] == b.kept[name]).all() for name in a.kept)
        for a, b in zip(some, others, strict=True)
    )


def test_steps_are_those_the_island_would_take_itself() -> None:
    expected = advance(fresh_island(), task(), TriedStructures(BITS), 3)
    assert len(expected) == 3 and same_steps(carry_out(message(3)), expected)


def test_what_was_sent_once_is_kept() -> None:
    first = carry_out(message())
    again = carry_out(message(arrays={}, has=1, whole=None))
    assert first is not None and same_steps(again, first)


def test_news_of_tried_structures_are_left_out_of_later_draws() -> None:
    first = carry_out(message())
    assert first is not None
    tried = first[0].fingerprints
    later = carry_out(message(arrays={}, has=1, version=2, whole=None, news=(np.repeat(tried, 255),)))
    assert later is not None and not set(tried.tolist()) & set(later[0].fingerprints.tolist())


@pytest.mark.parametrize(
    "lacking",
    [
        {"has": 1, "whole": None},  # a new process: it holds nothing of this search
        {"arrays": {}},  # the table comes along, the arrays do not
    ],
)
def test_a_process_that_lacks_something_says_so(lacking: dict[str, Any]) -> None:
    assert carry_out(message(**lacking)) is None


def test_a_process_with_an_older_table_says_so() -> None:
    carry_out(message())
    assert carry_out(message(has=2, version=3, whole=None)) is None
    assert carry_out(message(has=1, version=3, whole=None)) is not None


def test_arrays_to_forget_are_forgotten() -> None:
    carry_out(message(arrays=ARRAYS | {"old": np.ones(3)}))
    assert "old" in worker._HELD["search"].arrays
    carry_out(message(arrays={}, has=1, whole=None, forget=("old",)))
    assert set(worker._HELD["search"].arrays) == set(ARRAYS)
    forget("search")
    assert carry_out(message(has=1, whole=None)) is None


def test_an_island_travels_without_its_empty_slots() -> None:
    island = fresh_island()
    advance(island, task(), TriedStructures(BITS), 2)
    data = packed(island)
    assert 0 < len(data["losses"]) < island.config.capacity
    again = unpacked(data, island.config)
    before, after = island.to_dict(), again.to_dict()
    for name in ("losses", "fingerprints", "probabilities", "random_state", "tried"):
        np.testing.assert_array_equal(after[name], before[name])
    for name, values in before["items"].items():
        filled = len(data["losses"])
        np.testing.assert_array_equal(after["items"][name][:filled], values[:filled])
    assert (again.age, again.best) == (island.age, island.best)


def test_starting_brings_own_operators_and_says_the_version() -> None:
    operator = register_operator("bump", lambda xp, x: xp.exp(-x * x), derivative=lambda xp, x: -2 * x * xp.exp(-x * x))
    unregister_operator("bump")
    try:
        assert start([operator]) == __version__ and OPERATORS["bump"] is operator
    finally:
        unregister_operator("bump")
