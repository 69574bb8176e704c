"""From one system to its neighbours: a term less, a factor that is 1, constants that are equal, a part cut off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.sides import RightSides, has_coefficient, terms_of, with_values
from gmeql.differential.motion.systems import System, outlines
from gmeql.differential.motion.terms import outline, with_coefficient
from gmeql.formula.nodes import Call, Constant, Node, build, fold
from gmeql.formula.products import split_terms
from gmeql.search.polish.cutting import reductions

Equations = tuple[Node, ...]


def shorter_systems(system: System, *, doubtful_only: bool = True) -> list[Equations]:
    """The system without an uncertain term, or with a factor that may be 1 left out; the least certain first.

    Without `doubtful_only` every term is tried: where points are exact, certainty knows only the rounding.
    """
    numbers = MOTION.system
    values = np.array(RightSides.of(system.equations, 0).values)
    certainty = system.fitted.certainty
    with np.errstate(all="ignore"):
        off_one = np.abs(np.abs(values) - 1.0) * certainty / np.abs(values)
    tried = [(doubt, "term", place) for doubt, place in _doubtful_terms(system)]
    tried += [(float(off), "unit", (k, 0)) for k, off in enumerate(off_one) if off <= numbers.near_one]
    found, structure = [], outlines(system.equations)
    for doubt, kind, (a, b) in sorted(tried):
        if kind == "unit":
            changed = values.copy()
            changed[a] = np.sign(values[a])
            shorter = tuple(map(tidied, with_values(system.equations, changed.tolist())))
            if outlines(shorter) != structure:  # a constant term of 1 stays a constant
                found.append(shorter)
        elif doubt <= numbers.certain or not doubtful_only:
            found.append(_without_term(system.equations, a, b))
    return found[: numbers.cuts] if doubtful_only else found


def sharing_systems(system: System) -> list[Equations]:
    """The system with the constants of a term of two equations made equal, up to their sign, where they may be.

    Those that differ least, in standard errors, come first.
    """
    found = []
    for one, two in combinations(_certain_terms(system), 2):
        apart = _apart(one, two)
        if one.equation == two.equation or one.same_as(two) or not apart <= MOTION.system.near_equal:
            continue
        share = one.certainty**2 / (one.certainty**2 + two.certainty**2)
        size = abs(one.coefficient) ** share * abs(two.coefficient) ** (1.0 - share)
        alone = max(one, two, key=lambda term: term.certainty).alone
        changed = [list(terms_of(root)) for root in system.equations]
        for term in (one, two):
            changed[term.equation][term.place] = tidied(with_coefficient(alone, math.copysign(size, term.coefficient)))
        found.append((apart, tuple(build("add", *parts) for parts in changed)))
    return [equations for _, equations in sorted(found, key=lambda pair: pair[0])][: MOTION.system.cuts]


@dataclass(frozen=True)
class _CertainTerm:
    """A term with constants: where it stands, what it is, and the certainty of its least certain constant."""

    equation: int
    place: int
    coefficient: float
    alone: Node
    certainty: float

    def same_as(self, other: _CertainTerm) -> bool:
        return self.alone == other.alone and abs(self.coefficient) == abs(other.coefficient)


def _certain_terms(system: System) -> Iterator[_CertainTerm]:
    """Terms of one product each whose constants are certain to some degree."""
    position = 0
    for i, root in enumerate(system.equations):
        for k, term in enumerate(terms_of(root)):
            (count,) = RightSides.of([term], 0).counts
            certainty = float(system.fitted.certainty[position : position + count].min(initial=math.inf))
            position += count
            split = split_terms(term)
            if len(split) == 1 and not isinstance(split[0][1], Constant) and 0 < certainty < math.inf:
                yield _CertainTerm(i, k, *split[0], certainty)


def _apart(one: _CertainTerm, two: _CertainTerm) -> float:
    """How many standard errors the constants of two terms of one structure differ at most; `inf` for others."""
    if outline(one.alone) != outline(two.alone):
        return math.inf
    pairs = zip(*([term.coefficient, *RightSides.of([term.alone], 0).values] for term in (one, two)), strict=True)
    error = math.hypot(1.0 / one.certainty, 1.0 / two.certainty)
    ratios = [abs(a / b) if a and b else math.inf for a, b in pairs]
    return max(abs(math.log(ratio)) for ratio in ratios) / error


def tidied(root: Node) -> Node:
    """The tree with factors of 1 and the like left out, its sums as they are."""
    return fold(root, lambda leaf: leaf, lambda call, args: build(call.operator, *_signs(call, args)))


def _signs(call: Call, args: list[Node]) -> list[Node]:
    """The arguments of a product of -1 and others as those of a negative one."""
    if call.operator == "mul" and Constant(-1.0) in args and len(args) > 1:
        others = [arg for arg in args if arg != Constant(-1.0)]
        return [build("neg", others[0]), *others[1:]] if others else args
    return args


def merged(root: Node) -> Node:
    """A sum in which no term stands twice: 2*x + y + x is 3*x + y."""
    split = split_terms(root)
    totals: dict[Node, float] = {}
    for coefficient, term in split:
        totals[term] = totals.get(term, 0.0) + coefficient
    if len(totals) == len(split):
        return root
    return build("add", *(with_coefficient(term, coefficient) for term, coefficient in totals.items()))


def _doubtful_terms(system: System) -> Iterator[tuple[float, tuple[int, int]]]:
    """For each term of a sum: how many standard errors its coefficient is from 0, its equation and its place there."""
    position = 0
    for i, root in enumerate(system.equations):
        terms = terms_of(root)
        for k, term in enumerate(terms):
            (count,) = RightSides.of([term], 0).counts
            certainty = system.fitted.certainty[position : position + count]
            position += count
            if len(terms) > 1 and count:
                yield float(certainty[0] if has_coefficient(term) else certainty.min()), (i, k)


def _without_term(equations: Equations, i: int, k: int) -> Equations:
    terms = terms_of(equations[i])
    return (*equations[:i], build("add", *terms[:k], *terms[k + 1 :]), *equations[i + 1 :])


def cut_systems(system: System) -> Iterator[Equations]:
    """The system with one cut at any depth of one equation, the simplest cuts of the longest equations first."""
    for j, root in sorted(enumerate(system.equations), key=lambda pair: -pair[1].size):
        for shorter in dict.fromkeys(reductions(root)):
            yield (*system.equations[:j], shorter, *system.equations[j + 1 :])
