"""Formulas beside the chosen one: distinct structures that describe the data nearly as well, weighed by evidence.

The weight of a formula is `exp(-length)`, normalised over all formulas that a search had on its front for a while, with
`Front.description_length` in its form for training losses. These are the posterior odds of the structures as far as the rows
decide them (Kass and Raftery 1995; the prior here is the price of symbols). Averaging by these weights is Bayesian model
averaging (Hoeting et al. 1999).

Two cases weigh otherwise, and only among formulas of the front, whose errors are known: beside a formula that outliers do not
move (`unmoved.py`) the other rows decide; beside one of a series (`series.py`), what formulas say from row to row.

Legend: `N` rows, `M` formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, transform
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import rounding_level
from gmeql.search.judging.structure import structure_nats
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.scoring import length_in_nats

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Alternative:
    """A formula that describes the data nearly as well as the best."""

    expression: Expression
    loss: float
    complexity: int
    weight: float
    """Its share of the evidence, of all that are listed."""
    spread: float
    """Standard deviation of its errors, in the target's units."""

    def __str__(self) -> str:
        return f"{self.weight:6.1%}  {self.expression}"


def alternatives(front: Front, n: int) -> tuple[Alternative, ...]:
    """The `n` distinct formulas of most evidence, of the front and of those that were on it for a while."""
    if n < 1:
        raise ValueError(f"n={n!r} must be a whole number of at least 1")
    if front.has_own_loss:
        raise ValueError(f"alternatives compare squared errors, this front has loss={front.loss!r}; use its members")
    best: dict[Node, tuple[float, FrontMember]] = {}
    is_settled = any(m.is_unmoved or m.is_by_steps for m in front)
    for member in (*front.members, *(() if is_settled else front.others)):
        structure = _structure(member.expression.root)
        length = _length(member, front)
        if math.isfinite(length) and (structure not in best or length < best[structure][0]):
            best[structure] = (length, member)
    ranked = sorted(best.values(), key=lambda pair: (pair[0], pair[1].complexity))[:n]
    if not ranked:  # no more rows than constants
        return ()
    shortest = ranked[0][0]
    evidence = np.exp([shortest - length for length, _ in ranked])
    return tuple(
        Alternative(m.expression, m.loss, m.complexity, float(share), _spread(m, front))
        for (_, m), share in zip(ranked, evidence / evidence.sum(), strict=True)
    )


def averaged(
    found: Sequence[Alternative], tables: Sequence[FloatArray], level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean [N], low and high of the targets under the weighted formulas, each on the rows as it sees them.

    The spread is that of the formulas around their mean and of each formula's errors: what is not known of the structure
    widens the interval where the formulas differ, as they do beyond the rows.
    """
    from scipy.special import ndtri

    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must lie between 0 and 1, for example 0.95")
    weights = np.array([one.weight for one in found])[:, None]
    values = np.stack([one.expression(X) for one, X in zip(found, tables, strict=True)])
    usable = np.isfinite(values)
    share = np.where(usable, weights, 0.0)
    with np.errstate(invalid="ignore"):
        share = share / share.sum(axis=0)
        mean = np.sum(share * np.where(usable, values, 0.0), axis=0)
        errors = np.array([one.spread for one in found])[:, None] ** 2
        variance = np.sum(share * (np.where(usable, values - mean, 0.0) ** 2 + errors), axis=0)
        half = float(ndtri(0.5 + level / 2)) * np.sqrt(variance)
    return mean, mean - half, mean + half


def _structure(root: Node) -> Node:
    """The formula without its constants: two of equal structure are one alternative."""
    return transform(root, lambda leaf: Constant(0.0) if isinstance(leaf, Constant) else leaf)


def _outliers(front: Front) -> int:
    """Rows that the chosen formula leaves out."""
    return max((m.marked.outliers for m in front if m.marked is not None), default=0)


def _rows(front: Front) -> float:
    return max(front.rows - _outliers(front), 1.0)


def _loss(member: FrontMember) -> float:
    """The loss on the rows that decide."""
    rest = None if member.marked is None else member.marked.rest_loss
    return member.loss if rest is None else rest


def _spread(member: FrontMember, front: Front) -> float:
    """Standard deviation of a member's errors on the rows that decide."""
    return _loss(member) * math.sqrt(_rows(front) / _freedom(member, front))


def _freedom(member: FrontMember, front: Front) -> float:
    return max(_rows(front) - front.n_fitted(member), 1.0)


def _length(member: FrontMember, front: Front) -> float:
    """Nats by the training loss, which is known of all, those beyond the front too; a sum of columns pays for saying which."""
    fitted, expression = front.n_fitted(member), member.expression
    rows = _rows(front)
    if rows - fitted < 1:
        return math.inf
    floor = rounding_level(front.target_spread, front.target_largest)
    steps = None if member.marked is None else member.marked.step_loss
    log_variance = 2.0 * math.log(max(_loss(member) if steps is None else steps, floor)) + math.log(
        rows / _freedom(member, front)
    )
    nats = structure_nats(expression.root, len(expression.names), node_cost=POLISH.node_cost)
    if (
        member.marked is not None and member.marked.nats is not None
    ):  # one of a few that everybody knows, or of kinds of rows
        nats = member.marked.nats if member.is_shrunk else min(nats, member.marked.nats)
    return length_in_nats(log_variance, fitted, 0, n_rows=rows) + nats
