"""Levenberg-Marquardt on a padded batch: every candidate takes its step at the same time, behind a mask of its own."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from gmeql.fitters.device.tape import Tapes, evaluate, factors_of, make_tapes
from gmeql.fitters.method import (
    DAMPING_DOWN,
    DAMPING_UP,
    FIRST_DAMPING,
    HOPELESS_AFTER,
    HOPELESS_FACTOR,
    HOPELESS_GAIN,
    LEAST_DAMPING,
    MAX_REJECTED,
    PIVOT_SHARE,
    STUCK_DAMPING,
)
from gmeql.fitters.result import CONVERGED, HOPELESS, NOT_FINITE, STEPS_SPENT

NARROW_PIVOT_SHARE = 1e-7
"""`PIVOT_SHARE` in single precision."""
FEW_FREE = 8
"""Up to so many free constants, JᵀWJ is summed as one product of arrays; beyond, as matrix products."""


class _Batch(NamedTuple):
    """A padded batch as the fit sees it."""

    tapes: Tapes
    length: Any  # of the longest tape
    used: Any  # [B, P] which constants are real
    dataset: Any  # [B] which data each candidate is fitted to
    mass: Any  # [B] sum of its weights
    inputs: Any  # [blocks, D, S + 1, N]
    target: Any  # [blocks, D, N]
    weights: Any  # [blocks, D, N]


class _State(NamedTuple):
    """Where each candidate's fit stands; leading axis B."""

    constants: Any
    loss: Any
    hessian: Any
    gradient: Any
    damping: Any
    rejected: Any
    taken: Any
    code: Any
    active: Any


def _normal_equations(
    batch: _Batch, constants: Any, buffers: tuple[Any, Any], families: frozenset[str]
) -> tuple[Any, Any, Any, tuple[Any, Any]]:
    """Losses (inf where not finite), the sums JᵀWJ and JᵀWr, and the buffers that hold all slots."""
    factors = factors_of(batch.tapes, constants)
    n_candidates, n_free_max = batch.used.shape
    dtype = constants.dtype

    def block(carry: Any, data: Any) -> tuple[Any, None]:
        total, hessian, gradient, buffers = carry
        columns, y, weight = data
        output, slopes, buffers = evaluate(
            batch.tapes, batch.length, factors, columns, batch.dataset, buffers, families
        )
        residual = output - y[batch.dataset]
        weight = weight[batch.dataset]
        weighted = weight * residual
        total += (weighted * residual).sum(axis=1)
        gradient += (slopes * weighted[:, None, :]).sum(axis=2)
        scaled = slopes * weight[:, None, :]
        hessian += (
            (scaled[:, :, None, :] * slopes[:, None, :, :]).sum(axis=3)
            if n_free_max <= FEW_FREE
            else jnp.einsum("bpn,bqn->bpq", scaled, slopes, precision=lax.Precision.HIGHEST)
        )
        return (total, hessian, gradient, buffers), None

    carry: Any = (
        jnp.zeros(n_candidates, dtype), jnp.zeros((n_candidates, n_free_max, n_free_max), dtype),
        jnp.zeros((n_candidates, n_free_max), dtype), buffers,
    )  # fmt: skip
    if batch.inputs.shape[0] == 1:
        carry, _ = block(carry, (batch.inputs[0], batch.target[0], batch.weights[0]))
    else:
        carry, _ = lax.scan(block, carry, (batch.inputs, batch.target, batch.weights))
    total, hessian, gradient, buffers = carry
    diagonal = jnp.diagonal(hessian, axis1=1, axis2=2)
    usable = jnp.where(batch.used, jnp.isfinite(gradient) & jnp.isfinite(diagonal), True).all(axis=1)
    return jnp.where(jnp.isfinite(total) & usable, total / batch.mass, jnp.inf), hessian, gradient, buffers


