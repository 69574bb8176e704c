"""Short forms compared only once all are fitted: the law among its look-alikes, screening against plain least squares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, calls, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.direct.powers import forms
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.polish.scoring import JudgedRows
from noisy_laws import table

ALL = FunctionSet()


def proposed(given: DirectTable, functions: FunctionSet = ALL, seconds: float = 10.0) -> list[Node]:
    return list(forms.propose(given, functions=functions, effort=Effort(seconds), rng=np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("f", "low", "high"),
    [
        (lambda u: 1 / np.sqrt(1 - u**2), 0.05, 0.7),
        (lambda u: 1 / (np.exp(u) - 1), 0.2, 3.0),
        (lambda u: u / (1 + u), 0.2, 5.0),
        (lambda a, b: a * np.exp(-b / a), 1.0, 5.0),
    ],
)
def test_the_law_comes_first_among_its_look_alikes(f: Callable[..., np.ndarray], low: float, high: float) -> None:
    given = table(f, low, high, noise=0.01)
    fresh = table(f, low, high)
    assert fresh.error(proposed(given)[0]) < 0.02


@pytest.mark.parametrize("rate", [1.2, 2.07])
def test_an_exponential_that_is_over_long_before_the_end_of_its_range(rate: float) -> None:
    def law(u: np.ndarray) -> np.ndarray:
        return 1 / (np.exp(rate * u) - 1)

    given = table(law, 0.5, 6.0, noise=0.001, rows=100)
    assert table(law, 0.5, 6.0).error(proposed(given)[0]) < 3e-4  # look-alikes err by ten times that


def test_formulas_compute_what_was_screened() -> None:
    given = table(lambda u: u, 0.5, 3.0, rows=40)
    rows = JudgedRows.of(given.X, given.y, None, ("u",))
    arguments = forms._products(rows, (0, 1, 2), ALL)[1:]
    found = forms._functions(rows, arguments, ALL)
    assert len(found) > 50
    for one in found[:: len(found) // 30]:
        np.testing.assert_allclose(one.values, row_values(one.node, ("u",), given.X), rtol=1e-9)


def test_only_functions_that_are_allowed_and_only_for_work_that_is() -> None:
    given = table(lambda u: np.exp(-u), 0.5, 3.0, noise=0.01)
    for root in proposed(given, FunctionSet(["mul", "add", "sin", "div"])):
        assert "exp" not in {call.operator for call in calls(root)}, Expression(root, ("u",))
    assert proposed(given, FunctionSet(["sin"])) == []
    assert proposed(given, seconds=1e-3) == []
    assert proposed(table(lambda a, b, c, d: a + b + c + d, 1, 2)) == []
    assert proposed(table(lambda u: u, 1, 2, rows=10)) == []


def test_what_is_worse_than_the_best_so_far_is_not_proposed() -> None:
    given = table(lambda u: np.sin(9 * u) + np.cos(31 * u), 0.5, 3.0)
    known = DirectTable(given.X, given.y, given.weights, unexplained=1e-3)
    assert proposed(known) == []


def test_products_of_two_kinds_of_a_category_are_0_and_nothing_is_made_of_them() -> None:
    """They were divided by, so that the method failed wherever a table had two columns of one category."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1.0, 3.0, 150), np.eye(2)[rng.integers(0, 2, 150)]])
    y = np.exp(0.7 * X[:, 0]) + 0.01 * rng.standard_normal(150)
    given = DirectTable(X, y, np.ones(150))
    assert given.error(proposed(given)[0]) < 0.02 * float(np.std(y))
