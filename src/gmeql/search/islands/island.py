"""One island of the fitted search: a network, its structure parameters, its elites.

An island holds one architecture and one reading of the target. Its life is Algorithm 1 with hard structures: draw
candidates from the elites and the structure parameters, fit each candidate's own constants, keep the best, learn the
structure parameters from the elites.

The paper trains the structure parameters offline to maximise the mean of log P(T) over instances T drawn from the
repository (eq. 9). For hard choices P(T) is a product of softmax probabilities, and the maximiser is known: the
frequencies of the elites' choices under the draw. `learn` takes a step towards them instead of a gradient's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.network.architecture import Architecture
from gmeql.network.repository import Repository, empty, insert, power_law, rank_probabilities, size
from gmeql.search.islands.candidates import Candidates
from gmeql.search.config import IslandConfig
from gmeql.search.sampling.arrays import DrawnArrays, DrawNumbers, Elites, FormulaRules, TriedTables, Wiring, wiring_of
from gmeql.search.islands.tried import IslandTried, TriedStructures

WIDE = 6
"""Tables with more columns than this start from the columns' relevance."""
RELEVANCE_SHARE = 0.5
"""Share of a wide table's first choice probabilities that follows the columns' relevance; the rest is even."""
CLASS_WIDTH = 2
"""Units of complexity that make one class."""
UNSEEN_WEIGHT = 0.05
"""Weight of the even probabilities beside the elites' frequencies, for connections that few elites use."""


@lru_cache(maxsize=256)
def _no_elites(capacity: int, n_connections: int, n_weights: int) -> Repository:
    """What islands of one size begin with. They share it, since nobody writes into a repository."""
    example = {
        "choices": np.zeros(n_connections, np.int64), "constants": np.zeros(n_weights), "complexity": np.int64(0),
    }  # fmt: skip
    return empty(capacity, example)


