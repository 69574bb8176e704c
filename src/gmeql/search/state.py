"""The state of a search: everything needed to go on exactly here, and as plain data for a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, transform
from gmeql.search.config import SearchConfig
from gmeql.search.losses.effective import InputErrors
from gmeql.search.events import Progress
from gmeql.search.groups.config import GROUPS
from gmeql.search.groups.sharing import share
from gmeql.search.groups.table import Grouping
from gmeql.search.islands.island import Island
from gmeql.search.front.leaderboard import Leaderboard
from gmeql.search.polish.scoring import Scored
from gmeql.search.islands.portfolio import Portfolio, allowed_functions, Strategy
from gmeql.search.data.rows import FloatArray, SearchRows
from gmeql.search.symmetries.dimensional import dimensional_views
from gmeql.search.symmetries.origins import view_from_origins
from gmeql.search.symmetries.stated import stated_view
from gmeql.search.symmetries.views import View
from gmeql.search.islands.tried import TriedStructures

VERSION = 4
"""Of the plain data. Version 3, that of gmeql 0.1, had the same under other names."""


@dataclass
class SearchState:
    """Where a search stands. The rows come from the caller; all else goes through `to_dict` and back unchanged."""

    config: SearchConfig
    seed: int
    rng: np.random.Generator
    rows: SearchRows
    portfolio: Portfolio
    leaderboard: Leaderboard
    tried: TriedStructures
    islands: list[Island] = field(default_factory=list)
    stage: int = 0
    """Which of `config.stage_ages` the generation is on the way to."""
    lowest: float = math.inf
    """Loss of the best island when the last stage ended."""
    symmetries_done: bool = False
    direct_done: bool = False
    direct_spent: float = 0.0
    """Seconds that direct methods took; with a candidate budget those that their work is worth."""
    beside_spent: float = 0.0
    """Seconds that looks took beside that, where time is the budget: quick looks, symmetries and the tables they give."""
    trail_spent: float = 0.0
    """Seconds that trails were followed for, where time is the budget: they have a share of their own, all together."""
    later_looks: int = 0
    """How often direct methods were asked again,"""
    looked_again: list[int] = field(default_factory=list)
    """and the places of the tables that they looked at then."""
    growing_looks: int = 0
    """How often those were asked that go on from formulas."""
    candidates: int = 0
    elapsed: float = 0.0
    last_gain: int = 0
    """Candidates when the best description length last fell."""
    reason: str = ""
    """Why the search ended; empty while it goes on."""
    outliers_asked: bool = False
    """Whether it was asked if rows lie far from all others, and a part of the search left them out if so;"""
    aside: list[Node] = field(default_factory=list)
    """formulas that were found without them."""
    shared_losses: dict[Node, float] = field(default_factory=dict)
    """Structures whose constants were shared out between groups, and their losses: not worth doing twice."""

    @property
    def looks_spent(self) -> float:
        """Seconds that all looks at the data took."""
        return self.direct_spent + self.beside_spent

    @property
    def looks_left(self) -> float:
        """Seconds that looks may still take, where time is the budget."""
        return max(self.config.looks_seconds - self.looks_spent, 0.0)

    @classmethod
    def new(cls, rows: SearchRows, seed: int) -> SearchState:
        """Before the first round: the mean on the front, no island open."""
        config = rows.config
        portfolio = Portfolio(config, rows, views=known_views(rows))
        state = cls(
            config=config,
            seed=seed,
            rng=np.random.default_rng(seed),
            rows=rows,
            portfolio=portfolio,
            leaderboard=Leaderboard.start(config, rows),
            tried=TriedStructures(config.table_bits),
            symmetries_done=not config.symmetries or portfolio.architecture is not None or rows.groups is not None,
            direct_done=portfolio.architecture is not None,
            later_looks=0 if portfolio.architecture is None and rows.groups is None else len(config.clock.later_from),
            growing_looks=0 if rows.groups is None else len(config.clock.growing_from),
        )
        mean = state.leaderboard.best
        state.offer([Scored(mean.root, mean.loss, mean.length)] if rows.groups is not None else [])
        return state

    def offer(self, found: Sequence[Scored], out_of_time: Callable[[], bool] = lambda: False) -> None:
        """Offer formulas to the front, the first in any case, and note when the best description length fell."""
        if self.leaderboard.offer(self._shared(found), self.rows, out_of_time):
            self.last_gain = self.candidates

    def offer_to_groups(self, root: Node) -> None:
        """Offer a formula that was seen in one group: fitted to each, its constants shared out."""
        formula = share(Scored(root, math.inf, math.inf), self.rows.polished)
        if formula is not None and self.leaderboard.offer([formula], self.rows):
            self.last_gain = self.candidates

    def rank_anew(self, found: Sequence[Scored], *, settled: bool = False) -> None:
        """Let these formulas be the front, whose losses were taken on other rows or with other weights."""
        self.shared_losses.clear()
        self.leaderboard.members = {}
        if self.leaderboard.rank_anew(self._shared(found), self.rows, settled=settled):
            self.last_gain = self.candidates

    def keeps_units(self, view: View) -> bool:
        """Whether a view that the data suggest breaks no units that are known for certain."""
        knowledge = self.config.knowledge
        if knowledge is None or knowledge.units is None or not knowledge.has_strict_units:
            return True
        return all(knowledge.units.is_sound(part) for part in (*view.columns, view.factor))

    def _shared(self, found: Sequence[Scored]) -> Sequence[Scored]:
        """Where rows have groups, formulas with shared and own constants in place of those with own ones only.

        Sharing takes a hundred fits, so only the briefest of those that no simpler one matches are looked at, and no
        structure that was before, unless its loss is lower now.
        """
        if self.rows.groups is None:
            return found
        worth: list[Scored] = []
        for scored in sorted(found, key=lambda s: (s.complexity, s.loss)):
            if not worth or scored.loss < self.config.front.class_gain * worth[-1].loss:
                worth.append(scored)
        shared = []
        for scored in sorted(worth, key=lambda s: s.length)[: GROUPS.shared_at_once]:
            structure = transform(scored.root, lambda leaf: leaf if isinstance(leaf, Variable) else Constant(0.0))
            better = scored.loss < self.shared_losses.get(structure, math.inf) * (1 - self.config.front.least_gain)
            if better and self.leaderboard.is_promising(scored.loss, scored.complexity):
                self.shared_losses[structure] = scored.loss
                formula = share(scored, self.rows.polished)
                shared += [] if formula is None else [formula]
        return shared

    def behind(self) -> list[Island]:
        """Islands that have not reached the age at which this stage ends."""
        goal = self.config.stage_ages[self.stage]
        return [island for island in self.islands if island.age < goal and not island.finished]

    def progress(self) -> Progress:
        """What there is to report."""
        front = self.leaderboard.front(self.rows)
        complexity = self.leaderboard.best.complexity
        return Progress(
            elapsed=self.elapsed,
            candidates=self.candidates,
            rate=self.candidates / self.elapsed if self.elapsed > 0 else 0.0,
            islands=self.portfolio.opened,
            front=front,
            best=next((member for member in front if member.complexity == complexity), front[-1]),
            done=bool(self.reason),
            reason=self.reason,
            own=self.leaderboard.own_constants(self.rows),
        )

    def to_dict(self) -> dict[str, Any]:
        """The state as plain scalars, lists and arrays."""
        names = self.rows.names
        return {
            "version": VERSION,
            "seed": self.seed,
            "names": list(names),
            "config": self.config.to_dict(),
            "rng": _plain_rng(self.rng),
            "candidates": int(self.candidates),
            "elapsed": float(self.elapsed),
            "opened": int(self.portfolio.opened),
            "stage": int(self.stage),
            "last_gain": int(self.last_gain),
            "lowest": self.lowest if math.isfinite(self.lowest) else None,
            "search_rows": int(self.rows.n_fitted),
            "reason": self.reason,
            "weights": self.rows.weights if self.rows.is_reweighed else None,
            "working_target": self.rows.y if self.rows.is_reweighed else None,
            "tried": self.tried.to_dict(),
            "symmetries_done": bool(self.symmetries_done),
            "direct_done": bool(self.direct_done),
            "direct_spent": float(self.direct_spent),
            "beside_spent": float(self.beside_spent),
            "trail_spent": float(self.trail_spent),
            "later_looks": int(self.later_looks),
            "growing_looks": int(self.growing_looks),
            "looked_again": list(self.looked_again),
            "outliers_asked": bool(self.outliers_asked),
            "aside": [Expression(root, names).to_dict() for root in self.aside],
            "views": [table.view.to_dict() for table in self.portfolio.tables],
            "strategies": [asdict(strategy) for strategy in self.portfolio.strategies],
            "members": [
                {
                    "expression": Expression(m.root, self.rows.extended(m.own).names).to_dict(),
                    "loss": m.loss,
                    "unseen": m.unseen,
                    "length": m.length,
                    "own": m.own,
                    "source": None if m.source is None else Expression(m.source, names).to_dict(),
                }
                for m in self.leaderboard.members.values()
            ],
            "islands": [island.to_dict() for island in self.islands],
        }

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        X: FloatArray,
        y: FloatArray,
        *,
        sample_weight: FloatArray | None = None,
        config: SearchConfig | None = None,
        groups: Grouping | None = None,
        errors: InputErrors | None = None,
    ) -> SearchState:
        """The state that `to_dict` gave, on the same rows; `config` may give it a new budget or other machines."""
        data = _in_this_version(data)
        config = config or SearchConfig.from_dict(data["config"])
        rows = SearchRows.of(
            X,
            y,
            sample_weight=sample_weight,
            names=tuple(data["names"]),
            config=config,
            seed=int(data["seed"]),
            groups=groups,
            errors=errors,
        )
        weights = rows.weights if data["weights"] is None else np.array(data["weights"], float)
        y = rows.y if data.get("working_target") is None else np.array(data["working_target"], float)
        rows = replace(rows, n_fitted=int(data["search_rows"]), weights=weights, y=y)
        portfolio = Portfolio(
            config,
            rows,
            views=[View.from_dict(view) for view in data["views"]],
            strategies=[Strategy(**strategy) for strategy in data["strategies"]],
            opened=int(data["opened"]),
        )
        islands = [Island.from_dict(island, config.island_in_use) for island in data["islands"]]
        for island in islands:
            portfolio.attach(island)
        return cls(
            config=config,
            seed=int(data["seed"]),
            rng=_rng_from_plain(data["rng"]),
            rows=rows,
            portfolio=portfolio,
            leaderboard=Leaderboard(config, _members(data["members"])),
            tried=TriedStructures.from_dict(data["tried"], config.table_bits),
            islands=islands,
            stage=int(data["stage"]),
            lowest=math.inf if data["lowest"] is None else float(data["lowest"]),
            symmetries_done=bool(data["symmetries_done"]),
            direct_done=bool(data.get("direct_done", portfolio.architecture is not None)),  # earlier versions lack it
            direct_spent=float(data.get("direct_spent", 0.0)),
            beside_spent=float(data.get("beside_spent", 0.0)),
            trail_spent=float(data.get("trail_spent", 0.0)),
            later_looks=int(data.get("later_looks", 0)),
            growing_looks=int(data.get("growing_looks", 0)),
            looked_again=[int(place) for place in data.get("looked_again", ())],
            outliers_asked=bool(data.get("outliers_asked", False)),
            aside=[Expression.from_dict(each).root for each in data.get("aside", ())],
            candidates=int(data["candidates"]),
            elapsed=float(data["elapsed"]),
            last_gain=int(data["last_gain"]),
            reason=str(data["reason"]),
        )


def known_views(rows: SearchRows) -> list[View]:
    """Tables beside the columns as they are: by given units or constraints, and from other origins; empty without any.

    Strict units leave no other; else the columns as they are come first.
    """
    config, judged = rows.config, rows.polished
    knowledge, views = config.knowledge, []
    if config.architecture is not None:
        return []
    if knowledge is not None:
        views = [] if knowledge.units is None else dimensional_views(knowledge.units, judged.X, judged.target)
        if views and knowledge.has_strict_units:
            return views
        stated = stated_view(knowledge.constraints, rows.names, judged.X, judged.target)
        views += [] if stated is None else [stated]
    if config.symmetries and rows.groups is None and (knowledge is None or knowledge.units is None):
        shifted = view_from_origins(judged.X)
        if shifted is not None and allowed_functions(config).allows(shifted.operators()):
            views.append(shifted)
    return [View.raw(rows.n_variables), *views] if views else []


def _members(members: Sequence[Mapping[str, Any]]) -> dict[int, Scored]:
    """Members of the front by complexity, in the order stored."""
    found = {}
    for member in members:
        root = Expression.from_dict(member["expression"]).root
        unseen = float(member.get("unseen", member["loss"]))  # states of earlier versions lack it
        scored = Scored(root, float(member["loss"]), float(member["length"]), unseen=unseen)
        if member.get("own") is not None:
            scored.own = np.array(member["own"], float)
            scored.source = Expression.from_dict(member["source"]).root
        found[scored.complexity] = scored
    return found


def _plain_rng(rng: np.random.Generator) -> dict[str, Any]:
    """The generator's state with its 128-bit numbers as text, for JSON."""
    state: Mapping[str, Any] = rng.bit_generator.state
    inner = {key: str(value) for key, value in state["state"].items()}
    plain = {key: state[key] for key in ("bit_generator", "has_uint32", "uinteger")}
    return plain | {"state": inner}


def _rng_from_plain(plain: Mapping[str, Any]) -> np.random.Generator:
    """The generator that `_plain_rng` gave."""
    rng = np.random.default_rng()
    inner = {key: int(value) for key, value in plain["state"].items()}
    rng.bit_generator.state = {**plain, "state": inner}
    return rng


_VERSION_3_NAMES = {"rung": "stage", "known": "tried", "looked": "symmetries_done", "arms": "strategies"}
_VERSION_3_STRATEGY = {"transform": "reading"}
_VERSION_3_ISLAND = {"transform": "reading", "arm": "strategy", "own": "tried"}


def _in_this_version(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Plain data of this version from those of any version that can be read."""
    version = data.get("version")
    if version == VERSION:
        return data
    if version != 3:
        raise ValueError(f"this state has version {version!r}, this program reads 3 and {VERSION}")
    data = _renamed(data, _VERSION_3_NAMES)
    return data | {
        "strategies": [_renamed(strategy, _VERSION_3_STRATEGY) for strategy in data["strategies"]],
        "islands": [_renamed(island, _VERSION_3_ISLAND) for island in data["islands"]],
    }


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The same values under other names."""
    return {names.get(name, name): value for name, value in data.items()}