def _solve_damped(hessian: Any, gradient: Any, damping: Any, used: Any) -> tuple[Any, Any]:
    """Steps [B, P] of (H + damping diag H) step = gradient by elimination, and whether H was positive definite.

    `used` [B, P] marks the real constants; the pivots are those of a Cholesky factorisation, and so is the test.
    """
    n_free = gradient.shape[1]
    diagonal = jnp.diagonal(hessian, axis1=1, axis2=2)
    tiny = jnp.finfo(hessian.dtype).tiny
    damped = jnp.where(used, diagonal + damping[:, None] * diagonal + tiny, 1.0)
    eye = jnp.eye(n_free, dtype=bool)
    both = used[:, :, None] & used[:, None, :]
    matrix = jnp.where(eye, damped[:, None, :], jnp.where(both, hessian, 0))
    system = jnp.concatenate([matrix, jnp.where(used, gradient, 0)[:, :, None]], axis=2)
    floor = jnp.where(used, (PIVOT_SHARE if hessian.dtype == jnp.float64 else NARROW_PIVOT_SHARE) * diagonal, 0)

    def eliminate(j: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        system, solved = carry
        column = jnp.take(system, j, axis=2)
        pivot = jnp.take(column, j, axis=1)
        solved = solved & (pivot > jnp.take(floor, j, axis=1))
        row = jnp.take(system, j, axis=1) / pivot[:, None]
        own = jnp.arange(n_free) == j
        reduced = system - jnp.where(own, 0, column)[:, :, None] * row[:, None, :]
        return jnp.where(own[:, None], row[:, None, :], reduced), solved

    system, solved = lax.fori_loop(0, n_free, eliminate, (system, jnp.ones(len(damping), bool)))
    step = system[:, :, -1]
    return jnp.where(used, step, 0), solved


def _attempt(
    batch: _Batch,
    s: _State,
    buffers: tuple[Any, Any],
    hopeless: Any,
    max_steps: Any,
    tolerance: Any,
    *,
    families: frozenset[str],
    forced: bool,
) -> tuple[_State, tuple[Any, Any]]:
    """One attempted step of every candidate whose fit goes on."""
    active, code = s.active, s.code
    if not forced:
        perfect = active & (s.loss < jnp.finfo(s.loss.dtype).tiny)
        code = jnp.where(perfect, CONVERGED, code)
        active = active & ~perfect
    step, solved = _solve_damped(s.hessian, s.gradient, s.damping, batch.used)
    tried = active & solved
    trial = s.constants.at[:, : batch.used.shape[1]].add(-jnp.where(tried[:, None], step, 0))
    loss, hessian, gradient, buffers = _normal_equations(batch, trial, buffers, families)
    loss = jnp.where(tried, loss, jnp.inf)
    taken = s.taken + tried
    better = loss < s.loss
    gain = (s.loss - loss) / s.loss
    damping = jnp.where(better, jnp.maximum(DAMPING_DOWN * s.damping, LEAST_DAMPING), DAMPING_UP * s.damping)
    rejected = jnp.where(better, 0, s.rejected + 1)
    stuck = ~solved & ~better & (damping > STUCK_DAMPING)
    ends = stuck | (taken >= max_steps)
    if not forced:
        converged = jnp.where(better, gain < tolerance, rejected > MAX_REJECTED)
        is_far = (taken >= HOPELESS_AFTER) & (loss > HOPELESS_FACTOR * hopeless) & (gain < HOPELESS_GAIN)
        lost = better & ~converged & is_far
        code = jnp.where(active & converged, CONVERGED, jnp.where(active & lost, HOPELESS, code))
        ends = ends | converged | lost
    keep = active & better
    new = _State(
        jnp.where(keep[:, None], trial, s.constants),
        jnp.where(keep, loss, s.loss),
        jnp.where(keep[:, None, None], hessian, s.hessian),
        jnp.where(keep[:, None], gradient, s.gradient),
        jnp.where(active, damping, s.damping),
        jnp.where(active, rejected, s.rejected),
        jnp.where(active, taken, s.taken),
        code,
        active & ~ends,
    )
    return new, buffers


def _fit_share(
    codes: Any,
    lengths: Any,
    n_free: Any,
    is_real: Any,
    dataset: Any,
    hopeless: Any,
    constants: Any,
    inputs: Any,
    target: Any,
    weights: Any,
    max_steps: Any,
    tolerance: Any,
    *,
    n_free_max: int,
    families: frozenset[str],
    forced: bool,
) -> tuple[Any, Any, Any, Any]:
    """Fit a padded batch, or one device's share of it. Returns constants, losses, codes and steps.

    codes [B, 5, T], constants [B, C], inputs [blocks, D, S + 1, N], target and weights [blocks, D, N].
    """
    tapes = make_tapes(codes, lengths, n_free, inputs.shape[2] - 1)
    used = jnp.arange(n_free_max) < n_free[:, None]
    mass = weights.sum(axis=(0, 2))[dataset]
    batch = _Batch(tapes, lengths.max(), used, dataset, mass, inputs, target, weights)
    n_nodes, n_candidates = tapes.op.shape
    rows, dtype = inputs.shape[3], constants.dtype
    buffers = (
        jnp.zeros((n_nodes, n_candidates, rows), dtype), jnp.zeros((n_nodes, n_candidates, n_free_max, rows), dtype),
    )  # fmt: skip
    loss, hessian, gradient, buffers = _normal_equations(batch, constants, buffers, families)
    finite = jnp.isfinite(loss)
    code = jnp.where(finite, jnp.where(n_free > 0, STEPS_SPENT, CONVERGED), NOT_FINITE)
    zeros = jnp.zeros(n_candidates, jnp.int32)
    state = _State(
        constants, loss, hessian, gradient, jnp.full(n_candidates, FIRST_DAMPING, dtype), zeros, zeros,
        code.astype(jnp.int32), finite & (n_free > 0) & is_real & (max_steps > 0),
    )  # fmt: skip

    def attempt(carry: tuple[_State, Any]) -> tuple[_State, Any]:
        return _attempt(batch, *carry, hopeless, max_steps, tolerance, families=families, forced=forced)

    state, _ = lax.while_loop(lambda carry: carry[0].active.any(), attempt, (state, buffers))
    return state.constants, state.loss, state.code, state.taken + 1


@partial(jax.jit, static_argnames=("n_devices", "n_free_max", "families", "forced"))
def fit_padded(*arrays: Any, n_devices: int, **static: Any) -> tuple[Any, Any, Any, Any]:
    """`_fit_share` with the candidates (the first seven arrays) shared out to the devices."""
    share = partial(_fit_share, **static)
    if n_devices == 1:
        return share(*arrays)
    mine, all_alike = PartitionSpec("candidates"), PartitionSpec()
    mesh = Mesh(np.array(jax.devices()[:n_devices]), ("candidates",))
    specs = (mine,) * 7 + (all_alike,) * (len(arrays) - 7)
    # no device waits for another: each loops until its own candidates are done
    return jax.shard_map(share, mesh=mesh, in_specs=specs, out_specs=mine, check_vma=False)(*arrays)


def compilations() -> int:
    """How many shapes were compiled in this process so far."""
    return int(fit_padded._cache_size())
