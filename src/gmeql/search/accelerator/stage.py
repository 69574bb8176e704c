"""Running the steps of a stage on an accelerator: islands are sent, step side by side, and come back changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from gmeql.fitters.cuda.driver import PATIENT_QUEUES, Driver
from gmeql.fitters.cuda.launch import launch_fit, send_data
from gmeql.fitters.cuda.source import BATCH, SIZES, source
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES, USER_OPCODE
from gmeql.search.accelerator.layout import CANDIDATES, STEP, TRIED
from gmeql.search.accelerator.memory import IslandMemory
from gmeql.search.accelerator.source import MOST_NODES, MOST_RECORDS, RECORD_BYTES, step_source
from gmeql.search.config import IslandConfig
from gmeql.search.islands.island import CLASS_WIDTH, UNSEEN_WEIGHT, Island
from gmeql.search.sampling.arrays import DrawNumbers
from gmeql.search.sampling.tried import MOST
from gmeql.search.islands.steps import EXHAUSTED_SHARE, FINISH_TOLERANCE, FINISHED_PER_STEP, StepTask

TRIED_BITS = 25
"""Structures that are remembered there, as a power of two: 400 MB, which a card fills in twenty seconds."""
DRAW_THREADS = 64
FIT_QUEUES = PATIENT_QUEUES[: len(SIZES)]
FINISH_QUEUES = tuple(range(1 + len(FIT_QUEUES), 1 + 2 * len(SIZES)))
"""Where fits of each size run: long ones end late, and others need not wait for them."""
_PER_CANDIDATE = {
    "programs": 5 * MAX_NODES * 2, "weight_ids": MAX_CONSTANTS * 2, "lengths": 4, "n_constants": 4, "complexities": 4,
    "parents": 4, "most_tries": 4, "tries": 4, "constants": MAX_CONSTANTS * 8, "losses": 8, "hopeless": 8, "keys": 8,
    "states": 8, "dataset": 4, "ended": 4, "steps": 4, "endless": 8,
}  # fmt: skip
"""Bytes of each array of candidates; "endless" are the losses to beat where a fit may go on to convergence: none."""


def can_hold(island: Island) -> bool:
    """Whether an island's steps can be taken here: no operators of users, no huge network, room for all its elites."""
    nodes, config = island.wiring.nodes, island.config
    has_room = len(island.repository.losses) == config.capacity
    is_small = config.capacity + config.candidates_per_step + FINISHED_PER_STEP <= MOST_RECORDS
    return has_room and is_small and len(nodes) <= MOST_NODES and not bool((nodes["op"] >= USER_OPCODE).any())


def preparations(driver: Driver) -> list[Callable[[], None]]:
    """What there is to compile, which can be done side by side."""
    sources = [(step_source(), "draw"), *((source(one), "fit") for one in SIZES)]
    return [partial(driver.prepare, *each) for each in sources]


