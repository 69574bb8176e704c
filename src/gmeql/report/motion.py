"""`report.html` of laws of motion: equations, simulated against measured, phase portrait, front of systems.

The page is complete in itself. Its plots are those of the other report (`charts.js`), fed with plain data; names and
texts are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmeql._version import __version__
from gmeql.report import asset, environment, policy
from gmeql.report.content import safe_json, sample_rows
from gmeql.report.numbers import plain_list
from gmeql.report.numbers import four_digits

if TYPE_CHECKING:
    from gmeql.differential.motion.dynamics import GMEQLDynamics

FloatArray = NDArray[np.float64]
Course = Sequence[tuple[FloatArray, FloatArray]]
"""Times [N] and values [N, states] of every trajectory."""
BEYOND = 0.5
"""A simulated curve leaves the plot this many times the measured range outside it."""
POOR = 0.7
"""From this distance on, in spreads of the states, the simulation explains less than half of their variance."""
ARROW = 0.8
"""Length of a line of the phase portrait, in steps of its grid."""
FORMATS = {"Text": "text", "LaTeX": "latex", "Python (SciPy)": "python", "JAX (diffrax)": "jax", "C": "c"}


def build(model: GMEQLDynamics, *, source: str = "", created: str = "", command: str = "", time: str = "time") -> str:
    """The page of a model that was just fitted, as one HTML text; `time` is the name of the column of times."""
    from markupsafe import Markup

    columns = model.columns_
    measured, simulated = model.courses()
    drawn = sum(len(sample_rows(len(t))) for t, _ in measured)
    points = sum(len(t) for t, _ in measured)
    payload = {
        "time": time,
        "courses": [_course(name, j, measured, simulated) for j, name in enumerate(columns.measured)],
        "phase": _phase(model, measured, simulated) if len(columns.states) > 1 else None,
    }
    view: dict[str, Any] = {
        "title": f"How {', '.join(columns.measured)} {'move' if len(columns.measured) > 1 else 'moves'}",
        "subtitle": " · ".join(part for part in (source, f"{points} points", created) if part),
        "equations": [
            {
                "name": name,
                "primes": "′" * columns.order,
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
        "caution": caution(model.systems_[model.selected_index_].loss),
        "sampled": f" {drawn:,} of {points:,} points are drawn." if drawn < points else "",
        "phase": payload["phase"] is not None,
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
        "version": __version__,
    }
    script = asset("charts.js") + asset("motion.js")
    return (
        environment()
        .get_template("motion.html.j2")
        .render(
            **view,
            style=Markup(asset("style.css")),
            script=Markup(script),
            csp=policy(script),
            payload=Markup(safe_json(payload)),
        )
    )


def caution(loss: float) -> str:
    """What is to be said where the simulation hardly follows the measurements; empty where it does."""
    if loss < POOR:
        return ""
    return (
        f"These equations do not describe the measurements: simulated, they miss them by {four_digits(loss)} of their "
        "spread, where a constant misses them by 1. More time, more points or other columns may help."
    )


def _within(curve: FloatArray, measured: FloatArray) -> FloatArray:
    """A simulated curve without what runs away from the measurements: the axis stays theirs."""
    finite = measured[np.isfinite(measured)]
    if not len(finite):
        return curve
    low, high = float(finite.min()), float(finite.max())
    room = BEYOND * (high - low or abs(low) or 1.0)
    with np.errstate(invalid="ignore"):
        return np.where((curve >= low - room) & (curve <= high + room), curve, np.nan)


def _course(name: str, j: int, measured: Course, simulated: Course) -> dict[str, Any]:
    """One state over time: measured points, simulated curves."""
    values = np.concatenate([X[:, j] for _, X in measured])
    rows = [sample_rows(len(t)) for t, _ in measured]
    return {
        "name": name,
        "points": [_pair(t[r], X[r, j]) for (t, X), r in zip(measured, rows, strict=True)],
        "curves": [_pair(s, _within(Z[:, j], values)) for s, Z in simulated],
    }


def _phase(model: GMEQLDynamics, measured: Course, simulated: Course) -> dict[str, Any]:
    """The plane of the first two states: where the system leads, and where it went."""
    names = model.columns_.states[:2]
    along = simulated if model.columns_.order == 2 else measured
    together = np.concatenate([Z[:, :2] for _, Z in along])
    axes, slopes = model.flow((0, 1))
    steps = [ARROW * float(axis[1] - axis[0]) for axis in axes]
    with np.errstate(all="ignore"):
        size = np.hypot(slopes[0] / steps[0], slopes[1] / steps[1])
        moves = [np.where(size > 0, slope / size, np.nan) for slope in slopes]
    grid = np.meshgrid(*axes, indexing="ij")
    starts, ends = (
        [part.ravel() for part in parts] for parts in (grid, [g + m for g, m in zip(grid, moves, strict=True)])
    )
    points = [] if model.columns_.order == 2 else [X[sample_rows(len(X))] for _, X in measured]
    return {
        "names": list(names),
        "field": _pair(*starts) | {"x2": plain_list(ends[0]), "y2": plain_list(ends[1])},
        "points": [_pair(X[:, 0], X[:, 1]) for X in points],
        "curves": [_pair(*(_within(Z[:, k], together[:, k]) for k in (0, 1))) for _, Z in simulated],
    }


def _pair(x: FloatArray, y: FloatArray) -> dict[str, list[float | None]]:
    return {"x": plain_list(x), "y": plain_list(y)}
