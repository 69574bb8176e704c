"""Sums of two small formulas with any factors, y = g⁻¹(c0 + c1 f + c2 h), such sums times, over or beside a column, fractions
of two, (c0 + c1 f)/(c2 + c3 h), and products of powers of two.

All pairs of a table of small formulas are seen in one pass over it (`remainders.py`). What is found on a few rows is fitted and
verified on all of them. `meeting.py` looks pair by pair for what else may stand between two formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.direct.middle.meeting import (
    MEETING,
    Numbered,
    Target,
    are_worth_a_look,
    behind,
    few_rows,
    inverted,
    simplest,
    small_formulas,
    targets_of,
)
from gmeql.search.direct.middle.remainders import pairs_left_alike
from gmeql.search.direct.middle.small_formulas import SmallFormulas
from gmeql.search.direct.table import DirectTable, Effort, FloatArray


@dataclass(frozen=True)
class TwoTermsConfig:
    """Numbers of the method."""

    enumerating: float = 0.4
    """Share of the effort for the table. The rest is for passes over it: over all of it for the target as it is, over as much
    as time allows for each of the others."""
    entries_per_second: float = 3_000_000.0
    """Of a pass, by one core, with some to spare (measured)."""
    quick_seconds: float = 0.03
    """What a quick look takes at most: nothing has been drawn yet."""
    most_hits: int = 2000
    """For each reading."""
    solved_on: int = 100
    """Rows, evenly spaced, that the factors of terms are solved for on."""
    nothing: float = 1e-9
    """Factors of terms, relative to the largest part of the formula, that are 0."""


TWO_TERMS = TwoTermsConfig()


class Term(NamedTuple):
    """A formula, and whether it stands with the target: below the line."""

    root: Node
    is_below: bool = False


class Pass(NamedTuple):
    """What two terms are looked for of, what stands beside them, and what they may be besides formulas above the line."""

    target: Target
    beside: Sequence[Term] = ()
    with_fractions: bool = False
    of_logarithms: bool = False


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Such formulas that are exact on all rows, the simplest of each reading first. Draws nothing at random."""
    if not are_worth_a_look(table) or not functions.allows({"add"}):
        return
    if effort.is_quick:
        effort = replace(effort, seconds=min(effort.seconds, TWO_TERMS.quick_seconds))
    small = small_formulas(table, functions, effort, TWO_TERMS.enumerating)
    if small is None:
        return
    passes = [*passes_of_target(table, functions), *passes_of_columns(table, functions)]
    entries = effort.seconds * (1 - TWO_TERMS.enumerating) * TWO_TERMS.entries_per_second
    for place, one in enumerate(passes):
        n = len(small) if place == 0 else min(int(entries / (len(passes) - place)), len(small))
        if n < 2 or (place and effort.out_of_time()):
            return
        entries -= n * (1 + one.with_fractions)
        yield from simplest(formulas_of(one, pairs(small, table, one, n), small, table, effort))


def passes_of_target(table: DirectTable, functions: FunctionSet) -> list[Pass]:
    """The target as it is, its readings, and its logarithm by those of formulas."""
    targets = targets_of(table.y, functions)
    passes = [Pass(targets[0], with_fractions=functions.allows({"div"})), *map(Pass, targets[1:])]
    if ((table.y > 0).all() or (table.y < 0).all()) and functions.allows({"exp", "log"}):
        logarithm = Target(np.log(np.abs(table.y)), partial(inverted, "log", math.copysign(1.0, table.y[0])))
        passes.append(Pass(logarithm, of_logarithms=True))
    return passes


def passes_of_columns(table: DirectTable, functions: FunctionSet) -> list[Pass]:
    """What columns leave of the target, and what they may stand beside."""
    columns, whole = [Variable(column) for column in range(table.n_columns)], Target(table.y, lambda root: root)
    lefts = [left for column in columns for left in behind(table, whole, column)]
    return [
        *(Pass(left) for left in lefts if functions.allows({"mul", "div"})),
        *(Pass(whole, [Term(column)]) for column in columns),
    ]


