"""Power laws of several columns: found among others at once, judged beside the front and chosen where the rows follow one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import calls
from gmeql.model.pareto.front import Front
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.data.rows import SearchRows
from gmeql.search.front.leaderboard import Leaderboard
from gmeql.search.front.plain_sums import judged_sums
from gmeql.search.judging.structure import power_columns
from gmeql.search.sums.power_laws import power_laws

ALL = FunctionSet(None)
NAMES = ("a", "b", "c", "d", "e")
LAWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "three factors": lambda X: 0.8 * X[:, 0] * X[:, 1] * X[:, 3],
    "a square over two": lambda X: 0.05 * X[:, 0] ** 2 / (X[:, 1] * X[:, 2]),
    "roots": lambda X: 3.0 * np.sqrt(X[:, 1] * X[:, 3]),
    "below zero": lambda X: -2.0 * X[:, 0] ** 3 / X[:, 4],
    "inverse squares": lambda X: 7.0 * X[:, 0] * X[:, 1] / X[:, 2] ** 2,
}


def chosen_beside_the_mean(X: np.ndarray, y: np.ndarray) -> Expression:
    """What is chosen where the search found nothing but the mean."""
    rows = SearchRows.of(X, y, config=SearchConfig())
    board = Leaderboard.start(rows.config, rows)
    board.look_out(rows)
    sizes = dict(target_spread=float(y.std()), target_largest=float(np.abs(y).max()))
    front = Front.from_members(board.front(rows), rows=len(y), **sizes)
    return front.with_sums(judged_sums(board.front(rows), rows)).select("best").expression


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_every_one_is_found_with_its_factor(law: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator) -> None:
    X = rng.uniform(1, 5, (60, 5))
    truth = law(X)
    found = power_laws(X, truth + 0.1 * truth.std() * rng.standard_normal(60), np.ones(60), ALL)
    named = [Expression(root, NAMES) for root in found]
    misses = [np.sqrt(np.mean((each(X) - truth) ** 2)) / truth.std() for each in named]
    assert min(misses) < 0.05
    assert all(power_columns(root) for root in found)


@pytest.mark.parametrize("law", [LAWS["three factors"], LAWS["a square over two"]])
def test_few_noisy_rows_of_one_choose_it_before_anything_is_drawn(
    law: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> None:
    X = rng.uniform(1, 5, (40, 5))
    truth = law(X)
    y = truth + 0.2 * truth.std() * rng.standard_normal(40)
    best = chosen_beside_the_mean(X, y)
    assert np.sqrt(np.mean((best(X) - truth) ** 2)) < 0.1 * truth.std() and power_columns(best.root)


def test_weights_tell_which_rows_count(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 5, (80, 3))
    y = np.where(np.arange(80) < 40, X[:, 0] * X[:, 1], X[:, 1] * X[:, 2])
    (two, *_) = power_laws(X, y, np.where(np.arange(80) < 40, 1.0, 0.0) + 1e-12, ALL)
    assert Expression(two).variables == (0, 1)


def test_a_sum_of_columns_stays_one(rng: np.random.Generator) -> None:
    X = rng.uniform(1, 5, (80, 4))
    y = 2 * X[:, 0] + X[:, 1] + 3 + rng.standard_normal(80)
    best = chosen_beside_the_mean(X, y)
    assert best.variables == (0, 1) and power_columns(best.root) is None


def test_columns_that_have_no_powers_are_left_out(rng: np.random.Generator) -> None:
    X = np.column_stack([rng.uniform(1, 5, 50), rng.uniform(-1, 1, 50), rng.integers(1, 3, 50), rng.uniform(2, 3, 50)])
    assert {k for root in power_laws(X, X[:, 0], np.ones(50), ALL) for k in power_columns(root) or ()} == {0, 3}
    assert power_laws(X[:, :2], X[:, 0], np.ones(50), ALL) == []
    assert power_laws(X, X[:, 0], np.ones(50), FunctionSet(("add", "mul"))) == []
    assert power_laws(X[:5], X[:5, 0], np.ones(5), ALL) == []


@pytest.mark.parametrize("scale", [1e-300, 1e200, 1e307])
def test_numbers_beyond_all_range_are_no_warning(scale: float, rng: np.random.Generator) -> None:
    for root in power_laws(scale * rng.uniform(0.1, 1, (60, 3)), rng.standard_normal(60), np.ones(60), ALL):
        assert np.isfinite(Expression(root).constants).all()


def test_columns_may_be_nothing_where_powers_are_above_it(rng: np.random.Generator) -> None:
    X = np.column_stack([rng.integers(0, 8, 80), rng.uniform(1, 4, 80), rng.uniform(1, 4, 80)]).astype(float)
    found = power_laws(X, 0.7 * X[:, 0] ** 2 * X[:, 2], np.ones(80), ALL)
    assert "0.7*a**2*c" in [str(Expression(root, ("a", "b", "c"))) for root in found]
    inverse = power_laws(X, 3.0 * X[:, 1] / X[:, 2], np.ones(80), ALL)
    assert "3*b/c" in [str(Expression(root, ("a", "b", "c"))) for root in inverse]


def test_a_fit_has_powers_of_columns_with_zeros(rng: np.random.Generator) -> None:
    """`152.6/(1 + exp(0.2384*(8.806 - x))) - 17` was said of `3*x**1.37`, since a power had no value in the rows with x = 0."""
    x, z = np.tile(np.arange(0, 11.0), 6), rng.uniform(1, 5, 66)
    X, noise = np.column_stack([x, z]), rng.standard_normal(66)
    for y, said in ((3 * x**1.37 + 0.4 * noise, {0}), (2 * x**0.63 * z + 1 + 0.01 * noise, {0, 1})):
        model = GMEQLRegressor(max_candidates=300, max_time=None, random_state=0, n_jobs=1).fit(X, y)
        operators = {call.operator for call in calls(model.expression_.root)}
        assert operators <= {"add", "mul", "pow"} and set(model.expression_.variables) == said, str(model.expression_)
