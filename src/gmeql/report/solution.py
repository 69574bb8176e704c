"""`report.html` of a solved differential equation: the closed form and how sure it is, or a clear no; other formulas.

The page is complete in itself; it is drawn like that of laws of motion: the solution in numbers instead of
measurements, the formula instead of a simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql._version import __version__
from gmeql.report import asset, environment, policy
from gmeql.report.content import safe_json
from gmeql.report.numbers import plain_list
from gmeql.report.responses import CURVE_POINTS
from gmeql.report.numbers import four_digits

if TYPE_CHECKING:
    from gmeql.differential.solving.solutions import Solution, Solutions

POINTS = 60
"""Points of the solution in numbers, about, so that the curve is seen between them."""
SLICES = 3
"""Curves over the first variable, each at other values of the further ones."""


def build(found: Solutions, *, equation: str, conditions: str = "", created: str = "", command: str = "") -> str:
    """The page as one HTML text; `equation` and `conditions` are as the person wrote them."""
    from markupsafe import Markup

    best = found.best
    view: dict[str, Any] = {
        "title": equation,
        "subtitle": " · ".join(part for part in (conditions, found.domain.replace("<=", "≤"), created) if part),
        "state": "proven" if best.proven else "verified" if found.is_closed_form else "open",
        "formulas": [
            {"name": name, "text": text, "mathml": Markup(_mathml(best, k))}
            for k, (name, text) in enumerate(zip(best.names, _texts(best), strict=True))
        ],
        "verdict": best.verdict,
        "notes": found.notes,
        "figures": [
            ("largest residual", four_digits(best.residual)),
            ("conditions missed by", four_digits(best.misfit)),
        ],
        "members": [
            {
                "complexity": m.complexity,
                "residual": four_digits(m.residual),
                "misfit": four_digits(m.misfit),
                "verdict": "proven" if m.proven else "",
                "text": ", ".join(f"{n} = {text}" for n, text in zip(m.names, _texts(m), strict=True)),
            }
            for m in found
        ],
        "selected": list(found).index(best),
        "codes": [("Text", "\n".join(_lines(best))), ("SymPy", repr(best.sympy())), ("LaTeX", best.latex())],
        "drawn": ", ".join(found.names[1:]),
        "command": command,
        "reason": found.reason,
        "seconds": f"{found.seconds:.1f}",
        "candidates": f"{found.candidates:,}",
        "version": __version__,
    }
    script = asset("charts.js") + asset("motion.js")
    courses = _courses(found)
    payload = {
        "time": found.names[0],
        "courses": courses,
        "phase": None,
        "legend": [["measured", "in numbers"], ["simulated", "formula"]],
    }
    page = environment().get_template("solution.html.j2")
    return page.render(
        **view,
        many=len(courses) > 1,
        style=Markup(asset("style.css")),
        script=Markup(script),
        csp=policy(script),
        payload=Markup(safe_json(payload)),
    )


def _texts(solution: Solution) -> list[str]:
    """The formulas as text, exact where they are proven."""
    return [str(form if solution.proven else e) for form, e in zip(solution.forms, solution.expressions, strict=True)]


def _lines(solution: Solution) -> list[str]:
    return [f"{name} = {text}" for name, text in zip(solution.names, _texts(solution), strict=True)]


def _mathml(solution: Solution, k: int) -> str:
    """A formula typeset: exact numbers as SymPy writes them, fitted ones rounded."""
    if not solution.proven:
        return solution.expressions[k]._repr_html_()
    from sympy.printing.mathml import mathml

    body = mathml(solution.forms[k], printer="presentation")
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{body}</math>'


def _courses(found: Solutions) -> list[dict[str, Any]]:
    """Each function over its first variable: points of the solution in numbers, and the curve of the best formula.

    Of several variables the further ones stand at a few fixed values, where no points of the numbers lie.
    """
    every = max(1, len(found.rows) // POINTS)
    rows, values = found.rows, found.values
    low, high = rows.min(axis=0), rows.max(axis=0)
    shares = [0.5] if rows.shape[1] == 1 else [k / (SLICES - 1) for k in range(SLICES)]
    x = np.linspace(low[0], high[0], CURVE_POINTS)
    courses = []
    for f, (name, expression) in enumerate(zip(found.best.names, found.best.expressions, strict=True)):
        for share in shares:
            others = low[1:] + share * (high[1:] - low[1:])
            with np.errstate(all="ignore"):
                curve = expression(np.column_stack([x, *(np.full(len(x), value) for value in others)]))
            at = ", ".join(f"{n} = {value:.4g}" for n, value in zip(found.names[1:], others, strict=True))
            points = [] if at else [{"x": plain_list(rows[::every, 0]), "y": plain_list(values[::every, f])}]
            curves = [{"x": plain_list(x), "y": plain_list(curve)}]
            courses.append({"name": f"{name} at {at}" if at else name, "points": points, "curves": curves})
    return courses
