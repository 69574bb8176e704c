"""Parts of pictures."""

import numpy as np

from gmeql.evaluation.paper.figures.drawing import curve_on


def test_curves_hold_their_last_value():
    record = {"curve": {"candidates": [10, 100], "mae": [3.0, 1.0]}}
    np.testing.assert_array_equal(curve_on(record, np.array([5, 10, 50, 100, 500])), [np.nan, 3, 3, 1, 1])
