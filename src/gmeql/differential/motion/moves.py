"""From one system to its neighbours: a term less, a factor that is 1, a part cut off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.sides import RightSides, with_values
from gmeql.differential.motion.systems import System, outlines, terms_of
from gmeql.differential.motion.terms import with_coefficient
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
                yield float(certainty[0] if _has_coefficient(term) else certainty.min()), (i, k)


def _has_coefficient(term: Node) -> bool:
    if isinstance(term, Call) and term.operator == "neg":
        return _has_coefficient(term.args[0])
    return isinstance(term, Constant) or (
        isinstance(term, Call) and term.operator == "mul" and isinstance(term.args[0], Constant)
    )


def _without_term(equations: Equations, i: int, k: int) -> Equations:
    terms = terms_of(equations[i])
    return (*equations[:i], build("add", *terms[:k], *terms[k + 1 :]), *equations[i + 1 :])


def cut_systems(system: System) -> Iterator[Equations]:
    """The system with one cut at any depth of one equation, the simplest cuts of the longest equations first."""
    for j, root in sorted(enumerate(system.equations), key=lambda pair: -pair[1].size):
        for shorter in dict.fromkeys(reductions(root)):
            yield (*system.equations[:j], shorter, *system.equations[j + 1 :])
