"""Figures of a fitted motion, as plotly objects; every text that comes from the data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.systems import SystemFront
from gmeql.model.plots import log_ticks

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FloatArray = NDArray[np.float64]


def _figure(**layout: object) -> Figure:
    from plotly.graph_objects import Figure

    figure = Figure()
    figure.update_layout(template="plotly_white", **layout)
    return figure


def trajectories_figure(
    names: Sequence[str],
    measured: Sequence[tuple[FloatArray, FloatArray]],
    simulated: Sequence[tuple[FloatArray, FloatArray]],
) -> Figure:
    """Measured points and simulated curves over time: pairs of times [N] and states [N, S]."""
    from plotly.colors import qualitative
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=len(names), cols=1, shared_xaxes=True, vertical_spacing=0.05)
    for j, name in enumerate(names):
        colour = qualitative.Plotly[j % len(qualitative.Plotly)]
        for k, ((t, X), (s, Y)) in enumerate(zip(measured, simulated, strict=True)):
            shown = {"legendgroup": name, "row": j + 1, "col": 1}
            figure.add_scatter(
                x=t, y=X[:, j], mode="markers", name=f"{escape(name)} measured", showlegend=k == 0,
                marker={"color": colour, "opacity": 0.5, "size": 6}, **shown,
            )  # fmt: skip
            figure.add_scatter(
                x=s, y=Y[:, j], mode="lines", name=f"{escape(name)} simulated", showlegend=k == 0,
                line={"color": colour}, **shown,
            )  # fmt: skip
        figure.update_yaxes(title_text=escape(name), row=j + 1, col=1)
    figure.update_xaxes(title_text="time", row=len(names), col=1)
    figure.update_layout(
        template="plotly_white", title="Simulated against measured", height=max(320, 190 * len(names) + 130)
    )
    return figure


def phase_figure(
    names: Sequence[str],
    axes: tuple[FloatArray, FloatArray],
    slopes: tuple[FloatArray, FloatArray],
    measured: Sequence[FloatArray],
    simulated: Sequence[FloatArray],
) -> Figure:
    """The plane of two states: arrows [n, m] on a grid where they lead, measured points and simulated curves [N, 2]."""
    from plotly.figure_factory import create_quiver

    x, y = np.meshgrid(*axes, indexing="ij")
    step = [float(axis[1] - axis[0]) for axis in axes]
    length = np.hypot(slopes[0] / step[0], slopes[1] / step[1])
    with np.errstate(all="ignore"):
        u, v = (np.where(length > 0, slope / length, 0.0) for slope in slopes)
    u, v = (np.nan_to_num(part) for part in (u, v))
    figure = create_quiver(x.ravel(), y.ravel(), u.ravel(), v.ravel(), scale=0.7, arrow_scale=0.3)
    figure.data[0].update(name="where it leads", line={"color": "rgba(120,120,120,0.6)", "width": 1})
    for k, (points, curve) in enumerate(zip(measured, simulated, strict=True)):
        figure.add_scatter(
            x=points[:, 0], y=points[:, 1], mode="markers", name="measured", showlegend=k == 0,
            marker={"opacity": 0.5, "size": 6, "color": "#1f77b4"},
        )  # fmt: skip
        figure.add_scatter(
            x=curve[:, 0], y=curve[:, 1], mode="lines", name="simulated", showlegend=k == 0, line={"color": "#d62728"}
        )
    figure.update_layout(
        template="plotly_white", title="Phase portrait", xaxis_title=escape(names[0]), yaxis_title=escape(names[1])
    )
    return figure


def systems_figure(front: SystemFront, selected: int) -> Figure:
    """Loss against complexity of the systems; the chosen one is marked."""
    figure = _figure(
        title="Front of systems", xaxis_title="complexity", yaxis_title="loss (in spreads)", showlegend=False
    )
    losses = np.maximum([member.loss for member in front], 1e-12)
    text = [f"{m.index}: " + "<br>".join(escape(str(e)) for e in m.equations) for m in front]
    figure.add_scatter(
        x=[m.complexity for m in front],
        y=losses,
        mode="lines+markers",
        line_shape="hv",
        hovertext=text,
        hoverinfo="text",
    )
    figure.add_scatter(
        x=[front[selected].complexity], y=[losses[selected]], mode="markers", hovertext=[text[selected]],
        hoverinfo="text", marker={"size": 14, "symbol": "circle-open", "line": {"width": 3}},
    )  # fmt: skip
    ticks = log_ticks(float(losses.min()) / 1.5, float(losses.max()) * 1.5)
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:.3g}" for tick in ticks])
    return figure
