"""The memory of one worker: one table whose rows hold `BLOCK` data rows each, and what is noted beside it.

Rows of the table, in each block: target, root of the weights, residual, slots, then per node what the reverse pass needs
(`rows_of`). Up to `KEPT` blocks stay in memory between evaluations, each with a table of its own, so inputs are copied
once for many candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, types

from gmeql.fitters.compiled import compiled
from gmeql.fitters.kernel.options import FAST_INLINE, INDICES, NUMBERS, TABLE
from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES

BLOCK = 256
"""Data rows per block: a row of the table has 2 KiB, and the twenty or so that a program touches stay in cache."""
KEPT = 8
"""Blocks whose slots stay in memory between evaluations; with more data rows each pass computes them anew."""

TARGET, SEED, RESIDUAL, SLOTS = 0, 1, 2, 3
"""First rows of a block; the seed of the reverse pass is the root of the weights."""
USES, MOVES, ROW, STATES = 0, 1, 2, 3
"""What is known of a node: how often it is read, whether free constants move it, the row of its slope; their number."""


class Work(NamedTuple):
    """Scratch memory of one worker."""

    table: np.ndarray
    """[rows of all kept blocks, BLOCK]"""
    nodes: np.ndarray
    """[STATES, MAX_NODES]"""
    scales: np.ndarray
    """[MAX_NODES] the slope to a node is its row times this."""
    columns: np.ndarray
    """[2, MAX_CONSTANTS] row of each Jacobian column (-1: none), and whether it never changes."""
    column_scales: np.ndarray
    """[MAX_CONSTANTS] a column is its row times this."""
    wanted: np.ndarray
    """[MAX_CONSTANTS + 8] rows whose products with a column are wanted, and their places among its products."""
    places: np.ndarray
    products: np.ndarray
    """[MAX_CONSTANTS, MAX_CONSTANTS + 2] of columns with each other, with the residual, and what nobody reads."""
    hessian: np.ndarray
    trial_hessian: np.ndarray
    gradient: np.ndarray
    trial_gradient: np.ndarray
    factor: np.ndarray
    step: np.ndarray
    trial: np.ndarray
    roots: np.ndarray
    """[N] square roots of the weights."""
    is_read: np.ndarray
    """[S] whether any program reads an input slot."""


WORK = types.NamedTuple(
    [
        TABLE, INDICES, NUMBERS, INDICES, NUMBERS, int64[::1], int64[::1], TABLE, TABLE, TABLE, NUMBERS, NUMBERS, TABLE,
        NUMBERS, NUMBERS, NUMBERS, int64[::1],
    ],
    Work,
)  # fmt: skip


@compiled(**FAST_INLINE)
def rows_of(n_slots):
    """First rows of: kept slopes, slopes to left inputs, to right inputs, sums of slopes, Jacobian; and their end."""
    slope = SLOTS + n_slots + MAX_NODES
    return (
        slope, slope + MAX_NODES, slope + 2 * MAX_NODES, slope + 3 * MAX_NODES, slope + 4 * MAX_NODES,
        slope + 4 * MAX_NODES + MAX_CONSTANTS,
    )  # fmt: skip


def make_work(n_slots: int, n_rows: int) -> Work:
    """Scratch memory for programs over `n_slots` input slots and `n_rows` data rows.

    Not compiled: each kind of array that compiled code makes takes a tenth of a second to compile.
    """
    blocks = -(-n_rows // BLOCK) if n_rows <= KEPT * BLOCK else 1
    vectors, lists = np.empty((6, max(MAX_NODES, MAX_CONSTANTS))), np.empty((2, MAX_CONSTANTS + 8), np.int64)
    squares = np.empty((3, MAX_CONSTANTS, MAX_CONSTANTS))
    return Work(
        table=np.empty((rows_of.py_func(n_slots)[5] * blocks, BLOCK)),
        nodes=np.empty((STATES, MAX_NODES), np.int64),
        scales=vectors[0],
        columns=np.empty((2, MAX_CONSTANTS), np.int64),
        column_scales=vectors[1],
        wanted=lists[0],
        places=lists[1],
        products=np.zeros((MAX_CONSTANTS, MAX_CONSTANTS + 2)),
        hessian=squares[0],
        trial_hessian=squares[1],
        gradient=vectors[2],
        trial_gradient=vectors[3],
        factor=squares[2],
        step=vectors[4],
        trial=vectors[5],
        roots=np.empty(n_rows),
        is_read=np.empty(n_slots, np.int64),
    )


@compiled(**FAST_INLINE)
def load_block(target, roots, low, n, table, base):
    """Copy target and roots of the weights of rows low..low+n into a block."""
    for i in range(n):
        table[base + TARGET, i] = target[low + i]
        table[base + SEED, i] = roots[low + i]
