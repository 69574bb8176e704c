"""`report.html` of laws of fields: the equations, simulated against measured at a few times, other laws.

The page is complete in itself; it is drawn like that of laws of motion, over space instead of time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql._version import __version__
from gmeql.report import asset, environment, policy
from gmeql.report.content import safe_json, sample_rows
from gmeql.report.numbers import plain_list
from gmeql.report.numbers import four_digits

if TYPE_CHECKING:
    from gmeql.differential.fields.field import GMEQLField

POOR = 0.5
"""Below this share of the change, a law explains less of it than it leaves open."""


def build(model: GMEQLField, *, source: str = "", created: str = "", command: str = "") -> str:
    """The page of a model that was just fitted, as one HTML text."""
    from markupsafe import Markup

    courses, axis, shape = _courses(model)
    share = model.score()
    view: dict[str, Any] = {
        "title": f"What moves {', '.join(model.field_names_)}",
        "subtitle": " · ".join(part for part in (source, f"{shape} points", created) if part),
        "equations": [
            {"name": name, "text": str(law), "mathml": Markup(law._repr_html_())}
            for name, law in zip(model.field_names_, model.equations_, strict=True)
        ],
        "figures": [("explained share of the change", f"{share:.4f}")]
        + [
            (f"noise of {name}", four_digits(sigma))
            for name, sigma in zip(model.field_names_, model.noise_, strict=True)
        ],
        "caution": ""
        if share >= POOR
        else f"The law explains only {share:.0%} of how the fields change: it is not to be relied on.",
        "fronts": [
            {
                "name": name,
                "selected": selected,
                "members": [(m.index, m.complexity, four_digits(m.loss), str(m.expression)) for m in front],
            }
            for name, front, selected in zip(model.field_names_, model.fronts_, model.selected_, strict=True)
        ],
        "command": command,
        "version": __version__,
    }
    script = asset("charts.js") + asset("motion.js")
    return (
        environment()
        .get_template("field.html.j2")
        .render(
            **view,
            style=Markup(asset("style.css")),
            script=Markup(script),
            csp=policy(script),
            payload=Markup(safe_json({"time": axis, "courses": courses, "phase": None})),
        )
    )


def _courses(model: GMEQLField) -> tuple[list[dict[str, Any]], str, str]:
    """Each field at each of a few times over the first axis of space, measured and simulated; that axis; the grid's shape."""
    grid, (x, times, measured), simulated = model.slices()
    rows = sample_rows(len(x))
    found = []
    for f, name in enumerate(grid.names):
        for k, place in enumerate(times):
            with np.errstate(invalid="ignore"):
                curve = np.where(
                    np.abs(simulated[f, :, k]) <= 10 * np.abs(grid.values[f]).max(), simulated[f, :, k], np.nan
                )
            found.append(
                {
                    "name": f"{name} at t = {grid.axes[-1][place]:.4g}",
                    "points": [{"x": plain_list(x[rows]), "y": plain_list(measured[f, rows, k])}],
                    "curves": [{"x": plain_list(x), "y": plain_list(curve)}],
                }
            )
    return found, grid.axis_names[0], " × ".join(map(str, grid.values.shape[1:]))
