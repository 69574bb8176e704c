"""The accelerator engine: the contract of ``cpu.py`` in JAX, thousands of programs side by side.

Every program of a batch takes the same step at the same time: node k of all tapes, then node k + 1, and so on. A node
reads its inputs from per-candidate slots, computes every operator of the families that occur in the batch and keeps
the one its opcode names; there are no branches, and nothing is differentiated automatically: each slot carries its
slopes to the free constants (forward accumulation), as in ``reference.py``. Levenberg-Marquardt then follows
``kernel.fit_one`` step by step with one mask per candidate, so the engines agree to rounding.

Shapes are padded to a few sizes (nodes, constants, candidates, rows, grounds), so that the number of compilations stays
bounded whatever the batches look like. Candidates of one batch may be fitted to different grounds, so all islands of a
search advance together. With several devices each takes a share of every batch; a candidate's fit depends on nothing
but itself, so their number changes nothing. Runs on any JAX backend; on a CPU it is slower than ``cpu.py`` and there
for tests.

Legend: ``B`` candidates, ``T`` nodes, ``P`` free constants, ``C`` constants, ``G`` grounds (inputs, target, weights),
``S`` input slots, ``N`` rows of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from gmeql.fitters.cpu import fit_user_operators
from gmeql.fitters.programs import MAX_CONSTANTS, MAX_NODES, POWER_FITTED, POWER_WHOLE, Program, stack
from gmeql.fitters.result import CONVERGED, HOPELESS, NOT_FINITE, STEPS_SPENT, FitResult
from gmeql.formula.limits import ANGLE_LIMIT, EXPONENTIAL_LIMIT
from gmeql.formula.operators import OPERATORS, USER_OPCODE

PRECISIONS = ("float64", "float32", "mixed")
SIZES = ((8, 4), (16, 8), (32, 16), (MAX_NODES, MAX_CONSTANTS))
"""(nodes, free constants) that programs are padded to; a program takes the first size that holds it."""
BATCHES = tuple(4**k for k in range(2, 9))
"""Candidates that a batch is padded to: 16 to 65,536. Larger ones are cut."""
ROW_BLOCK = 1024
"""Rows that are evaluated at a time; the sums over rows grow block by block."""
GROUNDS = (1, 4, 16, 64)
"""Grounds that a batch is padded to."""
SLOT_STEP = 8
"""Input slots are padded to a multiple of this, where a batch has several grounds."""
ROW_STEP = 64
"""Fewer rows than a block are padded to a multiple of this, with weight 0."""
FINISH_STEPS = 2
"""Steps in double precision that end a fit in mixed precision."""
MEMORY_SHARE = 0.2
"""Share of the accelerator's memory that the slots of one batch may take (temporaries double it)."""
CPU_MEMORY = 2**27

_OP = {name: operator.opcode for name, operator in OPERATORS.items() if not operator.is_user_defined}
_FAMILIES = {
    "trigonometric": (_OP["sin"], _OP["cos"]),
    "exponential": (_OP["exp"], _OP["log"], _OP["tanh"], _OP["pow"], POWER_FITTED),
    "inverse": (_OP["asin"], _OP["acos"], _OP["atan"]),
    "whole": (POWER_WHOLE,),
}
"""Operators that are costly enough to be left out of a compiled batch where none of its programs holds one."""
_BINARY = tuple(_OP[name] for name in ("add", "sub", "mul", "div", "pow"))


