"""Islands in the memory of an accelerator: how they are laid out there, sent, and brought home changed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from gmeql.fitters.cuda.driver import Driver
from gmeql.network.repository import Repository, size
from gmeql.search.accelerator.layout import ELITES, ISLAND, Arena, Fetched, flat_wiring
from gmeql.search.config import IslandConfig
from gmeql.search.islands.island import Island

FEW = 4
"""Elites of islands are fetched one island at a time where these are fewer than all, divided by this; else at once."""
Shapes = dict[str, tuple[Any, tuple[int, ...]]]
"""Arrays by name: of what kind they are, and how many of them."""


def _n_bytes(kind: Any, shape: tuple[int, ...]) -> int:
    return int(np.dtype(kind).itemsize * math.prod(shape))


class IslandMemory:
    """What belongs to some islands on one card: what is sent, their elites, what only the card knows, the best of each."""

    def __init__(self, driver: Driver, islands: Sequence[Island], config: IslandConfig) -> None:
        self.driver, self.islands, self.config = driver, list(islands), config
        self.choice_stride = max(island.architecture.n_connections for island in islands)
        self.constant_stride = max(island.architecture.n_weights for island in islands) + 2
        self.fields = [self._fields_of(island) for island in self.islands]
        self.records = np.zeros(len(self.islands), ISLAND)
        self._sent, self._elites, self._own, self._best = Arena(), Arena(), Arena(), Arena()
        self._field_places = [{name: self._sent.add(array) for name, array in each.items()} for each in self.fields]
        self._records_at = self._sent.add(self.records)
        ranks = np.arange(1, config.capacity + 1, dtype=float) ** -config.power_law_exponent
        shared = {name: self._sent.add(each) for name, each in (("weights", ranks), ("sums", np.cumsum(ranks)))}
        self._structure_places = [self._place_structures(island) for island in self.islands]
        own = [self._reserve_own(*each) for each in zip(self.fields, self.islands, strict=True)]
        self._best_places = {name: self._best.reserve(_n_bytes(*shape)) for name, shape in self._best_shapes().items()}
        for arena in (self._sent, self._elites, self._own, self._best):
            arena.place(driver)
        self.pointers = {"islands": self._sent.base + self._records_at}
        self.pointers |= {f"rank_{name}": self._sent.base + place for name, place in shared.items()}
        self.pointers |= {f"best_{name}": self._best.base + place for name, place in self._best_places.items()}
        """Where stands what a step is told of: by the names in `STEP`."""
        parts = ((self._sent, self._field_places), (self._elites, self._structure_places), (self._own, own))
        self._fill_records(
            {
                name: arena.base + np.array([offsets[name] for offsets in places], np.uint64)
                for arena, places in parts
                for name in places[0]
            }
        )

    # --- what there is -----------------------------------------------------------------------------------------------

    def _fields_of(self, island: Island) -> dict[str, np.ndarray]:
        """An island's arrays as the device reads them; of the elites all but their structures."""
        nodes, connections = flat_wiring(island.wiring)
        n, repository = int(size(island.repository)), island.repository
        weights = np.zeros(self.config.capacity)
        if n:
            weights[:n] = island.draw_weights()[:n]
        return {
            "nodes": nodes, "connections": connections, "positive": island.rules.positive.astype(np.int32),
            "probabilities": island.probabilities, "cumulative": island.probabilities.cumsum(axis=1),
            "draw_weights": weights, "losses0": repository.losses.astype(float),
            "marks0": np.ascontiguousarray(repository.fingerprints).view(np.uint64)[:, 0],
            "complexities0": repository.items["complexity"].astype(np.int32),
        }  # fmt: skip

    def _structure_shapes(self, island: Island) -> Shapes:
        """Choices and constants of an island's elites."""
        architecture, capacity = island.architecture, self.config.capacity
        return {
            "choices0": (np.int16, (capacity, architecture.n_connections)),
            "constants0": (np.float64, (capacity, architecture.n_weights + 2)),
        }

    def _place_structures(self, island: Island) -> dict[str, int]:
        """Where those stand; they are sent where there are some."""
        shapes, items = self._structure_shapes(island), island.repository.items
        if math.isfinite(island.repository.losses[0]):
            return {name: self._elites.add(items[name[:-1]].astype(kind)) for name, (kind, _) in shapes.items()}
        return {name: self._elites.reserve(_n_bytes(*shape)) for name, shape in shapes.items()}

    def _reserve_own(self, fields: dict[str, np.ndarray], island: Island) -> dict[str, int]:
        """Where stands what only the card knows: counts of choices, and room for the next elites."""
        sizes = {name: array.nbytes for name, array in fields.items()}
        sizes |= {name: _n_bytes(*shape) for name, shape in self._structure_shapes(island).items()}
        own = {"counts": sizes["probabilities"]} | {f"{name}1": sizes[f"{name}0"] for name in ELITES.names or ()}
        return {name: self._own.reserve(each) for name, each in own.items()}

    def _best_shapes(self) -> Shapes:
        """The best elite of every island."""
        n = len(self.islands)
        return {
            "choices": (np.int16, (n, self.choice_stride)), "constants": (np.float64, (n, self.constant_stride)),
            "losses": (np.float64, (n,)), "marks": (np.uint64, (n,)), "complexities": (np.int32, (n,)),
        }  # fmt: skip

    def _fill_records(self, pointers: dict[str, np.ndarray]) -> None:
        """The `Island`s of step.cuh."""
        records, islands, wiring = self.records, self.islands, self.records["wiring"]
        for name in ("nodes", "connections", "positive"):
            wiring[name] = pointers[name]
        networks = [island.architecture for island in islands]
        for name in ("n_nodes", "n_connections", "n_inputs", "n_variables", "n_weights", "max_choices"):
            wiring[name] = [getattr(network, name) for network in networks]
        for name in ("with_offset", "max_nesting"):
            wiring[name] = [getattr(island.config, name) for island in islands]
        for which in (0, 1):
            for name in ELITES.names or ():
                records["elites"][name][:, which] = pointers[f"{name}{which}"]
        for name in ("probabilities", "cumulative", "counts", "draw_weights"):
            records[name] = pointers[name]
        for name in ("best", "age", "last_gain"):
            records[name] = [getattr(island, name) for island in islands]
        records["random_state"] = [island.random_state[0] for island in islands]
        records["n_elites"] = [int(size(island.repository)) for island in islands]
        records["is_exhausted"] = [island.exhausted for island in islands]
        records["is_finished"] = [island.finished for island in islands]

    # --- sending and looking -----------------------------------------------------------------------------------------

    def send(self) -> None:
        """Copy all of it there."""
        self._sent.send(self.driver)
        self._elites.send(self.driver)

    def send_records(self) -> None:
        """Copy the islands' records there, as they are here."""
        self.overwrite(self.records)

    def overwrite(self, records: np.ndarray) -> None:
        """Let the islands' records there be these."""
        self.driver.fill(self._records_there(), records.view(np.uint8))

    def look(self) -> np.ndarray:
        """Wait, and the islands' records as they are there."""
        return self.driver.get(self._records_there()).view(ISLAND)

    def _records_there(self) -> Any:
        return self._sent.there[self._records_at : self._records_at + self.records.nbytes]

    # --- bringing home -----------------------------------------------------------------------------------------------

    def bring_home(self, rows: Sequence[int], whole: Collection[int]) -> None:
        """Let the islands of some rows be what they have become, once their elites are presented there.

        Those that are not to come home `whole` are closed, and bring their best elite alone.
        """
        self.records = self.look().copy()
        best = self._best.fetch(self.driver)
        arrays = {name: best.array(self._best_places[name], *shape) for name, shape in self._best_shapes().items()}
        for i in rows:
            island, record = self.islands[i], self.records[i]
            island.age, island.last_gain = int(record["age"]), int(record["last_gain"])
            island.best = float(record["best"])
            island.exhausted = i not in whole or bool(record["is_exhausted"])
            if i not in whole:
                island.repository = self._best_of(i, arrays)
        self._bring_whole([i for i in rows if i in whole])

    def _best_of(self, i: int, arrays: dict[str, np.ndarray]) -> Repository:
        """The best elite of an island."""
        architecture = self.islands[i].architecture
        items = {
            "choices": arrays["choices"][i : i + 1, : architecture.n_connections].astype(np.int64),
            "constants": arrays["constants"][i : i + 1, : architecture.n_weights + 2],
            "complexity": arrays["complexities"][i : i + 1].astype(np.int64),
        }
        return Repository(arrays["losses"][i : i + 1], arrays["marks"][i : i + 1].view(np.uint32).reshape(1, 2), items)

    def _bring_whole(self, rows: Sequence[int]) -> None:
        """All elites of some islands, and what these learnt."""
        parts = (
            (self._sent, [places["nodes"] for places in self._field_places] + [self._records_at]),
            (self._elites, [places["choices0"] for places in self._structure_places] + [self._elites.n_bytes]),
        )
        are_few = len(rows) * FEW < len(self.islands)
        everything = [] if are_few else [arena.fetch(self.driver) for arena, _ in parts]
        for i in rows:
            few = [arena.fetch(self.driver, ends[i], ends[i + 1]) for arena, ends in parts] if are_few else everything
            self._unpack(i, *few)

    def _unpack(self, i: int, fields: Fetched, structures: Fetched) -> None:
        island, shapes = self.islands[i], self._structure_shapes(self.islands[i])
        self.fields[i] = own = {
            name: fields.array(self._field_places[i][name], array.dtype, array.shape)
            for name, array in self.fields[i].items()
        }
        choices, constants = (
            structures.array(self._structure_places[i][name], *shapes[name]) for name in ("choices0", "constants0")
        )
        items = {
            "choices": choices.astype(np.int64), "constants": constants, "complexity": own["complexities0"].astype(np.int64),
        }  # fmt: skip
        island.repository = Repository(own["losses0"], own["marks0"].view(np.uint32).reshape(-1, 2), items)
        island.probabilities = own["probabilities"]
