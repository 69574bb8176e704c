"""Figures of a fitted model, as plotly objects: `.show()` them, or `.write_html(...)`.

Every text that comes from the data (column names, formulas) is escaped: plotly reads a subset of HTML in its labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.messages import shortened
from gmeql.formula.nodes import Call, Constant, Node, fold
from gmeql.formula.operators import get_operator
from gmeql.model.pareto.rules import SELECTION

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from gmeql.model.pareto.front import Front

LABEL_WIDTH = 120
"""Longest formula shown on hovering."""
CLOSE_DECADES = 5
"""Powers of ten up to which 2 and 5 times them are labelled too."""
FEWEST_TICKS, MOST_TICKS = 3, 12
MARGIN = 1.2
"""Factor by which an axis of losses is labelled beyond them."""
EXACT = SELECTION.exact_relative
"""In a search's history, of its first loss: below, a loss is rounding."""


def _label(text: str) -> str:
    return escape(shortened(text, LABEL_WIDTH))


def _figure(title: str, x_title: str, y_title: str, **layout: Any) -> Figure:
    from plotly.graph_objects import Figure

    figure = Figure()
    figure.update_layout(
        template="plotly_white", title=title, xaxis_title=x_title, yaxis_title=y_title, showlegend=False, **layout
    )
    return figure


def log_ticks(low: float, high: float) -> list[float]:
    """Where a logarithmic axis is labelled: at 1, 2 and 5 times powers of ten; at powers alone where those are many, in
    equal steps where they are few. Plotly's own labels leave out the power of ten between decades.

    >>> log_ticks(0.4, 3.0), log_ticks(0.9, 1.4), log_ticks(1e-8, 1e-2)[:3]
    ([0.5, 1.0, 2.0], [1.0, 1.2, 1.4], [1e-08, 1e-07, 1e-06])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    mantissas = (1, 2, 5) if len(powers) <= CLOSE_DECADES else (1,)
    found = [value for p in powers for m in mantissas if low <= (value := float(f"{m}e{p}")) <= high]
    if len(found) >= FEWEST_TICKS:
        return found[:: math.ceil(len(found) / MOST_TICKS)]
    raw = (high - low) / FEWEST_TICKS
    power = math.floor(math.log10(raw))
    step = next(value for m in (1, 2, 5, 10) if (value := float(f"{m}e{power}")) >= raw)
    return [float(f"{k * step:.12g}") for k in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def _loss_axis(figure: Figure, losses: NDArray[np.float64], exact: float) -> NDArray[np.float64]:
    """Make y logarithmic, with losses up to `exact` on one line of that name; returns the losses as they are drawn."""
    above = losses[losses > exact]
    low, high = (float(above.min()), float(above.max())) if len(above) else (1.0, 1.0)
    ticks = log_ticks(low / MARGIN, high * MARGIN) if len(above) else []
    labels = [f"{tick:.12g}" for tick in ticks]
    shown = losses
    if len(above) < len(losses):
        floor = low / max(3.0, (high / low) ** 0.15)  # a step below the others, whatever they span
        shown = np.where(losses > exact, losses, floor)
        figure.add_hline(y=floor, line={"dash": "dot", "color": "gray"})
        ticks, labels = [floor, *ticks], ["exact", *labels]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=labels)
    return shown


def front_figure(front: Front, selected: int | None = None) -> Figure:
    """Loss against complexity; the member `selected` is marked. Losses at rounding level stand on one line, "exact"."""
    complexity = [m.complexity for m in front]
    text = [f"{m.index}: {_label(str(m))}<br>loss {m.loss:.4g}" for m in front]
    figure = _figure("Pareto front", "complexity", "loss (RMSE)")
    shown = _loss_axis(figure, np.array([m.loss for m in front]), front.exact_level)
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
    shown = _loss_axis(figure, loss[finite], EXACT * loss[finite].max(initial=0.0))
    candidates = [f"{count:,} candidates" for count in np.asarray(history["candidates"])[finite]]
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
