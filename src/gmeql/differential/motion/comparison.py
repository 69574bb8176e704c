"""Systems compared: each structure fitted to the trajectories, pruned, and led on to its neighbours."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.integral_offers import offers_in_integral_form
from gmeql.differential.motion.joint import joint_systems, longer_systems, offers
from gmeql.differential.motion.moves import cut_systems, merged, sharing_systems, shorter_systems
from gmeql.differential.motion.outlook import outlook_cost
from gmeql.differential.motion.systems import System, fit_system, outlines
from gmeql.formula.nodes import Node
from gmeql.formula.products import split_terms


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


def compare(comparison: Comparison, lists: Sequence[Sequence[Node]], searched: Sequence[Sequence[Node]]) -> None:
    """Systems of the equations in `lists`, one list for each state, and their neighbours, until nothing is gained."""
    first = comparison.take([choices[0] for choices in lists], comparison.best)
    compare_sizes(comparison, lists)
    if comparison.is_done:
        return
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


def compare_sizes(comparison: Comparison, lists: Sequence[Sequence[Node]]) -> None:
    """One system for each number of terms, the fewest first, until one is exact."""
    for start in _starts(lists):
        if comparison.is_done:
            return
        comparison.take(start)


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
