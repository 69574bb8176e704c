"""Shared and own constants fitted together: Levenberg-Marquardt on normal equations of arrow shape.

Own constants of one group meet those of another only through the shared ones, so the equations are solved by a Schur
complement: with blocks H_ss of the shared, H_gg of each group's own and H_sg between them,

    (H_ss - Σ_g H_sg H_gg⁻¹ H_gs) s = b_s - Σ_g H_sg H_gg⁻¹ b_g,    o_g = H_gg⁻¹ (b_g - H_gs s),

which takes time in proportion to the number of groups.

Legend: `N` rows, `V` columns, `G` groups, `S` shared and `K` own constants.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters.method import (
    DAMPING_DOWN,
    DAMPING_UP,
    FIRST_DAMPING,
    LEAST_DAMPING,
    MAX_REJECTED,
    TINY,
)
from gmeql.fitters.programs import ProgramTooLong, from_expression
from gmeql.formula.calculus import constants_of, row_slopes, with_constants
from gmeql.formula.nodes import Node
from gmeql.search.losses.effective import InputErrors, scaled_slopes
from gmeql.search.groups.config import GROUPS

FloatArray = NDArray[np.float64]


class GroupedTable(NamedTuple):
    """Rows sorted by group, none without rows: X [N, V], y and weights [N], group numbers [N], where each begins [G];
    errors of the inputs, where they have some."""

    X: FloatArray
    y: FloatArray
    weights: FloatArray
    codes: NDArray[np.int64]
    first: NDArray[np.int64]
    errors: InputErrors | None = None

    @classmethod
    def of(
        cls,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray,
        codes: NDArray[np.int64],
        errors: InputErrors | None = None,
    ) -> GroupedTable:
        """The rows in the order of their groups, which are numbered without gaps."""
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        errors = None if errors is None else errors.take(order)
        return cls(X[order], y[order], weights[order], ordered, first, errors)

    def extended(self, own: FloatArray) -> FloatArray:
        """X with the own constants [G, K] of each row's group as further columns, [N, V + K]."""
        return np.hstack([self.X, own[self.codes]])


class JointFit(NamedTuple):
    """A formula over the table's columns and its own constants [G, K], and its weighted mean squared error."""

    root: Node
    own: FloatArray
    loss: float


class _Equations(NamedTuple):
    """Loss, and the blocks of the normal equations: shared, own and between them, with their right-hand sides."""

    loss: float
    shared: FloatArray
    own: FloatArray
    between: FloatArray
    shared_side: FloatArray
    own_side: FloatArray


def fit_jointly(
    root: Node, own: FloatArray, table: GroupedTable, *, free: NDArray[np.bool_], max_steps: int = GROUPS.joint_steps
) -> JointFit:
    """Fit the constants of `root` that are `free` (a mask over them) and all own constants [G, K] to every row.

    Column `V + k` of the formula is own constant `k`. The loss is `inf` where the formula has no value at the start. Where
    the inputs have errors, residuals are those over the root of the effective variance, which moves with the constants.
    """
    shared = np.array(constants_of(root))
    state = _equations(root, shared, own, table, free)
    damping, rejected = FIRST_DAMPING, 0
    for _ in range(max_steps):
        if not TINY < state.loss < math.inf or (not free.any() and own.shape[1] == 0):
            break
        step = _step(state, damping)
        if step is not None:
            new_shared, new_own = shared.copy(), own - step[1]
            new_shared[free] -= step[0]
            trial = _equations(root, new_shared, new_own, table, free)
            if trial.loss < state.loss:
                gain = (state.loss - trial.loss) / state.loss
                shared, own, state = new_shared, new_own, trial
                damping, rejected = max(DAMPING_DOWN * damping, LEAST_DAMPING), 0
                if gain < GROUPS.joint_tolerance:
                    break
                continue
        damping, rejected = DAMPING_UP * damping, rejected + 1
        if rejected > MAX_REJECTED:
            break
    return JointFit(with_constants(root, shared.tolist()), own, state.loss)


