"""Outliers: which rows they are, and which formula the others follow, whatever was chosen."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.formula.parsing import parse_tree
from gmeql.model.rows.outliers import OtherRows, Outliers
from thinned import thinned

x, z = Variable(0), Variable(1)


def others(X: np.ndarray, y: np.ndarray, *roots: Node, by_group: bool = False) -> OtherRows | None:
    names = tuple(f"x{k + 1}" for k in range(X.shape[1]))
    formulas = tuple(Expression(root, names) for root in roots)
    return Outliers(X, y, np.ones(len(y)), formulas, names, by_group=by_group).others


def struck(rng: np.random.Generator, y: np.ndarray, share: float, size: float) -> np.ndarray:
    y, wrong = y.copy(), rng.choice(len(y), int(share * len(y)), replace=False)
    y[wrong] += size * rng.uniform(1, 2, len(wrong)) * rng.choice([1.0, 1.0, -1.0], len(wrong))
    return y


@pytest.mark.parametrize("seed", thinned(range(5), 2))
def test_a_slope_through_zero_that_outliers_left_is_told_with_the_line_of_the_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 10, 150), rng.standard_normal(150)])
    y = struck(rng, 4 * X[:, 0] + 3 + 0.5 * rng.standard_normal(150), 0.08, 60)
    found = others(X, y, Constant(24.0), build("mul", Constant(4.67), x))
    assert found is not None and (found.far, found.rest) == (12, 138)
    assert found.expression.variables == (0,) and found.error == pytest.approx(0.5, rel=0.2)
    np.testing.assert_allclose(found.expression(np.array([[0.0, 0.0], [10.0, 0.0]])), [3.0, 43.0], atol=0.4)


def test_a_curve_of_the_front_gets_the_constants_of_the_others(rng: np.random.Generator) -> None:
    X = rng.uniform(0.5, 5, (200, 2))
    y = struck(rng, 7 * X[:, 0] ** 2 / X[:, 1] + 3 + 0.2 * rng.standard_normal(200), 0.1, 300)
    law = build("div", build("mul", Constant(9.0), build("square", x)), z)
    found = others(
        X, y, Constant(30.0), build("add", law, build("div", Constant(12.0), x))
    )  # terms that outliers brought
    assert found is not None and found.far == 20
    np.testing.assert_allclose(found.expression.constants, [7.0, 3.0], rtol=0.05)


def test_kinds_of_rows_keep_their_levels(rng: np.random.Generator) -> None:
    kind = rng.integers(0, 3, 150)
    X = np.column_stack([rng.uniform(0, 10, 150), *(kind == k for k in range(3))]).astype(float)
    y = struck(rng, X[:, 0] + np.array([0.0, 5.0, 9.0])[kind] + 0.3 * rng.standard_normal(150), 0.1, 50)
    found = others(X, y, build("mul", Constant(2.0), x))
    assert found is not None and found.far == 15 and len(found.expression.variables) == 3


def test_none_on_plain_noise_and_where_groups_have_constants_of_their_own(rng: np.random.Generator) -> None:
    X = rng.standard_normal((100, 2))
    y = X[:, 0] + rng.standard_normal(100)
    assert others(X, y, x) is None
    wrong = struck(rng, y, 0.05, 100)
    assert others(X, wrong, x) is not None
    assert others(X, wrong, x, by_group=True) is None
    assert others(X, np.where(np.arange(100) < 90, 0.0, 5.0), x) is None


def test_errors_that_grow_with_the_law_leave_no_row_out_of_a_part_of_the_search() -> None:
    """Of 30 tables of rates of a reaction, measured to 10 %, ten lost 30 % of their time."""
    law = "2.06e+09*exp(-6482/x1)"
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(280, 400, (60, 1))
        y = 3e9 * np.exp(-6615 / X[:, 0]) * np.exp(0.1 * rng.standard_normal(60))
        formula = Expression(parse_tree(law, ("x1",)), ("x1",))
        assert Outliers(X, y, np.ones(60), (formula,), ("x1",)).seen_at_once is None


def test_a_formula_that_has_no_value_on_a_row_tells_no_outlier_there(rng: np.random.Generator) -> None:
    """`2*log(x1)` of the others lay infinitely far from the row where x1 is 0."""
    X = np.arange(60.0)[:, None]
    y = np.append(30.0, 2 * np.log(X[1:, 0])) + 0.05 * rng.standard_normal(60)
    found = others(X, y, Constant(float(y.mean())))
    assert found is None or np.isfinite(found.expression(X)).all()
