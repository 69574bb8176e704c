"""Figures of laws of fields, as plotly objects; every text that comes from the data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gmeql.differential.fields.grid import FloatArray, Grid

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SLICES = 4
"""Times at which a field is drawn over space."""


Slices = tuple[FloatArray, Sequence[int], FloatArray]
"""Coordinates [N], numbers of times, and values [F, N, times]."""


def slices(grid: Grid, values: FloatArray) -> Slices:
    """The first axis of space, the times that are drawn, and fields over it [F, N, SLICES] through the middle of the others."""
    T = values.shape[-1]
    times = np.unique(np.linspace(0, T - 1, SLICES).round().astype(int)).tolist()
    middle = tuple(size // 2 for size in values.shape[2:-1])
    along = values[(slice(None), slice(None), *middle)]
    return grid.axes[0], times, along[..., times]


def fields_figure(grid: Grid, drawn: Slices, followed: FloatArray) -> Figure:
    """Measured (points) and simulated (lines) fields over the first axis of space, at a few times."""
    from plotly.colors import sample_colorscale
    from plotly.subplots import make_subplots

    x, times, measured = drawn
    figure = make_subplots(rows=len(grid.names), cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for f, name in enumerate(grid.names):
        for k, (place, colour) in enumerate(
            zip(times, sample_colorscale("Viridis", np.linspace(0, 0.9, len(times)).tolist()), strict=True)
        ):
            group = {"row": f + 1, "col": 1, "legendgroup": str(k)}
            label = f"t = {grid.axes[-1][place]:.4g}"
            figure.add_scatter(
                x=x, y=measured[f, :, k], mode="markers", name=label, showlegend=f == 0,
                marker={"color": colour, "opacity": 0.45, "size": 5}, **group,
            )  # fmt: skip
            figure.add_scatter(
                x=x, y=followed[f, :, k], mode="lines", name=f"{label}, simulated", showlegend=False,
                line={"color": colour}, **group,
            )  # fmt: skip
        figure.update_yaxes(title_text=escape(name), row=f + 1, col=1)
    figure.update_xaxes(title_text=grid.axis_names[0], row=len(grid.names), col=1)
    figure.update_layout(
        template="plotly_white", title="Simulated (lines) against measured", height=260 * len(grid.names) + 140
    )
    return figure
