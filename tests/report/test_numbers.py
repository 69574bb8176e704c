"""Numbers in the report: no more digits than they deserve, and bounds that stay bounds."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from gmeql.report.numbers import four_digits, outward, percent_text, r2_text, with_same_decimals


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e4, 1e12])
@pytest.mark.parametrize("relative", [0.0, 1e-12, 1e-4, 0.3, 20.0])
def test_digits_follow_the_uncertainty(scale, relative):
    value, half = 2.71828 * scale, 2.71828 * scale * relative
    texts = with_same_decimals((value, value - half, value + half), half)
    step = 10.0 ** (np.floor(np.log10(half)) - 1) if relative > 1e-6 else 1e-6 * scale
    for text, wanted in zip(texts, (value, value - half, value + half), strict=True):
        assert abs(float(text) - wanted) <= 0.51 * step * 10
        assert len(re.sub(r"e.*|[-.]", "", text).lstrip("0")) <= 8
    assert len({len(text.partition("e")[0].partition(".")[2]) for text in texts}) == 1


@pytest.mark.parametrize(
    ("r2", "text"), [(0.5, "0.5000"), (0.99991, "0.9999100"), (1 - 1e-12, "1"), (-math.inf, "not finite")]
)
def test_r2_has_enough_digits_to_tell_it_from_1(r2, text):
    assert r2_text(r2) == text


def test_a_bound_in_few_digits_stays_a_bound():
    rng = np.random.default_rng(0)
    for value in (rng.normal(size=500) * 10.0 ** rng.integers(-12, 12, 500)).tolist():
        assert float(outward(value, up=False)) <= value <= float(outward(value, up=True))
        assert float(outward(value, up=True)) - float(outward(value, up=False)) <= 2.1e-3 * abs(value)
    assert outward(0.0, up=True) == "0" and outward(5.0, up=False) == "5"


def test_numbers_are_written_without_a_power_of_ten_where_one_can_read_without():
    assert [four_digits(value) for value in (123456.0, 9999.6, 1e7, math.nan)] == [
        "123500",
        "10000",
        "1e+07",
        "not finite",
    ]
    assert percent_text(9.99) == "10 %" and percent_text(float("inf")) == ""