class Card:
    """One accelerator in a search: what was tried, and memory for the candidates of a step."""

    def __init__(self, driver: Driver, bits: int = TRIED_BITS, tried: dict[str, Any] | None = None) -> None:
        self.driver = driver
        self.bits = bits
        self.tried = tried or {"keys": driver.zeros(8 << bits), "counts": driver.zeros(4 << bits)}
        if tried is None:
            driver.get(self.tried["counts"][:4])  # it is there before others look
        self.candidates: dict[str, Any] = {}
        self.room = (0, 0)  # candidates, bytes of the choices of each
        self.stage: Stage | None = None
        """The islands that are there, for as long as some of them go on."""

    def beside(self, number: int) -> Card:
        """The same accelerator for islands that step beside those here: what is tried in one, both know at once.

        Who knows first depends on who is faster, so this is not for results that depend on the seed alone.
        """
        return Card(self.driver.beside(number), self.bits, self.tried)

    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """Fingerprints of all that was tried here, and how often each was."""
        keys = self.driver.get(self.tried["keys"]).view(np.uint64)
        used = np.flatnonzero(keys)
        return keys[used], np.minimum(self.driver.get(self.tried["counts"]).view(np.int32)[used], MOST).astype(np.uint8)

    def learn(self, fingerprints: np.ndarray, counts: np.ndarray) -> None:
        """Count tries that were made elsewhere."""
        if not len(fingerprints):
            return
        arrays = (fingerprints.astype(np.uint64), counts.astype(np.int32), np.array([len(counts)], np.int32))
        there = [self.driver.put(array) for array in (self.tried_record(), *arrays)]
        blocks = -(-len(counts) // DRAW_THREADS)
        self.driver.launch(
            step_source(), "recall", blocks=blocks, threads=DRAW_THREADS, shared=0, arguments=tuple(there)
        )
        self.driver.get(there[0])  # what was sent may go once it has been read

    def tried_record(self) -> np.ndarray:
        """`Tried` of step.cuh."""
        pointers = [self.driver.pointer(self.tried[name]) for name in ("keys", "counts")]
        return np.array([(*pointers, (1 << self.bits) - 1)], TRIED)

    @property
    def n_bytes(self) -> int:
        """Memory of the candidates of a step."""
        return sum(int(array.nbytes) for array in self.candidates.values())

    def make_room(self, n: int, choice_bytes: int) -> None:
        """Arrays there for n candidates with choices of so many bytes each."""
        if n <= self.room[0] and choice_bytes <= self.room[1]:
            return
        n, choice_bytes = self.room = max(n, self.room[0]), max(choice_bytes, self.room[1])
        self.candidates = {name: self.driver.zeros(n * each) for name, each in _PER_CANDIDATE.items()}
        self.candidates["choices"] = self.driver.zeros(n * choice_bytes)
        self.candidates["endless"] = self.driver.put(np.full(n, np.inf))


class Stage:
    """Steps of some islands on one card; the islands change when `fetch` is called.

    From stage to stage they stay there: `keep` closes those that do not go on.
    """

    def __init__(self, card: Card, islands: Sequence[Island], tasks: Sequence[StepTask]) -> None:
        self.card, self.driver = card, card.driver
        self.islands, self.tasks = list(islands), list(tasks)
        self.row = {id(island): i for i, island in enumerate(islands)}
        self.config: IslandConfig = max((island.config for island in islands), key=lambda c: c.candidates_per_step)
        self.n = len(islands) * self.config.candidates_per_step
        self.n_finishing = len(islands) * FINISHED_PER_STEP
        self.memory = IslandMemory(card.driver, islands, self.config)
        card.make_room(self.n + self.n_finishing, 2 * self.memory.choice_stride)
        self.candidates = card.candidates  # they live as long as what points to them
        self.driver.fill(self.candidates["lengths"], None)  # nothing of other islands is being taken to convergence
        self.recorded: Callable[[], None] | None = None
        self.has_stepped = False
        self.lists = {
            "chosen": self.driver.zeros(4 * len(SIZES) * self.n),
            "finishing": self.driver.zeros(4 * len(SIZES) * self.n_finishing),
        }
        self.counters = {name: self.driver.zeros(8 * len(SIZES)) for name in self.lists}  # of each size: listed, taken
        self.step = self.driver.put(self._step_record(tasks[0].max_complexity))
        self._send_batches(tasks)

    # --- sending -----------------------------------------------------------------------------------------------------

    def _step_record(self, max_complexity: int) -> np.ndarray:
        """`Step` of step.cuh."""
        config, driver = self.config, self.driver
        record = np.zeros(1, STEP)
        for name, pointer in self.memory.pointers.items():
            record[name] = pointer
        for name in CANDIDATES.names or ():
            record["candidates"][name] = driver.pointer(self.card.candidates[name])
        record["tried"] = self.card.tried_record()
        for name in DrawNumbers._fields:
            record["numbers"][name] = max_complexity if name == "max_complexity" else getattr(config, name)
        for name in ("chosen", "finishing"):
            record[name], record[f"n_{name}"] = driver.pointer(self.lists[name]), driver.pointer(self.counters[name])
        for name in ("complexity_classes", "learning_rate", "exploration", "min_gain", "life", "patience", "capacity"):
            record[name] = getattr(config, name)
        record["unseen_weight"], record["class_width"] = UNSEEN_WEIGHT, CLASS_WIDTH
        record["n_islands"], record["n_candidates"] = len(self.islands), config.candidates_per_step
        record["choice_stride"], record["constant_stride"] = self.memory.choice_stride, self.memory.constant_stride
        record["least_drawn"], record["n_best"] = config.candidates_per_step // EXHAUSTED_SHARE, FINISHED_PER_STEP
        return record

    def _send_batches(self, tasks: Sequence[StepTask]) -> None:
        """The data that candidates are fitted to, each once; and the candidates as batches of the fit."""
        driver, card, config = self.driver, self.card, self.config
        numbers: dict[tuple[int, ...], int] = {}
        datasets: list[FitData] = []
        for record, task in zip(self.memory.records, tasks, strict=True):
            key = (id(task.target), id(task.weights), id(task.inputs))
            if key not in numbers:
                numbers[key] = len(datasets)
                datasets.append(FitData(task.inputs, task.target, task.weights))
            record["dataset"], record["table_key"] = numbers[key], task.table_key
        self.memory.send()
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

    # --- stepping ----------------------------------------------------------------------------------------------------

    def take_step(self) -> None:
        """Start one step of all islands; nobody waits. From the second on, all its launches are one."""
        if self.recorded is not None:
            self.recorded()
        elif self.has_stepped:
            self.recorded = self.driver.record(self._launch_step)
            self.recorded()
        else:
            self._launch_step()
            self.has_stepped = True

    def _launch_step(self) -> None:
        """The launches of one step. The best of the step before are taken to convergence beside it."""
        self._start_fits("finishing", 1, self.n_finishing, FINISH_QUEUES)
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

    def settle(self) -> None:
        """Take in what has still to be taken to convergence."""
        self._start_fits("finishing", 1, self.n_finishing, FINISH_QUEUES)
        self._await(FINISH_QUEUES)
        self._launch("settle")
        self.driver.fill(self.counters["finishing"], None)

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
        """Fit the listed candidates, all sizes side by side, the large ones first: they take longest."""
        counters, listed = self.counters[name], self.lists[name]
        for number, (one, queue) in reversed(list(enumerate(zip(SIZES, queues, strict=True)))):
            self.driver.order(queue, 0)
            launch_fit(
                self.driver, one, self.batches[which], self.data[which][0],
                listed[4 * most * number : 4 * most * (number + 1)], counters[4 * number : 4 * number + 4],
                counters[4 * (len(SIZES) + number) : 4 * (len(SIZES) + number) + 4], most=most, queue=queue,
            )  # fmt: skip

    def look(self) -> np.ndarray:
        """Wait, and the islands' records: ages, best losses, who is finished, how many candidates were drawn."""
        return self.memory.look()

    def fetch(self, rows: Sequence[int] | None = None, whole: Collection[int] | None = None) -> None:
        """Let the islands be what they have become: all, or those of the given rows.

        Where some are to come home `whole`, the others are closed and bring their best elite alone.
        """
        self._launch("present")
        rows = range(len(self.islands)) if rows is None else rows
        self.memory.bring_home(rows, rows if whole is None else whole)

    # --- from stage to stage -----------------------------------------------------------------------------------------

    def holds(self, island: Island, task: StepTask) -> bool:
        """Whether an island is here, as it was fetched last, and with this very data."""
        i = self.row.get(id(island))
        if i is None:
            return False
        before = self.tasks[i]
        same = before.inputs is task.inputs and before.target is task.target and before.weights is task.weights
        return same and int(self.memory.records["age"][i]) == island.age

    def close(self, rows: Sequence[int]) -> None:
        """Let the islands of these rows step no more, whatever the host knows of them."""
        there = self.look().copy()
        there["is_finished"][list(rows)] = 1
        self.memory.overwrite(there)

    def keep(self, rows: Sequence[int]) -> None:
        """Close all but the islands of these rows, and count what is drawn from now on."""
        closed = np.ones(len(self.islands), bool)
        closed[rows] = False
        self.memory.records["is_finished"][closed] = 1
        self.memory.records["n_drawn_in_all"] = 0
        self.memory.send_records()
