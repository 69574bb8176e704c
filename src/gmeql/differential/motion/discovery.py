"""From trajectories to a front of systems: propose, compare, prune, until the time is up.

1. curves, their slopes and their noise (`smoothing`);
2. sums of products as first equations of each state (`terms`), compared as systems on the trajectories: where one is exact,
   that is all;
3. the search for formulas on the slopes, state by state; what it found, and sums with its terms, ranked in integral form;
4. systems of the best of them, refitted on the trajectories, one equation exchanged or one term dropped at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.proposals import Proposal, proposed, shortlist, state_front, sums
from gmeql.differential.motion.sides import RightSides
from gmeql.differential.motion.systems import System, SystemFront, fit_system, outline
from gmeql.formula.nodes import Call, Constant, Node, build, tree_complexity
from gmeql.model.fitting import RunResult, search_targets
from gmeql.model.front import Front
from gmeql.search.config import SearchConfig


@dataclass(frozen=True)
class Discovery:
    """What was found."""

    systems: SystemFront
    fronts: tuple[Front, ...]
    candidates: int
    seconds: float
    reason: str
    interrupted: bool


@dataclass
class Comparison:
    """Systems compared so far. Each structure is fitted once."""

    motion: Motion
    deadline: float
    known: dict[tuple[Node, ...], System] = field(default_factory=dict)
    best: System | None = None

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline

    @property
    def is_exact(self) -> bool:
        """Whether the best system meets the measurements to the accuracy of the integration."""
        best = self.best
        return best is not None and best.loss <= 10.0 * MOTION.system.exact

    def take(self, equations: Sequence[Node], like: System | None = None) -> System:
        """A system fitted and pruned; start values are those of `like`. The best one is remembered."""
        system = self._fit(equations, like)
        while system.is_finite and not self.is_late:
            shorter = self._pruned(system)
            if shorter is None:
                break
            system = shorter
        return system

    def _fit(self, equations: Sequence[Node], like: System | None) -> System:
        key = outline(equations)
        if key not in self.known:
            starts = None if like is None or not like.is_finite else like.fitted.starts
            system = fit_system(self.motion, equations, starts=starts)
            if starts is not None and (self.best is None or system.length > self.best.length + MOTION.system.lost):
                again = fit_system(self.motion, equations)  # those start values may have led astray
                system = min(system, again, key=lambda s: s.length)
            self.known[key] = system
            if system.is_finite and (self.best is None or system.length < self.best.length):
                self.best = system
        return self.known[key]

    def _pruned(self, system: System) -> System | None:
        """The system without its least certain term, where its description becomes shorter."""
        for equations in weakest_cuts(system):
            shorter = self._fit(equations, system)
            if shorter.length < system.length:
                return shorter
            if self.is_late:
                break
        return None

    def finish(self) -> None:
        """Fit the best system to the last digit."""
        if self.best is not None:
            key = outline(self.best.equations)
            final = fit_system(self.motion, self.best.equations, starts=self.best.fitted.starts, quick=False)
            if final.length <= self.best.length:
                self.known[key] = self.best = final


def weakest_cuts(system: System) -> list[tuple[Node, ...]]:
    """The system without one of the terms whose coefficients are least certain, the least certain first."""
    position, places = 0, []
    for i, root in enumerate(system.equations):
        terms = root.args if isinstance(root, Call) and root.operator == "add" else (root,)
        for k, term in enumerate(terms):
            (count,) = RightSides.of([term], len(system.equations)).counts
            certainty = system.fitted.certainty[position : position + count]
            position += count
            if len(terms) > 1 and count:
                places.append((float(certainty[0]) if _has_coefficient(term) else float(certainty.min()), i, k))
    found = []
    for doubt, i, k in sorted(places)[: MOTION.system.cuts]:
        if doubt > MOTION.system.certain:
            break
        root = system.equations[i]
        assert isinstance(root, Call)
        shorter = build("add", *root.args[:k], *root.args[k + 1 :])
        found.append((*system.equations[:i], shorter, *system.equations[i + 1 :]))
    return found


def _has_coefficient(term: Node) -> bool:
    return isinstance(term, Constant) or (
        isinstance(term, Call) and term.operator == "mul" and isinstance(term.args[0], Constant)
    )


def discover(
    motion: Motion,
    *,
    config: SearchConfig,
    seed: int,
    callbacks: Sequence[Callable[[Any], Any]] = (),
    verbose: int = 0,
) -> Discovery:
    """Search for systems of equations until the time of `config` is up, or one is exact."""
    begin = time.monotonic()
    max_time = config.max_time if config.max_time is not None else float("inf")
    comparison = Comparison(motion, begin + (1.0 - MOTION.system.reserve) * max_time)
    E = motion.n_equations
    searched: list[list[Node]] = [[] for _ in range(E)]
    proposals: list[list[Proposal]] = []
    candidates, reason, interrupted = 0, "time is up", False
    try:
        proposals = [proposed(motion, j, sums(motion, j)) for j in range(E)]
        compare(comparison, [shortlist(p) for p in proposals], sweeps=1)
        if not comparison.is_exact:
            for j in range(E):
                result = _search(motion, j, config, seed + j, begin, callbacks, verbose)
                candidates += result.candidates
                searched[j] = [m.expression.root for m in (*result.front, *result.front.others[: MOTION.system.others])]
                if result.interrupted:
                    interrupted = True
                    break
            for j in range(E):
                roots = [*searched[j], *sums(motion, j, searched[j]), *(p.root for p in proposals[j])]
                proposals[j] = proposed(motion, j, roots)
            compare(comparison, [shortlist(p) for p in proposals], sweeps=0 if interrupted else MOTION.system.sweeps)
        reason = "interrupted" if interrupted else "exact" if comparison.is_exact else reason
        comparison.finish()
    except KeyboardInterrupt:
        if comparison.best is None:
            raise
        reason, interrupted = "interrupted", True
    fronts = tuple(state_front(motion, j, proposals[j]) for j in range(E))
    systems = SystemFront.of(list(comparison.known.values()), motion.columns.names)
    return Discovery(systems, fronts, candidates, time.monotonic() - begin, reason, interrupted)


def compare(comparison: Comparison, lists: Sequence[Sequence[Node]], *, sweeps: int) -> None:
    """Systems of the equations in `lists`, one list for each state, the most promising first."""
    first = comparison.take([choices[0] for choices in lists], comparison.best)
    comparison.take([max(choices, key=tree_complexity) for choices in lists], first)
    for _ in range(sweeps):
        before = comparison.best
        for j, choices in enumerate(lists):
            for choice in choices:
                if comparison.is_late or comparison.is_exact:
                    return
                base = comparison.best or first
                comparison.take([*base.equations[:j], choice, *base.equations[j + 1 :]], base)
        if comparison.best is before:
            return


def _search(
    motion: Motion,
    j: int,
    config: SearchConfig,
    seed: int,
    begin: float,
    callbacks: Sequence[Callable[[Any], Any]],
    verbose: int,
) -> RunResult:
    """The search for formulas of one state's slope, with an even share of what the earlier states left."""
    left = motion.n_equations - j
    changes: dict[str, Any] = {}
    if config.max_time is not None:
        spent = time.monotonic() - begin
        changes["max_time"] = max((MOTION.system.search_share * config.max_time - spent) / left, 0.5)
    if config.max_candidates is not None:
        changes["max_candidates"] = max(config.max_candidates // motion.n_equations, 1)
    rows = motion.target_rows(j)
    return search_targets(
        rows,
        motion.columns.names,
        method="fitted",
        config=replace(config, **changes),
        seed=seed,
        callbacks=list(callbacks),
        verbose=verbose,
    )[0]
