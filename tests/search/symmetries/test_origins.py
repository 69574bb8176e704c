"""Columns far from zero, seen from an origin among their rows."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.nodes import Variable
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search
from gmeql.search.symmetries.origins import origin, view_from_origins


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1991.0, 2020.0, 1990.0),  # years
        (274.2, 303.0, 270.0),  # kelvin
        (2458012.3, 2458102.1, 2458010.0),  # Julian dates
        (-1013.0, -987.0, -1020.0),
        (1.0, 5.0, 0.0),
        (-1.0, 1.0, 0.0),
        (7.0, 7.0, 0.0),  # a constant has no range to be far from
        (1e308, 1.7e308, 0.0),
    ],
)
def test_origins_are_round_numbers_below_the_rows(low: float, high: float, expected: float) -> None:
    column = np.linspace(low, high, 9)
    assert origin(column) == expected
    if expected:
        assert 0 <= low - expected <= high - low


def test_only_far_columns_are_counted_anew() -> None:
    X = np.column_stack([np.linspace(2000, 2020, 30), np.linspace(0, 1, 30)])
    view = view_from_origins(X)
    assert view is not None and view.columns[1] == Variable(1)
    np.testing.assert_array_equal(view.table(X), X - [2000, 0])
    assert view_from_origins(X[:, 1:]) is None


@pytest.mark.slow
def test_a_law_of_dates_is_found() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([2458000.5 + rng.uniform(0, 100, 200), rng.uniform(1, 2, 200)])
    law = 3 * np.exp(-0.02 * (X[:, 0] - 2458000.5)) * X[:, 1]
    y = law + 0.01 * rng.standard_normal(200)
    search = Search(X, y, config=SearchConfig(max_candidates=16_000, n_jobs=1, device="cpu"), seed=1)
    for _ in search.run():
        pass
    found = search.progress().front
    best = min(found, key=lambda member: (member.loss > 0.0105, member.complexity))
    np.testing.assert_allclose(best.expression(X), law, atol=0.02)
    assert best.complexity <= 11
