"""Which constants of a formula are shared by all groups and which are each group's own: merged back one by one.

A formula that every group was fitted to by itself has only own constants. Those that others make up for are held at 1
(`surplus.py`). Each of the others costs its price in every group (`length_in_nats`), so the constant that differs least
between the groups is made one for all, all constants are fitted again together, and that is kept where the description
length falls. Shared constants are then rounded to numbers that people write, as far as the data allow it.

Legend: `N` rows, `V` columns, `G` groups, `F` fitted constants of the formula, `K` of them own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.grouped import fit_groups
from gmeql.fitters.programs import Program, ProgramTooLong, from_expression, stack
from gmeql.formula.calculus import row_slopes
from gmeql.formula.nodes import Constant, Leaf, Node, Variable, leaves, transform, tree_complexity
from gmeql.search.groups.config import GROUPS
from gmeql.search.groups.joint import GroupedTable, fit_jointly
from gmeql.search.groups.surplus import scaled_to_one
from gmeql.search.polish.recognition import short_decimals
from gmeql.search.polish.scoring import JudgedRows, Scored, length_on

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Shared:
    """A formula with the value of each fitted constant in each group [G, F], which are own, and which are held."""

    values: FloatArray
    is_own: NDArray[np.bool_]
    is_held: NDArray[np.bool_]
    loss: float = math.inf
    length: float = math.inf


class _Sharing:
    """One formula, and the rows that decide."""

    def __init__(self, root: Node, program: Program, rows: JudgedRows) -> None:
        assert rows.groups is not None
        self.root = root
        self.fitted_leaves = program.leaves[: program.n_free]
        self.rows = rows
        self.table = GroupedTable.of(rows.X, rows.target, rows.weights, rows.groups)
        self.complexity = tree_complexity(root)

    def tree(self, state: _Shared) -> Node:
        """The formula whose own constants are columns behind those of the table, in the order of the formula."""
        places = {self.fitted_leaves[f]: k for k, f in enumerate(np.flatnonzero(state.is_own))}
        values = {leaf: float(state.values[0, f]) for f, leaf in enumerate(self.fitted_leaves)}
        number = -1

        def leaf(node: Leaf) -> Node:
            nonlocal number
            if not isinstance(node, Constant):
                return node
            number += 1
            if number in places:
                return Variable(self.rows.n_variables + places[number])
            return Constant(values.get(number, node.value))

        return transform(self.root, leaf)

    def fit(self, state: _Shared) -> _Shared:
        """All constants that are not held fitted together."""
        root = self.tree(state)
        own = np.flatnonzero(state.is_own)
        shared = [f for f in np.argsort(self.fitted_leaves) if not state.is_own[f]]
        place = {self.fitted_leaves[f]: f for f in range(len(self.fitted_leaves))}
        left = [number for number in range(self._n_constants()) if number not in {self.fitted_leaves[f] for f in own}]
        free = np.array([number in place and not state.is_held[place[number]] for number in left], dtype=bool)
        fitted = fit_jointly(root, state.values[:, own], self.table, free=free)
        values = state.values.copy()
        values[:, own] = fitted.own
        constants = [leaf.value for leaf in _constants(fitted.root)]
        for number, value in zip(left, constants, strict=True):
            if number in place:
                values[:, place[number]] = value
        n_constants = len(shared) - int(state.is_held.sum()) + len(own) * len(self.table.first)
        length = length_on(self.rows, fitted.loss, n_constants, self.complexity)
        return replace(state, values=values, loss=fitted.loss, length=length)

    def _n_constants(self) -> int:
        return len(_constants(self.root))


def _constants(root: Node) -> list[Constant]:
    return [leaf for leaf in leaves(root) if isinstance(leaf, Constant)]


def share(scored: Scored, rows: JudgedRows, out_of_time: Callable[[], bool] = lambda: False) -> Scored | None:
    """The formula with shared and own constants, over the table's columns and its own; None where it has no value.

    `scored.root` is a formula that every group was fitted to by itself, with the constants of one of them. What the user
    knows may rule it out.
    """
    if not rows.admits(scored.root):
        return None
    try:
        held = frozenset() if rows.knowledge is None else rows.knowledge.held_constants(scored.root)
        program = from_expression(scored.root, rows.n_variables, held)
    except ProgramTooLong:
        return None
    sharing = _Sharing(scored.root, program, rows)
    values = _fitted_in_groups(program, rows)
    state = sharing.fit(_without_surplus(sharing, values))
    if not math.isfinite(state.loss):
        return None
    while not out_of_time():
        merged = next(
            (m for m in _mergers(sharing, state) if m.length < state.length or state.length == math.inf), None
        )
        if merged is None or not math.isfinite(merged.loss):
            break
        state = merged
    state = _rounded(sharing, state)
    found = Scored(sharing.tree(state), state.loss, state.length)
    found.own = state.values[:, state.is_own]
    found.source = scored.root
    return found


def _without_surplus(sharing: _Sharing, values: FloatArray) -> _Shared:
    """Own constants from values [G, F] of every group by itself; those that others make up for are held at 1."""
    table, n = sharing.table, values.shape[1]
    state = _Shared(values, np.ones(n, bool), np.zeros(n, bool))
    group = int(np.bincount(table.codes).argmax())
    X = table.X[table.codes == group]
    while state.is_own.sum() > 1:
        own = np.flatnonzero(state.is_own)
        extended = np.hstack([X, np.broadcast_to(state.values[group, own], (len(X), len(own)))])
        with np.errstate(all="ignore"):
            slopes = row_slopes(sharing.tree(state), extended, range(X.shape[1], extended.shape[1]))[2]
        found = scaled_to_one(slopes, state.values[:, own], group)
        if found is None:
            break
        values, is_own, is_held = state.values.copy(), state.is_own.copy(), state.is_held.copy()
        values[:, own], one = found[0], own[found[1]]
        is_own[one], is_held[one] = False, True
        state = replace(state, values=values, is_own=is_own, is_held=is_held)
    return state


def _mergers(sharing: _Sharing, state: _Shared) -> Iterator[_Shared]:
    """Every formula in which one own constant more is shared, those that differ least between the groups first."""
    own = np.flatnonzero(state.is_own)
    middle = np.median(state.values[:, own], axis=0)
    spread = np.std(state.values[:, own], axis=0) / np.maximum(np.abs(middle), 1e-300)
    for k in np.argsort(spread, kind="stable"):
        is_own = state.is_own.copy()
        is_own[own[k]] = False
        values = state.values.copy()
        values[:, own[k]] = middle[k]
        yield sharing.fit(replace(state, values=values, is_own=is_own))


def _rounded(sharing: _Sharing, state: _Shared) -> _Shared:
    """Shared constants held at short numbers; at 1 or 0 where an own constant can take over what they did."""
    for f in np.flatnonzero(~state.is_own):
        value = float(state.values[0, f])
        for number in dict.fromkeys([1.0, 0.0, *short_decimals(value)]):
            is_held, values = state.is_held.copy(), state.values.copy()
            is_held[f], values[:, f] = True, number
            held = sharing.fit(replace(state, values=values, is_held=is_held))
            if held.length <= state.length and math.isfinite(held.loss):
                state = held
                break
    return state


def _fitted_in_groups(program: Program, rows: JudgedRows) -> FloatArray:
    """Constants of each group [G, F], each group fitted by itself; those in local minima are given more starts."""
    codes, lengths, n_free, start = stack([program])
    batch = SimpleNamespace(programs=codes, lengths=lengths, n_constants=n_free, constants=start)
    options: dict[str, Any] = {
        "max_steps": GROUPS.refit_steps,
        "tolerance": GROUPS.joint_tolerance,
        "n_threads": rows.n_threads,
    }
    fitted = fit_groups(batch, rows.by_group, **options)
    spreads = np.array([float(np.var(data.target)) for data in rows.by_group]) + 1e-300
    relative = fitted.losses[:, 0] / spreads
    values = fitted.constants[:, 0, : program.n_free].copy()
    rng = np.random.default_rng(0)
    order = np.argsort(relative, kind="stable")
    floor = rows.floor / max(float(spreads.max()), 1e-300)
    for g in np.flatnonzero(relative > GROUPS.lost * max(float(np.quantile(relative, GROUPS.better)), floor)):
        lenders = values[rng.choice(order[: GROUPS.kept_starts], GROUPS.lost_starts)]
        starts = lenders * np.exp(GROUPS.jitter * rng.standard_normal(lenders.shape))
        starts[: len(order[: GROUPS.kept_starts])] = values[order[: GROUPS.kept_starts]]
        repeated = SimpleNamespace(
            programs=np.repeat(codes, len(starts), axis=0),
            lengths=np.repeat(lengths, len(starts)),
            n_constants=np.repeat(n_free, len(starts)),
            constants=np.hstack([starts, np.repeat(start[:, program.n_free :], len(starts), axis=0)]),
        )
        again = fit_groups(repeated, [rows.by_group[g]], **options)
        best = int(np.argmin(again.losses[0]))
        if again.losses[0, best] < fitted.losses[g, 0]:
            values[g] = again.constants[0, best, : program.n_free]
    return values