class Tapes(NamedTuple):
    """Programs as arrays [T, B]. Slots: S inputs, the constant 1, then one per node. -1 means no constant."""

    op: Any
    left: Any
    right: Any
    left_constant: Any
    right_constant: Any
    left_free: Any  # the constant if the fit may move it, else -1
    right_free: Any
    whole: Any  # exponent of POWER_WHOLE


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


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether JAX sees an accelerator.

    Call it only where one may be used: the first call starts JAX's backend.
    """
    try:
        return jax.default_backend() in ("gpu", "cuda", "rocm", "tpu")
    except RuntimeError:  # JAX_PLATFORMS names a backend that is not there
        return False


# --- one node ---------------------------------------------------------------------------------------------------------


def _node(op: Any, whole: Any, u: Any, w: Any, families: frozenset[str]) -> tuple[Any, Any, Any]:
    """Value and slopes to both weighted inputs [B, N] of one node; ``op`` and ``whole`` are [B, 1]."""
    one, zero = jnp.ones_like(u), jnp.zeros_like(u)
    nan = jnp.asarray(jnp.nan, u.dtype)
    narrow = u.dtype == jnp.float32

    def among(*names: str) -> Any:
        chosen = op == _OP[names[0]]
        for name in names[1:]:
            chosen = chosen | (op == _OP[name])
        return chosen

    value, left, right = u, one, zero  # id

    def when(name: str, new_value: Any, new_left: Any, new_right: Any = None) -> None:
        nonlocal value, left, right
        chosen = op == _OP[name]
        value, left = jnp.where(chosen, new_value, value), jnp.where(chosen, new_left, left)
        if new_right is not None:
            right = jnp.where(chosen, new_right, right)

    when("add", u + w, one, one)
    when("sub", u - w, one, -one)
    when("mul", u * w, w, u)
    inverse = 1 / jnp.where(among("div"), w, u)
    when("div", u * inverse, inverse, -u * inverse * inverse)
    when("inv", inverse, -inverse * inverse)
    root = jnp.sqrt(u)
    when("sqrt", root, 0.5 / jnp.maximum(root, 1e-18 if narrow else 1e-150))
    square = u * u
    fourth = square * square
    when("square", square, 2 * u)
    when("cube", square * u, 3 * square)
    when("pow4", fourth, 4 * square * u)
    when("pow5", fourth * u, 5 * fourth)
    when("pow6", fourth * square, 6 * fourth * u)
    when("abs", jnp.abs(u), jnp.sign(u))
    when("neg", -u, -one)
    if "whole" in families:
        count = whole - 1
        magnitude = jnp.where(op == POWER_WHOLE, jnp.abs(u), 1)
        below = jnp.power(magnitude, count.astype(u.dtype)) * jnp.where((count % 2 != 0) & (u < 0), -1, 1)
        chosen = op == POWER_WHOLE
        value = jnp.where(chosen, jnp.where(whole == 0, 1, below * u), value)
        left = jnp.where(chosen, whole * below, left)
    if "trigonometric" in families:
        angle = jnp.where(among("sin", "cos"), u, 0)
        angle = jnp.where(jnp.abs(angle) <= ANGLE_LIMIT, angle, nan)
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        when("sin", sine, cosine)
        when("cos", cosine, -sine)
    if "exponential" in families:
        takes_log = among("log", "pow")
        logarithm = jnp.log(jnp.where(takes_log, jnp.where((u > 0) & (u < jnp.inf), u, nan), 1))
        when("log", logarithm, 1 / u)
        exponent = jnp.where(among("pow"), w * logarithm, jnp.where(among("exp"), u, 0))
        exponent = jnp.where(exponent <= EXPONENTIAL_LIMIT, jnp.maximum(exponent, -EXPONENTIAL_LIMIT), nan)
        power = jnp.exp(exponent)
        when("exp", power, power)
        when("pow", power, power * w / u, power * logarithm)
        tangent = jnp.tanh(jnp.where(among("tanh"), u, 0))
        when("tanh", tangent, 1 - tangent * tangent)
    if "inverse" in families:
        steep = 1 / jnp.sqrt(jnp.maximum(1 - square, 1e-30))
        bounded = jnp.where(among("asin", "acos"), u, 0)
        when("asin", jnp.arcsin(bounded), steep)
        when("acos", jnp.arccos(bounded), -steep)
        when("atan", jnp.arctan(jnp.where(among("atan"), u, 0)), 1 / (1 + square))
    return value, left, right


# --- all nodes --------------------------------------------------------------------------------------------------------


def _tapes(codes: Any, lengths: Any, n_free: Any, n_slots: int) -> Tapes:
    """Tapes [T, B] of programs [B, 5, T]: one more input slot holds the constant 1, spare nodes copy the one before."""
    codes = codes.astype(jnp.int32)
    op, left, right, left_constant, right_constant = (codes[:, i].T for i in range(5))
    whole = jnp.where(op == POWER_WHOLE, right, 0)
    fitted = op == POWER_FITTED  # left ** constant is left ** (constant * 1)
    op = jnp.where(fitted, _OP["pow"], op)
    binary = jnp.zeros(op.shape, bool)
    for opcode in _BINARY:
        binary = binary | (op == opcode)
    left, right = (jnp.where(slot >= n_slots, slot + 1, slot) for slot in (left, right))
    right, right_constant = jnp.where(binary & ~fitted, right, n_slots), jnp.where(binary, right_constant, -1)
    node = jnp.arange(op.shape[0])[:, None]
    spare = node >= lengths
    op = jnp.where(spare, _OP["id"], op)
    left, right = jnp.where(spare, n_slots + node, left), jnp.where(spare, n_slots, right)
    left_constant, right_constant = (jnp.where(spare, -1, c) for c in (left_constant, right_constant))
    left_free, right_free = (jnp.where(c < n_free, c, -1) for c in (left_constant, right_constant))
    return Tapes(op, left, right, left_constant, right_constant, left_free, right_free, whole)


def _factors(tapes: Tapes, constants: Any) -> tuple[Any, Any]:
    """The constant on each input of each node, 1 where there is none: two arrays [T, B]."""
    candidates = jnp.arange(constants.shape[0])
    picked = (
        jnp.where(index < 0, 1.0, constants[candidates, jnp.maximum(index, 0)])
        for index in (tapes.left_constant, tapes.right_constant)
    )
    left, right = picked
    return left.astype(constants.dtype), right.astype(constants.dtype)


def _step_node(
    tape: Tapes, factors: tuple[Any, Any], reads: tuple[Any, Any, Any, Any], n_free: int, families: frozenset[str]
) -> tuple[Any, Any]:
    """One node of every program: value [B, N] and slopes [B, P, N] from what it reads."""
    u, w, du, dw = reads
    numbers = jnp.arange(n_free)

    def weighted(x: Any, dx: Any, factor: Any, free: Any) -> tuple[Any, Any]:
        seed = (free[:, None] == numbers).astype(x.dtype)
        return factor[:, None] * x, factor[:, None, None] * dx + seed[:, :, None] * x[:, None, :]

    u, du = weighted(u, du, factors[0], tape.left_free)
    w, dw = weighted(w, dw, factors[1], tape.right_free)
    # The barrier keeps the costly functions out of the loop over slopes, where they would be computed P times.
    value, left, right = lax.optimization_barrier(_node(tape.op[:, None], tape.whole[:, None], u, w, families))
    return value, left[:, None, :] * du + right[:, None, :] * dw


def _evaluate(
    tapes: Tapes,
    length: Any,
    factors: tuple[Any, Any],
    inputs: Any,
    ground: Any,
    buffers: tuple[Any, Any],
    families: frozenset[str],
) -> tuple[Any, Any, tuple[Any, Any]]:
    """Output [B, N], its slopes [B, P, N], and the buffers [T, B, N], [T, B, P, N] that hold all slots."""
    n_slots = inputs.shape[1]
    n_free = buffers[1].shape[2]
    candidates = jnp.arange(tapes.op.shape[1])

    def body(k: Any, buffers: tuple[Any, Any]) -> tuple[Any, Any]:
        values, slopes = buffers
        tape, factor = jax.tree.map(lambda a: a[k], (tapes, factors))

        def read(slot: Any) -> tuple[Any, Any]:
            is_input = (slot < n_slots)[:, None]
            node = jnp.maximum(slot - n_slots, 0)
            x = jnp.where(is_input, inputs[ground, jnp.minimum(slot, n_slots - 1)], values[node, candidates])
            return x, jnp.where(is_input[:, :, None], 0, slopes[node, candidates])

        (u, du), (w, dw) = read(tape.left), read(tape.right)
        new = lax.optimization_barrier(_step_node(tape, factor, (u, w, du, dw), n_free, families))
        return values.at[k].set(new[0]), slopes.at[k].set(new[1])

    values, slopes = lax.fori_loop(0, length, body, buffers)
    return values[length - 1], slopes[length - 1], (values, slopes)


# --- Levenberg-Marquardt ----------------------------------------------------------------------------------------------


def _solve_damped(hessian: Any, gradient: Any, damping: Any, used: Any) -> tuple[Any, Any]:
    """Steps [B, P] of (H + damping diag H) step = gradient by elimination, and whether H was positive definite.

    ``used`` [B, P] marks the real constants; the pivots are those of a Cholesky factorisation, and so is the test.
    """
    n_free = gradient.shape[1]
    diagonal = jnp.diagonal(hessian, axis1=1, axis2=2)
    tiny = jnp.finfo(hessian.dtype).tiny
    damped = jnp.where(used, diagonal + damping[:, None] * diagonal + tiny, 1.0)
    eye = jnp.eye(n_free, dtype=bool)
    both = used[:, :, None] & used[:, None, :]
    matrix = jnp.where(eye, damped[:, None, :], jnp.where(both, hessian, 0))
    system = jnp.concatenate([matrix, jnp.where(used, gradient, 0)[:, :, None]], axis=2)
    floor = jnp.where(used, (1e-14 if hessian.dtype == jnp.float64 else 1e-7) * diagonal, 0)

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


def _fit_share(
    codes: Any,
    lengths: Any,
    n_free: Any,
    is_real: Any,
    ground: Any,
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

    codes [B, 5, T], constants [B, C], inputs [blocks, G, S + 1, N], target and weights [blocks, G, N].
    """
    tapes = _tapes(codes, lengths, n_free, inputs.shape[2] - 1)
    length = lengths.max()
    n_nodes, batch = tapes.op.shape
    dtype = constants.dtype
    used = jnp.arange(n_free_max) < n_free[:, None]
    mass = weights.sum(axis=(0, 2))[ground]
    rows = inputs.shape[3]
    buffers = (jnp.zeros((n_nodes, batch, rows), dtype), jnp.zeros((n_nodes, batch, n_free_max, rows), dtype))

    def normal_equations(constants: Any, buffers: Any) -> tuple[Any, Any, Any, Any]:
        """Losses (inf where not finite) and the sums JᵀWJ, JᵀWr."""
        factors = _factors(tapes, constants)

        def block(carry: Any, data: Any) -> tuple[Any, None]:
            total, hessian, gradient, buffers = carry
            columns, y, weight = data
            output, slopes, buffers = _evaluate(tapes, length, factors, columns, ground, buffers, families)
            residual = output - y[ground]
            weight = weight[ground]
            weighted = weight * residual
            total += (weighted * residual).sum(axis=1)
            gradient += (slopes * weighted[:, None, :]).sum(axis=2)
            scaled = slopes * weight[:, None, :]
            hessian += (
                (scaled[:, :, None, :] * slopes[:, None, :, :]).sum(axis=3)
                if n_free_max <= SIZES[1][1]
                else jnp.einsum("bpn,bqn->bpq", scaled, slopes, precision=lax.Precision.HIGHEST)
            )
            return (total, hessian, gradient, buffers), None

        empty = (jnp.zeros(batch, dtype), jnp.zeros((batch, n_free_max, n_free_max), dtype),
                 jnp.zeros((batch, n_free_max), dtype), buffers)  # fmt: skip
        if inputs.shape[0] == 1:
            (total, hessian, gradient, buffers), _ = block(empty, (inputs[0], target[0], weights[0]))
        else:
            (total, hessian, gradient, buffers), _ = lax.scan(block, empty, (inputs, target, weights))
        diagonal = jnp.diagonal(hessian, axis1=1, axis2=2)
        finite = jnp.isfinite(total) & jnp.where(used, jnp.isfinite(gradient) & jnp.isfinite(diagonal), True).all(
            axis=1
        )
        return jnp.where(finite, total / mass, jnp.inf), hessian, gradient, buffers

    loss, hessian, gradient, buffers = normal_equations(constants, buffers)
    finite = jnp.isfinite(loss)
    code = jnp.where(finite, jnp.where(n_free > 0, STEPS_SPENT, CONVERGED), NOT_FINITE)
    zeros = jnp.zeros(batch, jnp.int32)
    state = _State(
        constants, loss, hessian, gradient, jnp.full(batch, 1e-3, dtype), zeros, zeros, code.astype(jnp.int32),
        finite & (n_free > 0) & is_real & (max_steps > 0),
    )  # fmt: skip

    def attempt(carry: tuple[_State, Any]) -> tuple[_State, Any]:
        s, buffers = carry
        active, code = s.active, s.code
        if not forced:
            perfect = active & (s.loss < jnp.finfo(dtype).tiny)
            code = jnp.where(perfect, CONVERGED, code)
            active = active & ~perfect
        step, solved = _solve_damped(s.hessian, s.gradient, s.damping, used)
        tried = active & solved
        trial = s.constants.at[:, :n_free_max].add(-jnp.where(tried[:, None], step, 0))
        loss, hessian, gradient, buffers = normal_equations(trial, buffers)
        loss = jnp.where(tried, loss, jnp.inf)
        taken = s.taken + tried
        better = loss < s.loss
        gain = (s.loss - loss) / s.loss
        damping = jnp.where(better, jnp.maximum(0.1 * s.damping, 1e-14), 10 * s.damping)
        rejected = jnp.where(better, 0, s.rejected + 1)
        stuck = ~solved & ~better & (damping > 1e8)
        ends = stuck | (taken >= max_steps)
        if not forced:
            converged = jnp.where(better, gain < tolerance, rejected > 5)
            lost = better & ~converged & (taken >= 3) & (loss > 4 * hopeless) & (gain < 0.3)
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

    state, _ = lax.while_loop(lambda carry: carry[0].active.any(), attempt, (state, buffers))
    return state.constants, state.loss, state.code, state.taken + 1


