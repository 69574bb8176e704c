from __future__ import annotations

import numpy as np
from motions import NAMES, hunters, hunters_motion, tree

from gmeql.differential.motion.plots import phase_figure, systems_figure, trajectories_figure
from gmeql.differential.motion.systems import SystemFront, fit_system


def test_trajectories_show_points_and_curves_of_every_state_and_escape_names():
    t, X = hunters()
    figure = trajectories_figure(("<b>x", "y"), [(t, X)], [(t, X + 1.0)])
    assert [trace.mode for trace in figure.data] == ["markers", "lines"] * 2
    assert "&lt;b&gt;x" in figure.layout.yaxis.title.text
    assert np.allclose(figure.data[1].y, X[:, 0] + 1.0)


def test_a_phase_portrait_shows_where_the_system_leads():
    axes = (np.linspace(0.0, 1.0, 5), np.linspace(0.0, 2.0, 4))
    slopes = (np.ones((5, 4)), np.zeros((5, 4)))
    figure = phase_figure(NAMES, axes, slopes, [np.zeros((3, 2))], [np.ones((3, 2))])
    assert [trace.name for trace in figure.data] == ["where it leads", "measured", "simulated"]
    first = figure.data[0]
    assert first.x[1] > first.x[0] and first.y[1] == first.y[0]


def test_the_front_marks_the_chosen_system():
    motion = hunters_motion(0.05)
    systems = [fit_system(motion, (tree(a), tree("1.1*x*y - 0.9*y"))) for a in ("1.2*x - 0.9*x*y", "0.5*x")]
    figure = systems_figure(SystemFront.of(systems, NAMES), 1)
    assert len(figure.data[0].x) == 2 and figure.data[1].x[0] == figure.data[0].x[1]
