"""Rows that are a series: columns that only drift along are not chosen, laws of drifting columns and trends are."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.model.certainty.alternatives import alternatives
from gmeql.model.choice.series import nearest_to_rows, with_series
from gmeql.model.pareto.front import Front
from gmeql.report.judgement import judge
from gmeql.search.config import SearchConfig
from gmeql.tables.training import Training
from judged_fronts import judged

ROWS = 100


def walks(seed: int, columns: int) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).standard_normal((ROWS, columns)), axis=0)


def sums(X: np.ndarray, y: np.ndarray) -> tuple[str, str]:
    """The least squares sums of the first column, and of all."""
    texts = []
    for count in (1, X.shape[1]):
        factors = np.linalg.lstsq(np.column_stack([X[:, :count], np.ones(len(y))]), y, rcond=None)[0].tolist()
        terms = [f"{b!r}*x{k + 1}" for k, b in enumerate(factors[:-1])]
        texts.append(" + ".join([*terms, repr(factors[-1])]))
    return texts[0], texts[1]


def looked_at(X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Front:
    return with_series(judged(X, y, *sums(X, y)), X, y, weights, config=SearchConfig())


def test_walks_do_not_explain_a_walk() -> None:
    before = after = 0
    for seed in range(20):
        table = walks(seed, 4)
        front = looked_at(table[:, :3], table[:, 3])
        before += bool(nearest_to_rows(front).expression.variables)
        after += bool(front.select("best").expression.variables)
    assert before >= 15 and after <= 1


@pytest.mark.parametrize("seed", range(5))
def test_a_law_of_walks_is_kept_whatever_drifts_beside_it(seed: int) -> None:
    X = walks(seed, 2)
    y = X @ [1.0, 0.7] + 0.5 * walks(100 + seed, 1)[:, 0]
    front = looked_at(X, y)
    assert len(front.select("best").expression.variables) == 2


@pytest.mark.parametrize("seed", range(5))
def test_a_trend_and_rows_in_no_order_are_left_as_they_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trend = np.column_stack([np.arange(ROWS), rng.standard_normal(ROWS)]).astype(float)
    front = judged(trend, y := 0.02 * trend[:, 0] + 0.2 * walks(seed, 1)[:, 0], *sums(trend, y))
    assert with_series(front, trend, y, None, config=SearchConfig()) is front
    table = rng.permutation(walks(seed, 4))
    front = judged(table[:, :3], table[:, 3], *sums(table[:, :3], table[:, 3]))
    assert with_series(front, table[:, :3], table[:, 3], None, config=SearchConfig()) is front


def test_it_is_told_and_kept_in_files() -> None:
    table = walks(3, 4)
    X, y = table[:, :3], table[:, 3]
    front = Front.from_dict(looked_at(X, y).to_dict())
    best = front.select("best")
    assert best.is_by_steps and not best.expression.variables
    data = Training(X, y, ("x1", "x2", "x3"), "y", None, np.arange(ROWS), (), "x")
    said = " ".join(judge(front, best.index, data))
    assert "from one row to the next it says no more than this one" in said and "Not sure" not in said
    beside = " ".join(judge(front, nearest_to_rows(front).index, data))
    assert f"it says no more than formula {best.index} of the front" in beside


def test_formulas_beside_one_of_a_series_are_weighed_by_what_they_say_from_row_to_row() -> None:
    table = walks(3, 4)
    X, y = table[:, :3], table[:, 3]
    front = Front.from_dict(looked_at(X, y).to_dict())
    best, nearer = front.select("best"), nearest_to_rows(front)
    listed = alternatives(front, 3)
    assert listed[0].expression == best.expression and listed[0].weight > 0.9
    assert alternatives(judged(X, y, *sums(X, y)), 3)[0].expression == nearer.expression


def test_the_mean_of_a_walk_is_told_with_what_its_rows_are_worth() -> None:
    y = walks(3, 1)[:, 0]
    front = judged(X := np.random.default_rng(0).standard_normal((ROWS, 1)), y)
    said = " ".join(judge(front, 0, Training(X, y, ("x1",), "y", None, np.arange(ROWS), (), "x")))
    assert "About its level these tell as much as" in said