def refit_jointly(
    root: Node, own: FloatArray | None, table: GroupedTable, held: Collection[int] = ()
) -> tuple[Node, FloatArray | None]:
    """A formula fitted once more from where it stands, with its own constants [G, K], None where it has none; `held` are
    numbers of shared constants that stay."""
    known = np.empty((len(table.first), 0)) if own is None else own
    try:
        program = from_expression(root, table.X.shape[1] + known.shape[1], held)
    except ProgramTooLong:
        return root, own
    constants = constants_of(root)
    free = np.zeros(len(constants), dtype=bool)
    # a factor of 1 or a term of 0 stands where an own constant took over what it did: both free are one too many
    free[[k for k in program.leaves[: program.n_free] if abs(constants[k]) not in (0.0, 1.0)]] = True
    fitted = fit_jointly(root, known, table, free=free)
    return (fitted.root, None if own is None else fitted.own) if math.isfinite(fitted.loss) else (root, own)


def _equations(
    root: Node, shared: FloatArray, own: FloatArray, table: GroupedTable, free: NDArray[np.bool_]
) -> _Equations:
    if not np.isfinite(shared).all() or not np.isfinite(own).all():
        return _Equations(math.inf, *(np.empty(0),) * 5)
    V, K = table.X.shape[1], own.shape[1]
    with np.errstate(all="ignore"):
        formula, X, columns = with_constants(root, shared.tolist()), table.extended(own), tuple(range(V, V + K))
        if table.errors is not None:
            residual, by_constant, by_own = scaled_slopes(formula, X, table.y, table.errors, columns)
        else:
            values, by_constant, by_own = row_slopes(formula, X, columns)
            residual = values - table.y
        loss = float(np.sum(table.weights * residual**2) / np.sum(table.weights))
    by_constant = by_constant[:, free]
    if not (math.isfinite(loss) and np.isfinite(by_constant).all() and np.isfinite(by_own).all()):
        return _Equations(math.inf, *(np.empty(0),) * 5)

    def by_group(rows: FloatArray) -> FloatArray:
        return np.add.reduceat(rows, table.first, axis=0)

    with np.errstate(all="ignore"):
        weighted, side = by_constant * table.weights[:, None], table.weights * residual
        own_weighted = by_own * table.weights[:, None]
        blocks = (
            weighted.T @ by_constant,
            by_group(own_weighted[:, :, None] * by_own[:, None, :]),
            by_group(weighted[:, :, None] * by_own[:, None, :]),
            by_constant.T @ side,
            by_group(by_own * side[:, None]),
        )
    finite = all(np.isfinite(block).all() for block in blocks)
    return _Equations(loss if finite else math.inf, *blocks)


def _step(equations: _Equations, damping: float) -> tuple[FloatArray, FloatArray] | None:
    """Steps of the shared [S] and own [G, K] constants; None where the equations have no solution."""
    own = equations.own.copy()
    G, K = own.shape[:2]
    if K:
        diagonal = np.einsum("gkk->gk", own)
        ridge = GROUPS.ridge * diagonal.max(axis=1, initial=0.0)[:, None] + TINY
        own[:, np.arange(K), np.arange(K)] += damping * diagonal + ridge
    shared = equations.shared + np.diag(damping * np.diag(equations.shared) + TINY)
    try:
        solved = np.linalg.solve(
            own, np.concatenate([equations.own_side[:, :, None], np.swapaxes(equations.between, 1, 2)], axis=2)
        )
        lone, coupling = solved[:, :, 0], solved[:, :, 1:]  # [G, K], [G, K, S]
        shared = shared - np.einsum("gsk,gkt->st", equations.between, coupling)
        side = equations.shared_side - np.einsum("gsk,gk->s", equations.between, lone)
        step = np.linalg.solve(shared, side) if len(side) else side
    except np.linalg.LinAlgError:
        return None
    own_step = lone - np.einsum("gks,s->gk", coupling, step)
    finite = np.isfinite(step).all() and np.isfinite(own_step).all()
    return (step, own_step) if finite else None
