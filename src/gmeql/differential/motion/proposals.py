"""Equations proposed for each state: sums of terms, and what the search finds on the slopes of the smooth curves.

All of them are refitted and ranked in integral form.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.systems import n_functions, n_poles, plain, plain_complexity, rarity
from gmeql.differential.motion.terms import best_sums, found_terms, outline
from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, calls, tree_complexity
from gmeql.formula.products import split_terms
from gmeql.model.pareto.front import Front
from gmeql.search.events import Member
from gmeql.search.polish.scoring import length_in_nats


@dataclass(frozen=True)
class Proposal:
    """An equation for one state, fitted in integral form."""

    root: Node
    residual: float
    """Mean squared residual in units of the noise."""
    length: float
    """Nats, as far as the integral form can tell."""


def proposed(
    motion: Motion, j: int, roots: Iterable[Node], *, known: Sequence[Proposal] = (), until: float = math.inf
) -> list[Proposal]:
    """Formulas fitted to equation `j` in integral form, the shortest description first, each structure once.

    `known` were fitted before. After the moment `until` of `time.monotonic` no other structure is looked at.
    """
    rows = motion.rows
    found: dict[Node, Proposal] = {outline(proposal.root): proposal for proposal in known}
    for root in roots:
        key = outline(root)
        if key in found:
            continue
        if found and time.monotonic() > until:
            break
        fitted, residual = rows.fit(root, j)
        if not math.isfinite(residual):
            continue
        constants = int(free_constants(Expression(fitted, rows.names)).sum())
        # what noise alone leaves is 1, so differences below it tell little; without noise residuals are far above it
        log_variance = math.log1p(max(residual, rows.floor(j)))
        complexity = plain_complexity(fitted)
        length = length_in_nats(
            log_variance, constants, complexity, n_rows=rows.points, node_cost=MOTION.system.node_cost
        )
        length += rarity([fitted])
        length += MOTION.system.pole_cost * n_poles(motion, [fitted])
        found[key] = Proposal(fitted, residual, length)
    return sorted(found.values(), key=lambda p: (p.length, tree_complexity(p.root)))


def sums(motion: Motion, j: int, searched: Sequence[Node] = ()) -> list[Node]:
    """The best sums of products of columns; of these and simple functions; of all terms, those of `searched` included.

    Each kind by itself: terms that bend more to the noise would leave the plain ones no place among the best.
    """
    offered = [*motion.library, *motion.scaled]
    tiers = (motion.library, [*offered, *found_terms(searched, offered)])
    return [*plain_sums(motion, j), *(root for terms in tiers for root in best_sums(motion.rows, j, terms))]


def plain_sums(motion: Motion, j: int) -> list[Node]:
    """The best sums of products of columns."""
    return best_sums(motion.rows, j, [term for term in motion.library if is_plain(term)])


def other_sums(motion: Motion, j: int, root: Node) -> list[Node]:
    """The best sums with other terms than products of columns, of no more terms and complexity than the formula `root`."""
    found = best_sums(motion.rows, j, [*motion.library, *motion.scaled], len(split_terms(root)))
    return [other for other in found if not is_plain(other) and plain_complexity(other) <= plain_complexity(root)]


def sums_of_fitted(motion: Motion, j: int, proposals: Sequence[Sequence[Proposal]]) -> list[Node]:
    """The best sums of products and simple functions with terms whose constants the best `proposals` have fitted.

    Those for the other states come first: what leaves one state often enters another.
    """
    others = [p.root for k, of_state in enumerate(proposals) if k != j for p in of_state[: MOTION.terms.of_others]]
    roots = [*others, *(proposal.root for proposal in proposals[j][: MOTION.system.shortlist])]
    return best_sums(motion.rows, j, [*motion.library, *found_terms(roots, motion.library)])


def is_plain(root: Node) -> bool:
    """Whether a formula is made of products and sums alone."""
    return n_functions([root]) == 0 and not any(call.operator in ("div", "inv") for call in calls(root))


def shortlist(proposals: Sequence[Proposal]) -> list[Node]:
    """The proposals that are compared on trajectories: the shortest descriptions, and the best of each further size."""
    chosen = list(proposals[: MOTION.system.shortlist])
    reached = min((p.residual for p in chosen), default=math.inf)
    for proposal in sorted(proposals, key=lambda p: (tree_complexity(p.root), p.residual)):
        if proposal.residual < MOTION.system.better * reached and proposal not in chosen:
            chosen.append(proposal)
            reached = proposal.residual
    return [proposal.root for proposal in chosen[: 2 * MOTION.system.shortlist]]


def state_front(motion: Motion, j: int, proposals: Sequence[Proposal]) -> Front:
    """The front of one state's equations: the residual of the integral form, in units of how fast the state changes."""
    rows = motion.rows
    slopes = motion.target_rows(j).targets[:, 0]
    left = rows.left[:, j] / rows.error[:, j]
    unit = float(np.sqrt(np.mean(slopes**2)) / (np.sqrt(np.mean(left**2)) or 1.0))
    members = []
    for proposal in proposals:
        expression = Expression(plain(proposal.root), rows.names)
        members.append(Member(expression, math.sqrt(proposal.residual) * unit, expression.complexity))
    return Front.from_members(
        members,
        rows=float(rows.points),
        target_spread=float(slopes.std()),
        target_largest=float(np.abs(slopes).max()),
    )
