"""The compiled enumeration and look-up against slow, obvious versions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import njit

from gmeql.fitters import opcodes
from gmeql.formula.operators import operator_of_opcode
from gmeql.search.direct.middle import kernels

ROWS = np.random.default_rng(3).uniform(0.5, 2.5, (2, 8))
SIGNS = np.random.default_rng(0).normal(size=8)


@njit
def combine(operator, left, right, out):
    """Python cannot call a part of the kernels itself."""
    return kernels.combine(operator, left, right, out)


@njit
def key_of_bits(bits):
    """The same."""
    return kernels.value_key(bits)


def value_key(values: np.ndarray) -> int:
    return key_of_bits(values.view(np.int64))


@njit
def form_key(values, signs):
    """The same."""
    return kernels.form_key(values, signs)


@pytest.mark.parametrize(
    "opcode",
    [opcodes.ADD, opcodes.SUB, opcodes.MUL, opcodes.DIV, opcodes.SIN, opcodes.COS, opcodes.SQRT, opcodes.SQUARE,
     opcodes.CUBE, opcodes.EXP, opcodes.LOG, opcodes.TANH, opcodes.ABS, opcodes.ATAN, opcodes.ASIN, opcodes.ACOS],
)  # fmt: skip
def test_operators_are_those_of_the_table(opcode: int) -> None:
    operator = operator_of_opcode(opcode)
    left, right = ROWS if opcode not in (opcodes.ASIN, opcodes.ACOS) else ROWS / 3
    out = np.empty(8)
    assert combine(opcode, left, right, out)
    args = (left, right)[: operator.arity]
    assert np.allclose(out, operator.natural(np, *args), rtol=1e-14)


@pytest.mark.parametrize("opcode", [opcodes.LOG, opcodes.SQRT, opcodes.ASIN, opcodes.EXP, opcodes.SIN])
def test_what_has_no_value_is_left_out(opcode: int) -> None:
    far = np.array([-1e3, *ROWS[0, 1:]])
    assert not combine(opcode, far, ROWS[1], np.empty(8))
    assert not combine(opcodes.DIV, far, np.zeros(8), np.empty(8))


def test_values_up_to_rounding_have_one_key() -> None:
    values = ROWS[0] * 7.3
    assert value_key(values) == value_key(values * (1 + 1e-14))
    assert value_key(values) != value_key(values * (1 + 1e-6))
    assert value_key(values) != value_key(-values)


def test_forms_know_neither_scale_nor_offset() -> None:
    values = np.sin(3 * ROWS[0])
    key = form_key(values, SIGNS)
    for scale, offset in itertools.product((-7.0, 0.01, 300.0), (-2.0, 0.0, 5.0)):
        assert form_key(scale * values + offset, SIGNS) == key
    assert form_key(values + 1e-4 * ROWS[1], SIGNS) != key


def test_constants_and_forms_of_few_rows_have_none() -> None:
    assert form_key(np.full(8, 3.3), SIGNS) == 0
    one = np.array([1e6, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0])
    assert form_key(one, SIGNS) == 0


def slow_formulas(
    leaves: np.ndarray, unary: list[int], binary: list[int], max_cost: int
) -> dict[bytes, tuple[int, np.ndarray]]:
    """Cost and values of every distinct formula, by brute force."""

    def rounded(values: np.ndarray) -> bytes:
        return np.array([float(f"{v:.6g}") + 0.0 for v in values]).tobytes()

    found: dict[bytes, tuple[int, np.ndarray]] = {rounded(leaf): (1, leaf) for leaf in leaves}
    for cost in range(2, max_cost + 1):
        known = list(found.values())
        made = [(operator, a, a) for operator in unary for c, a in known if c == cost - 1]
        made += [(operator, a, b) for operator in binary for c, a in known for d, b in known if c + d == cost - 1]
        for operator, a, b in made:
            with np.errstate(all="ignore"):
                arity = operator_of_opcode(operator).arity
                values = operator_of_opcode(operator).natural(np, *(a, b)[:arity])
            sizes = np.abs(values)
            if not ((sizes < kernels.LARGEST).all() and ((sizes > 1 / kernels.LARGEST) | (values == 0)).all()):
                continue
            if np.ptp(values) == 0 and (cost > kernels.LARGEST_CONSTANT_COST or arity == 1):
                continue
            found.setdefault(rounded(values), (cost, values))
    return found


def enumerated(leaves: np.ndarray, unary: list[int], binary: list[int], max_cost: int, kept: int, room: int):
    slots = 1 << 18
    formulas, costs = np.empty((room, 3), np.int32), np.empty(room, np.int8)
    tables = (formulas, costs, np.zeros(slots, np.uint64), np.empty(slots, np.int32), np.zeros(slots, np.uint64),
              np.empty(slots, np.int32))  # fmt: skip
    values, counts = np.empty((kept, leaves.shape[1])), np.zeros(3, np.int64)
    kernels.enumerate_formulas(
        leaves, np.array(unary, np.int64), np.ones(len(unary), np.int64), np.array(binary, np.int64), tables, values,
        counts, SIGNS, max_cost, 10**7,
    )  # fmt: skip
    return tables, values[: counts[0]], costs[: counts[1]], formulas[: counts[1]]


UNARY, BINARY = [opcodes.SQRT, opcodes.LOG], [opcodes.ADD, opcodes.SUB, opcodes.MUL, opcodes.DIV]
LEAVES = np.array([*ROWS, np.ones(8)])


def test_all_formulas_of_each_cost_are_there_once() -> None:
    slow = slow_formulas(LEAVES, UNARY, BINARY, 4)
    _, values, costs, _ = enumerated(LEAVES, UNARY, BINARY, 4, kept=20_000, room=20_000)
    assert [int((costs == c).sum()) for c in range(1, 5)] == [
        sum(c == d for d, _ in slow.values()) for c in range(1, 5)
    ]
    fast = np.array(sorted(values.tolist()))
    assert np.allclose(fast, np.array(sorted(v.tolist() for _, v in slow.values())), rtol=1e-9, atol=1e-12)


def test_beyond_the_kept_ones_each_form_is_there_once() -> None:
    tables, values, costs, formulas = enumerated(LEAVES, UNARY, BINARY, 6, kept=300, room=5_000)
    assert len(values) == 300 < len(costs)
    assert (formulas[300:, 1:].max(axis=0) < 300).all()
    keys = []
    for operator, left, right in formulas[300:].tolist():
        out = np.empty(8)
        assert combine(operator, values[left], values[max(right, 0)], out)
        keys.append(int(form_key(out, SIGNS)))
    assert len(set(keys)) == len(keys) and 0 not in keys


@pytest.mark.parametrize(
    ("steps", "undo"),
    [
        ((kernels.STAY, kernels.STAY), lambda r, a, b: r),
        ((kernels.MINUS, kernels.STAY), lambda r, a, b: r + a),
        ((kernels.TIMES, kernels.STAY), lambda r, a, b: r / a),
        ((kernels.OVER, kernels.STAY), lambda r, a, b: r * a),
        ((kernels.UNDER, kernels.STAY), lambda r, a, b: a / r),
        ((kernels.MINUS, kernels.OVER), lambda r, a, b: r * b + a),
    ],
)
def test_a_target_is_met_from_both_sides(steps: tuple[int, int], undo) -> None:  # type: ignore[no-untyped-def]
    tables, values, _, _ = enumerated(LEAVES, UNARY, BINARY, 5, kept=5_000, room=5_000)
    middle, first, second = 41, 17, 5
    target = undo(1.7 + 0.3 * values[middle], values[first], values[second])
    hits = np.empty((1000, 6), np.int64)
    n = kernels.meet(target[None], values, 60, 20, np.array([steps], np.int64), tables[4], tables[5], SIGNS, hits)
    seen = {(hit[2] if steps[0] >= 0 else first, hit[4] if steps[1] >= 0 else second) for hit in hits[:n].tolist()}
    assert (first, second) in seen
