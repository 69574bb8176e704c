"""All small formulas of a table on an accelerator, by rising cost: `SmallFormulas` once more, and many more of them.

Whole levels of cost are *kept*, with their values, as others are built on them; the last one as far as there is room, a fair
sample of it. The rest of that level, and what they make in one more step, is known by its form alone. The same table keeps the
same formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gmeql.fitters.cuda.driver import Driver
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.formula.operators import get_operator
from gmeql.network.families import FunctionSet
from gmeql.search.deep.source import (
    BATCH,
    BLOCK,
    COST_AT,
    ENTRY_BYTES,
    KEPT,
    KEPT_ONES,
    LEAF,
    OPERATOR_AT,
    OPERATOR_BITS,
    SIDE_BITS,
    SIDE_MASK,
    SMALL,
    TABLE,
    THREADS,
    deep_source,
    mixed,
)
from gmeql.search.direct.middle.meeting import MEETING
from gmeql.search.direct.middle.small_formulas import BINARY, CONSTANTS, MAX_COST, UNARY_COSTS
from gmeql.search.direct.table import FloatArray

COMMUTING = ("add", "mul")


@dataclass(frozen=True)
class Extent:
    """How many formulas there may be."""

    kept: int
    """With values, for others to be built on."""
    tried: int
    """For a level that is kept: a level of more is not."""
    forms: int
    """... and afterwards for forms alone."""
    bits: int
    """Slots of the tables of values and of forms, as a power of two."""

    @property
    def n_bytes(self) -> int:
        """Memory that is taken for them."""
        return 2 * (ENTRY_BYTES << self.bits) + self.kept * (8 * MEETING.rows + 16)


@dataclass(frozen=True)
class _Block:
    """An operator on kept formulas of two costs: numbers of the first ones, and how many."""

    name: str
    left: int
    n_left: int
    right: int
    n_right: int
    is_half: bool

    @property
    def n(self) -> int:
        return self.n_left * self.n_right

    def part(self, share: float) -> _Block:
        """A share of it, of the side that has more."""
        side = "n_left" if self.n_left >= self.n_right else "n_right"
        return replace(self, **{side: math.ceil(share * getattr(self, side))})


class DeepFormulas:
    """Small formulas over the rows X [R, V], there."""

    def __init__(self, driver: Driver, X: FloatArray, functions: FunctionSet, extent: Extent) -> None:
        self.driver, self.n_columns, self.extent = driver, X.shape[1], extent
        unary = [name for name in UNARY_COSTS if functions.allows({name})]
        self.names = [*(name for name in BINARY if functions.allows({name})), *unary]
        self.codes = np.empty(0, np.uint64)
        """Of the kept formulas [K], by number."""
        self.starts = [0, 0]
        """The first kept formula of each cost, and where the last level ends."""
        self.formed = 0
        """Formulas that were tried for their form alone."""
        leaves = np.array([*X.T, *(np.full(len(X), constant) for constant in CONSTANTS)])
        self._there = self._reserve(leaves)
        codes = [1 << COST_AT | LEAF << OPERATOR_AT | number for number in range(len(leaves))]
        self._keep(np.array(codes, np.uint64), are_leaves=True)

    def _reserve(self, leaves: FloatArray) -> dict[str, Any]:
        driver, extent, row_bytes = self.driver, self.extent, leaves[0].nbytes
        tables = ("by_values", "by_forms")
        there = {"values": driver.zeros((extent.kept + len(leaves)) * row_bytes)}
        there |= {name: driver.zeros(ENTRY_BYTES << extent.bits) for name in tables}
        self._room = 2 * extent.kept
        there |= {"found": driver.zeros(8 * self._room), "n_found": driver.zeros(4)}
        there["signs"] = driver.put(np.array(np.random.default_rng(0).normal(size=leaves.shape[1])))
        there["opcodes"] = driver.put(np.array([get_operator(name).opcode for name in self.names], np.int32))
        driver.fill(there["values"][: leaves.nbytes], leaves.view(np.uint8).reshape(-1))
        record, at = np.zeros(1, SMALL), {name: driver.pointer(array) for name, array in there.items()}
        for name in ("values", "signs", "opcodes", "found", "n_found"):
            record[name] = at[name]
        for name in tables:
            record[name] = np.array([(at[name], self.n_slots - 1)], TABLE)
        record["room"] = self._room
        return there | {"small": driver.put(record)}

    # --- growing -----------------------------------------------------------------------------------------------------

    def grow(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Level by level, as far as there is room, and `goes_on` says so."""
        cost, is_whole = 2, True
        while is_whole and cost <= MAX_COST and goes_on():
            blocks = self._blocks(cost)
            room = self.extent.kept - len(self.codes)
            if sum(block.n for block in blocks) > self.extent.tried:
                break
            codes = self._collected(cost, blocks)
            is_whole = len(codes) < room
            self._keep(codes[:room])
            cost += is_whole
        left = self.extent.forms
        while cost <= MAX_COST and left > 0 and goes_on():
            blocks = self._blocks(cost)
            tries = sum(block.n for block in blocks)
            if not tries:
                break
            self._launch_blocks("forms", cost, [block.part(min(left / tries, 1.0)) for block in blocks])
            self.formed += min(left, tries)
            left -= tries
            cost += 1

    def _blocks(self, cost: int) -> list[_Block]:
        """What makes formulas of a cost out of the kept ones."""
        found = []
        for name in self.names:
            own = UNARY_COSTS.get(name)
            if own is not None:
                first, n = self._level(cost - own)
                found.append(_Block(name, first, n, -1, 1, False))
                continue
            for left in range(1, cost - 1):
                right = cost - 1 - left
                if not (name in COMMUTING and left > right):
                    is_half = name in COMMUTING and left == right
                    found.append(_Block(name, *self._level(left), *self._level(right), is_half))
        return [block for block in found if block.n]

    def _level(self, cost: int) -> tuple[int, int]:
        """The first kept formula of a cost, and how many there are."""
        if not 1 <= cost < len(self.starts) - 1:
            return 0, 0
        return self.starts[cost], self.starts[cost + 1] - self.starts[cost]

    def _collected(self, cost: int, blocks: Sequence[_Block]) -> np.ndarray:
        """Codes of the new formulas of a cost, in no order; of too many a sample."""
        self._launch_blocks("claim", cost, blocks)
        share = 1.0
        while True:
            self.driver.fill(self._there["n_found"], None)
            self._launch_blocks("collect", cost, blocks, share)
            n = int(self.driver.get(self._there["n_found"]).view(np.int32)[0])
            if n <= self._room:
                break
            share *= 0.8 * self._room / n
        codes = self.driver.get(self._there["found"][: 8 * n]).view(np.uint64)
        return np.asarray(codes[np.argsort(mixed(codes))])

    def _launch_blocks(self, kernel: str, cost: int, blocks: Sequence[_Block], share: float = 1.0) -> None:
        records = np.zeros(len(blocks), BLOCK)
        for record, block in zip(records, blocks, strict=True):
            record["n"], record["most_mixed"] = block.n, min(int(share * 2**64), 2**64 - 1)
            record["number"], record["cost"] = self.names.index(block.name), cost
            record["opcode"] = get_operator(block.name).opcode
            for name in ("left", "right", "n_right", "is_half"):
                record[name] = getattr(block, name)
        self.launch_parts(kernel, records)

    def _keep(self, codes: np.ndarray, *, are_leaves: bool = False) -> None:
        """Let formulas be kept, as one level."""
        if len(codes):
            self._there["codes"] = sent = self.driver.put(codes)
            record = np.zeros(1, KEPT_ONES)
            record["n"], record["first"], record["are_leaves"] = len(codes), len(self.codes), are_leaves
            record["codes"] = self.driver.pointer(sent)
            self._there["kept"] = self.driver.put(record)
            self.launch("keep", len(codes), (self._there["kept"],))
            self.driver.get(self._there["n_found"])  # what was sent may go now
        self.codes = np.concatenate([self.codes, codes])
        self.starts.append(len(self.codes))

    def launch(self, kernel: str, n: int, arguments: tuple[Any, ...]) -> None:
        """Start a kernel of so many threads on the formulas."""
        if n == 0:
            return
        arguments = (self._there["small"], *arguments)
        blocks = -(-n // THREADS)
        self.driver.launch(deep_source(), kernel, blocks=blocks, threads=THREADS, shared=0, arguments=arguments)

    def launch_parts(self, kernel: str, records: np.ndarray, *arguments: Any) -> None:
        """Start a kernel of several pieces of work, each with so many threads."""
        batch = np.zeros(1, BATCH)
        batch["n"], batch["n_parts"] = records["n"].sum(), len(records)
        records["start"] = np.cumsum(records["n"]) - records["n"]
        there = self.driver.put(batch), self.driver.put(records.view(np.uint8))
        self.launch(kernel, int(batch["n"][0]), (*there, *arguments))
        self._there["parts"] = there  # which are read until it is over

    # --- the tables there --------------------------------------------------------------------------------------------

    @property
    def n_slots(self) -> int:
        """Of the table of forms."""
        return 1 << self.extent.bits

    def spare_table(self) -> tuple[Any, int]:
        """A table that nobody needs once all have grown, and its mask."""
        return self._there["by_values"], self.n_slots - 1

    # --- what they are -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many are kept."""
        return len(self.codes)

    def costs(self) -> np.ndarray:
        """Costs [K] of the kept ones."""
        return (self.codes >> np.uint64(COST_AT)).astype(np.int64)

    def tree(self, number: int) -> Node:
        """A kept formula over the table's columns."""
        return self.tree_of_code(int(self.codes[number]))

    def tree_of_code(self, code: int) -> Node:
        """The formula of a code."""
        operator = code >> OPERATOR_AT & (1 << OPERATOR_BITS) - 1
        left, right = code >> SIDE_BITS & SIDE_MASK, code & SIDE_MASK
        if operator == LEAF:
            return Variable(right) if right < self.n_columns else Constant(CONSTANTS[right - self.n_columns])
        if operator == KEPT:
            return self.tree(right)
        parts = [self.tree(left)] + ([self.tree(right)] if right != SIDE_MASK else [])
        return build(self.names[operator], *parts)
