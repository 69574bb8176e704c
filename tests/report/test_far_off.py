"""Rows far off in words: outliers only where the tail of the errors does not reach them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Variable, build
from gmeql.model.rows.far_rows import rows_far_away
from gmeql.model.rows.outliers import OtherRows
from gmeql.report.far_off import UNSURE, by_factors, far_away


def test_rows_of_a_heavy_tail_are_not_called_outliers() -> None:
    errors = np.random.default_rng(4).standard_t(2, 200)
    far = rows_far_away(errors)
    assert far_away(errors, far, None) == [
        f"{far.sum()} rows lie far from it, {UNSURE}, so fresh rows may lie further off than stated."
    ]
    assert far_away(errors, np.zeros(200, bool), None) == []


def test_rows_beyond_any_tail_are(rng: np.random.Generator) -> None:
    errors = rng.standard_normal(60)
    errors[7] = 90.0
    assert far_away(errors, rows_far_away(errors), None) == [
        "1 row lies far from it: outliers? loss='robust' (--loss robust) gives it no weight."
    ]


def test_what_the_other_rows_follow_is_told_where_nobody_knows_whether_they_are_outliers() -> None:
    """Of 60 prices with skewed errors, two of them six times too large, no more was told than that two lie far off."""
    rng = np.random.default_rng(11)
    x = rng.uniform(1, 9, 60)
    y = 20.0 * x + rng.exponential(15.0, 60)
    y[[7, 31]] *= 6.0
    line, flat = Expression(build("mul", Constant(20.0), Variable(0)), ("x",)), np.full(60, y.mean())
    kept = ~np.isin(np.arange(60), [7, 31])
    others = OtherRows(line, 15.2, 2, 58, kept, gross=False)
    errors = flat - y
    told = far_away(errors, rows_far_away(errors), others)
    assert told[-1] == (
        f"{line} fits 58 rows far better, with a typical error of 15.2: "
        "if the other 2 are faults, loss='robust' (--loss robust) gives them no weight."
    )
    assert far_away(errors, np.zeros(60, bool), replace(others, error=40.0)) == []


def test_factors_are_told_as_such() -> None:
    assert by_factors(1).startswith("1 row lies far from it; perhaps the target varies by factors")
