"""The table's layout: rows of different meaning never overlap, and there is a block for all rows that are kept."""

from __future__ import annotations

import pytest

from gmeql.fitters.kernel.memory import BLOCK, KEPT, SLOTS, make_work, rows_of
from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES


@pytest.mark.parametrize("n_slots", [3, 41])
def test_rows_lie_behind_each_other(n_slots: int) -> None:
    firsts = [SLOTS, *rows_of(n_slots)]
    sizes = [n_slots + MAX_NODES, *[MAX_NODES] * 4, MAX_CONSTANTS]
    assert [low + size for low, size in zip(firsts, sizes, strict=False)] == firsts[1:]


@pytest.mark.parametrize(
    ("n_rows", "blocks"), [(1, 1), (BLOCK, 1), (BLOCK + 1, 2), (KEPT * BLOCK, KEPT), (KEPT * BLOCK + 1, 1)]
)
def test_more_rows_than_are_kept_pass_through_one_block(n_rows: int, blocks: int) -> None:
    assert make_work(5, n_rows).table.shape == (blocks * rows_of(5)[-1], BLOCK)
