"""The CUDA source of a step: the files beside this one, behind the numbers that Python knows."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from gmeql.fitters import opcodes
from gmeql.fitters.cuda.driver import QUICK
from gmeql.fitters.cuda.source import LANES_FILE, SIZES
from gmeql.search.sampling import arrays, draw, moves, nodes, tried

FILES = ("wiring.cuh", "moves.cuh", "compile.cuh", "step.cuh", "draw.cuh", "learn.cuh", "step.cu")
"""In this order they are one source."""
MOST_NODES = 128
"""Nodes that a network may have here."""
MOST_RECORDS = 4096
"""Elites and candidates that are sorted together, rounded up to a power of two."""
RECORD_BYTES = 24
_OPCODES = tuple(
    """ID ADD SUB MUL DIV SIN COS TANH ASIN ACOS ATAN EXP LOG SQRT ABS SQUARE CUBE POW4 POW5 POW6 INV POWER_FITTED
SUM PROD MAX_NODES MAX_CONSTANTS""".split()
)
_FACTS = tuple(
    """IS_CONSTANT SCALED POWER TRIGONOMETRIC EXPONENTIAL LOGARITHM IS_SUM HAS_ONE FUNCTIONS SPARE_NODES
SPARE_CONSTANTS""".split()
)
_MARKS = tuple(
    """MARK_ONE MARK_SUM MARK_PRODUCT MARK_QUOTIENT MARK_DENOMINATOR MARK_FUNCTION MARK_POWERS PER_OPCODE
PER_NODE""".split()
)


@lru_cache(maxsize=1)
def step_source() -> str:
    """The whole source of a step, without the fit."""
    whole = {name: getattr(opcodes, name) for name in _OPCODES} | {name: getattr(nodes, name) for name in _FACTS}
    whole |= {"OUTPUT_SCALE": arrays.OUTPUT_SCALE, "OUTPUT_OFFSET": arrays.OUTPUT_OFFSET, "PROBES": tried.PROBES}
    whole |= {"DRAW_ATTEMPTS": draw.ATTEMPTS, "MOVE_ATTEMPTS": moves.ATTEMPTS, "PLAIN_STARTS": draw.PLAIN_STARTS}
    whole |= {"POWER_TRIES": draw.POWER_TRIES, "HALVES": draw.HALVES}
    whole |= {"MOST_NODES": MOST_NODES, "MOST_RECORDS": MOST_RECORDS}
    shares = {name: getattr(draw, name) for name in ("CROSS_CHANCE", "IDLE_CHANCE", "PRESENT_CHANCE")}
    lines = [f"constexpr int {name} = {int(value)};" for name, value in whole.items()]
    lines += [f"constexpr unsigned long long {name} = {int(getattr(nodes, name))}ULL;" for name in _MARKS]
    lines += [f"constexpr double {name} = {float(value)!r};" for name, value in shares.items()]
    folder = files(__package__)
    texts = [LANES_FILE.read_text("utf-8"), _sizes()]
    return (
        "\n".join([QUICK, *lines, *texts])
        + "\n"
        + "\n".join(folder.joinpath(name).read_text("utf-8") for name in FILES)
    )


def _sizes() -> str:
    """The sizes of programs that the fit is compiled for."""
    by_name = {"SIZE_NODES": [size.nodes for size in SIZES], "SIZE_CONSTANTS": [size.constants for size in SIZES]}
    lines = [f"CONSTANT_ARRAY int {name}[] = {{{', '.join(map(str, row))}}};" for name, row in by_name.items()]
    return "\n".join(lines)
