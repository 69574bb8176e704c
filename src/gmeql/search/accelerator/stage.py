"""Running the steps of a stage on an accelerator: islands are sent, step side by side, and come back changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gmeql.fitters.cuda.driver import Driver
from gmeql.fitters.cuda.launch import launch_fit, send_data
from gmeql.fitters.cuda.source import BATCH, SIZES, source
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES, USER_OPCODE
from gmeql.network.repository import Repository, size
from gmeql.search.accelerator.layout import CANDIDATES, ELITES, ISLAND, STEP, TRIED, WIRING, Arena, flat_wiring
from gmeql.search.accelerator.source import MOST_NODES, MOST_RECORDS, RECORD_BYTES, step_source
from gmeql.search.config import IslandConfig
from gmeql.search.island import CLASS_WIDTH, UNSEEN_WEIGHT, Island
from gmeql.search.sampling.arrays import DrawNumbers
from gmeql.search.steps import EXHAUSTED_SHARE, FINISH_TOLERANCE, FINISHED_PER_STEP, StepTask

TRIED_BITS = 24
"""Structures that are remembered there, as a power of two: 200 MB."""
DRAW_THREADS = 64
FIT_QUEUES, FINISH_QUEUES = (0, 1, 2, 3), (4, 5, 6, 7)
"""Where fits of each size run: long ones end late, and others need not wait for them."""
LOOK_STEPS = 2
"""Steps between two looks at the islands' best losses."""
_PER_CANDIDATE = {
    "programs": 5 * MAX_NODES * 2, "weight_ids": MAX_CONSTANTS * 2, "lengths": 4, "n_constants": 4, "complexities": 4,
    "parents": 4, "most_tries": 4, "tries": 4, "constants": MAX_CONSTANTS * 8, "losses": 8, "hopeless": 8, "keys": 8,
    "states": 8, "dataset": 4, "ended": 4, "steps": 4, "endless": 8,
}  # fmt: skip
"""Bytes of each array of candidates; "endless" are the losses to beat where a fit may go on to convergence: none."""


def can_hold(island: Island) -> bool:
    """Whether an island's steps can be taken here: no operators of users, no huge network."""
    nodes = island.wiring.nodes
    records = island.config.capacity + island.config.candidates_per_step + FINISHED_PER_STEP
    return len(nodes) <= MOST_NODES and records <= MOST_RECORDS and not bool((nodes["op"] >= USER_OPCODE).any())


class Card:
    """One accelerator in a search: what was tried, and memory for the candidates of a step."""

    def __init__(self, driver: Driver, bits: int = TRIED_BITS) -> None:
        self.driver = driver
        self.bits = bits
        self.tried = {"keys": driver.zeros(8 << bits), "counts": driver.zeros(4 << bits)}
        self.candidates: dict[str, Any] = {}
        self.room = (0, 0)  # candidates, bytes of the choices of each

    def preparations(self) -> list[Callable[[], None]]:
        """What there is to compile, which can be done side by side."""
        sources = [(step_source(), "draw"), *((source(one), "fit") for one in SIZES)]
        return [partial(self.driver.prepare, *each) for each in sources]

    def make_room(self, n: int, choice_bytes: int) -> None:
        """Arrays there for n candidates with choices of so many bytes each."""
        if n <= self.room[0] and choice_bytes <= self.room[1]:
            return
        n, choice_bytes = self.room = max(n, self.room[0]), max(choice_bytes, self.room[1])
        self.candidates = {name: self.driver.zeros(n * each) for name, each in _PER_CANDIDATE.items()}
        self.candidates["choices"] = self.driver.zeros(n * choice_bytes)
        self.candidates["endless"] = self.driver.put(np.full(n, np.inf))