@partial(jax.jit, static_argnames=("n_devices", "n_free_max", "families", "forced"))
def _fit_padded(*arrays: Any, n_devices: int, **static: Any) -> tuple[Any, Any, Any, Any]:
    """``_fit_share`` with the candidates (the first seven arrays) shared out to the devices."""
    share = partial(_fit_share, **static)
    if n_devices == 1:
        return share(*arrays)
    mine, all_alike = PartitionSpec("candidates"), PartitionSpec()
    mesh = Mesh(np.array(jax.devices()[:n_devices]), ("candidates",))
    specs = (mine,) * 7 + (all_alike,) * (len(arrays) - 7)
    # no device waits for another: each loops until its own candidates are done
    return jax.shard_map(share, mesh=mesh, in_specs=specs, out_specs=mine, check_vma=False)(*arrays)


# --- host side --------------------------------------------------------------------------------------------------------


def compilations() -> int:
    """How many shapes were compiled in this process so far."""
    return int(_fit_padded._cache_size())


def _families_of(ops: np.ndarray) -> frozenset[str]:
    counts = np.bincount(ops.ravel(), minlength=POWER_WHOLE + 1)
    return frozenset(name for name, members in _FAMILIES.items() if counts[list(members)].any())


def _memory_limit() -> float:
    if not available():
        return CPU_MEMORY
    stats = jax.devices()[0].memory_stats() or {}
    return MEMORY_SHARE * stats.get("bytes_limit", 8 * 2**30)


