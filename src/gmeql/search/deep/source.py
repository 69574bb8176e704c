"""The CUDA source of small formulas: the files beside this one, behind the numbers that Python knows."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import numpy as np

from gmeql.fitters import opcodes
from gmeql.fitters.cuda.source import LANES_FILE
from gmeql.search.direct.middle import kernels, remainders
from gmeql.search.direct.middle.meeting import MEETING

FILES = ("small.cuh", "making.cu", "meeting.cu", "sums.cu")
"""In this order they are one source."""
THREADS = 128
PROBES = 32
"""Slots that are looked at for a key: beyond, a table is as good as full."""
MOST_WAITS = 10_000
"""Looks at a place that somebody else is just filling."""
SIDE_BITS, OPERATOR_BITS = 27, 5
SIDE_MASK = (1 << SIDE_BITS) - 1
OPERATOR_AT = 2 * SIDE_BITS
COST_AT = OPERATOR_AT + OPERATOR_BITS
LEAF, KEPT = 30, 31
"""Numbers of operators that are none: a leaf, and a formula that is kept, by its number."""
TOLERANCES = {
    "LEAST_LEFT": 1e-7,  # of a formula without its part along the target, relative to its size, for there to be digits of it
    **{name: getattr(remainders, name) for name in ("ALIKE", "LAST_DIGITS", "SAME_FORM")},
}
_OPCODES = "ADD SUB MUL DIV SQUARE CUBE SQRT LOG EXP SIN COS TANH ABS ATAN ASIN ACOS".split()
_STEPS = "MINUS PLUS TIMES OVER UNDER SQUARED LOGGED RAISED".split()
_LIMITS = "LARGEST LARGEST_ANGLE LARGEST_EXPONENT FORM_STEPS LEAST_SUPPORT LEAST_DEVIATION DROWNED".split()

ENTRY_BYTES = 16
"""Of a table: a key and a code."""
TABLE = np.dtype([("entries", "u8"), ("mask", "u8")], align=True)
SMALL = np.dtype(
    [("values", "u8"), ("signs", "u8"), ("opcodes", "u8"), ("by_values", TABLE), ("by_forms", TABLE), ("found", "u8"),
     ("n_found", "u8"), ("room", "i4")], align=True,
)  # fmt: skip
BATCH = np.dtype([("n", "i8"), ("n_parts", "i4")], align=True)
BLOCK = np.dtype(
    [("start", "i8"), ("n", "i8"), ("most_mixed", "u8")]
    + [(name, "i4") for name in ("opcode", "number", "cost", "left", "right", "n_right", "is_half")],
    align=True,
)
KEPT_ONES = np.dtype([("n", "i8"), ("codes", "u8"), ("first", "i4"), ("are_leaves", "i4")], align=True)
SUM = np.dtype(
    [("n", "i8"), ("n_forms", "i8"), ("along", "u8"), ("target", "u8"), ("table", TABLE)]
    + [(name, "i4") for name in ("number", "most", "n_along", "of_logarithms")],
    align=True,
)
BELOW = 1 << 63
"""In a code of a sum: times the target."""
LOOK = np.dtype(
    [("start", "i8"), ("n", "i8"), ("targets", "u8")]
    + [(name, "i4") for name in ("number", "first", "second", "n_first", "n_second", "most")],
    align=True,
)
HIT = np.dtype(
    [("code", "u8"), ("other", "u8"), ("look", "i4"), ("target", "i4"), ("i", "i4"), ("j", "i4")], align=True
)
HITS = np.dtype([("hits", "u8"), ("counts", "u8")], align=True)
"""The records of these files; pointers are whole numbers."""


@lru_cache(maxsize=1)
def deep_source() -> str:
    """The whole source."""
    whole = {name: getattr(opcodes, name) for name in _OPCODES} | {name: getattr(kernels, name) for name in _STEPS}
    whole |= {
        "ROWS": MEETING.rows,
        "VALUE_SHIFT": kernels.VALUE_SHIFT,
        "PROBES": PROBES,
        "MOST_WAITS": MOST_WAITS,
        "KEPT": KEPT,
    }
    whole |= {"LARGEST_CONSTANT_COST": kernels.LARGEST_CONSTANT_COST, "SIDE_BITS": SIDE_BITS}
    whole |= {"OPERATOR_BITS": OPERATOR_BITS, "OPERATOR_AT": OPERATOR_AT, "COST_AT": COST_AT}
    lines = [f"constexpr int {name} = {int(value)};" for name, value in whole.items()]
    lines += [f"constexpr double {name} = {value!r};" for name, value in TOLERANCES.items()]
    lines += [f"constexpr double {name} = {float(getattr(kernels, name))!r};" for name in _LIMITS]
    folder = files(__package__)
    texts = [LANES_FILE.read_text("utf-8"), *(folder.joinpath(name).read_text("utf-8") for name in FILES)]
    return "\n".join([*lines, *texts])


def mixed(codes: np.ndarray) -> np.ndarray:
    """`mixed(0, code)` of small.cuh."""
    with np.errstate(over="ignore"):
        keys = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(keys ^ (keys >> np.uint64(29)))
