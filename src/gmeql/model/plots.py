"""Figures of a fitted model, as plotly objects: `.show()` them, or `.write_html(...)`.

Every text that comes from the data (column names, formulas) is escaped: plotly reads a subset of HTML in its labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, fold
from gmeql.formula.operators import get_operator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from gmeql.model.front import Front

LABEL_WIDTH = 120
"""Longest formula shown on hovering."""


def _label(text: str) -> str:
    return escape(text if len(text) <= LABEL_WIDTH else text[: LABEL_WIDTH - 1] + "…")


def _figure(title: str, x_title: str, y_title: str, **layout: Any) -> Figure:
    from plotly.graph_objects import Figure

    figure = Figure()
    figure.update_layout(
        template="plotly_white", title=title, xaxis_title=x_title, yaxis_title=y_title, showlegend=False, **layout
    )
    return figure


def front_figure(front: Front, selected: int | None = None) -> Figure:
    """Loss against complexity; the member `selected` is marked. A loss of zero is drawn below the smallest other."""
    losses = np.array([m.loss for m in front])
    positive = losses[losses > 0]
    floor = positive.min() / 10 if len(positive) else 1.0
    shown = np.maximum(losses, floor)
    complexity = [m.complexity for m in front]
    text = [f"{m.index}: {_label(str(m))}<br>loss {m.loss:.4g}" for m in front]
    figure = _figure("Pareto front", "complexity", "loss (RMSE)")
    figure.update_yaxes(type="log", exponentformat="power")
    figure.add_scatter(
        x=complexity, y=shown, mode="lines+markers", line_shape="hv", hovertext=text, hoverinfo="text", name="front"
    )
    if selected is not None:
        figure.add_scatter(
            x=[complexity[selected]],
            y=[shown[selected]],
            mode="markers",
            marker={"size": 14, "symbol": "circle-open", "line": {"width": 3}},
            hovertext=[text[selected]],
            hoverinfo="text",
            name="selected",
        )
    return figure


def parity_figure(observed: NDArray[np.float64], predicted: NDArray[np.float64]) -> Figure:
    """Predicted against observed values, with the line of equality."""
    figure = _figure("Predicted against observed", "observed", "predicted")
    finite = np.isfinite(observed) & np.isfinite(predicted)
    if finite.any():
        low = float(min(observed[finite].min(), predicted[finite].min()))
        high = float(max(observed[finite].max(), predicted[finite].max()))
        figure.add_scatter(
            x=[low, high], y=[low, high], mode="lines", line={"dash": "dot", "color": "gray"}, name="equal"
        )
    figure.add_scatter(x=observed[finite], y=predicted[finite], mode="markers", marker={"opacity": 0.6}, name="rows")
    return figure


def residuals_figure(observed: NDArray[np.float64], predicted: NDArray[np.float64]) -> Figure:
    """Observed minus predicted, against predicted: what a good formula leaves has no shape."""
    figure = _figure("Residuals", "predicted", "observed − predicted")
    figure.add_hline(y=0, line={"dash": "dot", "color": "gray"})
    with np.errstate(all="ignore"):
        residual = observed - predicted
    finite = np.isfinite(residual) & np.isfinite(predicted)
    figure.add_scatter(x=predicted[finite], y=residual[finite], mode="markers", marker={"opacity": 0.6}, name="rows")
    return figure


def history_figure(history: Mapping[str, NDArray[Any]]) -> Figure:
    """The best loss during a search against the time it took."""
    figure = _figure("Best loss during the search", "seconds", "loss (RMSE)")
    loss = np.asarray(history["loss"], dtype=float)
    finite = np.isfinite(loss)
    positive = loss[finite & (loss > 0)]
    shown = np.maximum(loss[finite], positive.min() / 10 if len(positive) else 1.0)
    candidates = [f"{count:,} candidates" for count in np.asarray(history["candidates"])[finite]]
    figure.update_yaxes(type="log", exponentformat="power")
    figure.add_scatter(
        x=np.asarray(history["elapsed"])[finite],
        y=shown,
        mode="lines",
        line_shape="hv",
        hovertext=candidates,
        hoverinfo="x+y+text",
        name="best",
    )
    return figure


def expression_figure(expression: Expression) -> Figure:
    """The formula as a tree: operators above what they act on."""
    places, edges = _tree_layout(expression)
    figure = _figure(_label(str(expression)), "", "")
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    lines_x: list[float | None] = []
    lines_y: list[float | None] = []
    for parent, child in edges:
        lines_x += [places[parent][0], places[child][0], None]
        lines_y += [places[parent][1], places[child][1], None]
    figure.add_scatter(x=lines_x, y=lines_y, mode="lines", line={"color": "gray"}, hoverinfo="skip")
    figure.add_scatter(
        x=[p[0] for p in places],
        y=[p[1] for p in places],
        mode="markers+text",
        text=[p[2] for p in places],
        marker={"size": 40, "color": ["#dbe9f6" if p[3] else "#f2f2f2" for p in places]},
        hoverinfo="skip",
    )
    return figure


Place = tuple[float, float, str, bool]


def _tree_layout(expression: Expression) -> tuple[list[Place], list[tuple[int, int]]]:
    """Position, label and whether it is an operator of every node; leaves side by side, parents above their middle."""
    places: list[Place] = []
    edges: list[tuple[int, int]] = []
    width = 0

    def leaf(node: Node) -> tuple[int, float]:
        nonlocal width
        text = f"{node.value:.4g}" if isinstance(node, Constant) else _label(expression.names[node.index])  # type: ignore[union-attr]
        places.append((float(width), 0.0, text, False))
        width += 1
        return len(places) - 1, 0.0

    def call(node: Call, args: list[tuple[int, float]]) -> tuple[int, float]:
        height = 1.0 + max(h for _, h in args)
        middle = float(np.mean([places[i][0] for i, _ in args]))
        places.append((middle, height, escape(get_operator(node.operator).symbol), True))
        edges.extend((len(places) - 1, i) for i, _ in args)
        return len(places) - 1, height

    fold(expression.root, leaf, call)
    return places, edges
