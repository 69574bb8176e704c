"""A whole program on one block of rows: which nodes matter, the values forward, the slopes in reverse."""

from __future__ import annotations

from numba import boolean, int64, void

from gmeql.fitters.compiled import compiled, part
from gmeql.fitters.kernel.memory import BLOCK, MOVES, ROW, SEED, SLOTS, USES, rows_of
from gmeql.fitters.kernel.node import apply, is_binary, slope_row, times
from gmeql.fitters.kernel.options import FAST, INDICES, NUMBERS, PROGRAM, TABLE
from gmeql.fitters.opcodes import POWER_FITTED, POWER_WHOLE


@part(void(PROGRAM, int64, int64, int64, INDICES), **FAST)
def plan(program, length, n_free, n_slots, nodes):
    """How often each node is read by what the output depends on, and whether free constants move it."""
    for k in range(length):
        nodes[USES, k] = 0
    nodes[USES, length - 1] = 1
    for k in range(length - 1, -1, -1):
        if nodes[USES, k] > 0:
            if program[1, k] >= n_slots:
                nodes[USES, program[1, k] - n_slots] += 1
            if is_binary(program[0, k]) and program[2, k] >= n_slots:
                nodes[USES, program[2, k] - n_slots] += 1
    for k in range(length):
        op = program[0, k]
        moves = 0 <= program[3, k] < n_free or (program[1, k] >= n_slots and nodes[MOVES, program[1, k] - n_slots] > 0)
        if is_binary(op) or op == POWER_FITTED:
            moves = moves or 0 <= program[4, k] < n_free
        if is_binary(op) and program[2, k] >= n_slots:
            moves = moves or nodes[MOVES, program[2, k] - n_slots] > 0
        nodes[MOVES, k] = 1 if moves else 0


@part(void(PROGRAM, int64, TABLE, int64, int64, TABLE, int64), **FAST)
def load(program, length, inputs, low, n, table, base):
    """Copy the input slots that a program reads, rows low..low+n, into the table."""
    n_slots = inputs.shape[0]
    for k in range(length):
        for side in range(1, 3 if is_binary(program[0, k]) else 2):
            slot = program[side, k]
            if slot < n_slots:
                for i in range(n):
                    table[base + SLOTS + slot, i] = inputs[slot, low + i]


@part(void(PROGRAM, int64, NUMBERS, int64, TABLE, int64, int64, INDICES, boolean), **FAST)
def forward(program, length, constants, n_slots, table, base, n, nodes, moving_only):
    """Fill the slots of the nodes that the output depends on; with `moving_only` those that constants move."""
    slope, spare, _, _, _, _ = rows_of(n_slots)
    for k in range(length):
        if nodes[USES, k] == 0 or (moving_only and nodes[MOVES, k] == 0):
            continue
        op = program[0, k]
        f = constants[program[3, k]] if program[3, k] >= 0 else 1.0
        g = 1.0
        y = program[1, k]
        exponent = 0.0
        if is_binary(op):
            g = constants[program[4, k]] if program[4, k] >= 0 else 1.0
            y = program[2, k]
        elif op == POWER_FITTED:
            exponent = constants[program[4, k]]
        elif op == POWER_WHOLE:
            exponent = float(program[2, k])
        first = base + SLOTS
        apply(
            table,
            op,
            first + program[1, k],
            f,
            first + y,
            g,
            exponent,
            first + n_slots + k,
            base + slope + k,
            base + spare + k,
            n,
        )