class Stage:
    """Steps of some islands on one card; the islands change when `fetch` is called."""

    def __init__(self, card: Card, islands: Sequence[Island], tasks: Sequence[StepTask]) -> None:
        self.card, self.driver = card, card.driver
        self.islands = list(islands)
        self.config: IslandConfig = islands[0].config
        self.n = len(islands) * self.config.candidates_per_step
        self.n_finishing = len(islands) * FINISHED_PER_STEP
        stride = max(island.architecture.n_connections for island in islands)
        card.make_room(self.n + self.n_finishing, 2 * stride)
        self.arena = Arena()
        self._lay_out(tasks[0].max_complexity, stride)
        self._send_batches(tasks)

    # --- sending -----------------------------------------------------------------------------------------------------

    def _lay_out(self, max_complexity: int, stride: int) -> None:
        """All that belongs to the islands, in one arena."""
        arena, config = self.arena, self.config
        self.records = np.zeros(len(self.islands), ISLAND)
        # `add` keeps contiguous arrays as they are, so what is fetched later stands in these very arrays
        self.fields = [self._island_arrays(island) for island in self.islands]
        offsets = [{name: arena.add(array) for name, array in fields.items()} for fields in self.fields]
        ranks = np.arange(1, config.capacity + 1, dtype=float) ** -config.power_law_exponent
        places = {
            "islands": arena.add(self.records), "rank_weights": arena.add(ranks), "rank_sums": arena.add(np.cumsum(ranks)),
        }  # fmt: skip
        arena.place(self.driver)
        for record, island, own in zip(self.records, self.islands, offsets, strict=True):
            self._fill_island(record, island, {name: arena.base + offset for name, offset in own.items()})
        arena.send(self.driver)
        self.lists = {
            "chosen": self.driver.zeros(4 * len(SIZES) * self.n),
            "finishing": self.driver.zeros(4 * len(SIZES) * self.n_finishing),
        }
        self.counters = {name: self.driver.zeros(8 * len(SIZES)) for name in self.lists}  # of each size: listed, taken
        self.step = self.driver.put(self._step_record(places, max_complexity, stride))
        self.islands_at = places["islands"]

    def _island_arrays(self, island: Island) -> dict[str, np.ndarray]:
        """An island's arrays as the device reads them; those of the elites twice."""
        nodes, connections = flat_wiring(island.wiring)
        n = int(size(island.repository))
        items, marks = island.repository.items, island.repository.fingerprints
        elites = {
            "choices": items["choices"].astype(np.int16),
            "constants": items["constants"].astype(float),
            "losses": island.repository.losses.astype(float),
            "marks": np.ascontiguousarray(marks).view(np.uint64)[:, 0].copy(),
            "complexities": items["complexity"].astype(np.int32),
        }
        weights = np.zeros(self.config.capacity)
        weights[:n] = island.draw_weights()[:n]
        return {
            "nodes": nodes, "connections": connections, "positive": island.rules.positive.astype(np.int32),
            "probabilities": island.probabilities.copy(), "cumulative": np.cumsum(island.probabilities, axis=1),
            "counts": np.zeros_like(island.probabilities), "draw_weights": weights,
        } | {f"{name}{which}": array.copy() for which in (0, 1) for name, array in elites.items()}  # fmt: skip

    def _fill_island(self, record: Any, island: Island, pointers: dict[str, int]) -> None:
        """One `Island` of step.cuh."""
        architecture, rules = island.architecture, island.rules
        wiring = record["wiring"]
        for name in ("nodes", "connections", "positive"):
            wiring[name] = pointers[name]
        values = (
            architecture.n_nodes, architecture.n_connections, architecture.n_inputs, architecture.n_variables,
            architecture.n_weights, architecture.max_choices, rules.with_offset, rules.max_nesting,
        )  # fmt: skip
        for name, value in zip((WIRING.names or ())[3:], values, strict=True):
            wiring[name] = value
        for which in (0, 1):
            for name in ELITES.names or ():
                record["elites"][which][name] = pointers[f"{name}{which}"]
        for name in ("probabilities", "cumulative", "counts", "draw_weights"):
            record[name] = pointers[name]
        record["random_state"], record["best"] = island.random_state[0], island.best
        record["n_elites"], record["age"] = int(size(island.repository)), island.age
        record["last_gain"], record["is_exhausted"] = island.last_gain, island.exhausted
        record["is_finished"] = island.finished

    def _step_record(self, places: dict[str, int], max_complexity: int, stride: int) -> np.ndarray:
        """`Step` of step.cuh."""
        config, driver, base = self.config, self.driver, self.arena.base
        record = np.zeros(1, STEP)
        for name in ("islands", "rank_weights", "rank_sums"):
            record[name] = base + places[name]
        for name in CANDIDATES.names or ():
            record["candidates"][name] = driver.pointer(self.card.candidates[name])
        record["tried"] = np.array(
            (
                driver.pointer(self.card.tried["keys"]),
                driver.pointer(self.card.tried["counts"]),
                (1 << self.card.bits) - 1,
            ),
            TRIED,
        )
        for name in DrawNumbers._fields:
            record["numbers"][name] = max_complexity if name == "max_complexity" else getattr(config, name)
        for name in ("chosen", "finishing"):
            record[name], record[f"n_{name}"] = driver.pointer(self.lists[name]), driver.pointer(self.counters[name])
        for name in ("complexity_classes", "learning_rate", "exploration", "min_gain", "life", "patience", "capacity"):
            record[name] = getattr(config, name)
        record["unseen_weight"], record["class_width"] = UNSEEN_WEIGHT, CLASS_WIDTH
        record["n_islands"], record["n_candidates"] = len(self.islands), config.candidates_per_step
        record["choice_stride"] = stride
        record["least_drawn"], record["n_best"] = config.candidates_per_step // EXHAUSTED_SHARE, FINISHED_PER_STEP
        return record

    def _send_batches(self, tasks: Sequence[StepTask]) -> None:
        """The data that candidates are fitted to, each once; and the candidates as batches of the fit."""
        driver, card, config = self.driver, self.card, self.config
        numbers: dict[tuple[int, ...], int] = {}
        datasets: list[FitData] = []
        for record, task in zip(self.records, tasks, strict=True):
            key = (id(task.target), id(task.weights), hash(task.inputs.tobytes()))
            if key not in numbers:
                numbers[key] = len(datasets)
                datasets.append(FitData(task.inputs, task.target, task.weights))
            record["dataset"], record["table_key"] = numbers[key], task.table_key
        self._send_records()
        self.data = [send_data(driver, datasets, screen) for screen in (tasks[0].screen_rows, None)]
        self.batches = []
        limits = ((config.max_steps, config.tolerance, "hopeless"), (config.finish_steps, FINISH_TOLERANCE, "endless"))
        for max_steps, tolerance, hopeless in limits:
            batch = np.zeros(1, BATCH)
            names = dict(zip(BATCH.names or (), BATCH.names or (), strict=True))
            names |= {"codes": "programs", "n_free": "n_constants", "hopeless": hopeless}
            for name in (BATCH.names or ())[:10]:
                batch[name] = driver.pointer(card.candidates[names[name]])
            batch["width"], batch["n_wide"], batch["limits"] = MAX_NODES, MAX_CONSTANTS, (max_steps, 0, tolerance)
            self.batches.append(driver.put(batch))

    def _send_records(self) -> None:
        self.driver.fill(self._part(self.islands_at, self.records.nbytes), self.records.view(np.uint8))

    def _part(self, offset: int, n_bytes: int) -> Any:
        return self.arena.there[offset : offset + n_bytes]

    # --- stepping ----------------------------------------------------------------------------------------------------

    def take_step(self) -> None:
        """Start one step of all islands; nobody waits. The best of a step are taken to convergence beside the next."""
        self.driver.fill(self.counters["chosen"], None)
        self._launch("draw", per_candidate=True)
        self._launch("claim")
        self._launch("start", per_candidate=True)
        self._start_fits("chosen", 0, self.n, FIT_QUEUES)
        self._await(FIT_QUEUES)
        self._await(FINISH_QUEUES)
        self._launch("absorb")
        self._launch("learn")
        self.driver.fill(self.counters["finishing"], None)
        self._launch("choose")
        self._start_fits("finishing", 1, self.n_finishing, FINISH_QUEUES)

    def settle(self) -> None:
        """Take in what is still being taken to convergence."""
        self._await(FINISH_QUEUES)
        self._launch("settle")

    def _await(self, queues: Sequence[int]) -> None:
        for queue in queues:
            self.driver.order(0, queue)

    def _launch(self, name: str, *, per_candidate: bool = False) -> None:
        threads, blocks, shared = 32, len(self.islands), RECORD_BYTES * self._most_records()
        if per_candidate:
            threads, blocks, shared = DRAW_THREADS, -(-self.n // DRAW_THREADS), 0
        self.driver.launch(step_source(), name, blocks=blocks, threads=threads, shared=shared, arguments=(self.step,))

    def _most_records(self) -> int:
        n = self.config.capacity + self.config.candidates_per_step + FINISHED_PER_STEP
        return 1 << max(n - 1, 31).bit_length()

    def _start_fits(self, name: str, which: int, most: int, queues: Sequence[int]) -> None:
        """Fit the listed candidates, all sizes side by side."""
        counters, listed = self.counters[name], self.lists[name]
        for number, (one, queue) in enumerate(zip(SIZES, queues, strict=True)):
            self.driver.order(queue, 0)
            launch_fit(
                self.driver, one, self.batches[which], self.data[which][0],
                listed[4 * most * number : 4 * most * (number + 1)], counters[4 * number : 4 * number + 4],
                counters[4 * (len(SIZES) + number) : 4 * (len(SIZES) + number) + 4], most=most, queue=queue,
            )  # fmt: skip

    def look(self) -> np.ndarray:
        """Wait, and the islands' records: ages, best losses, who is finished, how many candidates were drawn."""
        there = self.driver.get(self._part(self.islands_at, self.records.nbytes))
        return there.view(ISLAND)

    # --- fetching ----------------------------------------------------------------------------------------------------

    def fetch(self) -> None:
        """The islands as they are now."""
        self.arena.fetch(self.driver)
        for island, record, own in zip(self.islands, self.records, self.fields, strict=True):
            which = int(record["which"])
            elites = {name: own[f"{name}{which}"] for name in ELITES.names or ()}
            losses = elites["losses"].copy()
            island.repository = Repository(
                losses,
                np.ascontiguousarray(elites["marks"]).view(np.uint32).reshape(-1, 2).copy(),
                {
                    "choices": elites["choices"].astype(np.int64),
                    "constants": elites["constants"].copy(),
                    "complexity": elites["complexities"].astype(np.int64),
                },
            )
            island.probabilities = own["probabilities"].copy()
            island.age, island.last_gain = int(record["age"]), int(record["last_gain"])
            island.best, island.exhausted = float(record["best"]), bool(record["is_exhausted"])


def advance(
    cards: Sequence[Card],
    islands: Sequence[Island],
    tasks: Sequence[StepTask],
    *,
    goal_age: int,
    enough: Callable[[np.ndarray, int], bool],
) -> int:
    """Steps of all islands until they reach an age, are finished, or `enough` says so; returns candidates drawn.

    `enough` is asked after each step with the islands' best losses and the candidates drawn so far. Islands are shared
    out to the cards.
    """
    shares = [slice(start, None, len(cards)) for start in range(min(len(cards), len(islands)))]
    stages = [Stage(card, islands[share], tasks[share]) for card, share in zip(cards, shares, strict=False)]
    best = np.array([island.best for island in islands])
    steps = 1  # something to show soon
    while True:
        for _ in range(steps):
            for stage in stages:
                stage.take_step()
        steps, active, drawn = LOOK_STEPS, False, 0
        for stage, share in zip(stages, shares, strict=True):
            records = stage.look()
            best[share] = records["best"]
            drawn += int(records["n_drawn_in_all"].sum())
            young = records["age"][(records["age"] < goal_age) & (records["is_finished"] == 0)]
            active = active or len(young) > 0
            steps = min(steps, goal_age - int(young.max(initial=0))) if len(young) else steps
        if not active or enough(best, drawn):
            break
    for stage in stages:
        stage.settle()
        stage.fetch()
    return drawn
