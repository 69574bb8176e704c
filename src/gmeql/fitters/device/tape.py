"""Tapes on an accelerator: one node of every program at a time, values and slopes together.

A node reads its inputs from per-candidate slots, computes every operator of the families that occur in the batch and
keeps the one its opcode names; there are no branches, and nothing is differentiated automatically: each slot carries
its slopes to the free constants (forward accumulation), as in `reference.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gmeql.fitters.opcodes import (
    ABS,
    ACOS,
    ADD,
    ASIN,
    ATAN,
    COS,
    CUBE,
    DIV,
    EXP,
    ID,
    INV,
    LOG,
    MUL,
    NEG,
    POW,
    POW4,
    POW5,
    POW6,
    POWER_FITTED,
    POWER_WHOLE,
    SIN,
    SQRT,
    SQUARE,
    SUB,
    TANH,
)
from gmeql.formula.limits import ANGLE_LIMIT, EXPONENTIAL_LIMIT

FAMILIES = {
    "trigonometric": (SIN, COS),
    "exponential": (EXP, LOG, TANH, POW, POWER_FITTED),
    "inverse": (ASIN, ACOS, ATAN),
    "whole": (POWER_WHOLE,),
}
"""Operators that are costly enough to be left out of a compiled batch where none of its programs holds one."""
_BINARY = (ADD, SUB, MUL, DIV, POW)


def families_of(ops: np.ndarray) -> frozenset[str]:
    """The families of which some operator occurs among these opcodes."""
    counts = np.bincount(ops.ravel(), minlength=POWER_WHOLE + 1)
    return frozenset(name for name, members in FAMILIES.items() if counts[list(members)].any())


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


# --- one node ---------------------------------------------------------------------------------------------------------


def _node(op: Any, whole: Any, u: Any, w: Any, families: frozenset[str]) -> tuple[Any, Any, Any]:
    """Value and slopes to both weighted inputs [B, N] of one node; `op` and `whole` are [B, 1]."""
    one, zero = jnp.ones_like(u), jnp.zeros_like(u)
    nan = jnp.asarray(jnp.nan, u.dtype)
    narrow = u.dtype == jnp.float32

    def among(*opcodes: int) -> Any:
        chosen = op == opcodes[0]
        for opcode in opcodes[1:]:
            chosen = chosen | (op == opcode)
        return chosen

    value, left, right = u, one, zero  # id

    def when(opcode: int, new_value: Any, new_left: Any, new_right: Any = None) -> None:
        nonlocal value, left, right
        chosen = op == opcode
        value, left = jnp.where(chosen, new_value, value), jnp.where(chosen, new_left, left)
        if new_right is not None:
            right = jnp.where(chosen, new_right, right)

    when(ADD, u + w, one, one)
    when(SUB, u - w, one, -one)
    when(MUL, u * w, w, u)
    inverse = 1 / jnp.where(among(DIV), w, u)
    when(DIV, u * inverse, inverse, -u * inverse * inverse)
    when(INV, inverse, -inverse * inverse)
    root = jnp.sqrt(u)
    when(SQRT, root, 0.5 / jnp.maximum(root, 1e-18 if narrow else 1e-150))
    square = u * u
    fourth = square * square
    when(SQUARE, square, 2 * u)
    when(CUBE, square * u, 3 * square)
    when(POW4, fourth, 4 * square * u)
    when(POW5, fourth * u, 5 * fourth)
    when(POW6, fourth * square, 6 * fourth * u)
    when(ABS, jnp.abs(u), jnp.sign(u))
    when(NEG, -u, -one)
    if "whole" in families:
        count = whole - 1
        magnitude = jnp.where(op == POWER_WHOLE, jnp.abs(u), 1)
        below = jnp.power(magnitude, count.astype(u.dtype)) * jnp.where((count % 2 != 0) & (u < 0), -1, 1)
        chosen = op == POWER_WHOLE
        value = jnp.where(chosen, jnp.where(whole == 0, 1, below * u), value)
        left = jnp.where(chosen, whole * below, left)
    if "trigonometric" in families:
        angle = jnp.where(among(SIN, COS), u, 0)
        angle = jnp.where(jnp.abs(angle) <= ANGLE_LIMIT, angle, nan)
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        when(SIN, sine, cosine)
        when(COS, cosine, -sine)
    if "exponential" in families:
        takes_log = among(LOG, POW)
        logarithm = jnp.log(jnp.where(takes_log, jnp.where((u > 0) & (u < jnp.inf), u, nan), 1))
        when(LOG, logarithm, 1 / u)
        exponent = jnp.where(among(POW), w * logarithm, jnp.where(among(EXP), u, 0))
        exponent = jnp.where(exponent <= EXPONENTIAL_LIMIT, jnp.maximum(exponent, -EXPONENTIAL_LIMIT), nan)
        power = jnp.exp(exponent)
        when(EXP, power, power)
        when(POW, power, power * w / u, power * logarithm)
        tangent = jnp.tanh(jnp.where(among(TANH), u, 0))
        when(TANH, tangent, 1 - tangent * tangent)
    if "inverse" in families:
        steep = 1 / jnp.sqrt(jnp.maximum(1 - square, 1e-30))
        bounded = jnp.where(among(ASIN, ACOS), u, 0)
        when(ASIN, jnp.arcsin(bounded), steep)
        when(ACOS, jnp.arccos(bounded), -steep)
        when(ATAN, jnp.arctan(jnp.where(among(ATAN), u, 0)), 1 / (1 + square))
    return value, left, right


# --- all nodes --------------------------------------------------------------------------------------------------------


def make_tapes(codes: Any, lengths: Any, n_free: Any, n_slots: int) -> Tapes:
    """Tapes [T, B] of programs [B, 5, T]: one more input slot holds the constant 1, spare nodes copy the one before."""
    codes = codes.astype(jnp.int32)
    op, left, right, left_constant, right_constant = (codes[:, i].T for i in range(5))
    whole = jnp.where(op == POWER_WHOLE, right, 0)
    fitted = op == POWER_FITTED  # left ** constant is left ** (constant * 1)
    op = jnp.where(fitted, POW, op)
    binary = jnp.zeros(op.shape, bool)
    for opcode in _BINARY:
        binary = binary | (op == opcode)
    left, right = (jnp.where(slot >= n_slots, slot + 1, slot) for slot in (left, right))
    right, right_constant = jnp.where(binary & ~fitted, right, n_slots), jnp.where(binary, right_constant, -1)
    node = jnp.arange(op.shape[0])[:, None]
    spare = node >= lengths
    op = jnp.where(spare, ID, op)
    left, right = jnp.where(spare, n_slots + node, left), jnp.where(spare, n_slots, right)
    left_constant, right_constant = (jnp.where(spare, -1, c) for c in (left_constant, right_constant))
    left_free, right_free = (jnp.where(c < n_free, c, -1) for c in (left_constant, right_constant))
    return Tapes(op, left, right, left_constant, right_constant, left_free, right_free, whole)


def factors_of(tapes: Tapes, constants: Any) -> tuple[Any, Any]:
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


def evaluate(
    tapes: Tapes,
    length: Any,
    factors: tuple[Any, Any],
    inputs: Any,
    dataset: Any,
    buffers: tuple[Any, Any],
    families: frozenset[str],
) -> tuple[Any, Any, tuple[Any, Any]]:
    """Output [B, N], its slopes [B, P, N], and the buffers [T, B, N], [T, B, P, N] that hold all slots.

    Candidate b reads `inputs[dataset[b]]`, of shape [S + 1, N].
    """
    n_slots = inputs.shape[1]
    n_free = buffers[1].shape[2]
    candidates = jnp.arange(tapes.op.shape[1])

    def body(k: Any, buffers: tuple[Any, Any]) -> tuple[Any, Any]:
        values, slopes = buffers
        tape, factor = jax.tree.map(lambda a: a[k], (tapes, factors))

        def read(slot: Any) -> tuple[Any, Any]:
            is_input = (slot < n_slots)[:, None]
            node = jnp.maximum(slot - n_slots, 0)
            x = jnp.where(is_input, inputs[dataset, jnp.minimum(slot, n_slots - 1)], values[node, candidates])
            return x, jnp.where(is_input[:, :, None], 0, slopes[node, candidates])

        (u, du), (w, dw) = read(tape.left), read(tape.right)
        new = lax.optimization_barrier(_step_node(tape, factor, (u, w, du, dw), n_free, families))
        return values.at[k].set(new[0]), slopes.at[k].set(new[1])

    values, slopes = lax.fori_loop(0, length, body, buffers)
    return values[length - 1], slopes[length - 1], (values, slopes)
