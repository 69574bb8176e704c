"""The memory of a worker: parts that do not overlap, blocks as far as they are kept, rows copied to their places."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.fitters.kernel.memory import BLOCK, KEPT, SEED, SLOTS, TARGET, load_block, make_work, rows_of
from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES


@pytest.mark.parametrize("n_slots", [1, 7])
def test_parts_of_a_block_follow_each_other(n_slots: int) -> None:
    parts = rows_of(n_slots)
    assert parts[0] == SLOTS + n_slots + MAX_NODES  # above: slots, and a row for the value of each node
    assert list(np.diff(parts)) == [MAX_NODES] * 4 + [MAX_CONSTANTS]


@pytest.mark.parametrize(
    ("n_rows", "blocks"),
    [(1, 1), (BLOCK, 1), (BLOCK + 1, 2), (KEPT * BLOCK, KEPT), (KEPT * BLOCK + 1, 1)],
)
def test_blocks_stay_in_memory_where_all_of_them_can(n_rows: int, blocks: int) -> None:
    assert make_work(3, n_rows).table.shape == (blocks * rows_of(3)[-1], BLOCK)


def test_trial_values_have_memory_of_their_own() -> None:
    work = make_work(2, 10)
    assert not np.shares_memory(work.hessian, work.trial_hessian)
    assert not np.shares_memory(work.gradient, work.trial_gradient)


def test_rows_are_copied_to_their_block_and_nowhere_else() -> None:
    target, roots = np.arange(10.0), np.arange(10.0) + 100
    base = rows_of(1)[-1]
    table = np.full((2 * base, BLOCK), -1.0)
    load_block(target, roots, 4, 3, table, base)
    assert table[base + TARGET, :4].tolist() == [4, 5, 6, -1]
    assert table[base + SEED, :4].tolist() == [104, 105, 106, -1]
    assert (table != -1).sum() == 6
