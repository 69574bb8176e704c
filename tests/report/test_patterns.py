"""Errors that resemble their neighbours are told, and those that do so by chance are not."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.report.patterns import PATTERNS, has_pattern, neighbours_correlation


def test_a_pattern_in_the_errors_is_seen(rng: np.random.Generator) -> None:
    x = np.linspace(0, 6, 100)
    assert has_pattern(x, np.sin(x) + 0.7 * rng.standard_normal(100))
    assert not has_pattern(x, rng.standard_normal(100)) and not has_pattern(np.ones(100), np.sin(x))


def test_ranks_that_follow_a_line_which_one_row_turned_are_no_pattern(rng: np.random.Generator) -> None:
    x = np.linspace(-1, 1, 100)
    y = 0.1 * rng.standard_normal(100)
    y[97] = 50.0
    assert not has_pattern(x, y - np.polyval(np.polyfit(x, y, 1), x))


def test_the_two_largest_errors_side_by_side_are_no_pattern(rng: np.random.Generator) -> None:
    errors = rng.standard_normal(60)
    errors[20:22] = 30.0
    assert not has_pattern(np.arange(60), errors)


@pytest.mark.parametrize("kind", ["normal", "cauchy", "log-normal", "counts", "rare", "growing"])
def test_errors_in_random_order_seldom_show_a_pattern(kind: str, rng: np.random.Generator) -> None:
    """Of 250 tables; by the errors alone, rare ones were 5 and those that grow 62."""
    drawn = {
        "normal": lambda: rng.standard_normal(300),
        "cauchy": lambda: rng.standard_cauchy(300),
        "log-normal": lambda: rng.lognormal(0, 2, 300),
        "counts": lambda: rng.poisson(0.3, 300).astype(float),
        "rare": lambda: (rng.random(300) < 0.03).astype(float),
        "growing": lambda: rng.standard_normal(300) * np.exp(2 * np.sort(rng.standard_normal(300))),
    }[kind]
    assert sum(has_pattern(np.arange(300), drawn()) for _ in range(250)) <= 2


def test_rows_of_one_prediction_have_no_order_by_it() -> None:
    """Over two levels, errors that drift with the rows are none that a better formula of the columns would find."""
    levels = np.tile([1.0, 2.0], 100)
    drifting = np.linspace(-1, 1, 200)
    assert has_pattern(np.arange(200), drifting) and not has_pattern(levels, drifting)


def test_few_rows_and_equal_errors_show_no_pattern() -> None:
    assert not has_pattern(np.arange(PATTERNS.least_rows - 1), np.arange(PATTERNS.least_rows - 1.0))
    assert not has_pattern(np.arange(40), np.ones(40)) and neighbours_correlation(np.ones(9)) == 0.0