@dataclass
class Island:
    """Mutable state of one island. Everything in it can be stored and restored exactly."""

    architecture: Architecture
    reading: str
    config: IslandConfig
    number: int
    random_state: NDArray[np.uint64]
    strategy: int = 0
    view: int = 0
    columns: NDArray[np.int64] = None  # type: ignore[assignment]  # all, unless given
    repository: Repository = None  # type: ignore[assignment]  # empty, unless given
    probabilities: NDArray[np.float64] = None  # type: ignore[assignment]  # [C, M]; even, unless given
    age: int = 0
    best: float = math.inf
    last_gain: int = 0
    exhausted: bool = False
    tried: IslandTried = field(default_factory=IslandTried, repr=False)
    wiring: Wiring = field(init=False, repr=False)
    inputs: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.wiring = wiring_of(self.architecture)
        if self.columns is None:
            self.columns = np.arange(self.architecture.n_variables)
        n_weights = self.architecture.n_weights + 2
        if self.repository is None:
            self.repository = _no_elites(self.config.capacity, self.architecture.n_connections, n_weights)
        if self.probabilities is None:
            self.probabilities = self.uniform.copy()

    @cached_property
    def uniform(self) -> NDArray[np.float64]:
        """Equal probability for every choice of a connection, [C, M]."""
        even: NDArray[np.float64] = self.architecture.choice_mask / self.architecture.n_choices[:, None]
        return even

    def prefer_columns(self, relevance: NDArray[np.float64]) -> None:
        """Start the structure parameters of a wide table from what single columns tell; none is ever left out."""
        if self.age or len(relevance) <= WIDE or not relevance.max() > 0:
            return
        share = (1 - RELEVANCE_SHARE) / len(relevance) + RELEVANCE_SHARE * relevance / relevance.sum()
        weight = np.ones(self.architecture.n_nodes)
        weight[: len(relevance)] = share * len(relevance)
        sources = np.minimum(
            self.architecture.source_low[:, None] + np.arange(self.architecture.max_choices),
            self.architecture.n_nodes - 1,
        )
        tilted = self.uniform * weight[sources]
        self.probabilities = tilted / tilted.sum(axis=1, keepdims=True)

    @property
    def logits(self) -> NDArray[np.float64]:
        """Structure parameters: log of the choice probabilities, -inf for padded choices."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)

    @property
    def rules(self) -> FormulaRules:
        """What this island's formulas may look like on its rows."""
        n = self.architecture.n_variables
        positive = np.isfinite(self.inputs[n + 1 :, 0]).astype(np.int64)
        return FormulaRules(positive, self.config.with_offset, self.config.max_nesting)

    @property
    def worst(self) -> float:
        """Loss that a candidate must beat to become an elite."""
        return float(self.repository.losses[-1])

    def draw(self, shared_tried: TriedStructures, max_complexity: int, table_key: int) -> Candidates:
        """Draw the candidates of one step: no structure that all, or this island since, tried once too often.

        `table_key` keeps the tries of the island's view and reading apart from those of others.
        """
        from gmeql.search.sampling.compile import make_draft
        from gmeql.search.sampling.draw import draw_candidates

        config, items = self.config, self.repository.items
        batch = Candidates.allocate(config.candidates_per_step, self.architecture.n_connections)
        self.tried.make_room(config.candidates_per_step)
        own = {name: getattr(config, name) for name in DrawNumbers._fields if name != "max_complexity"}
        drawn = draw_candidates(
            self.random_state, self.wiring, self.rules, np.cumsum(self.probabilities, axis=1),
            Elites(items["choices"], items["constants"], self.draw_weights(), int(size(self.repository))),
            DrawNumbers(**own, max_complexity=max_complexity),
            TriedTables(shared_tried.keys, shared_tried.counts, self.tried.keys, self.tried.counts, np.uint64(table_key)),
            DrawnArrays(**{name: getattr(batch, name) for name in DrawnArrays._fields}), make_draft(len(self.wiring.nodes)),
        )  # fmt: skip
        self.tried.note(batch.hashes[:drawn])
        return batch.take(slice(0, drawn))

    def share_tried(self, shared_tried: TriedStructures) -> NDArray[np.uint64]:
        """Add what this island tried to what all tried, and start over. Returns the fingerprints."""
        fingerprints, self.tried = self.tried.fingerprints, IslandTried()
        shared_tried.add(fingerprints)
        return fingerprints

    def draw_weights(self) -> NDArray[np.float64]:
        """Cumulative weights by which elites are drawn: a power law of the rank among those of like complexity.

        Ranking within classes of complexity keeps short formulas, of which long ones are made, in play.
        """
        if not self.config.complexity_classes:
            return power_law(self.config.capacity, self.config.power_law_exponent)
        n = int(size(self.repository))
        classes = self.repository.items["complexity"][:n] // CLASS_WIDTH
        order = np.argsort(classes, kind="stable")
        ordered = classes[order]
        firsts = np.searchsorted(ordered, ordered)
        ranks = np.empty(n, np.int64)
        ranks[order] = np.arange(n) - firsts + 1
        share = self.config.complexity_classes
        weights = share * ranks**-self.config.power_law_exponent / max(len(np.unique(classes)), 1)
        weights += (1 - share) * np.arange(1, n + 1) ** -self.config.power_law_exponent / math.log(n + 2)
        return np.concatenate([np.cumsum(weights), np.zeros(self.config.capacity - n)])

    def absorb(self, batch: Candidates, exhausted: bool = False) -> None:
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
        from gmeql.search.sampling.moves import count_choices

        n_elites = int(size(self.repository))
        if n_elites == 0:
            return
        counts = np.zeros_like(self.probabilities)
        weights = rank_probabilities(n_elites, self.config.power_law_exponent)
        count_choices(self.repository.items["choices"][:n_elites], weights, self.wiring, counts)
        seen = counts.sum(axis=1, keepdims=True)
        uniform = self.uniform
        goal = (counts + UNSEEN_WEIGHT * uniform) / (seen + UNSEEN_WEIGHT)
        goal = (1 - self.config.exploration) * goal + self.config.exploration * uniform
        self.probabilities += self.config.learning_rate * (goal - self.probabilities)

    @property
    def finished(self) -> bool:
        """Whether it found nothing new to draw, is old, or has not gained for long."""
        return self.exhausted or self.age >= self.config.life or self.age - self.last_gain >= self.config.patience

    def program_of(self, e: int) -> tuple[NDArray[np.int16], int, NDArray[np.float64]]:
        """Program, its length and the fitted constants of elite `e`."""
        from gmeql.search.sampling.compile import compile_once

        program, length, weight_ids = compile_once(self.repository.items["choices"][e], self.wiring, self.rules)
        return program, length, self.repository.items["constants"][e][weight_ids]

    # --- state -----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The island as plain scalars and arrays; its rows are not part of it."""
        return {
            "architecture": self.architecture.to_dict(),
            "reading": self.reading,
            "number": int(self.number),
            "strategy": int(self.strategy),
            "view": int(self.view),
            "age": int(self.age),
            "best": float(self.best) if math.isfinite(self.best) else None,
            "last_gain": int(self.last_gain),
            "exhausted": bool(self.exhausted),
            "candidates_per_step": int(self.config.candidates_per_step),
            "tried": self.tried.fingerprints,
            "columns": self.columns,
            "random_state": self.random_state,
            "probabilities": self.probabilities,
            "losses": self.repository.losses,
            "fingerprints": self.repository.fingerprints,
            "items": dict(self.repository.items),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], config: IslandConfig) -> Island:
        """The island that `to_dict` gave, still without rows; earlier versions knew one number of candidates for all."""
        per_step = int(data.get("candidates_per_step", config.candidates_per_step))
        island = cls(
            architecture=Architecture.from_dict(data["architecture"]),
            reading=data["reading"],
            config=replace(config, candidates_per_step=per_step),
            number=int(data["number"]),
            random_state=np.array(data["random_state"], np.uint64),
            strategy=int(data["strategy"]),
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
            tried=IslandTried(np.array(data["tried"], np.uint64)),
        )
        island.architecture.validate_choices(island.repository.items["choices"])
        return island
