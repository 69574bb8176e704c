"""The CUDA source: sizes of programs, and memory as both sides see it."""

from __future__ import annotations

import numpy as np
import pytest
from host_cuda import library, needs_compiler

from gmeql.fitters.cuda.source import SIZES, Size, size_of, source, work_bytes
from gmeql.fitters.opcodes import MAX_CONSTANTS, MAX_NODES


def test_a_program_takes_the_first_size_that_holds_it() -> None:
    nodes, constants = np.array([1, 24, 25, 5, 60, 96]), np.array([0, 7, 7, 8, 8, 40])
    assert size_of(nodes, constants).tolist() == [0, 0, 1, 1, 2, 3]
    assert (SIZES[-1].nodes, SIZES[-1].constants) == (MAX_NODES, MAX_CONSTANTS)


@needs_compiler
@pytest.mark.parametrize("size", SIZES)
def test_shared_memory_is_counted_as_the_compiler_does(size: Size) -> None:
    assert library(source(size)).bytes_per_warp() == work_bytes(size)
