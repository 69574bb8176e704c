"""The page about laws of motion."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from motions import hunters_model

from gmeql import GMEQLDynamics
from gmeql.report.motion import POOR, _within, build, caution


@pytest.fixture(scope="module")
def model() -> GMEQLDynamics:
    return hunters_model(["<b>hare", "lynx"])


def test_the_page_shows_courses_phase_portrait_systems_and_code_and_escapes_names(model):
    page = build(model, source="table.csv", command="gmeql dynamics", time="</script>year")
    assert "<b>hare" not in page and "&lt;b&gt;hare" in page and "</script>year" not in page
    assert "solve_ivp" in page or "right_side" in page
    assert "default-src &#39;none&#39;" in page and page.count("<script") == 2
    data = json.loads(re.search('id="data">(.*?)</script>', page).group(1))
    assert data["time"] == "</script>year" and [course["name"] for course in data["courses"]] == ["<b>hare", "lynx"]
    measured, simulated = model.courses()
    for j, course in enumerate(data["courses"]):
        np.testing.assert_allclose(course["points"][0]["y"], measured[0][1][:, j], atol=1e-4)
        assert len(course["curves"][0]["x"]) == len(simulated[0][0])


def test_lines_of_the_phase_portrait_lead_where_the_system_goes_and_are_equally_long(model):
    data = json.loads(re.search('id="data">(.*?)</script>', build(model)).group(1))["phase"]
    field = {name: np.array(values, float) for name, values in data["field"].items()}
    (first, second), slopes = model.flow((0, 1))
    across, up = field["x2"] - field["x"], field["y2"] - field["y"]
    length = np.hypot(across / np.ptp(first), up / np.ptp(second))
    moving = np.isfinite(length)
    assert moving.sum() > 10 and np.ptp(length[moving]) < 1e-3 * length[moving].max()
    assert (np.sign(across[moving]) == np.sign(slopes[0].ravel()[moving])).mean() > 0.9


def test_a_curve_that_runs_away_leaves_the_plot():
    kept = _within(np.array([0.0, 1.0, 1.4, 1e9, np.inf, np.nan]), np.array([0.0, 1.0]))
    assert np.isfinite(kept).tolist() == [True, True, True, False, False, False]


def test_equations_that_do_not_follow_the_measurements_are_called_so(model):
    assert caution(0.9 * POOR) == "" and "do not describe the measurements" in caution(1.2)
    assert "do not describe" not in build(model)
