"""Method "fitted": islands of GMEQL networks whose every candidate gets constants of its own.

One round of the search, for a few islands at a time:

1. each island draws candidates from its elites and structure parameters (``island.py``, ``sampling.py``), leaving out
   what was tried before this rung and what it tried itself since; islands hear of each other only between rungs;
2. every candidate's constants are fitted to the island's reading of the target (``constants``), in threads;
3. islands keep their elites and learn their structure parameters; the best are polished (``polish.py``) and offered
   to the front of loss against complexity;
4. an island that no longer gains is replaced: a new architecture, a new reading of the target, chosen in proportion
   to what such islands gave so far.

The search ends when a formula is exact, when a budget is spent, or when nothing has been gained for long. With a
candidate budget the result depends on the seed alone, not on threads or clocks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gmeql.fitters.programs import to_node
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, calls, leaves
from gmeql.network.architecture import Architecture, as_architecture
from gmeql.network.repository import size
from gmeql.network.templates import DEFAULT_FUNCTIONS, FAMILIES, FunctionSet, draw_architecture
from gmeql.search.config import IslandConfig, SearchConfig
from gmeql.search.events import Member, Progress
from gmeql.search.island import Island
from gmeql.search.polish import (
    Rows,
    Scored,
    all_recognised,
    clean,
    description_length,
    n_loose_constants,
    polish,
    prune,
    refit,
    without_dead_terms,
)
from gmeql.search.steps import Step, StepTask, take_steps
from gmeql.search.symmetries import View, find_views
from gmeql.search.tried import TriedStructures
from gmeql.search.viewed import ViewedTable, relevance
from gmeql.search.workers import Crew, find_crew

STATE_VERSION = 3
SECONDS_PER_ROW = 3e-6
"""What refitting the front on all rows takes at the end, roughly; that much of ``max_time`` is kept for it."""
EXACT = 1e-10
"""Relative error below which a formula, its constants fitted to convergence, is cut to shape at once."""
LEAST_GAIN = 1e-6
"""Share of the loss that a more complex formula must save to be shown beside a simpler one."""
LARGEST_TIDIED = 60
"""Nodes up to which a formula is put in normal form while the search goes on."""
MIN_WAVE_ROWS = 8
HUBER_CUT = 1.345
"""Residuals beyond this many standard deviations count less (Huber 1964: 95 % efficiency under normal noise)."""


@dataclass
class _Arm:
    """A family of architectures with a view of the data and a reading of the target, and what its islands gave."""

    family: str
    transform: str
    prior: float
    view: int = 0
    tried: float = 0.0
    gained: float = 0.0


class Search:
    """A search over one target. ``run`` yields progress; between events ``state`` is complete and resumable.

    >>> import numpy as np
    >>> X = np.linspace(1, 3, 50)[:, None]
    >>> search = Search(X, 2 * X[:, 0] ** 2 + 1, names=("x",), config=SearchConfig(max_candidates=2000), seed=0)
    >>> for progress in search.run():
    ...     pass
    >>> print(progress.best.expression)
    2*x**2 + 1
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        *,
        sample_weight: np.ndarray | None = None,
        names: tuple[str, ...] | None = None,
        config: SearchConfig | None = None,
        seed: int = 0,
    ) -> None:
        self.config = config or SearchConfig()
        self._on_device = _uses_device(self.config.device)
        self.X = np.ascontiguousarray(X, dtype=float)
        self.y = np.ascontiguousarray(y, dtype=float)
        if self.X.ndim != 2 or self.y.shape != (len(self.X),) or len(self.y) == 0:
            raise ValueError(f"X must be [rows, columns] and y [rows], got {self.X.shape} and {self.y.shape}")
        if not np.isfinite(self.X).all() or not np.isfinite(self.y).all():
            raise ValueError("X and y must be finite; drop or fill missing values first")
        n_variables = self.X.shape[1]
        self.names = tuple(names) if names is not None else tuple(f"x{i + 1}" for i in range(n_variables))
        weights = np.ones(len(self.y)) if sample_weight is None else np.asarray(sample_weight, float)
        self.weights = weights / weights.mean()
        self._given_weights = self.weights
        self.seed = int(seed)
        self.rng = np.random.default_rng(self.seed)
        self.functions = FunctionSet(self.config.functions or DEFAULT_FUNCTIONS)
        self.fixed_architecture = (
            None if self.config.architecture is None else as_architecture(self.config.architecture, n_variables)
        )
        self._order = np.random.default_rng(self.seed + 1).permutation(len(self.y))
        self._relevance = relevance(self.X, self.y, self.weights)
        self.candidates = 0
        self.elapsed = 0.0
        self.opened = 0
        self.rung = 0
        self.last_gain = 0
        self.reason = ""
        self.members: dict[int, Scored] = {}
        self.islands: list[Island] = []
        self.known = TriedStructures(self.config.table_bits)
        self.search_rows = min(self.config.search_rows, len(self.y))
        self.views: list[View] = [View.raw(n_variables)]
        self.looked = not self.config.symmetries or self.fixed_architecture is not None
        self._prepare_rows()
        self.arms = self._make_arms()
        self._lowest = math.inf  # loss of the best island when the last rung ended
        self._front: tuple[Member, ...] | None = None
        self._deadline: float | None = None
        self._closing: float | None = None
        self._crew: Crew | None = None
        self._open_constant()

    # --- data ------------------------------------------------------------------------------------------------------

    def _prepare_rows(self) -> None:
        """Rows for candidates, rows for polishing, all rows for the front."""
        self._sides = [self._side(view) for view in self.views]
        n_polish = self._order[: self.config.polish_rows]
        threads = self.config.n_threads
        self._polish_rows = Rows.of(self.X[n_polish], self.y[n_polish], self.weights[n_polish], self.names, threads)
        light = self._order[: self.config.search_rows]
        self._light_rows = Rows.of(self.X[light], self.y[light], self.weights[light], self.names, threads)
        self._large = len(self.y) > self.config.polish_rows

    def _side(self, view: View) -> ViewedTable:
        few = self._order[: self.search_rows]
        transforms = self.config.readings and self.fixed_architecture is None
        return ViewedTable.of(view, self.X[few], self.y[few], self.weights[few], all_readings=transforms)

    def _make_arms(self) -> list[_Arm]:
        arms = []
        for view, side in enumerate(self._sides):
            weight = self.config.raw_share if view == 0 else (1 - self.config.raw_share) / (len(self._sides) - 1)
            others = [name for name in side.readings if name != "identity"]
            share = self.config.identity_share if others else 1.0
            for family in FAMILIES if self.fixed_architecture is None else ["given"]:
                arms.append(_Arm(family, "identity", weight * share, view))
                arms += [_Arm(family, name, weight * (1 - share) / len(others), view) for name in others]
        return arms

    # --- the algorithm -----------------------------------------------------------------------------------------------

    def run(self) -> Iterator[Progress]:
        """Rounds until the search ends; an event after each. Closing the iterator is a clean stop.

        Where a joblib backend other than threads is active, its workers take the islands' steps (``workers.py``).
        """
        with self._crewed():
            started = time.perf_counter() - self.elapsed
            max_time = self.config.max_time
            self._deadline = None if max_time is None else started + max_time
            # the last moments belong to polishing the front
            self._closing = None if max_time is None else started + max_time - self._closing_seconds(max_time)
            idle = 0  # rounds in a row that found no structure to try: a small network has only so many
            while not self.reason:
                before = self.candidates
                self._round()
                idle = idle + 1 if self.candidates == before else 0
                self.elapsed = time.perf_counter() - started
                self.reason = self._why_stop() or ("exhausted" if idle >= self.config.max_idle_rounds else "")
                if self.reason:
                    self._finish()
                    self.elapsed = time.perf_counter() - started
                yield self.progress()

    @contextmanager
    def _crewed(self) -> Iterator[None]:
        """With workers, where a joblib backend has some; the clock starts when the first is ready."""
        most = self.config.islands_per_generation
        crew = None if self._on_device else find_crew(self.config.n_jobs, self.known, most)
        if crew is None:
            yield
            return
        try:
            crew.open()
            self._crew = crew
            yield
        finally:
            self._crew = None
            crew.close()

    def _round(self) -> None:
        """One step of the islands that are furthest behind; at the end of a rung the better half goes on."""
        if not self.islands:
            self._open_generation()
        goal = self.config.stage_ages[self.rung]
        waiting = [island for island in self.islands if island.age < goal and not island.finished]
        active = waiting if self._on_device else waiting[: self.config.islands]
        for island, step in zip(active, self._take_steps(active, waiting), strict=True):
            if step is None:
                continue
            self.candidates += step.drawn
            before = island.best
            step.absorb(island)
            if island.age == 1 and len(self.members) == 1 and not self._is_closing():
                self._offer_classes(island)  # something to show within the first moments
            if island.best < 0.5 * before and self._is_exact(island) and not self._is_closing():
                self._polish_island(island)
        if len(waiting) <= len(active) and not self._is_closing():
            if all(island.age >= goal or island.finished for island in self.islands):
                self._end_rung()

    def _end_rung(self) -> None:
        """Close the worse half; polish what the better half has. After the last rung a new generation opens."""
        for island in self.islands:
            tried = island.share_tried(self.known)
            if self._crew is not None:
                self._crew.share_tried(tried)
        ranked = sorted(self.islands, key=lambda island: (self._best_of(island), island.number))
        going_on = [island for island in ranked[: (len(ranked) + 1) // 2] if not island.finished]
        lowest = self._best_of(ranked[0])
        settled = lowest > 0.5 * self._lowest  # while the loss still falls, a formula cut to shape is soon outdone
        self._lowest = lowest
        for rank, island in enumerate(ranked):
            if rank < self.config.polished_per_stage and settled:
                self._polish_island(island)
            self._offer_classes(island)
            self.arms[island.strategy].gained += 1.0 / (1 + rank) if rank < self.config.rewarded_per_stage else 0.0
        self.rung += 1
        self.islands = going_on if self.rung < len(self.config.stage_ages) and len(ranked) > 1 else []
        if not self.looked:
            self._look_for_symmetries()
        elif not self.islands:
            self._reweigh()
            self._grow_rows()

    def _look_for_symmetries(self) -> None:
        """Nothing exact after the first rung: see whether smaller tables tell as much, and begin anew with them."""
        self.looked = True
        limit = None if self.config.max_time is None else time.perf_counter() + 0.15 * self.config.max_time
        rows = self._order[: self.config.polish_rows]
        found = find_views(self.X[rows], self.y[rows], lambda: limit is not None and time.perf_counter() > limit)
        for view in found:
            if not self.functions.allows(view.operators()):
                continue
            side = self._side(view)
            if not any(isinstance(leaf, Variable) for column in view.columns for leaf in leaves(column)):
                # nothing is left to explain: the target is a multiple of the factor
                self._offer(self._polished(view.restore(Constant(side.scale)), thorough=True))
            elif "identity" in side.readings:
                self.views.append(view)
                self._sides.append(side)
        if len(self.views) > 1:
            earned = self.arms
            self.arms = self._make_arms()
            for old, new in zip(earned, self.arms, strict=False):
                new.tried, new.gained = old.tried, old.gained
            self.islands = []

    def draw_once(self) -> None:
        """Draw candidates for an island and forget them: the compiled sampler is loaded then."""
        self._open_island().draw(self.known, self.config.max_complexity, 0)

    def _open_generation(self) -> None:
        many = len(self.views) > 1  # many readings of small tables, one of them easy: a short look at each
        self.rung = 0 if many else min(1, len(self.config.stage_ages) - 1)
        n_islands = self.config.islands_per_generation if many else self.config.few_islands
        self.islands = [self._open_island() for _ in range(n_islands)]

    def _grow_rows(self) -> None:
        """Nothing exact in a whole generation: let the next one see more rows."""
        if self.search_rows < min(len(self.y), self.config.max_search_rows):
            self.search_rows = min(2 * self.search_rows, len(self.y), self.config.max_search_rows)
            self._prepare_rows()

    def _reweigh(self) -> None:
        """Huber's weights from the residuals of the best formula: outliers count in proportion to 1/|residual|."""
        if self.config.loss != "huber":
            return
        residual = np.abs(Expression(self._best_scored().root, self.names)(self.X) - self.y)
        cut = HUBER_CUT * 1.4826 * float(np.median(residual))
        if not math.isfinite(cut) or cut <= 0:
            return
        self.weights = self._given_weights * np.minimum(1.0, cut / np.maximum(residual, 1e-300))
        self.weights = self.weights / self.weights.mean()
        self._prepare_rows()
        roots = [m.root for m in self.members.values() if not isinstance(m.root, Constant)]
        self._rank_anew(refit(roots, self._polish_rows))

    def _is_exact(self, island: Island) -> bool:
        """Whether an island's best formula is exact. Near misses reach 1e-8 too; taken to convergence they show."""
        if not self._best_of(island) < (1e-7 * self._polish_rows.spread) ** 2:
            return False
        root = self._raw_formula(island, 0)
        fitted = [] if root is None else refit([root], self._polish_rows, keep_recognised=False, max_steps=60)
        return any(scored.loss < (EXACT * self._polish_rows.spread) ** 2 for scored in fitted)

    def _best_of(self, island: Island) -> float:
        """An island's best loss as a mean squared error of the target."""
        return island.best * self._sides[island.view].units[island.reading]

    def _take_steps(self, islands: list[Island], waiting: list[Island]) -> Sequence[Step | None]:
        """One step of each island; None where time ran out while a worker had it."""
        if self._crew is not None:
            self._order_ahead(self._crew, waiting)
            return [self._crew.take(island, self._is_closing) for island in islands]
        grounds = [self._ground(island) for island in islands]
        return take_steps(
            islands, grounds, self.known, n_threads=self.config.n_threads, on_device=self._on_device
        )  # fmt: skip

    @property
    def _island_config(self) -> IslandConfig:
        """What islands go by: an accelerator wants many candidates at a time."""
        if not self._on_device:
            return self.config.island
        return replace(self.config.island, candidates_per_step=self.config.device_candidates)

    def _order_ahead(self, crew: Crew, waiting: list[Island]) -> None:
        """Order the rest of the rung from the workers, as far as the budget of candidates is sure to reach."""
        goal = self.config.stage_ages[self.rung]
        per_step = self.config.island.candidates_per_step
        left = math.inf if self.config.max_candidates is None else self.config.max_candidates - self.candidates
        for first in range(0, len(waiting), self.config.islands):
            together = waiting[first : first + self.config.islands]
            steps = goal if math.isinf(left) else max(math.ceil(left / (per_step * len(together))), 0)
            for island in together:
                n = min(goal - island.age, steps)
                if n > 0 and not crew.has(island.number):
                    crew.assign(island, self._ground(island), n)
                left -= per_step * n

    def _ground(self, island: Island) -> StepTask:
        target, weights = self._sides[island.view].readings[island.reading]
        salt = _salt(island.reading, island.view)
        return StepTask(island.inputs, target, weights, salt, self.config.max_complexity, self.config.screen_rows)

    # --- islands -------------------------------------------------------------------------------------------------------

    def _open_island(self) -> Island:
        """A new island: the first ones go through the families in order, later ones are drawn by what paid."""
        self.opened += 1
        for _ in range(100):
            arm = self._choose_arm()
            columns = self._choose_columns(self.arms[arm].view)
            if self.fixed_architecture is not None:
                architecture: Architecture | None = self.fixed_architecture
                columns = np.arange(self.X.shape[1])
            else:
                architecture = draw_architecture(
                    self.arms[arm].family, self.rng, len(columns), self.functions, self.config.skip
                )
            if architecture is not None:
                break
            self.opened += 1
        else:
            raise ValueError("no architecture can be made of these functions; allow at least one of add, mul, div, sum")
        self.arms[arm].tried += 1.0
        state = np.array([self.rng.integers(1, 2**63, dtype=np.int64)], np.uint64)
        return self._furnish(
            Island(architecture=architecture, reading=self.arms[arm].transform, config=self._island_config,
                   number=self.opened, random_state=state, strategy=arm, view=self.arms[arm].view, columns=columns)
        )  # fmt: skip

    def _furnish(self, island: Island) -> Island:
        """Hand an island its rows and the prior over its input columns."""
        n = len(self.views[island.view].columns)
        slots = np.concatenate([island.columns, [n], n + 1 + island.columns])
        island.inputs = np.ascontiguousarray(self._sides[island.view].inputs[slots])
        if island.view == 0:
            island.prefer_columns(self._relevance[island.columns])
        return island

    def _choose_arm(self) -> int:
        """Families take turns, readings are drawn in proportion to what their islands gave so far."""
        families = list(dict.fromkeys(arm.family for arm in self.arms))
        wanted = families[(self.opened - 1) % len(families)]
        mine = [i for i, arm in enumerate(self.arms) if arm.family == wanted]
        if self.opened <= 2:
            return mine[0]
        weights = np.array([self._reading_weight(self.arms[i]) * self.arms[i].prior for i in mine])
        if not weights.sum() > 0:
            self.opened += 1
            return self._choose_arm()
        return mine[int(self.rng.choice(len(mine), p=weights / weights.sum()))]

    def _reading_weight(self, arm: _Arm) -> float:
        """What islands with this view and reading earned so far, per island; 0 where the reading does not apply."""
        mine = [other for other in self.arms if (other.view, other.transform) == (arm.view, arm.transform)]
        earned, tried = sum(arm.gained for arm in mine), sum(arm.tried for arm in mine)
        return (earned + 1.0) / (tried + 2.0) * (arm.transform in self._sides[arm.view].readings)

    def _choose_columns(self, view: int) -> np.ndarray:
        """All columns, or for a wide table those that look relevant and a random rest."""
        n = len(self.views[view].columns)
        if n <= self.config.max_columns:
            return np.arange(n)
        half = self.config.max_columns // 2
        leading = np.argsort(-self._relevance, kind="stable")[:half]
        rest = np.setdiff1d(np.arange(n), leading)
        return np.sort(np.concatenate([leading, self.rng.choice(rest, self.config.max_columns - half, replace=False)]))

    def _polish_island(self, island: Island) -> None:
        """Polish an island's first elite that is promising, and offer what comes of it to the front."""
        for e in range(int(size(island.repository))):
            loss = float(island.repository.losses[e]) * self._sides[island.view].units[island.reading]
            if not self._is_promising(loss, int(island.repository.items["complexity"][e])):
                continue
            root = self._formula(island, e)
            try:
                if root is not None:
                    self._offer(self._polished(root, thorough=self._is_exact(island)))
                return
            except (ArithmeticError, ValueError):  # a constant left the range of floating point on the way
                continue

    def _offer_classes(self, island: Island) -> None:
        """Offer the best elite of each class of complexity: what noise hides among long formulas is short ones."""
        n = int(size(island.repository))
        losses = island.repository.losses[:n] * self._sides[island.view].units[island.reading]
        complexities = island.repository.items["complexity"][:n]
        roots: list[Node] = []
        lowest = math.inf
        for complexity in np.unique(complexities):
            e = int(np.flatnonzero(complexities == complexity)[0])
            if losses[e] < 0.98 * lowest and self._is_promising(float(losses[e]), int(complexity)):
                lowest = float(losses[e])
                root = self._raw_formula(island, e)
                if root is not None:
                    roots.append(root)
        self._offer(refit(roots, self._polish_rows, keep_recognised=False))

    def _polished(self, root: Node, thorough: bool) -> list[Scored]:
        """Formulas near ``root``: all the way for an exact one, else a few cuts judged on few rows."""
        if thorough:
            return polish(root, self._polish_rows, self._late, exchange=False)
        met = prune(root, self._light_rows, max_rounds=self.config.light_cuts, out_of_time=self._late)
        best: dict[int, Scored] = {}
        for scored in sorted(met, key=lambda s: (s.complexity, s.loss)):
            if all(scored.loss < other.loss for other in best.values()):
                best[scored.complexity] = scored
        chosen = sorted(best.values(), key=lambda s: s.length)[:4]
        return refit([s.root for s in chosen], self._polish_rows, keep_recognised=False)

    def _late(self) -> bool:
        return self._deadline is not None and time.perf_counter() >= self._deadline

    def _is_promising(self, loss: float, complexity: int) -> bool:
        """Whether a raw elite could reach the front: cutting may halve its complexity, not its loss."""
        return not any(m.loss <= loss for c, m in self.members.items() if c <= max(complexity, 2) // 2 + 2)

    def _formula(self, island: Island, e: int) -> Node | None:
        """The formula of an elite in the user's columns and units, in normal form."""
        root = self._raw_formula(island, e)
        return None if root is None else clean(root, self._polish_rows)

    def _raw_formula(self, island: Island, e: int) -> Node | None:
        program, length, constants = island.program_of(e)
        if not np.isfinite(constants).all():
            return None
        root = to_node(program, length, constants, len(island.columns))
        return self._sides[island.view].formula(root, island.columns, island.reading)

    # --- the front -------------------------------------------------------------------------------------------------------

    def _open_constant(self) -> None:
        """The front's first member: the mean, so that there is an answer from the start."""
        mean = float(np.average(self.y, weights=self.weights))
        loss = float(np.average((self.y - mean) ** 2, weights=self.weights))
        self.members[1] = Scored(Constant(mean), loss, description_length(Constant(mean), loss, self._polish_rows))

    def _offer(self, found: list[Scored]) -> None:
        """Put formulas into the front, and note when the best description length fell."""
        before = self._best_scored().length
        for scored in found:
            if not math.isfinite(scored.loss) or scored.complexity > self.config.max_complexity:
                continue
            if self._is_dominated(scored):
                continue
            scored = self._tidied(scored)
            if self._is_dominated(scored) or not self._is_resolved(scored.root):
                continue
            self.members[scored.complexity] = scored
            self.members = {
                c: m
                for c, m in sorted(self.members.items())
                if m is scored or c < scored.complexity or m.loss < scored.loss
            }
            self._front = None
        if self._best_scored().length < before - 0.5:
            self.last_gain = self.candidates

    def _rank_anew(self, found: list[Scored]) -> None:
        """A front of these formulas alone, whose losses were taken on other rows or with other weights."""
        self.members = {}
        self._open_constant()
        self._front = None
        self._offer(sorted(found, key=lambda s: s.complexity))

    def _is_dominated(self, scored: Scored) -> bool:
        """Whether a simpler member fits as well; among equally complex ones the description length decides."""
        same = self.members.get(scored.complexity)
        if same is not None and same.length <= scored.length:
            return True
        enough = max(scored.loss, self._polish_rows.floor) * (1 + LEAST_GAIN)
        return any(m.loss <= enough for c, m in self.members.items() if c < scored.complexity)

    def _is_resolved(self, root: Node) -> bool:
        """Whether the rows are dense enough for every wave of a formula: two of them to a half-turn, no less.

        A faster wave goes through any points, and says nothing between them.
        """
        longest = math.pi / 2 * max(len(self.y), MIN_WAVE_ROWS)
        waves = [node for node in calls(root) if node.operator in ("sin", "cos")]
        with np.errstate(all="ignore"):
            angles = [Expression(wave.args[0], self.names)(self._polish_rows.X) for wave in waves]
        return all(float(np.ptp(angle)) <= longest for angle in angles)

    def _tidied(self, scored: Scored) -> Scored:
        """The same formula in normal form without terms that rounding swallows, where that is no longer."""
        if scored.root.size > LARGEST_TIDIED:
            return scored
        root = clean(without_dead_terms(scored.root, self._polish_rows), self._polish_rows)
        if root is None or root == scored.root:
            return scored
        # a formula that lives on cancelling digits loses its value in normal form: take the loss anew
        rows = self._polish_rows
        with np.errstate(all="ignore"):
            residual = Expression(root, self.names)(rows.X) - rows.target
            loss = float(np.average(residual**2, weights=rows.weights))
        tidy = Scored(root, loss, description_length(root, loss, rows))
        return tidy if tidy.complexity <= scored.complexity and tidy.length <= scored.length else scored

    def _best_scored(self) -> Scored:
        return min(self.members.values(), key=lambda m: m.length)

    @property
    def front(self) -> tuple[Member, ...]:
        """Formulas from simple to accurate: each more complex one fits better."""
        if self._front is None:
            self._front = tuple(
                Member(Expression(m.root, self.names), math.sqrt(m.loss), c) for c, m in sorted(self.members.items())
            )
        return self._front

    def progress(self) -> Progress:
        best = self._best_scored()
        chosen = next(m for m in self.front if m.complexity == best.complexity)
        rate = self.candidates / self.elapsed if self.elapsed > 0 else 0.0
        return Progress(
            self.elapsed, self.candidates, rate, self.opened, self.front, chosen, bool(self.reason), self.reason
        )

    # --- ending ----------------------------------------------------------------------------------------------------------

    def _closing_seconds(self, max_time: float) -> float:
        """Time kept for the end: polishing, and for a large table the refit of the front on all rows."""
        rows = SECONDS_PER_ROW * len(self.y) if self._large else 0.0
        return min(0.2 * max_time, 3.0) + min(0.3 * max_time, rows)

    def _is_closing(self) -> bool:
        return self._closing is not None and time.perf_counter() >= self._closing

    def _why_stop(self) -> str:
        config = self.config
        best = self._best_scored()
        if best.loss <= 100 * self._polish_rows.floor and len(self.y) > 2 * n_loose_constants(best.root) + 2:
            # unless its constants are numbers people write, a long exact formula may have a shorter twin: look on
            if best.complexity <= 20 or all_recognised(best.root) or self.candidates >= 2 * max(self.last_gain, 10_000):
                return "exact"
        if config.max_candidates is not None and self.candidates >= config.max_candidates:
            return "max_candidates"
        if self._is_closing():
            return "max_time"
        if config.patience is not None and self.candidates - self.last_gain >= config.patience:
            return "no gain"
        return ""

    def finish(self, reason: str) -> Progress:
        """End the search between two rounds for a reason of the caller's, with the polishing a budget's end gets."""
        self.reason = reason
        self._finish()
        return self.progress()

    def _finish(self) -> None:
        """Polish the most promising members all the way; refit and rank on all rows where the search saw a sample."""
        if self.reason != "exact":
            self._polish_leading(1)
            for island in sorted(self.islands, key=self._best_of)[:2]:
                if island.best < math.inf and not self._late():
                    self._polish_island(island)
            self._polish_leading(self.config.polished_at_end)
        if not self._large:
            return
        rows = Rows.of(self.X, self.y, self.weights, self.names, self.config.n_threads)
        found = refit([m.root for m in self.members.values() if m.complexity > 1], rows, max_steps=3)
        self._rank_anew(found)

    def _polish_leading(self, n: int) -> None:
        """Polish the n members of least description length, the best first."""
        for scored in sorted(self.members.values(), key=lambda m: m.length)[:n]:
            if not self._late() and not isinstance(scored.root, Constant):
                self._offer(polish(scored.root, self._polish_rows, self._late))

    # --- state -----------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything needed to go on exactly here: plain scalars, lists and arrays."""
        return {
            "version": STATE_VERSION,
            "seed": self.seed,
            "names": list(self.names),
            "config": self.config.to_dict(),
            "rng": _plain_rng(self.rng.bit_generator.state),
            "candidates": int(self.candidates),
            "elapsed": float(self.elapsed),
            "opened": int(self.opened),
            "rung": int(self.rung),
            "last_gain": int(self.last_gain),
            "lowest": self._lowest if math.isfinite(self._lowest) else None,
            "search_rows": int(self.search_rows),
            "reason": self.reason,
            "weights": self.weights if self.config.loss == "huber" else None,
            "known": self.known.to_dict(),
            "looked": bool(self.looked),
            "views": [view.to_dict() for view in self.views],
            "arms": [asdict(arm) for arm in self.arms],
            "members": [
                {"expression": Expression(m.root, self.names).to_dict(), "loss": m.loss, "length": m.length}
                for m in self.members.values()
            ],
            "islands": [island.to_dict() for island in self.islands],
        }

    @classmethod
    def from_state(
        cls,
        state: dict[str, Any],
        X: np.ndarray,
        y: np.ndarray,
        *,
        sample_weight: np.ndarray | None = None,
        config: SearchConfig | None = None,
    ) -> Search:
        """The search as it was when ``state`` was taken; ``config`` may give it a new budget."""
        if state.get("version") != STATE_VERSION:
            raise ValueError(f"this state has version {state.get('version')!r}, this program reads {STATE_VERSION}")
        config = config or SearchConfig.from_dict(state["config"])
        search = cls(X, y, sample_weight=sample_weight, names=tuple(state["names"]), config=config, seed=state["seed"])
        if state.get("weights") is not None:
            search.weights = np.array(state["weights"], float)
        search.search_rows = int(state["search_rows"])
        search.looked = bool(state["looked"])
        search.views = [View.from_dict(view) for view in state["views"]]
        search._prepare_rows()
        search.rng.bit_generator.state = _full_rng(state["rng"])
        for name in ("candidates", "opened", "rung", "last_gain"):
            setattr(search, name, int(state[name]))
        search.elapsed = float(state["elapsed"])
        search._lowest = math.inf if state["lowest"] is None else float(state["lowest"])
        search.known = TriedStructures.from_dict(state["known"], config.table_bits)
        search.arms = [_Arm(**arm) for arm in state["arms"]]
        search.members = {}
        for member in state["members"]:
            root = Expression.from_dict(member["expression"]).root
            scored = Scored(root, float(member["loss"]), float(member["length"]))
            search.members[scored.complexity] = scored
        search.islands = [search._furnish(Island.from_dict(data, search._island_config)) for data in state["islands"]]
        return search


def _salt(name: str, view: int) -> int:
    """A reading's and view's own corner of the table of tried structures; that of the raw target is 0."""
    reading = 0 if name == "identity" else sum(ord(c) << (8 * (i % 7)) for i, c in enumerate(name))
    return (reading + view * 0x9E3779B97F4A7C15) % 2**64


def _uses_device(device: str) -> bool:
    """Whether candidates are fitted on an accelerator.

    "auto" means the CPU so far: see docs/performance.md for the measurement that this rule rests on.
    """
    if device != "gpu":
        return False
    from gmeql.fitters.device import available

    if not available():
        raise ValueError(
            "device='gpu', but JAX sees no accelerator; install JAX for it (the extra jax[cuda] on NVIDIA) "
            "or use device='auto' or 'cpu'"
        )
    return True


def _plain_rng(state: Mapping[str, Any]) -> dict[str, Any]:
    """The generator's state with its 128-bit numbers as text, for JSON."""
    inner = {key: str(value) for key, value in state["state"].items()}
    return {
        "bit_generator": state["bit_generator"],
        "state": inner,
        "has_uint32": state["has_uint32"],
        "uinteger": state["uinteger"],
    }


def _full_rng(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "state": {key: int(value) for key, value in state["state"].items()}}
