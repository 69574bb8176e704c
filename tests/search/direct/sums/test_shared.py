"""Functions of one column before several known ones of another are seen together, also where they are much alike."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import calls
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.shared import SharedFunctions

T, A = np.random.default_rng(4).uniform([0.1, 0.05], [30, 2], (400, 2)).T
KNOWN = np.stack([np.ones(400), A, 1 / (A + 1.7)], axis=1)
SPAN = np.linalg.qr(np.column_stack([KNOWN, A**2, A**3, np.sqrt(A)]))[0]


def never() -> bool:
    return False


def shared(y: np.ndarray, functions: FunctionSet | None = None) -> SharedFunctions:
    return SharedFunctions(T, KNOWN, y, SPAN, functions or FunctionSet(), allowed=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "written"),
    [
        (np.exp(-0.093 * T), np.exp(-0.074 * T), {"exp(-0.093*x)", "exp(-0.074*x)"}),
        (np.exp(-0.05 * T), np.sin(0.61 * T), {"exp(-0.05*x)", "sin(0.61*x)"}),
        (np.log(T + 2.2), np.zeros(400), {"log(x + 2.2)"}),
    ],
)
def test_one_or_two_functions_are_found(first: np.ndarray, second: np.ndarray, written: set[str]) -> None:
    y = first * (0.4 * A - 0.8 / (A + 1.7) + 0.3) + 0.7 * A * second + A**3
    nodes = shared(y).found(never)
    assert {str(Expression(node, ["x"])) for node in nodes or []} == written


def test_nothing_is_found_of_noise_and_nothing_that_is_not_allowed() -> None:
    assert shared(np.random.default_rng(0).standard_normal(400)).found(never) is None
    law = 0.7 * A * np.exp(-0.093 * T) + 0.2 * A * np.exp(-0.02 * T)
    assert shared(law).found(lambda: True) is None
    nodes = shared(law, FunctionSet(["add", "mul", "exp"])).found(never)
    assert nodes is not None
    assert {call.operator for node in nodes for call in calls(node)} <= {"mul", "exp"}
    assert shared(law, FunctionSet(["add", "mul", "sin"])).found(never) is None
