"""The CUDA source of the fit: the files beside this one, behind the numbers that Python knows."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from gmeql.fitters import method, opcodes, result
from gmeql.fitters.cuda.driver import QUICK
from gmeql.formula import limits

FILES = ("lanes.cuh", "elementary.cuh", "node.cuh", "tape.cuh", "levenberg_marquardt.cuh", "fit.cu")
"""In this order they are one source."""
LANES_FILE = files(__package__).joinpath("lanes.cuh")
"""What warps are made of, for other sources, too."""
_OPCODES = tuple(
    """ID ADD SUB MUL DIV SIN COS TANH ASIN ACOS ATAN EXP LOG SQRT ABS SQUARE CUBE POW4 POW5 POW6 INV NEG POW
POWER_FITTED POWER_WHOLE""".split()
)
_ENDINGS = ("CONVERGED", "STEPS_SPENT", "HOPELESS", "NOT_FINITE")
_METHOD = tuple(
    """FIRST_DAMPING DAMPING_DOWN DAMPING_UP LEAST_DAMPING STUCK_DAMPING MAX_REJECTED PIVOT_SHARE TINY
HOPELESS_AFTER HOPELESS_FACTOR HOPELESS_GAIN SCREEN_FACTOR""".split()
)
_LIMITS = ("ANGLE_LIMIT", "EXPONENTIAL_LIMIT")


class Size(NamedTuple):
    """A size of programs that a kernel is compiled for."""

    nodes: int
    constants: int
    rows_per_lane: int
    """More rows share the decoding of a node and take more memory."""
    warps: int
    """Warps that a multiprocessor shall hold at once: the compiler keeps to the registers that this leaves."""


FITS_PER_WARP = 16
"""Then a warp ends, though there are more: what else is to run gets its turn within some milliseconds."""
TILE = 8
"""Columns of slopes that are multiplied together: those of the constants, and the residual."""
SIZES = (
    Size(24, 7, 2, 20),
    Size(48, 15, 2, 16),
    Size(72, 23, 1, 16),
    Size(opcodes.MAX_NODES, opcodes.MAX_CONSTANTS, 1, 4),
)
"""From small to large; a program takes the first that holds it. Constants and residual fill whole tiles."""

LIMITS = np.dtype([("max_steps", "i4"), ("forced", "i4"), ("tolerance", "f8")], align=True)
BATCH = np.dtype(
    [
        (name, "u8")
        for name in ("codes", "lengths", "n_free", "n_constants", "dataset", "hopeless", "constants", "losses")
    ]
    + [(name, "u8") for name in ("ended", "steps")]
    + [("width", "i4"), ("n_wide", "i4"), ("limits", LIMITS)],
    align=True,
)
"""`Batch` of fit.cu; pointers are whole numbers."""
DATA = np.dtype(
    [(name, "u8") for name in ("inputs", "target", "roots")]
    + [(name, "i4") for name in ("n_slots", "n_rows", "screen_rows")]
    + [(name, "f8") for name in ("mass", "screen_mass", "screen_ratio")],
    align=True,
)
"""`Data` of tape.cuh."""


def size_of(nodes: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """The number of the first size that holds each program."""
    by_nodes = np.searchsorted([size.nodes for size in SIZES], nodes)
    by_constants = np.searchsorted([size.constants for size in SIZES], constants)
    larger: np.ndarray = np.maximum(by_nodes, by_constants)
    return larger


def work_bytes(size: Size) -> int:
    """Shared memory of one warp: `sizeof(Work)` of tape.cuh."""
    triangle = size.constants * (size.constants + 1) // 2
    tile = -(-(size.constants + 1) // TILE) * TILE * (32 * size.rows_per_lane + 4)
    return 8 * (size.nodes + 1 + 5 * size.constants + 3 * triangle + 1 + tile)


@lru_cache(maxsize=len(SIZES))
def source(size: Size) -> str:
    """The whole source for programs of one size."""
    lines = [QUICK] if size == SIZES[-1] else []  # few programs are so large, and it would take longest to compile
    lines += [f"constexpr int {name} = {getattr(opcodes, name)};" for name in _OPCODES]
    lines += [f"constexpr int {name} = {getattr(result, name)};" for name in _ENDINGS]
    lines += [f"constexpr double {name} = {float(getattr(method, name))!r};" for name in _METHOD]
    lines += [f"constexpr double {name} = {float(getattr(limits, name))!r};" for name in _LIMITS]
    lines += [
        f"constexpr int NODES = {size.nodes}, CONSTANTS = {size.constants}, ROWS_PER_LANE = {size.rows_per_lane};"
    ]
    lines += [f"constexpr int WARPS = {size.warps}, FITS_PER_WARP = {FITS_PER_WARP};"]
    folder = files(__package__)
    return "\n".join(lines) + "\n\n" + "\n".join(folder.joinpath(name).read_text("utf-8") for name in FILES)
