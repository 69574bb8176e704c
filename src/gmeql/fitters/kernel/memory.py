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
from gmeql.fitters.kernel.options import FAST, FAST_INLINE, INDICES, NUMBERS, TABLE
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


WORK = types.NamedTuple(
    [
        TABLE, INDICES, NUMBERS, INDICES, NUMBERS, int64[::1], int64[::1], TABLE, TABLE, TABLE, NUMBERS, NUMBERS, TABLE,
        NUMBERS, NUMBERS,
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


@compiled(**FAST)
def make_work(n_slots, n_rows):
    """Scratch memory for programs over `n_slots` input slots and `n_rows` data rows."""
    blocks = min((n_rows + BLOCK - 1) // BLOCK, KEPT) if n_rows <= KEPT * BLOCK else 1
    products = np.empty((MAX_CONSTANTS, MAX_CONSTANTS + 2))
    for p in range(MAX_CONSTANTS):
        for q in range(MAX_CONSTANTS + 2):
            products[p, q] = 0.0
    # matrices alone, and rows of them: each kind of array that is made costs a tenth of a second of compiling
    vectors = np.empty((6, max(MAX_NODES, MAX_CONSTANTS)))
    lists = np.empty((2, MAX_CONSTANTS + 8), np.int64)
    return Work(
        np.empty((rows_of(n_slots)[5] * blocks, BLOCK)),
        np.empty((STATES, MAX_NODES), np.int64),
        vectors[0],
        np.empty((2, MAX_CONSTANTS), np.int64),
        vectors[1],
        lists[0],
        lists[1],
        products,
        np.empty((MAX_CONSTANTS, MAX_CONSTANTS)),
        np.empty((MAX_CONSTANTS, MAX_CONSTANTS)),
        vectors[2],
        vectors[3],
        np.empty((MAX_CONSTANTS, MAX_CONSTANTS)),
        vectors[4],
        vectors[5],
    )


@compiled(**FAST_INLINE)
def load_block(target, roots, low, n, table, base):
    """Copy target and roots of the weights of rows low..low+n into a block."""
    for i in range(n):
        table[base + TARGET, i] = target[low + i]
        table[base + SEED, i] = roots[low + i]
