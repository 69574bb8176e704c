"""From one system to its neighbours: a term less, a factor that is 1, a term more, a part cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.shooting import Shooting
from gmeql.differential.motion.sides import RightSides, with_values
from gmeql.differential.motion.systems import System, outlines
from gmeql.differential.motion.terms import found_terms, outline
from gmeql.formula.expression import Expression
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
    return build("add", *(_faint(term, coefficient) for term, coefficient in totals.items()))


def _terms(root: Node) -> Sequence[Node]:
    return root.args if isinstance(root, Call) and root.operator == "add" else (root,)


def _doubtful_terms(system: System) -> Iterator[tuple[float, tuple[int, int]]]:
    """For each term of a sum: how many standard errors its coefficient is from 0, its equation and its place there."""
    position = 0
    for i, root in enumerate(system.equations):
        terms = _terms(root)
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
    terms = _terms(equations[i])
    return (*equations[:i], build("add", *terms[:k], *terms[k + 1 :]), *equations[i + 1 :])


def longer_systems(motion: Motion, system: System, searched: Sequence[Sequence[Node]]) -> list[Equations]:
    """The system with one more term in one equation: those that the trajectories ask for most.

    On offer are products of columns, terms with a scale, terms of the other equations, and terms of formulas that the
    search found.
    """
    known = [*motion.library, *motion.scaled]
    offered = [*known, *found_terms(system.equations, known)]
    found: list[tuple[float, Equations]] = []
    for j, root in enumerate(system.equations):
        there = {outline(term) for _, term in split_terms(root)}  # the fit adapts constants inside a term
        terms = [term for term in (*offered, *found_terms(searched[j], offered)) if outline(term) not in there]
        for first in range(0, len(terms), MOTION.system.tested_together):
            found += _asked_for(motion, system, j, terms[first : first + MOTION.system.tested_together])
    found.sort(key=lambda pair: -pair[0])
    return [equations for _, equations in found[: MOTION.system.additions * len(system.equations)]]


def _asked_for(motion: Motion, system: System, j: int, terms: Sequence[Node]) -> list[tuple[float, Equations]]:
    """What each term with a free coefficient in equation `j` would take off the misfit, to first order (score test)."""
    rows = motion.rows
    with np.errstate(all="ignore"):
        sizes = [float(np.sqrt(np.mean(Expression(term, rows.names)(rows.X) ** 2))) for term in terms]
    speed = float(np.sqrt(np.mean(motion.target_rows(j).targets ** 2)))
    usable = [(term, speed / size) for term, size in zip(terms, sizes, strict=True) if np.isfinite(size) and size > 0]
    if not usable:
        return []
    added = [_faint(term, MOTION.system.faint * scale) for term, scale in usable]
    longer = (*system.equations[:j], Call("add", (*_terms(system.equations[j]), *added)), *system.equations[j + 1 :])
    shooting = Shooting(motion.pieces, motion.columns.whole(longer), system.fitted.starts)
    gains = shooting.gains(first=sum(RightSides.of(longer[: j + 1], 0).counts) - len(added), count=len(added))
    found = []
    for gain, term in zip(gains.tolist(), added, strict=True):
        if np.isfinite(gain):
            equation = Call("add", (*_terms(system.equations[j]), term))
            found.append((gain, (*system.equations[:j], equation, *system.equations[j + 1 :])))
    return found


def _faint(term: Node, coefficient: float) -> Node:
    """A term with a coefficient that is next to nothing: the fit decides what becomes of it."""
    return Call("mul", (Constant(coefficient), term)) if term != Constant(1.0) else Constant(coefficient)


def cut_systems(system: System) -> Iterator[Equations]:
    """The system with one cut at any depth of one equation, the simplest cuts of the longest equations first."""
    for j, root in sorted(enumerate(system.equations), key=lambda pair: -pair[1].size):
        for shorter in dict.fromkeys(reductions(root)):
            yield (*system.equations[:j], shorter, *system.equations[j + 1 :])
