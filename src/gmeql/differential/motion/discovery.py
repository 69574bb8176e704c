"""From trajectories to a front of systems: propose, compare, prune, until the time is up.

1. curves, their slopes and their noise (`smoothing`);
2. sums of products as first equations of each state (`terms`), compared as systems on the trajectories: where one is exact,
   that is all;
3. the search for formulas on the slopes, state by state; what it found, and sums with its terms, ranked in integral form;
4. systems of the best of them, refitted on the trajectories, one equation exchanged or one term dropped at a time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.exports import lines
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.integral_offers import offers_in_integral_form
from gmeql.differential.motion.joint import joint_systems, longer_systems, offers
from gmeql.differential.motion.moves import cut_systems, merged, sharing_systems, shorter_systems
from gmeql.differential.motion.outlook import outlook_cost
from gmeql.differential.motion.proposals import (
    Proposal,
    plain_sums,
    proposed,
    shortlist,
    state_front,
    sums,
    sums_of_fitted,
)
from gmeql.differential.motion.systems import System, SystemFront, fit_system, outlines, plain
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.formula.products import split_terms
from gmeql.model.fitting import STOPPED, RunResult, search_targets
from gmeql.model.front import Front
from gmeql.model.progress import Notes
from gmeql.search.config import SearchConfig

INTERRUPTED = "interrupted"
ENDED_BY_USER = (INTERRUPTED, STOPPED)
"""Reasons of a search for which nothing else is begun."""


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
    """Systems compared so far, the best fit of each structure."""

    motion: Motion
    deadline: float
    known: dict[tuple[Node, ...], System] = field(default_factory=dict)
    tries: Counter[tuple[Node, ...]] = field(default_factory=Counter)
    best: System | None = None
    tell: Callable[[System, int], None] | None = None
    """Called with a new best system and how many were compared."""

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline

    @property
    def is_done(self) -> bool:
        return self.is_exact or self.is_late

    @property
    def is_exact(self) -> bool:
        """Whether the best system meets the measurements to the accuracy of the integration, and no simpler one nearly does.

        Sums of many terms come close to anything, each a little closer than the one before; the truth falls off a cliff.
        """
        best = self.best
        if best is None or best.loss > 10.0 * MOTION.system.exact:
            return False
        return all(s.loss >= MOTION.system.cliff * best.loss for s in self._finite if s.complexity < best.complexity)

    @property
    def _finite(self) -> list[System]:
        return [system for system in self.known.values() if system.is_finite]

    def take(self, equations: Sequence[Node], like: System | None = None) -> System:
        """A system fitted and pruned; start values are those of `like`. The best one is remembered."""
        system = self.fit(equations, like)
        while system.is_finite and not self.is_late:
            shorter = self._pruned(system)
            if shorter is None:
                break
            system = shorter
        return system

    def fit(self, equations: Sequence[Node], like: System | None) -> System:
        """A system with the constants of its neighbour `like`; known structures are fitted again where that one is
        so much better that the fit must have been led astray."""
        equations = tuple(map(merged, equations))
        key = outlines(equations)
        known = self.known.get(key)
        if known is not None:
            if (
                like is None
                or known.length < like.length + MOTION.system.lost
                or self.tries[key] >= MOTION.system.tries
            ):
                return known
        system = self._from(equations, like)
        self.tries[key] += 1
        if known is not None and known.length <= system.length:
            return known
        self.known[key] = system
        if system.is_finite and (self.best is None or system.length < self.best.length):
            self.best = system
            if self.tell is not None:
                self.tell(system, len(self.known))
        return system

    def _from(self, equations: Sequence[Node], like: System | None) -> System:
        if like is None or not like.is_finite:
            return fit_system(self.motion, equations)
        system = fit_system(self.motion, equations, starts=like.fitted.starts)
        if self.best is not None and system.length <= self.best.length + MOTION.system.lost:
            return system
        again = fit_system(self.motion, equations)  # those start values may have led astray
        return min(system, again, key=lambda s: s.length)

    def _pruned(self, system: System) -> System | None:
        """The system without its least certain part, where its description becomes shorter."""
        for equations in (*sharing_systems(system), *shorter_systems(system)):
            shorter = self.fit(equations, system)
            if shorter.length < system.length:
                return shorter
            if self.is_late:
                break
        return None

    def unseen_base(self, seen: set[tuple[Node, ...]]) -> System | None:
        """The shortest of the few best systems that is not in `seen`, which takes it in; None where all are."""
        best = sorted(self.known, key=lambda key: self.known[key].length)[: MOTION.joint.bases]
        for key in best:
            if key not in seen and self.known[key].is_finite:
                seen.add(key)
                return self.known[key]
        return None

    def settle(self) -> None:
        """Of systems about as good as the best, prefer what stays bounded and near the measurements on its own, too."""
        if self.best is None:
            return
        limit = self.best.length + MOTION.system.runaway_cost + MOTION.system.lost_alone_cost
        near = sorted((s.length, key) for key, s in enumerate(self.known.values()) if s.length <= limit)
        keys = list(self.known)
        reached = math.inf
        for length, place in near[: MOTION.system.finalists]:
            if length >= reached:
                break  # outlooks cost, they never pay
            system = self.known[keys[place]]
            self.known[keys[place]] = replace(system, length=length + outlook_cost(self.motion, system))
            reached = min(reached, self.known[keys[place]].length)
        best = self.best = min(self._finite, key=lambda s: s.length)
        # what the best was preferred to, although simpler and closer, must not hide it on the front
        self.known = {
            key: s for key, s in self.known.items() if s is best or s.complexity > best.complexity or s.loss > best.loss
        }

    def finish(self) -> None:
        """Leave out what an exact system does not need, and fit the best one to the last digit."""
        self.settle()
        while self.is_exact and self.best is not None:
            before = self.best
            for equations in (*shorter_systems(before, doubtful_only=False), *cut_systems(before)):
                self.fit(equations, before)
            if self.best is before:
                break
        if self.best is not None:
            key = outlines(self.best.equations)
            final = fit_system(self.motion, self.best.equations, starts=self.best.fitted.starts, quick=False)
            if final.length <= self.best.length:
                self.known[key] = self.best = final


def discover(
    motion: Motion,
    *,
    config: SearchConfig,
    seed: int,
    callbacks: Sequence[Callable[[Any], Any]] = (),
    verbose: int = 0,
    stopped: bool = False,
) -> Discovery:
    """Search for systems of equations until the time of `config` is up, one is exact, or a callback returns True.

    Ctrl-C ends it with what was found, at the least a sum of plain terms for each state, which is all that is looked for
    where it was `stopped` already.
    """
    begin = time.monotonic()
    max_time = config.max_time if config.max_time is not None else float("inf")
    tell = _teller(motion, begin, config.max_time) if verbose else None
    comparison = Comparison(motion, begin + MOTION.system.first_share * max_time, tell=tell)
    E = motion.n_equations
    searched: list[list[Node]] = [[] for _ in range(E)]
    proposals: list[list[Proposal]] = []
    candidates, reason = 0, "time is up"
    try:
        if stopped:
            raise KeyboardInterrupt
        for j in range(E):
            until = begin + (j + 1) / E * MOTION.system.proposal_share * max_time
            proposals.append(proposed(motion, j, sums(motion, j), until=until))
        for j in range(E):
            until = begin + (1 + (j + 1) / E) * MOTION.system.proposal_share * max_time
            roots = sums_of_fitted(motion, j, proposals)
            proposals[j] = proposed(motion, j, roots, known=proposals[j], until=until)
        compare(comparison, [shortlist(p) for p in proposals], searched)
        ended = ""
        if not comparison.is_exact:
            for j in range(E):
                result = _search(motion, j, config, seed + j, begin, callbacks, verbose)
                candidates += result.candidates
                searched[j] = [m.expression.root for m in (*result.front, *result.front.others[: MOTION.system.others])]
                if result.reason in ENDED_BY_USER:
                    ended = result.reason
                    break
        if not comparison.is_exact and not ended:
            for j in range(E):
                roots = [*searched[j], *sums(motion, j, searched[j])]
                until = begin + (MOTION.system.search_share + (j + 1) / E * MOTION.system.proposal_share) * max_time
                proposals[j] = proposed(motion, j, roots, known=proposals[j], until=until)
            comparison.deadline = begin + (1.0 - MOTION.system.reserve) * max_time
            compare(comparison, [shortlist(p) for p in proposals], searched)
        reason = ended or ("exact" if comparison.is_exact else reason)
        comparison.finish()
    except KeyboardInterrupt:
        reason = INTERRUPTED
        if comparison.best is None:
            _sparse_start(comparison, proposals)
    fronts = tuple(state_front(motion, j, proposals[j]) for j in range(E))
    systems = SystemFront.of(list(comparison.known.values()), motion.columns.names)
    return Discovery(systems, fronts, candidates, time.monotonic() - begin, reason, reason == INTERRUPTED)


def _sparse_start(comparison: Comparison, proposals: list[list[Proposal]]) -> None:
    """A first system, of plain sums for states that have no equation yet: it takes a moment, and is better than nothing.

    `proposals` are completed.
    """
    motion = comparison.motion
    for j in range(len(proposals), motion.n_equations):
        proposals.append(proposed(motion, j, plain_sums(motion, j)))
    comparison.fit([of_state[0].root for of_state in proposals], None)


def _teller(motion: Motion, begin: float, max_time: float | None) -> Callable[[System, int], None]:
    """Says on stderr which system is the best so far."""
    notes, budget = Notes(), "" if max_time is None else f" of {max_time:g} s"

    def tell(system: System, compared: int) -> None:
        right = [Expression(plain(root), motion.columns.names) for root in system.equations]
        found = "; ".join(lines(motion.columns, right))
        notes.say(
            f"{time.monotonic() - begin:.1f} s{budget}, {compared} system{'s' * (compared > 1)} compared, nearest: {found}"
        )

    return tell


def compare(comparison: Comparison, lists: Sequence[Sequence[Node]], searched: Sequence[Sequence[Node]]) -> None:
    """Systems of the equations in `lists`, one list for each state, and their neighbours, until nothing is gained."""
    first = comparison.take([choices[0] for choices in lists], comparison.best)
    for start in _starts(lists):
        if comparison.is_done:
            return
        comparison.take(start)
    if len(lists) > 1:
        _combine(comparison, lists)
        offered = offers_in_integral_form(comparison.motion, comparison.best or first, lists)
        for equations in joint_systems(comparison.motion, offered):
            if comparison.is_done:
                return
            comparison.take(equations)
    seen: set[tuple[Node, ...]] = set()
    for _ in range(MOTION.system.sweeps):
        before = comparison.best
        # first: what the trajectories ask for leads further than what the curves propose
        _improve(comparison, searched, seen)
        for j, choices in enumerate(lists):
            for choice in choices:
                if comparison.is_done:
                    return
                base = comparison.best or first
                comparison.take([*base.equations[:j], choice, *base.equations[j + 1 :]], base)
        if comparison.best is before:
            return


def _combine(comparison: Comparison, lists: Sequence[Sequence[Node]]) -> None:
    """Systems of the first equations of each state, in every combination: the best two may be of use only together.

    All are fitted once, those whose ranks add up to the least first; the best few are pruned.
    """
    numbers = MOTION.system
    ranks = product(*(range(min(len(choices), numbers.combined)) for choices in lists))
    fitted = []
    for chosen in islice(sorted(ranks, key=lambda places: (sum(places), places)), numbers.combinations):
        if comparison.is_done:
            return
        fitted.append(comparison.fit([choices[k] for choices, k in zip(lists, chosen, strict=True)], None))
    for system in sorted(fitted, key=lambda s: s.length)[: numbers.pruned]:
        if comparison.is_done:
            return
        comparison.take(system.equations, system)


def _starts(lists: Sequence[Sequence[Node]]) -> list[tuple[Node, ...]]:
    """Systems to begin with: of the first equations of each number of terms, where a state has none, of the next less."""
    by_terms = [{len(split_terms(root)): root for root in reversed(choices)} for choices in lists]
    largest = max(max(choices) for choices in by_terms)
    found = []
    for count in range(1, largest + 1):
        nearest = [min(choices, key=lambda n: (n > count, abs(n - count))) for choices in by_terms]
        found.append(tuple(choices[n] for choices, n in zip(by_terms, nearest, strict=True)))
    return list(dict.fromkeys(found))


def _improve(comparison: Comparison, searched: Sequence[Sequence[Node]], seen: set[tuple[Node, ...]]) -> None:
    """Other terms, terms more and parts less of the best systems, as long as that makes a description shorter.

    `seen` are the structures around which terms were chosen before.
    """
    before = None
    while comparison.best is not None and comparison.best is not before:
        while (base := comparison.unseen_base(seen)) is not None:
            if comparison.is_done:
                return
            _choose_together(comparison, base, searched)
        before = comparison.best
        for equations in (*longer_systems(offers(comparison.motion, before, searched)), *cut_systems(before)):
            if comparison.is_done:
                return
            comparison.take(equations, comparison.best)


def _choose_together(comparison: Comparison, base: System, searched: Sequence[Sequence[Node]]) -> None:
    """The terms of all equations chosen anew, as the trajectories of `base` see them."""
    for equations in joint_systems(comparison.motion, offers(comparison.motion, base, searched)):
        if comparison.is_done:
            return
        comparison.take(equations, base)


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
