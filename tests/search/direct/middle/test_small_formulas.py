"""All small formulas of a table: trees that compute the kept values, of allowed functions only."""

from __future__ import annotations

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import calls
from gmeql.network.families import DEFAULT_FUNCTIONS, FunctionSet
from gmeql.search.direct.middle.small_formulas import SmallFormulas

X = np.random.default_rng(1).uniform(0.5, 2.0, (8, 2))
ALL = FunctionSet(DEFAULT_FUNCTIONS)


def test_trees_compute_the_values_kept() -> None:
    small = SmallFormulas.of(X, ALL, max_kept=2_000, max_formulas=4_000)
    for number in range(0, len(small.values), 37):
        assert np.allclose(Expression(small.tree(number), ("a", "b"))(X), small.values[number], rtol=1e-10)


def test_kept_formulas_are_computed_on_other_rows() -> None:
    small = SmallFormulas.of(X, ALL, max_kept=500, max_formulas=500)
    others = np.random.default_rng(2).uniform(-1.0, 2.0, (20, 2))  # some of them outside the domain of roots
    values = small.values_on(others)
    assert values.shape == (500, 20) and not np.isfinite(values).all()
    for number in range(0, 500, 7):
        np.testing.assert_allclose(values[number], Expression(small.tree(number), ("a", "b"))(others), rtol=1e-10)


def test_costs_rise_and_no_values_come_twice() -> None:
    small = SmallFormulas.of(X, ALL, max_kept=2_000, max_formulas=4_000)
    assert (np.diff(small.costs) >= 0).all()
    assert len({tuple(f"{v:.6g}" for v in row) for row in small.values.tolist()}) == len(small.values) == 2_000
    assert 2_000 < len(small) <= 4_000


def test_the_same_column_counts_once() -> None:
    twice = SmallFormulas.of(np.column_stack([X[:, 0], X[:, 0]]), ALL, max_kept=500, max_formulas=500)
    once = SmallFormulas.of(X[:, :1], ALL, max_kept=500, max_formulas=500)
    assert (twice.values == once.values).all()


def test_only_allowed_functions_are_used() -> None:
    small = SmallFormulas.of(X, FunctionSet(["mul", "log"]), max_kept=300, max_formulas=300)
    used = {call.operator for number in range(len(small)) for call in calls(small.tree(number))}
    assert used == {"mul", "log"}


def test_the_same_table_gives_the_same_formulas() -> None:
    one, two = (SmallFormulas.of(X, ALL, max_kept=1_000, max_formulas=3_000) for _ in range(2))
    assert (one.formulas == two.formulas).all() and (one.forms == two.forms).all()
