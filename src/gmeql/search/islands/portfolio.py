"""Which island opens next: families of architectures, views of the columns, readings of the target, and what they earned.

Families take turns. Among the views and readings that a family may be given, one is drawn in proportion to its prior times
what its islands earned so far, (earned + 1) / (tried + 2) for each: the mean of a Beta posterior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.programs import to_node
from gmeql.fitters.reference import evaluate
from gmeql.formula.nodes import Node
from gmeql.network.architecture import Architecture, as_architecture
from gmeql.network.families import DEFAULT_FUNCTIONS, FAMILIES, FunctionSet, draw_architecture
from gmeql.search.config import IslandConfig, SearchConfig
from gmeql.search.islands.island import Island
from gmeql.search.data.readings import PLAIN
from gmeql.search.data.rows import SearchRows
from gmeql.search.islands.steps import StepTask
from gmeql.search.symmetries.views import View
from gmeql.search.data.viewed import ViewedTable, relevance

GIVEN_FAMILY = "given"
"""Stands for the user's own architecture."""
MAX_ATTEMPTS = 100
"""Families asked for an architecture before it is said that the functions allow none."""


@dataclass
class Strategy:
    """A family of architectures with a view of the columns and a reading of the target, and what its islands earned."""

    family: str
    reading: str
    prior: float
    view: int = 0
    tried: float = 0.0
    gained: float = 0.0


@dataclass(frozen=True)
class _Families:
    """Strategies as arrays, to draw from."""

    strategies: Sequence[Strategy]
    members: list[NDArray[np.int64]]
    """Of each family its strategies."""
    priors: NDArray[np.float64]
    seen: list[tuple[int, str]]
    """The different views with their readings."""
    keys: NDArray[np.int64]
    """Of each strategy the place of its own in `seen`."""

    @classmethod
    def of(cls, strategies: Sequence[Strategy]) -> _Families:
        families = np.array([strategy.family for strategy in strategies])
        places: dict[tuple[int, str], int] = {}
        keys = [places.setdefault((each.view, each.reading), len(places)) for each in strategies]
        members = [np.flatnonzero(families == name) for name in dict.fromkeys(families.tolist())]
        priors = np.array([strategy.prior for strategy in strategies])
        return cls(strategies, members, priors, list(places), np.array(keys))