@part(
    void(
        PROGRAM, int64, NUMBERS, int64, int64, TABLE, int64, int64, boolean, INDICES, NUMBERS, INDICES, NUMBERS, boolean
    ),
    **FAST,
)
def backward(
    program, length, constants, n_free, n_slots, table, base, n, unit, nodes, scales, columns, column_scales, again
):
    """Reverse pass on one block: the Jacobian column of constant p is row `columns[0, p]` times `column_scales[p]`.

    Every column is times the root of the weights. `columns[1, p]` tells that the row never changes; with `again`
    such rows are there already. -1 marks a constant that nothing depends on.
    """
    slope, left_out, right_out, sums, jacobian, _ = rows_of(n_slots)
    first = base + SLOTS
    seed = base + SEED
    for p in range(n_free):
        columns[0, p] = -1
        columns[1, p] = 0
    for k in range(length):
        nodes[ROW, k] = -1
    nodes[ROW, length - 1] = seed
    scales[length - 1] = 1.0
    for k in range(length - 1, -1, -1):
        if nodes[USES, k] == 0 or nodes[MOVES, k] == 0:
            continue
        op = program[0, k]
        adjoint = nodes[ROW, k]
        scale = scales[k]
        f = constants[program[3, k]] if program[3, k] >= 0 else 1.0
        g = 1.0
        y = program[1, k]
        exponent = 0.0
        sides = 1
        if is_binary(op):
            g = constants[program[4, k]] if program[4, k] >= 0 else 1.0
            y = program[2, k]
            sides = 2
        elif op == POWER_FITTED:
            exponent = constants[program[4, k]]
            p = program[4, k]
            if p < n_free:
                for i in range(n):
                    table[base + jacobian + p, i] = (
                        table[adjoint, i] * table[first + n_slots + k, i] * table[base + slope + k, i]
                    )
                columns[0, p] = base + jacobian + p
                column_scales[p] = scale
        elif op == POWER_WHOLE:
            exponent = float(program[2, k])
        for side in range(sides):
            source = program[1 + side, k]
            p = program[3 + side, k]
            below = source - n_slots
            is_free = 0 <= p < n_free
            goes_on = below >= 0 and nodes[MOVES, max(below, 0)] > 0
            if not (is_free or goes_on):
                continue
            out = base + k + (left_out if side == 0 else right_out)
            row, factor = slope_row(
                table,
                op,
                side,
                adjoint,
                unit and adjoint == seed,
                first + program[1, k],
                f,
                first + y,
                g,
                exponent,
                first + n_slots + k,
                base + slope + k,
                out,
                n,
            )
            factor *= scale
            if is_free:
                column_scales[p] = factor
                columns[1, p] = 1 if row == seed and not goes_on else 0
                if unit and row == seed:
                    columns[0, p] = first + source
                else:
                    columns[0, p] = base + jacobian + p
                    if not (again and columns[1, p]):
                        times(table, row, first + source, base + jacobian + p, n)
            if goes_on:
                factor *= f if side == 0 else g
                if nodes[USES, below] == 1:
                    nodes[ROW, below] = row
                    scales[below] = factor
                elif nodes[ROW, below] < 0:
                    nodes[ROW, below] = base + sums + below
                    scales[below] = 1.0
                    for i in range(n):
                        table[base + sums + below, i] = factor * table[row, i]
                else:
                    for i in range(n):
                        table[base + sums + below, i] += factor * table[row, i]


@compiled(**FAST)
def jacobian_one(program, length, constants, n_free, inputs, work, out, jacobian_out):
    """Output [N] and Jacobian [F, N] for every row (tests); `work` is for one block of rows."""
    n_slots, n_rows = inputs.shape
    table, nodes, columns, column_scales = work.table, work.nodes, work.columns, work.column_scales
    plan(program, length, n_free, n_slots, nodes)
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        load(program, length, inputs, low, n, table, 0)
        forward(program, length, constants, n_slots, table, 0, n, nodes, False)
        for i in range(n):
            table[SEED, i] = 1.0
            out[low + i] = table[SLOTS + n_slots + length - 1, i]
        backward(
            program,
            length,
            constants,
            n_free,
            n_slots,
            table,
            0,
            n,
            False,
            nodes,
            work.scales,
            columns,
            column_scales,
            False,
        )
        for p in range(n_free):
            for i in range(n):
                jacobian_out[p, low + i] = column_scales[p] * table[columns[0, p], i] if columns[0, p] >= 0 else 0.0
