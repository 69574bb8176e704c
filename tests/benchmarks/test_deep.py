"""benchmarks/deep.py: what is met on an accelerator is told, and when."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from programs import program
from deep_looks import ALL, REACH, table
from host_cuda import HostDriver, needs_compiler


@pytest.fixture(scope="module")
def deep() -> ModuleType:
    return program("benchmarks/deep.py")


@needs_compiler
def test_a_law_is_seen_and_noise_is_not(deep: ModuleType) -> None:
    given = table(lambda a, b: np.sqrt(a) / (1 + b * np.cos(a)), 2)
    told = deep.looked_at(HostDriver(), given, ALL, [REACH])
    assert 0 < told["exact_after"] <= told["seconds"] and "cos(x0)" in told["best"] and told["columns"] == 2
    given.y[:] = np.random.default_rng(0).normal(size=len(given.y))
    told = deep.looked_at(HostDriver(), given, ALL, [REACH])
    assert told["exact_after"] is None and told["best"] == ""