class Portfolio:
    """The strategies of one search and the tables that they see. `opened` counts islands, and turns of families."""

    def __init__(
        self,
        config: SearchConfig,
        rows: SearchRows,
        *,
        views: Sequence[View] = (),
        strategies: Sequence[Strategy] = (),
        opened: int = 0,
    ) -> None:
        self.config = config
        self.functions = allowed_functions(config)
        self.architecture = (
            None if config.architecture is None else as_architecture(config.architecture, rows.n_variables)
        )
        self.relevance = relevance(rows.X, rows.y, rows.given_weights)
        self.groups = rows.fitted_groups
        self.opened = opened
        self.tables = [self.table(view, rows) for view in views or [View.raw(rows.n_variables)]]
        self.strategies = list(strategies) or self._make_strategies()
        self._arranged: _Families | None = None
        self._island_configs: dict[tuple[bool, bool], IslandConfig] = {}

    # --- what islands see --------------------------------------------------------------------------------------------

    def table(self, view: View, rows: SearchRows) -> ViewedTable:
        """The rows that candidates are fitted on, as a view shows them."""
        X, y, weights = rows.fitted
        all_readings = self.config.readings and self.architecture is None
        return ViewedTable.of(view, X, y, weights, all_readings=all_readings)

    def starting_views(self) -> list[View]:
        """Views that the look for symmetries begins with: the columns as they are, and the plainest that units made."""
        first, n_variables = self.tables[0].view, len(self.relevance)
        return [first] if first.is_raw_of(n_variables) else [first, View.raw(n_variables)]

    def attach_rows(self, rows: SearchRows) -> None:
        """Show later islands these rows."""
        self.tables = [self.table(table.view, rows) for table in self.tables]
        self.groups = rows.fitted_groups

    def add_tables(self, tables: Sequence[ViewedTable]) -> None:
        """More views, whose strategies start without earnings; the others keep theirs."""
        if not tables:
            return
        self.tables += tables
        earned, self.strategies = self.strategies, self._make_strategies()
        for old, new in zip(earned, self.strategies, strict=False):  # those of the first view stand first
            new.tried, new.gained = old.tried, old.gained

    def _make_strategies(self) -> list[Strategy]:
        """Every family with every view and reading; the priors of all views and readings of a family sum to 1."""
        strategies = []
        for view, table in enumerate(self.tables):
            raw = self.config.raw_share
            weight = raw if view == 0 else (1 - raw) / (len(self.tables) - 1)
            others = [name for name in table.readings if name != PLAIN]
            share = self.config.identity_share if others else 1.0
            for family in FAMILIES if self.architecture is None else [GIVEN_FAMILY]:
                strategies.append(Strategy(family, PLAIN, weight * share, view))
                strategies += [Strategy(family, name, weight * (1 - share) / len(others), view) for name in others]
        return strategies

    # --- opening islands ---------------------------------------------------------------------------------------------

    def open_island(self, rng: np.random.Generator, *, on_device: bool = False, later: bool = False) -> Island:
        """A new island: the first ones go through the families in order, later ones are drawn by what paid.

        `on_device` says that it will step on an accelerator, which wants many candidates at a time; `later`, that the
        first generations are over.
        """
        self.opened += 1
        for _ in range(MAX_ATTEMPTS):
            index = self._choose(rng)
            strategy = self.strategies[index]
            columns = self._choose_columns(strategy.view, rng)
            architecture: Architecture | None
            if self.architecture is not None:
                architecture, columns = self.architecture, np.arange(self.architecture.n_variables)
            else:
                architecture = draw_architecture(strategy.family, rng, len(columns), self.functions, self.config.skip)
            if architecture is not None:
                break
            self.opened += 1
        else:
            raise ValueError("no architecture can be made of these functions; allow at least one of add, mul, div, sum")
        strategy.tried += 1.0
        island = Island(
            architecture=architecture,
            reading=strategy.reading,
            config=self._island_config(on_device, later),
            number=self.opened,
            random_state=np.array([rng.integers(1, 2**63, dtype=np.int64)], np.uint64),
            strategy=index,
            view=strategy.view,
            columns=columns,
        )
        self.attach(island)
        return island

    def _island_config(self, on_device: bool, later: bool) -> IslandConfig:
        """The numbers of an island, the same object for all that are alike."""
        if (on_device, later) not in self._island_configs:
            own = self.config.device_island(later=later) if on_device else self.config.island_in_use
            self._island_configs[on_device, later] = own
        return self._island_configs[on_device, later]

    def _choose(self, rng: np.random.Generator) -> int:
        """Index of the strategy of the next island; a family none of whose readings applies loses its turn."""
        families = self._families
        while True:
            wanted = families.members[(self.opened - 1) % len(families.members)]
            if self.opened <= self.config.plain_islands:
                return int(wanted[0])
            weights = self._merits()[families.keys[wanted]] * families.priors[wanted]
            if weights.sum() > 0:
                shares = (weights / weights.sum()).cumsum()  # as `rng.choice` does, which takes its time for checks
                return int(wanted[(shares / shares[-1]).searchsorted(rng.random(), side="right")])
            self.opened += 1

    @property
    def _families(self) -> _Families:
        """The strategies in use as arrays."""
        if self._arranged is None or self._arranged.strategies is not self.strategies:
            self._arranged = _Families.of(self.strategies)
        return self._arranged

    def _merits(self) -> NDArray[np.float64]:
        """What islands with each view and reading earned so far, per island; 0 where the reading does not apply."""
        config, families = self.config, self._families
        n = len(families.seen)
        gained = np.bincount(families.keys, [strategy.gained for strategy in self.strategies], n)
        tried = np.bincount(families.keys, [strategy.tried for strategy in self.strategies], n)
        applies = np.array([reading in self.tables[view].readings for view, reading in families.seen])
        merits: NDArray[np.float64] = (gained + config.prior_gain) / (tried + config.prior_tried) * applies
        return merits

    def _choose_columns(self, view: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """All columns, or for a wide table those that look relevant and a random rest."""
        n, most = len(self.tables[view].view.columns), self.config.max_columns
        if n <= most:
            return np.arange(n)
        half, is_raw = most // 2, self.tables[view].view.is_raw_of(len(self.relevance))
        leading = np.argsort(-self.relevance, kind="stable")[: half if is_raw else 0]
        rest = np.setdiff1d(np.arange(n), leading)
        return np.sort(np.concatenate([leading, rng.choice(rest, most - len(leading), replace=False)]))

    # --- islands at work ---------------------------------------------------------------------------------------------

    def attach(self, island: Island) -> None:
        """Hand an island its rows and the prior over its input columns."""
        table = self.tables[island.view]
        island.inputs = table.inputs_of(island.columns)
        if table.view.is_raw_of(len(self.relevance)):
            island.prefer_columns(self.relevance[island.columns])

    def task(self, island: Island) -> StepTask:
        """What an island's candidates are fitted to."""
        target, weights = self.tables[island.view].readings[island.reading]
        key = table_key(island.reading, island.view)
        return StepTask(
            island.inputs,
            target,
            weights,
            key,
            self.config.max_complexity,
            self.config.screen_rows,
            self.groups,
        )

    def unit(self, island: Island) -> float:
        """Mean squared error of the target itself that an island's loss of 1 stands for."""
        return self.tables[island.view].units[island.reading]

    def loss(self, island: Island) -> float:
        """An island's best loss as a mean squared error of the target."""
        return island.best * self.unit(island)

    def seen_loss(self, island: Island, rows: SearchRows) -> float:
        """The best loss by which islands are compared: of the inverted formula itself, where that is larger.

        The loss of a reading is that of the target to first order only. Near a zero of the target 1/y has a pole, whose
        two sides cost its island nothing and the target everything. One row counts `largest_miss` spreads at most:
        formulas on their way to a fraction may have a pole beside its place.
        """
        loss = self.loss(island)
        if island.reading == PLAIN or self.groups is not None or not math.isfinite(loss):
            return loss
        program, length, constants = island.program_of(0)
        if not np.isfinite(constants).all():
            return math.inf
        X, y, weights = rows.fitted
        with np.errstate(all="ignore"):
            output, _ = evaluate(program[:, :length], constants, 0, island.inputs)
            predicted = self.tables[island.view].predicted(output, island.reading, X)
            squares = np.nan_to_num((predicted - y) ** 2, nan=np.inf)
        spread = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
        capped = np.minimum(squares, self.config.largest_miss**2 * spread)
        return max(loss, float(np.average(capped, weights=weights)))

    def formula(self, island: Island, e: int) -> Node | None:
        """The formula of elite `e` in the user's columns and units; None where a constant is not finite."""
        program, length, constants = island.program_of(e)
        if not np.isfinite(constants).all():
            return None
        root = to_node(program, length, constants, len(island.columns))
        return self.tables[island.view].formula(root, island.columns, island.reading)

    def reward(self, ranked: Sequence[Island], opened_by: Portfolio | None = None) -> None:
        """Let the strategies of the leading islands earn 1, 1/2, 1/3, ...

        Islands that were opened by another portfolio, before there were other tables, earn for what still is one here.
        """
        opened_by = opened_by or self
        for rank, island in enumerate(ranked[: self.config.rewarded_per_stage]):
            if island.strategy < len(self.strategies) and self._seen(island) == opened_by._seen(island):
                self.strategies[island.strategy].gained += 1.0 / (1 + rank)

    def _seen(self, island: Island) -> tuple[str, str, View]:
        """What the strategy of an island's number is here."""
        strategy = self.strategies[island.strategy]
        return strategy.family, strategy.reading, self.tables[strategy.view].view


def allowed_functions(config: SearchConfig) -> FunctionSet:
    """The functions that were asked for, less those that what is known rules out."""
    functions = config.functions
    if config.knowledge is not None:
        functions = tuple(config.knowledge.allowed_functions(functions or DEFAULT_FUNCTIONS))
    return FunctionSet(functions)


def table_key(reading: str, view: int) -> int:
    """Keeps what was tried under a reading and view apart from the rest; 0 for the target and columns as they are."""
    letters = 0 if reading == PLAIN else sum(ord(c) << (8 * (i % 7)) for i, c in enumerate(reading))
    return (letters + view * 0x9E3779B97F4A7C15) % 2**64
