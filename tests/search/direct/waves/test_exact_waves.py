"""Waves that a target is on all rows, found among sums of plain terms."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pytest

from gmeql.formula.nodes import Node, calls, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.direct.waves.exact_waves import KINDS_OF_SUMS, ExactWaves

X = np.random.default_rng(4).uniform(-10, 10, (400, 3))


def waves(target: np.ndarray, functions: FunctionSet | None = None, *, is_late: bool = False) -> Iterator[Node]:
    """All that is seen of a target."""
    seen = ExactWaves(X, functions or FunctionSet())
    return chain.from_iterable(
        seen.of(kind, target, target - target.mean(), lambda: is_late) for kind in range(KINDS_OF_SUMS)
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b, c: 1.3 * np.cos(0.37 * a * b - 2 * np.sin(c)) + 0.5,
        lambda a, b, c: np.sin(a * b - c**2 + b),
        lambda a, b, c: np.cos(1.8 * np.sin(a + 0.4 * c)),
    ],
)
def test_the_first_wave_is_the_target(f) -> None:
    target = f(*X.T)
    root = next(waves(target))
    assert np.allclose(row_values(root, ["a", "b", "c"], X), target, atol=1e-9)


def test_functions_that_are_not_allowed_are_in_no_angle() -> None:
    target = np.sin(X[:, 0] + np.cos(X[:, 1]))
    few = FunctionSet(["add", "mul", "sin"])
    found = list(waves(target, few))
    assert not any(call.operator == "cos" for root in found for call in calls(root))
    assert list(waves(target, is_late=True)) == []


def test_what_is_nearly_straight_is_no_slow_wave() -> None:
    for target in (3e-4 * X[:, 0] + 0.1, 4e-3 * X[:, 1] ** 2, X[:, 0] * X[:, 2] / 40):
        assert list(waves(target)) == []