def pairs(small: SmallFormulas, table: DirectTable, one: Pass, n: int) -> NDArray[np.int64]:
    """Entries [H, 2] of `remainders.py` that may be the two terms on the few rows, of the first n formulas, the simplest
    first."""
    rows = few_rows(table.y)
    found = pairs_left_alike(
        small.formulas[:n],
        small.values,
        one.target.values[rows],
        small.signs,
        beside=[table.values(term.root)[rows] for term in one.beside],
        with_fractions=one.with_fractions,
        of_logarithms=one.of_logarithms,
        most=TWO_TERMS.most_hits,
    )
    costs = small.costs[found >> 1].astype(np.int64).sum(axis=1)
    return np.asarray(found[np.lexsort([*found.T[::-1], costs])])


def formulas_of(
    one: Pass, entries: NDArray[np.int64], small: Numbered, table: DirectTable, effort: Effort
) -> Iterator[tuple[Target, Node, float]]:
    """The target's formula of each pair, with its error; of the first ones, as far as time allows."""
    for place, pair in enumerate(entries[: MEETING.verified].tolist()):
        if place >= MEETING.verified_late and effort.out_of_time():
            return
        yield formula_of(one, [Term(small.tree(entry >> 1), is_below=bool(entry & 1)) for entry in pair], table)


def formula_of(one: Pass, terms: Sequence[Term], table: DirectTable) -> tuple[Target, Node, float]:
    """The target's formula of what a pass found and of what stands beside it, with its error."""
    if one.of_logarithms:
        terms = [Term(_logarithm(term.root, table)) for term in terms]
    return one.target, *fitted([*terms, *one.beside], table, one.target.values)


def _logarithm(root: Node, table: DirectTable) -> Node:
    """The logarithm of a formula, or of its negative where that has one."""
    return build("log", root if table.values(root)[0] > 0 else build("neg", root))


def fitted(terms: Sequence[Term], table: DirectTable, target: FloatArray) -> tuple[Node, float]:
    """The formula of a target that terms make, with constants above and below the line, and its error on all rows, relative to
    the spread; inf where it is none.

    With values f of a term above the line and h of one below, c0 + c1 f + c2 y + c3 y h = 0: what these columns have in common.
    """
    none = terms[0].root, math.inf
    with np.errstate(all="ignore"):
        ones = np.ones_like(target)
        parts = [*(table.values(term.root) for term in terms), ones, ones]
        below = np.array([*(term.is_below for term in terms), False, True])
        columns = np.stack(parts, axis=1) * np.where(below, target[:, None], 1.0)
        sizes = np.abs(columns).max(axis=0)
        if not (np.isfinite(columns).all() and sizes.all()):
            return none
        few = columns[:: -(-len(columns) // TWO_TERMS.solved_on)]
        shares = np.linalg.svd(few / sizes, full_matrices=False)[2][-1]
        shares[np.abs(shares) < TWO_TERMS.nothing * np.abs(shares).max()] = 0.0
        factors = np.where(below, -shares, shares) / sizes
        if not factors[below].any():
            return none
        if not factors[below][:-1].any():  # no fraction
            factors /= factors[-1]
        predicted = np.stack(parts, axis=1) * factors
        values = predicted[:, ~below].sum(axis=1) / predicted[:, below].sum(axis=1)
        error = float(np.sqrt(np.mean((values - target) ** 2)) / np.std(target))
    roots = [*(term.root for term in terms), Constant(1.0), Constant(1.0)]
    above, under = (
        _sum([(factor, root) for factor, root, at in zip(factors.tolist(), roots, below, strict=True) if at == side])
        for side in (False, True)
    )
    root = above if under == Constant(1.0) else build("div", above, under)
    return (root, error) if math.isfinite(error) else none


def _sum(parts: Sequence[tuple[float, Node]]) -> Node:
    """A sum of formulas with their factors."""
    kept = [
        Constant(factor) if isinstance(root, Constant) else build("mul", Constant(factor), root)
        for factor, root in parts
        if factor
    ]
    return reduce(partial(build, "add"), kept) if kept else Constant(0.0)


def compile_pass() -> None:
    """Call the pass once, over nothing."""
    none = np.empty((0, 3), np.int32), np.empty((0, MEETING.rows))
    pairs_left_alike(*none, np.arange(float(MEETING.rows)), np.ones(MEETING.rows), most=1)
