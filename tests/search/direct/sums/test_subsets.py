"""Best subsets of powers: against all subsets by plain least squares, under noise, and nothing on noise."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.subsets import SUBSETS, best_subsets, propose
from gmeql.search.direct.table import DirectTable, Effort


def proposed(given: DirectTable, functions: list[str] | None = None, seconds: float = 1.0) -> list[Node]:
    rng = np.random.default_rng(0)
    return list(propose(given, functions=FunctionSet(functions), effort=Effort(seconds), rng=rng))


def powers(seed: int, noise: float) -> DirectTable:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 2, (300, 3))
    y = 0.8 * X[:, 2] ** 4 + 0.8 * X[:, 0] ** 3 + 1.2 * X[:, 1] ** 2 + 1.4 * X[:, 2]
    return DirectTable(X, y + noise * rng.standard_normal(300), np.ones(300))


@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_all_subsets_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((7, 50)) + 2 * rng.standard_normal(50)
    weights = rng.uniform(0.5, 2, 50)
    y = rng.standard_normal(50) + values[:3].sum(axis=0)
    for numbers, factors, loss in best_subsets(values, y, weights, 10_000):
        losses = []
        for some in combinations(range(7), len(numbers)):
            columns = values[list(some)].T * np.sqrt(weights)[:, None]
            solved = np.linalg.lstsq(columns, y * np.sqrt(weights), rcond=None)[0]
            losses.append(np.average((y - values[list(some)].T @ solved) ** 2, weights=weights))
        assert loss == pytest.approx(min(losses), rel=1e-8)
        assert np.average((y - factors @ values[numbers]) ** 2, weights=weights) == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5])
def test_powers_of_one_column_are_told_apart_under_noise(noise: float) -> None:
    for seed in range(4):
        best = Expression(proposed(powers(seed, noise))[0], ("x", "y", "z"))
        assert {"x**3", "y**2", "z**4"} <= set(
            str(best).replace("*x", " x").replace("*y", " y").replace("*z", " z").split()
        )
        assert str(best).count("+") == 3


def test_a_formula_as_good_as_the_best_so_far_is_proposed_a_worse_one_is_not() -> None:
    noisy = powers(0, 0.2)
    told = 0.2 / noisy.spread
    assert proposed(DirectTable(noisy.X, noisy.y, noisy.weights, unexplained=told))
    assert not proposed(DirectTable(noisy.X, noisy.y, noisy.weights, unexplained=0.9 * told))


def test_noise_alone_gives_nothing() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        assert not proposed(DirectTable(rng.uniform(-1, 1, (300, 4)), rng.standard_normal(300), np.ones(300)))


def test_work_rows_and_functions_bound_it() -> None:
    exact = powers(0, 0.0)
    assert not proposed(exact, seconds=0.0)
    assert not proposed(exact, ["sin"])
    few = SUBSETS.few_rows - 1
    assert not proposed(DirectTable(exact.X[:few], exact.y[:few], exact.weights[:few]))
    assert not proposed(DirectTable(exact.X, np.ones(300), np.ones(300)))
    constant = DirectTable(np.ones((300, 2)), exact.y, np.ones(300))
    assert not proposed(constant)
