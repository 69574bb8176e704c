"""Islands as an accelerator reads them, laid out by the host ahead of time: only their addresses there are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gmeql.fitters.kernel.arrays import FitData
from gmeql.network.repository import Repository, size
from gmeql.search.accelerator.layout import ELITES, ISLAND, WIRING, Arena, flat_wiring
from gmeql.search.config import IslandConfig
from gmeql.search.island import Island
from gmeql.search.steps import StepTask

_WIRED = ("nodes", "connections", "positive")
_LEARNT = ("probabilities", "cumulative", "draw_weights")
_STRUCTURES = {"choices": np.int16, "constants": np.float64}


class Packed:
    """Islands and their data in three arenas: what is sent, the elites' structures, and what only the card knows.

    No accelerator is asked, so this is done while it is busy with something else; `point` fills in the addresses.
    """

    def __init__(self, islands: Sequence[Island], tasks: Sequence[StepTask]) -> None:
        self.islands, self.tasks = list(islands), list(tasks)
        self.config: IslandConfig = max((island.config for island in islands), key=lambda c: c.candidates_per_step)
        self.stride = max(island.architecture.n_connections for island in islands)
        self.arena, self.elites, self.spare = Arena(), Arena(), Arena()
        self.records = np.zeros(len(self.islands), ISLAND)
        # `add` keeps contiguous arrays as they are, so what is fetched later stands in these very arrays
        self.fields = [self._island_arrays(island) for island in self.islands]
        self.structures = [_structure_arrays(island) for island in self.islands]
        sent = [{name: self.arena.add(array) for name, array in fields.items()} for fields in self.fields]
        fetched = [{name: self.elites.add(array) for name, array in arrays.items()} for arrays in self.structures]
        own = [
            {"counts": self.spare.reserve(fields["probabilities"].nbytes)}
            | {f"{name}1": self.spare.reserve((fields | arrays)[f"{name}0"].nbytes) for name in ELITES.names or ()}
            for fields, arrays in zip(self.fields, self.structures, strict=True)
        ]
        ranks = np.arange(1, self.config.capacity + 1, dtype=float) ** -self.config.power_law_exponent
        self.places = {
            "islands": self.arena.add(self.records), "rank_weights": self.arena.add(ranks),
            "rank_sums": self.arena.add(np.cumsum(ranks)),
        }  # fmt: skip
        for i, (record, island) in enumerate(zip(self.records, self.islands, strict=True)):
            _fill(record, island, sent[i] | fetched[i] | own[i])
        self._number_data()
        self.arena.pack()
        if self.records["n_elites"].any():
            self.elites.pack()

    def _island_arrays(self, island: Island) -> dict[str, np.ndarray]:
        """An island's arrays as the device reads them; of the elites all but their structures."""
        nodes, connections = flat_wiring(island.wiring)
        n, repository = int(size(island.repository)), island.repository
        weights = np.zeros(self.config.capacity)
        weights[:n] = island.draw_weights()[:n]
        return {
            "nodes": nodes, "connections": connections, "positive": island.rules.positive.astype(np.int32),
            "probabilities": island.probabilities.copy(), "cumulative": np.cumsum(island.probabilities, axis=1),
            "draw_weights": weights, "losses0": repository.losses.astype(float),
            "marks0": np.ascontiguousarray(repository.fingerprints).view(np.uint64)[:, 0].copy(),
            "complexities0": repository.items["complexity"].astype(np.int32),
        }  # fmt: skip

    def _number_data(self) -> None:
        """The data that candidates are fitted to, each once."""
        numbers: dict[tuple[int, ...], int] = {}
        self.datasets: list[FitData] = []
        for record, task in zip(self.records, self.tasks, strict=True):
            key = (id(task.target), id(task.weights), hash(task.inputs.tobytes()))
            if key not in numbers:
                numbers[key] = len(self.datasets)
                self.datasets.append(FitData(task.inputs, task.target, task.weights))
            record["dataset"], record["table_key"] = numbers[key], task.table_key

    def point(self) -> None:
        """Make addresses of what were places in arenas, which have addresses now."""
        records = self.records
        for name in _WIRED:
            records["wiring"][name] += np.uint64(self.arena.base)
        for name in _LEARNT:
            records[name] += np.uint64(self.arena.base)
        records["counts"] += np.uint64(self.spare.base)
        for name in ELITES.names or ():
            first = self.elites if name in _STRUCTURES else self.arena
            records["elites"][name] += np.array([first.base, self.spare.base], np.uint64)

    def is_for(self, islands: Sequence[Island], tasks: Sequence[StepTask]) -> bool:
        """Whether these very islands lie here, as they are now and with this very data."""
        return len(islands) == len(self.islands) and all(
            mine is island and int(age) == island.age and is_same_data(before, task)
            for mine, island, age, before, task in zip(
                self.islands, islands, self.records["age"], self.tasks, tasks, strict=True
            )
        )

    def unpack(self, i: int) -> None:
        """Let an island be what has come back."""
        island, record, own = self.islands[i], self.records[i], self.fields[i] | self.structures[i]
        island.repository = Repository(
            own["losses0"].copy(),
            own["marks0"].view(np.uint32).reshape(-1, 2).copy(),
            {
                "choices": own["choices0"].astype(np.int64),
                "constants": own["constants0"].copy(),
                "complexity": own["complexities0"].astype(np.int64),
            },
        )
        island.probabilities = own["probabilities"].copy()
        island.age, island.last_gain = int(record["age"]), int(record["last_gain"])
        island.best, island.exhausted = float(record["best"]), bool(record["is_exhausted"])


def share_out(n: int, islands: Sequence[Island], tasks: Sequence[StepTask]) -> list[Packed]:
    """Islands for n cards, every n-th for one."""
    return [Packed(islands[start::n], tasks[start::n]) for start in range(min(n, len(islands)))]


def is_same_data(one: StepTask, other: StepTask) -> bool:
    """Whether two tasks have the very same arrays."""
    return one.inputs is other.inputs and one.target is other.target and one.weights is other.weights


def _structure_arrays(island: Island) -> dict[str, np.ndarray]:
    """Choices and constants of the elites."""
    items = island.repository.items
    if not int(size(island.repository)):
        return {f"{name}0": np.zeros(items[name].shape, kind) for name, kind in _STRUCTURES.items()}
    return {f"{name}0": items[name].astype(kind) for name, kind in _STRUCTURES.items()}


def _fill(record: Any, island: Island, offsets: dict[str, int]) -> None:
    """One `Island` of step.cuh, with places in arenas where pointers will be."""
    architecture, rules = island.architecture, island.rules
    wiring = record["wiring"]
    for name in _WIRED:
        wiring[name] = offsets[name]
    values = (
        architecture.n_nodes, architecture.n_connections, architecture.n_inputs, architecture.n_variables,
        architecture.n_weights, architecture.max_choices, rules.with_offset, rules.max_nesting,
    )  # fmt: skip
    for name, value in zip((WIRING.names or ())[len(_WIRED) :], values, strict=True):
        wiring[name] = value
    for which in (0, 1):
        for name in ELITES.names or ():
            record["elites"][which][name] = offsets[f"{name}{which}"]
    for name in (*_LEARNT, "counts"):
        record[name] = offsets[name]
    record["random_state"], record["best"] = island.random_state[0], island.best
    record["n_elites"], record["age"] = int(size(island.repository)), island.age
    record["last_gain"], record["is_exhausted"] = island.last_gain, island.exhausted
    record["is_finished"] = island.finished
