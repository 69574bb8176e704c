"""One island of the fitted search: a network, its structure parameters, its elites.

An island holds one architecture and one reading of the target. Its life is Algorithm 1 with hard structures: draw
candidates from the elites and the structure parameters, fit each candidate's own constants, keep the best, learn the
structure parameters from the elites.

The paper trains the structure parameters offline to maximise the mean of log P(T) over instances T drawn from the
repository (eq. 9). For hard choices P(T) is a product of softmax probabilities, and the maximiser is known: the
frequencies of the elites' choices under the draw. ``learn`` takes a step towards them instead of a gradient's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gmeql.formula.operators import get_operator
from gmeql.network.architecture import Architecture
from gmeql.network.repository import Repository, empty, insert, power_law, rank_probabilities, size

WIDE = 6
"""Tables with more columns than this start from the columns' relevance."""
OWN_BITS = 12
"""First size of the table of what an island itself tried, as a power of two."""


@dataclass(frozen=True)
class IslandConfig:
    """Numbers of an island's life. Sources: the paper (P), a trial on b1-b8 and physics formulas (T)."""

    candidates_per_step: int = 128  # T: 128 to 256
    capacity: int = 400  # P
    power_law_exponent: float = 1.0  # T: 1/rank; the paper's 1.5 crowds the front ranks
    resample_fraction: float = 0.2  # P
    mean_changes: float = 1.0  # re-sampled connections beyond the first, on average
    insert_share: float = 0.3  # candidates made by putting an idle node into a connection
    bypass_share: float = 0.1  # by taking a node out
    exchange_share: float = 0.15  # by letting a node of another function take over
    complexity_classes: float = 0.5  # share of draws ranked among elites of like complexity
    fresh_share: float = 0.1  # T
    cross_share: float = 0.3  # T
    inherit_share: float = 0.5  # T: half the candidates inherit their constants
    jitter: float = 0.5  # T
    max_tries: int = 4  # starts given to one structure whose constants are not linear
    learning_rate: float = 0.1  # T: share of the elites' frequencies taken over per step
    exploration: float = 0.1  # T: uniform share of the choice probabilities
    max_steps: int = 10  # T: Levenberg-Marquardt steps
    tolerance: float = 1e-4  # T: relative gain of a step below which a fit ends
    finish_steps: int = 40
    life: int = 60  # T: steps
    patience: int = 20  # T: steps without a gain of 1 %
    min_gain: float = 0.01
    max_nesting: int = 0
    with_offset: bool = True


class Wiring:
    """An architecture as the flat arrays that the compiled sampler reads."""

    def __init__(self, architecture: Architecture) -> None:
        self.architecture = architecture
        operators = [get_operator(name) for name in architecture.node_operator]
        n_nodes = architecture.n_nodes
        self.node_op = np.array([operator.opcode for operator in operators], np.int64)
        self.first_connection = np.searchsorted(architecture.connection_node, np.arange(n_nodes + 1)).astype(np.int64)
        self.source_low = architecture.source_low
        self.n_choices = architecture.n_choices
        self.dense_low = np.zeros(n_nodes, np.int64)
        self.dense_high = np.zeros(n_nodes, np.int64)
        self.first_dense = np.zeros(n_nodes, np.int64)
        for node, operator in enumerate(operators):
            if operator.is_dense:
                sources, weights = architecture.dense_of(node)
                self.dense_low[node], self.dense_high[node] = sources[0], sources[-1] + 1
                self.first_dense[node] = weights[0]

    def arrays(self) -> tuple[np.ndarray, ...]:
        return (
            self.node_op,
            self.first_connection,
            self.source_low,
            self.n_choices,
            self.dense_low,
            self.dense_high,
            self.first_dense,
        )


