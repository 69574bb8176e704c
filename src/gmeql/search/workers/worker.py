"""What runs on a worker: it is made ready, takes steps of islands, and lets go of what it held."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql._version import __version__
from gmeql.fitters.programs import input_slots
from gmeql.formula.operators import OPERATORS, Operator
from gmeql.network.architecture import architecture_preset
from gmeql.network.repository import size
from gmeql.search.config import IslandConfig
from gmeql.search.islands.island import Island
from gmeql.search.islands.steps import StepTask, TrimmedStep, advance
from gmeql.search.islands.tried import TriedStructures


@dataclass(frozen=True)
class Assignment:
    """Some steps of one island. Arrays are named by their content."""

    island: dict[str, Any]
    config: IslandConfig
    n_steps: int
    inputs: str
    target: str
    weights: str
    table_key: int
    max_complexity: int
    screen_rows: int
    groups: np.ndarray | None = None


@dataclass(frozen=True)
class Message:
    """An assignment, and what the worker still needs for it."""

    search: str
    """Names the search whose data the worker keeps."""
    assignment: Assignment
    arrays: dict[str, np.ndarray]
    forget: tuple[str, ...]
    """Names of arrays that the worker lets go."""
    has: int | None
    """The version of the table of tried structures the worker should have; None when the whole table comes along."""
    version: int
    bits: int
    whole: dict[str, np.ndarray] | None
    news: tuple[np.ndarray, ...]
    """Fingerprints tried since version `has`."""


@dataclass
class WorkerData:
    """What a worker holds of one search: the table of tried structures and arrays by their names."""

    tried: TriedStructures
    version: int
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


_HELD: dict[str, WorkerData] = {}


def start(operators: list[Operator]) -> str:
    """Make this process ready: the user's own operators, compiled kernels. Returns the version of gmeql."""
    for operator in operators:
        OPERATORS[operator.name] = operator
    island = Island(architecture=architecture_preset("general", 1), reading="identity", config=IslandConfig(), number=1,
                    random_state=np.array([1], np.uint64))  # fmt: skip
    rows = np.arange(1.0, 9.0)
    island.inputs = input_slots(rows[:, None])[0]
    advance(island, StepTask(island.inputs, np.sin(rows), np.ones(8), 0, 60, 8), TriedStructures(12), 2)
    return __version__


def carry_out(message: Message) -> list[TrimmedStep] | None:
    """Take the steps of an assignment. None when this process does not have what the message takes for granted."""
    data = _HELD.get(message.search)
    if message.whole is not None:
        data = _HELD[message.search] = WorkerData(
            TriedStructures.from_dict(message.whole, message.bits), message.version
        )
    elif data is None or data.version != message.has:
        return None
    for fingerprints in message.news:
        data.tried.add(fingerprints)
    data.version = message.version
    # some backends hand over memory that may not be written, for which the kernels would be compiled once more
    data.arrays.update({key: np.array(array) for key, array in message.arrays.items()})
    for key in message.forget:
        data.arrays.pop(key, None)
    assignment = message.assignment
    if not {assignment.inputs, assignment.target, assignment.weights} <= set(data.arrays):
        return None
    island = unpacked(assignment.island, assignment.config)
    island.inputs = data.arrays[assignment.inputs]
    task = StepTask(island.inputs, data.arrays[assignment.target], data.arrays[assignment.weights], assignment.table_key,
                  assignment.max_complexity, assignment.screen_rows, assignment.groups)  # fmt: skip
    return advance(island, task, data.tried, assignment.n_steps)


def forget(search: str) -> None:
    """Let go of what was held for a search."""
    _HELD.pop(search, None)


def packed(island: Island) -> dict[str, Any]:
    """The island as data, without its empty slots; `unpacked` reads it back."""
    data = island.to_dict()
    n = int(size(island.repository))
    return data | {
        "losses": data["losses"][:n],
        "fingerprints": data["fingerprints"][:n],
        "items": {name: values[:n] for name, values in data["items"].items()},
    }


def unpacked(data: dict[str, Any], config: IslandConfig) -> Island:
    """The island that `packed` made data of, its empty slots filled again."""

    def filled(values: np.ndarray, value: float = 0) -> np.ndarray:
        whole = np.full((config.capacity, *values.shape[1:]), value, values.dtype)
        whole[: len(values)] = values
        return whole

    whole = data | {
        "losses": filled(data["losses"], np.inf),
        "fingerprints": filled(data["fingerprints"]),
        "items": {name: filled(values) for name, values in data["items"].items()},
    }
    return Island.from_dict(whole, config)
