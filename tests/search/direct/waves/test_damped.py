"""Waves that fade: recovered from fewer than two turns, with noise, in any column; nothing where functions are not allowed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.nodes import calls
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.direct.waves.damped import propose

LAWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fades": lambda t: 1.7 * np.exp(-0.4 * t) * np.cos(1.1 * t + 0.3),
    "beside a constant": lambda t: 3 * np.exp(-0.8 * t) * np.sin(2.2 * t) - 5,
    "grows": lambda t: 0.2 * np.exp(0.3 * t) * np.cos(2.9 * t),
    "stays": lambda t: 0.8 * np.cos(0.9 * t + 1.1),
    "packet": lambda t: 2 * np.exp(-0.15 * t**2) * np.cos(3 * t + 0.5),
}


def table(
    law: Callable[[np.ndarray], np.ndarray], noise: float = 0.0, columns: int = 1
) -> tuple[DirectTable, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 7, (120, columns))
    truth = law(X[:, -1])
    return DirectTable(X, truth + noise * truth.std() * rng.standard_normal(120), np.ones(120)), truth


def proposed(given: DirectTable, functions: list[str] | None = None, seconds: float = 0.5) -> list:
    rng = np.random.default_rng(0)
    return list(propose(given, functions=FunctionSet(functions), effort=Effort(seconds), rng=rng))


@pytest.mark.parametrize("name", LAWS)
def test_laws_are_exact(name: str) -> None:
    given, _ = table(LAWS[name])
    assert min(given.error(root) for root in proposed(given)) < 1e-7


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_noise_and_other_columns_do_not_hide_one(noise: float, columns: int) -> None:
    given, truth = table(LAWS["fades"], noise, columns)
    best = proposed(given)[0]
    assert np.sqrt(np.mean((given.values(best) - truth) ** 2)) < 0.4 * noise * truth.std()


def test_only_what_is_better_than_the_best_so_far_is_proposed() -> None:
    given, _ = table(LAWS["fades"], 0.1)
    told = DirectTable(given.X, given.y, given.weights, unexplained=0.05)
    assert proposed(given) and not proposed(told)


def test_functions_work_and_rows_bound_it() -> None:
    given, _ = table(LAWS["fades"])
    assert not proposed(given, ["+", "*", "sin"])
    assert not proposed(given, seconds=0.0)
    few = DirectTable(given.X[:8], given.y[:8], given.weights[:8])
    flat = DirectTable(np.ones((50, 1)), np.arange(50.0), np.ones(50))
    assert not proposed(few) and not proposed(flat)


def test_a_wave_that_stays_has_no_envelope() -> None:
    given, _ = table(LAWS["stays"])
    assert any("exp" not in {call.operator for call in calls(root)} for root in proposed(given))
