"""Dimensional analysis: the smaller tables that units allow, exactly (Buckingham 1914).

With r independent base units among V columns, r columns serve as units for the others. What is left to find is a
function of V - r pure numbers, times a product of powers that has the target's unit. Every formula over such a table
keeps the units, and every formula that keeps them is one over each of these tables; they differ in which is simplest.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from gmeql.formula.nodes import Node, tree_complexity
from gmeql.formula.simplify import simplify
from gmeql.knowledge.consistency import UnitRules
from gmeql.knowledge.dimensions import bases_of, matrix, reduced
from gmeql.knowledge.knowledge import Knowledge
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.views import View, unitless


def dimensional_views(rules: UnitRules, X: np.ndarray, y: np.ndarray) -> list[View]:
    """Tables of pure numbers, the plainest choices of units first; empty where no columns can serve as units.

    X [N, V], y [N]. Columns that touch zero cannot be divided by, those of both signs have no fractional powers.
    """
    exponents, degrees = _scalings(rules)
    if not len(exponents):
        return []
    steady = ((X > 0).all(axis=0) | (X < 0).all(axis=0)) & np.isfinite(1 / np.where(X == 0, np.nan, X)).all(axis=0)
    nowhere_zero = (X != 0).all(axis=0)
    whole = np.asarray(~(X > 0).all(axis=0))
    for usable in (steady, nowhere_zero):
        raw, units = View.raw(X.shape[1]), np.flatnonzero(usable)
        views = unitless(raw, exponents, degrees, whole, units=units, most=SYMMETRIES.unit_views_tried)
        good = _different([view for view in views if _is_sound(view, rules, X, y)], X)
        if good:
            return good[: SYMMETRIES.unit_views]
    return []


def in_pure_numbers(roots: Sequence[Node], known: Knowledge | None, X: np.ndarray, y: np.ndarray) -> list[Node] | None:
    """What is free to choose in formulas that keep known units: the shortest form of each in pure numbers, which the
    products of powers around it follow from. None where units are not known for certain, or leave no smaller table."""
    if known is None or known.units is None or not known.has_strict_units:
        return None
    views = dimensional_views(known.units, X, y)
    return [shortest_inner(root, views) for root in roots] if views else None


def shortest_inner(root: Node, views: Sequence[View]) -> Node:
    """A formula that keeps the units, as the shortest of its forms over tables of pure numbers; itself where none is
    shorter."""
    found = [root]
    for view in views:
        inner = view.inner(root)
        with suppress(ArithmeticError, ValueError):  # a constant that no float holds
            inner = simplify(inner)
        found.append(inner)
    return min(found, key=tree_complexity)


def _different(views: list[View], X: np.ndarray) -> list[View]:
    """One view of each set of numbers: two choices of units may give the same, as k*d and d*k."""
    found: dict[tuple[tuple[float, ...], ...], View] = {}
    sample = X[:2]
    for view in views:
        numbers = sorted(tuple(float(f"{value:.9g}") for value in column) for column in view.table(sample).T)
        found.setdefault((*numbers, tuple(view.factors(sample).tolist())), view)
    return list(found.values())


def _scalings(rules: UnitRules) -> tuple[np.ndarray, np.ndarray]:
    """Independent scalings that the law must follow: exponents of the columns [r, V] and of the target [r].

    Units that constants may carry are divided out: what only differs by them counts as alike.
    """
    allowed = rules.allowed or ()
    dimensions = [*allowed, *rules.columns, rules.target]
    rows, pivots = reduced(matrix(dimensions, bases_of(dimensions)), len(dimensions) - 1)
    kept = [row[len(allowed) :] for row, pivot in zip(rows, pivots, strict=False) if pivot >= len(allowed)]
    table = np.array([[float(value) for value in row] for row in kept]).reshape(len(kept), len(rules.columns) + 1)
    return table[:, :-1], table[:, -1]


def _is_sound(view: View, rules: UnitRules, X: np.ndarray, y: np.ndarray) -> bool:
    """Whether all its numbers are finite, its factor never zero, and rounded exponents have not broken the units."""
    with np.errstate(all="ignore"):
        table, factors = view.table(X), view.factors(X)
        finite = np.isfinite(table).all() and np.isfinite(y / factors).all() and np.isfinite(factors).all()
    return bool(finite) and rules.keeps(view.factor) and all(rules.is_number(column) for column in view.columns)
