"""The page about laws of motion."""

from __future__ import annotations

import numpy as np
from motions import hunters

from gmeql import GMEQLDynamics
from gmeql.report.motion import Chart, build


def test_the_page_shows_courses_phase_portrait_systems_and_code_and_escapes_names():
    t, X = hunters()
    model = GMEQLDynamics(
        feature_names=["<b>hare", "lynx"], max_time=None, max_candidates=1000, random_state=0, n_jobs=1
    ).fit(X, t)
    page = build(model, source="table.csv", command="gmeql dynamics")
    assert page.count("<svg") == 3 and "<b>hare" not in page and "&lt;b&gt;hare" in page
    assert "solve_ivp" in page or "right_side" in page
    assert "<script" not in page and "default-src &#39;none&#39;" in page


def test_a_chart_places_values_and_ends_where_they_do():
    chart = Chart(np.array([0.0, 10.0]), np.array([0.0, 1.0]), "t", "x")
    left, right = chart._place(0.0, 0.0), chart._place(10.0, 1.0)
    assert left[0] < right[0] and left[1] > right[1]
    chart.curve(np.array([0.0, 5.0, 10.0]), np.array([0.0, 1.0, np.nan]))
    points = chart.svg("x").split('points="')[1].split('"')[0]
    assert len(points.split()) == 2
