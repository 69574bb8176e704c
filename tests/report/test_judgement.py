"""What is said of a formula: figures, preference, cautions."""

from __future__ import annotations

import numpy as np

from gmeql.report.judgement import figures, has_pattern, judge, percent
from gmeql.tables import read as tables
from report_pages import front_for, training


def test_judgement_follows_the_fit():
    data = training()
    front = front_for(data)
    best = " ".join(judge(front, len(front) - 1, data))
    assert "99." in best and "million to one" in best
    assert "prefer formula" in " ".join(judge(front, 0, data))
    exact = tables.Training(data.X, front[-1].expression(data.X), data.names, "y", None, data.rows, (), "x")
    assert "to rounding" in judge(front_for(exact), len(front_for(exact)) - 1, exact)[0]


def test_figures_are_weighted():
    y, predicted = np.array([0.0, 1.0, 10.0]), np.array([0.0, 1.0, 0.0])
    assert figures(predicted, y, np.array([1.0, 1.0, 0.0])).rmse == 0.0
    assert figures(predicted, y).largest_error == 10.0
    assert figures(np.array([0.0, np.nan, 1.0]), y).rmse == np.inf


def test_a_pattern_in_the_errors_is_seen():
    x = np.linspace(0, 6, 100)
    noise = np.random.default_rng(0).normal(size=100)
    assert has_pattern(x, x + np.sin(x)) and not has_pattern(x, x + noise)


def test_percent_never_says_100():
    assert [percent(r2) for r2 in (0.5, 0.99983, 0.9998, -1)] == ["50 %", "99.983 %", "99.980 %", "nothing"]
    assert not any("100" in percent(1 - 10**-k) for k in range(1, 15))