def _batch_size(n: int, n_nodes: int, n_free: int, rows: int, itemsize: int) -> int:
    """The smallest padded batch that holds n candidates, or the largest that fits into memory."""
    each = n_nodes * (1 + n_free) * rows * itemsize
    fitting = [size for size in BATCHES if size * each <= _memory_limit()] or [BATCHES[0]]
    return next((size for size in fitting if size >= n), fitting[-1])


class Ground(NamedTuple):
    """What candidates are fitted to: inputs [S, N], target [N], weights [N]."""

    inputs: np.ndarray
    target: np.ndarray
    weights: np.ndarray


def _blocks(grounds: Sequence[Ground], n_slots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Blocks of rows: inputs [blocks, G, S + 1, N], target and weights [blocks, G, N].

    Spare rows repeat the last one with weight 0, spare slots and grounds are zeros and never read.
    """
    n = grounds[0].inputs.shape[1]
    rows = ROW_BLOCK if n > ROW_BLOCK else ROW_STEP * -(-n // ROW_STEP)
    spare = -n % rows
    count = next((size for size in GROUNDS if size >= len(grounds)), len(grounds))
    columns = np.zeros((count, n_slots + 1, n + spare))
    target, weights = np.zeros((2, count, n + spare))
    columns[:, -1] = 1.0
    for g, ground in enumerate(grounds):
        columns[g, : len(ground.inputs)] = np.pad(ground.inputs, ((0, 0), (0, spare)), mode="edge")
        target[g] = np.pad(ground.target, (0, spare), mode="edge")
        weights[g, :n] = ground.weights
    blocked = columns.reshape(count, n_slots + 1, -1, rows).transpose(2, 0, 1, 3)
    return blocked, *(a.reshape(count, -1, rows).swapaxes(0, 1) for a in (target, weights))


def fit_arrays(
    codes: np.ndarray,
    lengths: np.ndarray,
    n_free: np.ndarray,
    constants: np.ndarray,
    inputs: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray,
    *,
    max_steps: int,
    tolerance: float,
    hopeless: float = np.inf,
    forced: bool = False,
    precision: str = "float64",
) -> FitResult:
    """Fit programs given as arrays, as the sampler writes them; the given ``constants`` stay as they are.

    ``precision`` is "float64", "float32", or "mixed": float32 for all but the last ``FINISH_STEPS`` steps.
    """
    ground = Ground(inputs, target, weights)
    return fit_grounds(
        codes, lengths, n_free, constants, np.zeros(len(lengths), np.int32), np.full(len(lengths), hopeless), [ground],
        max_steps=max_steps, tolerance=tolerance, forced=forced, precision=precision,
    )  # fmt: skip


def fit_grounds(
    codes: np.ndarray,
    lengths: np.ndarray,
    n_free: np.ndarray,
    constants: np.ndarray,
    ground: np.ndarray,
    hopeless: np.ndarray,
    grounds: Sequence[Ground],
    *,
    max_steps: int,
    tolerance: float,
    forced: bool = False,
    precision: str = "float64",
    families: frozenset[str] | None = None,
) -> FitResult:
    """``fit_arrays`` where candidate b is fitted to ``grounds[ground[b]]``; ``hopeless`` is per candidate, too.

    All grounds have the same number of rows and of slots. ``families`` compiles operators beyond those that occur.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    fit_in = partial(
        _fit_in, codes=codes, lengths=lengths, n_free=n_free, ground=ground, hopeless=hopeless, grounds=grounds,
        tolerance=tolerance, forced=forced, families=families,
    )  # fmt: skip
    if precision == "mixed":
        first = fit_in(jnp.float32, constants=constants, max_steps=max(max_steps - FINISH_STEPS, 0))
        usable = np.isfinite(first.losses) & np.isfinite(first.constants).all(axis=1)
        middle = np.where(usable[:, None], first.constants, constants)
        last = fit_in(jnp.float64, constants=middle, max_steps=min(max_steps, FINISH_STEPS))
        return last._replace(steps=first.steps + last.steps)
    return fit_in(jnp.float64 if precision == "float64" else jnp.float32, constants=constants, max_steps=max_steps)


def _fit_in(
    dtype: Any,
    *,
    codes: np.ndarray,
    lengths: np.ndarray,
    n_free: np.ndarray,
    constants: np.ndarray,
    ground: np.ndarray,
    hopeless: np.ndarray,
    grounds: Sequence[Ground],
    max_steps: int,
    tolerance: float,
    forced: bool,
    families: frozenset[str] | None,
) -> FitResult:
    """Fit in one precision: sort by size, pad, compute, put back in order."""
    n = len(lengths)
    lengths, n_free = np.asarray(lengths, np.int32), np.asarray(n_free, np.int32)
    fitted, losses = np.zeros_like(constants, float), np.full(n, np.inf)
    result_codes, steps = np.full(n, NOT_FINITE, np.int64), np.zeros(n, np.int64)
    size_of = np.maximum(
        np.searchsorted([nodes for nodes, _ in SIZES], lengths), np.searchsorted([free for _, free in SIZES], n_free)
    )
    pending = []
    devices = len(jax.devices())
    with jax.enable_x64(True):
        blocks = tuple(jnp.asarray(a, dtype) for a in _blocks(grounds, len(grounds[0].inputs)))
        for size in np.unique(size_of):
            n_nodes, n_free_max = SIZES[size]
            mine = np.flatnonzero(size_of == size)
            if np.ptp(lengths[mine]):  # a batch takes as many steps as its longest tape
                mine = mine[np.argsort(lengths[mine], kind="stable")]
            share = -(-len(mine) // devices)
            batch = devices * _batch_size(share, n_nodes, n_free_max, blocks[0].shape[3], jnp.dtype(dtype).itemsize)
            short = codes[:, :, :n_nodes]
            for low in range(0, len(mine), batch):
                chunk = _as_slice(mine[low : low + batch])
                n_real = min(batch, len(mine) - low)
                padded = chunk if n_real == batch else np.pad(mine[low:], (0, batch - n_real), mode="edge")
                code = np.ascontiguousarray(short[padded])
                width = MAX_CONSTANTS if code[:, 3:].max() >= n_free_max else n_free_max  # fixed constants come last
                result = _fit_padded(
                    jnp.asarray(code), jnp.asarray(lengths[padded]), jnp.asarray(n_free[padded]),
                    jnp.asarray(np.arange(batch) < n_real), jnp.asarray(ground[padded]),
                    jnp.asarray(hopeless[padded], dtype), jnp.asarray(_width(constants, padded, width), dtype), *blocks,
                    jnp.int32(max_steps), jnp.asarray(tolerance, dtype), n_devices=devices, n_free_max=n_free_max,
                    families=_families_of(code[:, 0]) | (families or frozenset()), forced=forced,
                )  # fmt: skip
                pending.append((chunk, n_real, result))
    for chunk, n_real, result in pending:  # only now wait for the device
        new, loss, ended, taken = (np.asarray(array)[:n_real] for array in result)
        width = min(new.shape[1], fitted.shape[1])
        fitted[chunk, :width] = new[:, :width]
        losses[chunk], result_codes[chunk], steps[chunk] = loss, ended, taken
    return FitResult(fitted, losses, result_codes, steps)


def _as_slice(rows: np.ndarray) -> np.ndarray | slice:
    """Consecutive rows as a slice, which is read without a copy."""
    first, last = int(rows[0]), int(rows[-1])
    whole = last - first + 1 == len(rows) and bool((np.diff(rows) == 1).all())
    return slice(first, last + 1) if whole else rows


def _width(constants: np.ndarray, rows: np.ndarray | slice, width: int) -> np.ndarray:
    """Constants [B, width] of some candidates, cut or filled with zeros."""
    cut = constants[:, :width][rows]
    return cut if cut.shape[1] == width else np.pad(cut, ((0, 0), (0, width - cut.shape[1])))


def fit(
    programs: Sequence[Program],
    start: np.ndarray | None,
    inputs: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    max_steps: int = 20,
    tolerance: float = 1e-9,
    n_threads: int = 1,
    precision: str = "float64",
) -> FitResult:
    """The contract of ``cpu.fit`` on JAX's device; ``n_threads`` is the device's own affair."""
    codes, lengths, n_free, own = stack(programs)
    constants = (
        own if start is None else np.pad(np.asarray(start, float), ((0, 0), (0, MAX_CONSTANTS - start.shape[1])))
    )
    weights = np.ones(inputs.shape[1]) if weights is None else np.asarray(weights, float)
    if any((program.code[0] >= USER_OPCODE).any() for program in programs):
        from gmeql.fitters import reference

        return reference.fit(programs, constants, inputs, target, weights, max_steps=max_steps, tolerance=tolerance)
    return fit_arrays(
        codes, lengths, n_free, constants, inputs, target, weights, max_steps=max_steps, tolerance=tolerance,
        precision=precision,
    )  # fmt: skip


def fit_batches(
    jobs: Sequence[tuple[Any, np.ndarray, np.ndarray, np.ndarray, float]],
    *,
    max_steps: int,
    tolerance: float,
    screen_rows: int | None,
    precision: str = "float64",
) -> None:
    """The contract of ``cpu.fit_batches``: the candidates of all jobs side by side.

    Candidates with an operator registered by the user take the path of ``cpu.fit_batches``.
    """
    jobs = [job for job in jobs if len(job[0].lengths)]
    if not jobs:
        return
    widest = max(len(inputs) for _, inputs, _, _, _ in jobs)
    n_slots = widest if len(jobs) == 1 else SLOT_STEP * -(-widest // SLOT_STEP)
    grounds = [Ground(_with_slots(inputs, n_slots), target, weights) for _, inputs, target, weights, _ in jobs]
    batches = [job[0] for job in jobs]
    codes = np.concatenate(
        [_moved(batch.programs, len(job[1]), n_slots) for batch, job in zip(batches, jobs, strict=True)]
    )
    lengths, n_free, constants = (
        np.concatenate([getattr(batch, name) for batch in batches]) for name in ("lengths", "n_constants", "constants")
    )
    sizes = [len(batch.lengths) for batch in batches]
    ground = np.repeat(np.arange(len(jobs), dtype=np.int32), sizes)
    hopeless = np.repeat([job[4] for job in jobs], sizes)
    known = ~(codes[:, 0] >= USER_OPCODE).any(axis=1)
    losses, result_codes, steps = (
        np.full(len(lengths), np.inf),
        np.full(len(lengths), NOT_FINITE),
        np.zeros(len(lengths), int),
    )

    def fit_rows(chosen: np.ndarray, n_rows: int, hopeless: np.ndarray) -> None:
        few = [Ground(g.inputs[:, :n_rows], g.target[:n_rows], g.weights[:n_rows]) for g in grounds]
        result = fit_grounds(
            codes[chosen], lengths[chosen], n_free[chosen], constants[chosen], ground[chosen], hopeless[chosen], few,
            max_steps=max_steps, tolerance=tolerance, precision=precision, families=frozenset(_FAMILIES),
        )  # fmt: skip
        constants[chosen], losses[chosen], result_codes[chosen], steps[chosen] = result

    n_rows = grounds[0].inputs.shape[1]
    chosen = np.flatnonzero(known)
    if screen_rows is not None and screen_rows < n_rows and len(chosen):
        # as in the kernel: the same relative error is another loss where the few rows vary more, or less, than all do
        ratios = np.array([_variance(g, screen_rows) / _variance(g, n_rows) for g in grounds])
        fit_rows(chosen, screen_rows, hopeless * ratios[ground])
        lost = ~(losses[chosen] < 2.0 * (hopeless * ratios[ground])[chosen])
        result_codes[chosen[lost]] = np.where(np.isfinite(losses[chosen[lost]]), HOPELESS, NOT_FINITE)
        chosen = chosen[~lost]
    if len(chosen):
        fit_rows(chosen, n_rows, hopeless)
    low = 0
    for batch, (_, inputs, target, weights, _) in zip(batches, jobs, strict=True):
        mine = slice(low, low + len(batch.lengths))
        batch.constants[:], batch.losses[:] = constants[mine], losses[mine]
        batch.codes[:], batch.steps[:] = result_codes[mine], steps[mine]
        low = mine.stop
        fit_user_operators(batch, inputs, target, weights, max_steps, tolerance)


def _variance(ground: Ground, n: int) -> float:
    target, weights = ground.target[:n], ground.weights[:n]
    return float(np.average((target - np.average(target, weights=weights)) ** 2, weights=weights)) + 1e-300


def _with_slots(inputs: np.ndarray, n_slots: int) -> np.ndarray:
    return inputs if len(inputs) == n_slots else np.pad(inputs, ((0, n_slots - len(inputs)), (0, 0)))


def _moved(programs: np.ndarray, n_slots: int, new_slots: int) -> np.ndarray:
    """Programs [B, 5, T] over ``n_slots`` input slots, as programs over ``new_slots``."""
    if n_slots == new_slots:
        return programs
    moved = programs.copy()
    slots = moved[:, 1:3]
    slots[slots >= n_slots] += new_slots - n_slots
    whole = moved[:, 0] == POWER_WHOLE  # here the right slot is an exponent
    moved[:, 2][whole] = programs[:, 2][whole]
    return moved
