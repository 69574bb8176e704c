"""Fronts of given formulas, judged on given rows as a search judges its own."""

from __future__ import annotations

import math

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.formula.simplify import simplify
from gmeql.model.pareto.front import Front
from gmeql.search.events import Member
from gmeql.search.judging.outlook import outlooks


def judged(X: np.ndarray, y: np.ndarray, *texts: str) -> Front:
    """A front of the mean and the formulas `texts` over columns x1, x2, ..., with their outlooks."""
    names = tuple(f"x{k + 1}" for k in range(X.shape[1]))
    roots = [simplify(parse_tree(text, names)) for text in (f"{float(y.mean())!r}", *texts)]
    members = []
    for root, outlook in zip(roots, outlooks(roots, X, y), strict=True):
        expression = Expression(root, names)
        loss = math.sqrt(float(np.mean((expression(X) - y) ** 2)))
        members.append(Member(expression, loss, expression.complexity, outlook))
    return Front.from_members(members, rows=len(y), target_spread=float(y.std()), target_largest=float(np.abs(y).max()))