@dataclass
class Batch:
    """Candidates of one step: B drawn structures with their programs and starting constants."""

    choices: np.ndarray
    programs: np.ndarray
    lengths: np.ndarray
    n_constants: np.ndarray
    weight_ids: np.ndarray
    constants: np.ndarray
    hashes: np.ndarray
    complexities: np.ndarray
    losses: np.ndarray
    codes: np.ndarray
    steps: np.ndarray

    @classmethod
    def allocate(cls, n: int, n_connections: int) -> Batch:
        from gmeql.fitters.kernel import MAX_CONSTANTS, MAX_NODES

        return cls(
            choices=np.zeros((n, n_connections), np.int64),
            programs=np.zeros((n, 5, MAX_NODES), np.int16),
            lengths=np.zeros(n, np.int64),
            n_constants=np.zeros(n, np.int64),
            weight_ids=np.zeros((n, MAX_CONSTANTS), np.int64),
            constants=np.zeros((n, MAX_CONSTANTS)),
            hashes=np.zeros(n, np.uint64),
            complexities=np.zeros(n, np.int64),
            losses=np.full(n, np.inf),
            codes=np.zeros(n, np.int64),
            steps=np.zeros(n, np.int64),
        )

    def take(self, rows: Any) -> Batch:
        """The candidates in the given rows (a slice gives views, an index array copies)."""
        return Batch(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


class Tries:
    """How often structures were tried: a table of fingerprints, open addressing.

    Tables that saw the same fingerprints in the same order are equal, so a table can travel as that list.
    """

    def __init__(self, bits: int) -> None:
        self.keys = np.zeros(1 << bits, np.uint64)
        self.counts = np.zeros(1 << bits, np.uint8)

    def add(self, fingerprints: np.ndarray) -> None:
        from gmeql.search.sampling import count_tries

        count_tries(self.keys, self.counts, np.array(fingerprints, np.uint64))  # a copy: the given may be read-only

    def to_dict(self) -> dict[str, np.ndarray]:
        used = np.flatnonzero(self.keys)
        return {"places": used, "keys": self.keys[used], "counts": self.counts[used]}

    @classmethod
    def from_dict(cls, data: dict[str, np.ndarray], bits: int) -> Tries:
        tries = cls(bits)
        tries.keys[data["places"]] = data["keys"]
        tries.counts[data["places"]] = data["counts"]
        return tries


class OwnTries(Tries):
    """What one island tried since a rung began, in order; the table grows with it."""

    def __init__(self, fingerprints: np.ndarray | None = None) -> None:
        super().__init__(OWN_BITS)
        self.fingerprints = np.zeros(0, np.uint64)
        if fingerprints is not None and len(fingerprints):
            self.make_room(len(fingerprints))
            self.add(fingerprints)

    def make_room(self, n: int) -> None:
        """Room for ``n`` more at a load of at most a quarter, where probing stays short."""
        need = 4 * (len(self.fingerprints) + n)
        if len(self.keys) < need:
            super().__init__((need - 1).bit_length())
            super().add(self.fingerprints)

    def add(self, fingerprints: np.ndarray) -> None:
        super().add(fingerprints)
        self.note(fingerprints)

    def note(self, fingerprints: np.ndarray) -> None:
        """Remember the order of what the sampler itself has put into the table."""
        self.fingerprints = np.concatenate([self.fingerprints, fingerprints])


@dataclass
class Island:
    """Mutable state of one island. Everything in it can be stored and restored exactly."""

    architecture: Architecture
    transform: str
    config: IslandConfig
    number: int
    random_state: np.ndarray
    arm: int = 0
    view: int = 0
    columns: np.ndarray = None  # type: ignore[assignment]
    repository: Repository = None  # type: ignore[assignment]
    probabilities: np.ndarray = None  # type: ignore[assignment]
    age: int = 0
    best: float = math.inf
    last_gain: int = 0
    exhausted: bool = False
    own: OwnTries = field(default_factory=OwnTries, repr=False)
    wiring: Wiring = field(init=False, repr=False)
    inputs: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.wiring = Wiring(self.architecture)
        if self.columns is None:
            self.columns = np.arange(self.architecture.n_variables)
        n_weights = self.architecture.n_weights + 2
        if self.repository is None:
            example = {
                "choices": np.zeros(self.architecture.n_connections, np.int64),
                "constants": np.zeros(n_weights),
                "complexity": np.int64(0),
            }
            self.repository = empty(self.config.capacity, example)
        if self.probabilities is None:
            self.probabilities = self.uniform.copy()

    @cached_property
    def uniform(self) -> np.ndarray:
        """Equal probability for every choice of a connection, [C, M]."""
        mask = self.architecture.choice_mask
        return mask / mask.sum(axis=1, keepdims=True)

    def prefer_columns(self, relevance: np.ndarray) -> None:
        """Start the structure parameters of a wide table from what single columns tell; none is ever left out."""
        if self.age or len(relevance) <= WIDE or not relevance.max() > 0:
            return
        share = 0.5 / len(relevance) + 0.5 * relevance / relevance.sum()
        weight = np.ones(self.architecture.n_nodes)
        weight[: len(relevance)] = share * len(relevance)
        sources = np.minimum(
            self.architecture.source_low[:, None] + np.arange(self.architecture.max_choices),
            self.architecture.n_nodes - 1,
        )
        tilted = self.uniform * weight[sources]
        self.probabilities = tilted / tilted.sum(axis=1, keepdims=True)

    @property
    def logits(self) -> np.ndarray:
        """Structure parameters: log of the choice probabilities, -inf for padded choices."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)

    @property
    def positive(self) -> np.ndarray:
        """Which variables have a logarithm on every row, [V]."""
        n = self.architecture.n_variables
        return np.isfinite(self.inputs[n + 1 :, 0]).astype(np.int64)

    @property
    def worst(self) -> float:
        """Loss that a candidate must beat to become an elite."""
        return float(self.repository.losses[-1])

    def draw(self, known: Tries, max_complexity: int, salt: int) -> Batch:
        """Draw the candidates of one step: nothing that is ``known``, or that this island tried since, once too often."""
        from gmeql.search.sampling import draw_candidates

        config = self.config
        batch = Batch.allocate(config.candidates_per_step, self.architecture.n_connections)
        n_elites = int(size(self.repository))
        self.own.make_room(config.candidates_per_step)
        drawn = draw_candidates(
            config.candidates_per_step, self.random_state, *self.wiring.arrays(), self.architecture.n_inputs,
            self.architecture.n_variables, self.positive, self.architecture.n_weights, config.with_offset,
            config.max_nesting, np.cumsum(self.probabilities, axis=1), self.repository.items["choices"],
            self.repository.items["constants"], self.draw_weights(), n_elites,
            config.resample_fraction, config.mean_changes, config.insert_share, config.bypass_share,
            config.exchange_share, config.fresh_share, config.cross_share, config.inherit_share, config.jitter,
            config.max_tries, max_complexity, np.uint64(salt), known.keys, known.counts, self.own.keys,
            self.own.counts, batch.choices, batch.programs, batch.lengths, batch.n_constants, batch.weight_ids,
            batch.constants, batch.hashes, batch.complexities,
        )  # fmt: skip
        self.own.note(batch.hashes[:drawn])
        return batch.take(slice(0, drawn))

    def report(self, known: Tries) -> np.ndarray:
        """Add what this island tried to what all know, and start over. Returns the fingerprints."""
        tried, self.own = self.own.fingerprints, OwnTries()
        known.add(tried)
        return tried

    def draw_weights(self) -> np.ndarray:
        """Cumulative weights by which elites are drawn: a power law of the rank among those of like complexity.

        Ranking within classes of complexity keeps short formulas, of which long ones are made, in play.
        """
        if not self.config.complexity_classes:
            return power_law(self.config.capacity, self.config.power_law_exponent)
        n = int(size(self.repository))
        classes = self.repository.items["complexity"][:n] // 2
        order = np.argsort(classes, kind="stable")
        ordered = classes[order]
        firsts = np.searchsorted(ordered, ordered)
        ranks = np.empty(n, np.int64)
        ranks[order] = np.arange(n) - firsts + 1
        share = self.config.complexity_classes
        weights = share * ranks**-self.config.power_law_exponent / max(len(np.unique(classes)), 1)
        weights += (1 - share) * np.arange(1, n + 1) ** -self.config.power_law_exponent / math.log(n + 2)
        return np.concatenate([np.cumsum(weights), np.zeros(self.config.capacity - n)])

    def absorb(self, batch: Batch, exhausted: bool = False) -> None:
        """Keep the best candidates and learn the structure parameters from the elites."""
        self.age += 1
        self.exhausted = exhausted
        if len(batch.losses):
            good = np.flatnonzero(batch.losses < self.worst)
            by_weight = np.full((len(good), self.architecture.n_weights + 2), np.nan)
            used = np.arange(batch.constants.shape[1]) < batch.n_constants[good, None]
            rows, columns = np.nonzero(used)
            by_weight[rows, batch.weight_ids[good[rows], columns]] = batch.constants[good[rows], columns]
            marks = batch.hashes[good].view(np.uint32).reshape(-1, 2)
            items = {
                "choices": batch.choices[good],
                "constants": by_weight,
                "complexity": batch.complexities[good],
            }
            self.repository = insert(self.repository, batch.losses[good], marks, items)
            self.learn()
        best = float(self.repository.losses[0])
        if best < self.best * (1.0 - self.config.min_gain):
            self.last_gain = self.age
            self.best = best

    def learn(self) -> None:
        """Offline training of the structure parameters from the elites (Section 4.3)."""
        from gmeql.search.sampling import count_choices

        n_elites = int(size(self.repository))
        if n_elites == 0:
            return
        counts = np.zeros_like(self.probabilities)
        weights = rank_probabilities(n_elites, self.config.power_law_exponent)
        wiring = self.wiring
        count_choices(
            self.repository.items["choices"][:n_elites], weights, wiring.node_op, wiring.first_connection,
            wiring.source_low, wiring.dense_low, wiring.dense_high, self.architecture.n_inputs, counts,
        )  # fmt: skip
        seen = counts.sum(axis=1, keepdims=True)
        uniform = self.uniform
        goal = (counts + 0.05 * uniform) / (seen + 0.05)
        goal = (1 - self.config.exploration) * goal + self.config.exploration * uniform
        self.probabilities += self.config.learning_rate * (goal - self.probabilities)

    @property
    def finished(self) -> bool:
        return self.exhausted or self.age >= self.config.life or self.age - self.last_gain >= self.config.patience

    def program_of(self, e: int) -> tuple[np.ndarray, int, np.ndarray]:
        """Program, its length and the fitted constants of elite ``e``."""
        from gmeql.search.sampling import compile_once

        program, length, weight_ids, n_constants = compile_once(  # type: ignore[call-arg]
            self.repository.items["choices"][e], *self.wiring.arrays(), self.architecture.n_inputs,
            self.architecture.n_variables, self.positive, self.architecture.n_weights, self.config.with_offset,
            self.config.max_nesting,
        )  # fmt: skip
        return program, length, self.repository.items["constants"][e][weight_ids[:n_constants]]

    # --- state -----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture.to_dict(),
            "transform": self.transform,
            "number": int(self.number),
            "arm": int(self.arm),
            "view": int(self.view),
            "age": int(self.age),
            "best": float(self.best) if math.isfinite(self.best) else None,
            "last_gain": int(self.last_gain),
            "exhausted": bool(self.exhausted),
            "own": self.own.fingerprints,
            "columns": self.columns,
            "random_state": self.random_state,
            "probabilities": self.probabilities,
            "losses": self.repository.losses,
            "fingerprints": self.repository.fingerprints,
            "items": dict(self.repository.items),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], config: IslandConfig) -> Island:
        island = cls(
            architecture=Architecture.from_dict(data["architecture"]),
            transform=data["transform"],
            config=config,
            number=int(data["number"]),
            random_state=np.array(data["random_state"], np.uint64),
            arm=int(data["arm"]),
            view=int(data["view"]),
            columns=np.array(data["columns"], np.int64),
            repository=Repository(
                np.array(data["losses"], float),
                np.array(data["fingerprints"], np.uint32),
                {key: np.array(value) for key, value in data["items"].items()},
            ),
            probabilities=np.array(data["probabilities"], float),
            age=int(data["age"]),
            best=math.inf if data["best"] is None else float(data["best"]),
            last_gain=int(data["last_gain"]),
            exhausted=bool(data["exhausted"]),
            own=OwnTries(np.array(data["own"], np.uint64)),
        )
        island.architecture.validate_choices(island.repository.items["choices"])
        return island
