"""The page of the evaluation as one HTML text: the product's style, tables as tables, no empty columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gmeql.evaluation.paper.figures import Figure, Finding
from gmeql.evaluation.paper.cells import SETTINGS
from gmeql.evaluation.paper.figures.statistics import TOO_FEW
from gmeql.evaluation.paper.methods import METHODS
from gmeql.report import asset

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The page loads nothing and runs no script."""
VERDICTS = {
    "agrees": "As the paper says.",
    "differs": "Not as the paper says.",
    "partly": "In part as the paper says.",
    "undecided": "The difference is too small for the number of runs to tell.",
    TOO_FEW: "Too few runs to judge.",
    "not comparable": "Under other conditions than the paper's: not comparable.",
    "not measured": "Not measured yet.",
}
"""What the page says for each agreement that a finding may hold."""
COLUMNS = {
    "problem": "problem",
    "method": "method",
    "setting": "setting",
    "noise": "noise",
    "expression": "expression",
    "variables": "variables",
    "rows": "examples",
    "low": "from",
    "high": "to",
    "runs": "runs",
    "structure": "true structure",
    "structure_low": "interval from",
    "structure_high": "to",
    "structure_best": "of T*",
    "structure_mode": "of the mode",
    "solved": "strictly solved",
    "paper_share": "solved in the paper",
    "paper_low": "interval from",
    "paper_high": "to",
    "median_test_mae": "test MAE",
    "median_training_mae": "training MAE",
    "seconds_per_run": "seconds a run",
    "paper": "in the paper",
    "p_value": "p, test",
    "p_value_training": "p, training",
    "p_value_structure": "p, structure",
    "p_value_solved": "p, solved",
    "verdict": "verdict",
}
"""Columns of the page's tables and their headings, in order."""
TEXTS = ("problem", "method", "setting", "expression", "paper", "verdict")
"""Columns of words; the others are numbers and stand to the right."""

SHARES = ("paper_share", "paper_low", "paper_high", "structure_low", "structure_high")
"""Columns of shares, shown in percent."""
SAID_ABOVE = ("problem", "setting", "verdict")
"""Columns that need not stand in a table where all rows agree: the title or the verdict above says it."""


def page_of(parts: Sequence[tuple[Figure, Finding, str]], **facts: Any) -> str:
    """The page of figures with their findings and pictures (base64 of an SVG); `facts` are said about the whole."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader("gmeql.evaluation.paper", "assets"), PackageLoader("gmeql.report", "assets")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    shown = [_part(figure, finding, picture) for figure, finding, picture in parts]
    template = environment.get_template("paper.html.j2")
    return template.render(parts=shown, style=Markup(asset("style.css")), csp=POLICY, **facts)


def _part(figure: Figure, finding: Finding, picture: str) -> dict[str, Any]:
    headings, rows = table_of(finding.rows)
    return {
        "name": figure.name,
        "title": figure.title,
        "paper_says": figure.paper_says,
        "agreement": finding.agreement,
        "verdict": VERDICTS[finding.agreement],
        "mark": finding.agreement.replace(" ", "-"),
        "words": finding.words,
        "picture": "" if figure.is_table else picture,
        "is_table": figure.is_table,
        "headings": headings,
        "rows": rows,
    }


def table_of(rows: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Headings and cells of the rows that hold something; columns that are empty or said above are left out."""
    rows = [row for row in rows if row.get("runs", 1)]
    columns = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
    if len(rows) > 1:
        columns = [name for name in columns if name not in SAID_ABOVE or len({row.get(name) for row in rows}) > 1]
    headings = [{"text": COLUMNS[name], "number": name not in TEXTS} for name in columns]
    return headings, [[_cell(name, row.get(name)) for name in columns] for row in rows]


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name == "method":
        return METHODS[value].label
    if name == "setting":
        return SETTINGS[value].label
    if name == "expression":
        return str(value).replace("**", "^").replace("*", " ")
    if name in SHARES:
        return f"{100 * value:.0f} %"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
