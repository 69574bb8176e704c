"""`report.html` of laws of motion: equations, simulated against measured, phase portrait, front of systems.

The page is complete in itself and runs no script: its charts are drawings (SVG). Names and texts are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmeql.report import asset, environment
from gmeql.report.numbers import four_digits

if TYPE_CHECKING:
    from gmeql.differential.motion.dynamics import GMEQLDynamics

FloatArray = NDArray[np.float64]
WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 640, 260, 64, 40, 12
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
FORMATS = {"Text": "text", "LaTeX": "latex", "Python (SciPy)": "python", "JAX (diffrax)": "jax", "C": "c"}


class Chart:
    """Points and curves over two axes, as an SVG text."""

    def __init__(self, x: FloatArray, y: FloatArray, x_label: str, y_label: str) -> None:
        """`x` and `y` are all values to be shown."""
        self._x, self._y = (_range(values) for values in (x, y))
        self._parts = [
            f'<text x="{(WIDTH + LEFT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>',
            f'<text x="{MARGIN}" y="{MARGIN + 4}">{escape(y_label)}</text>',
        ]
        for value in np.linspace(*self._x, 5):
            self._parts.append(
                f'<text x="{self._place(value, 0)[0]:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:.4g}</text>'
            )
        for value in np.linspace(*self._y, 4):
            place = self._place(0, value)[1]
            self._parts.append(
                f'<line x1="{LEFT}" x2="{WIDTH - MARGIN}" y1="{place:.1f}" y2="{place:.1f}" stroke="currentColor" '
                f'stroke-opacity="0.15"/><text x="{LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{value:.4g}</text>'
            )

    def _place(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self._x[0]) / (self._x[1] - self._x[0])
        up = (y - self._y[0]) / (self._y[1] - self._y[0])
        return LEFT + across * (WIDTH - LEFT - MARGIN), HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - 2 * MARGIN - 8)

    def points(self, x: FloatArray, y: FloatArray) -> None:
        """Measured values."""
        for a, b in zip(x.tolist(), y.tolist(), strict=True):
            if np.isfinite(a) and np.isfinite(b):
                left, top = self._place(a, b)
                self._parts.append(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3" fill="#1f77b4" fill-opacity="0.6"/>')

    def curve(self, x: FloatArray, y: FloatArray) -> None:
        """A simulated course; it ends where it runs away."""
        pairs = [self._place(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True) if np.isfinite([a, b]).all()]
        text = " ".join(f"{left:.1f},{min(max(top, -1e4), 1e4):.1f}" for left, top in pairs)
        self._parts.append(f'<polyline points="{text}" fill="none" stroke="#d62728" stroke-width="2"/>')

    def arrow(self, x: float, y: float, dx: float, dy: float) -> None:
        """A short line from a point towards where the system leads, thick at its start."""
        (a, b), (c, d) = self._place(x, y), self._place(x + dx, y + dy)
        self._parts.append(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.4" fill="currentColor" fill-opacity="0.45"/>'
            f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}" stroke="currentColor" stroke-opacity="0.35"/>'
        )

    def svg(self, label: str) -> str:
        """The drawing; `label` says what it shows to those who do not see it."""
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}" font-size="12" '
            f'fill="currentColor" style="width:100%;height:auto">{"".join(self._parts)}</svg>'
        )


def _range(values: FloatArray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    pad = 0.04 * (high - low) or 0.5 * abs(low) or 1.0
    return low - pad, high + pad


def build(model: GMEQLDynamics, *, source: str = "", created: str = "", command: str = "") -> str:
    """The page of a model that was just fitted, as one HTML text."""
    from markupsafe import Markup

    columns = model.columns_
    measured, simulated = model.courses()
    charts = [_course(name, j, measured, simulated) for j, name in enumerate(columns.measured)]
    view: dict[str, Any] = {
        "title": f"How {', '.join(columns.measured)} move",
        "subtitle": " · ".join(
            part for part in (source, f"{sum(len(t) for t, _ in measured)} points", created) if part
        ),
        "equations": [
            {
                "name": f"{name}{chr(39) * columns.order}",
                "text": str(equation),
                "mathml": Markup(equation._repr_html_()),
            }
            for name, equation in zip(columns.measured, model.equations_, strict=True)
        ],
        "figures": [("distance, in spreads", four_digits(model.systems_[model.selected_index_].loss))]
        + [
            (f"noise of {name}", four_digits(float(noise)))
            for name, noise in zip(columns.measured, model.noise_, strict=True)
        ],
        "charts": [Markup(chart) for chart in charts],
        "phase": Markup(_phase(model, measured, simulated)) if len(columns.states) > 1 else "",
        "systems": [
            {
                "index": m.index,
                "complexity": m.complexity,
                "loss": four_digits(m.loss),
                "text": [str(e) for e in m.equations],
            }
            for m in model.systems_
        ],
        "selected": model.selected_index_,
        "codes": [(label, str(model.export(name))) for label, name in FORMATS.items()],
        "command": command,
        "reason": model.stop_reason_,
        "seconds": f"{model.seconds_:.1f}",
        "candidates": f"{model.candidates_:,}",
    }
    return environment().get_template("motion.html.j2").render(**view, style=Markup(asset("style.css")), csp=POLICY)


Course = Sequence[tuple[FloatArray, FloatArray]]


def _course(name: str, j: int, measured: Course, simulated: Course) -> str:
    """One state over time: measured points, simulated curves. The axis is that of the measurements."""
    times = np.concatenate([t for t, _ in measured])
    values = np.concatenate([X[:, j] for _, X in measured])
    chart = Chart(times, values, "time", name)
    for (t, X), (s, Z) in zip(measured, simulated, strict=True):
        chart.points(t, X[:, j])
        chart.curve(s, Z[:, j])
    return chart.svg(f"{name} over time: measured points and the simulated curve")


def _phase(model: GMEQLDynamics, measured: Course, simulated: Course) -> str:
    """The plane of the first two states: where the system leads, and where it went."""
    names = model.columns_.states[:2]
    along = simulated if model.columns_.order == 2 else measured
    together = np.concatenate([Z[:, :2] for _, Z in along])
    chart = Chart(together[:, 0], together[:, 1], names[0], names[1])
    axes, slopes = model.flow((0, 1))
    steps = [0.8 * float(axis[1] - axis[0]) for axis in axes]
    for a, x in enumerate(axes[0].tolist()):
        for b, y in enumerate(axes[1].tolist()):
            dx, dy = float(slopes[0][a, b]), float(slopes[1][a, b])
            size = np.hypot(dx / steps[0], dy / steps[1])
            if np.isfinite(size) and size > 0:
                chart.arrow(x, y, dx / size, dy / size)
    for (_, X), (_, Z) in zip(measured, simulated, strict=True):
        if model.columns_.order == 1:
            chart.points(X[:, 0], X[:, 1])
        chart.curve(Z[:, 0], Z[:, 1])
    return chart.svg(f"phase portrait of {names[0]} and {names[1]}")
