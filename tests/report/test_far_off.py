"""Rows far off in words: outliers only where the tail of the errors does not reach them."""

from __future__ import annotations

import numpy as np

from gmeql.model.rows.far_rows import rows_far_away
from gmeql.report.far_off import UNSURE, by_factors, far_away


def test_rows_of_a_heavy_tail_are_not_called_outliers() -> None:
    errors = np.random.default_rng(3).standard_t(2, 200)
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


def test_factors_are_told_as_such() -> None:
    assert by_factors(1).startswith("1 row lies far from it; perhaps the target varies by factors")
