"""Tables and pictures on disk, and the page that puts what the paper says beside what was measured."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gmeql._version import versions
from gmeql.evaluation.paper.figures import Figure, Finding, Records
from gmeql.evaluation.paper.figures.statistics import LEVEL
from gmeql.evaluation.paper.judging import SOLVED_RULE
from gmeql.evaluation.paper.plan import BudgetPlan
from gmeql.evaluation.paper.records import checksum

AGREEMENT = {
    "agrees": "Measured here: as the paper says.",
    "differs": "Measured here: not as the paper says.",
    "partly": "Measured here: in part as the paper says.",
    "undecided": "Measured here: the difference is too small for the number of runs to tell.",
    "not comparable": "Measured here on other hardware: not comparable.",
    "not measured": "Not measured yet.",
}
TABLE_COLUMNS = (
    "figure",
    "problem",
    "method",
    "setting",
    "noise",
    "runs",
    "solved",
    "solved_share",
    "paper_share",
    "median_test_mae",
    "mean_test_mae",
    "std_test_mae",
    "median_training_mae",
    "not_finite",
    "seconds_per_run",
    "candidates",
    "compared_with",
    "test",
    "p_value",
    "p_value_training",
    "p_value_solved",
    "verdict",
    "paper",
    "expression",
    "variables",
    "rows",
    "low",
    "high",
)
PAGE_COLUMNS = {
    "problem": "problem",
    "method": "method",
    "setting": "setting",
    "noise": "noise",
    "runs": "runs",
    "solved": "solved",
    "paper_share": "solved in the paper",
    "median_test_mae": "median test MAE",
    "median_training_mae": "median training MAE",
    "seconds_per_run": "seconds a run",
    "p_value": "p, test MAE",
    "p_value_training": "p, training MAE",
    "p_value_solved": "p, solved",
    "verdict": "against the paper",
}
"""Columns of the page's tables and their headings; a table shows those that its rows hold."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>GMEQL: the paper and what was measured</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid #8884; padding: 1rem 0; }
figure { margin: 0.5rem 0; background: #fff; } figure img { max-width: 100%; }
.beside { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; }
@media (max-width: 45rem) { .beside { grid-template-columns: 1fr; } }
h3 { margin: 0.3rem 0; font-size: 1rem; } ul { padding-left: 1.1rem; margin: 0.3rem 0; }
.verdict { font-weight: 600; } .agrees { color: #2e7d32; } .differs { color: #c0392b; }
.partly, .undecided { color: #b07d00; }
.note { background: #b07d0022; padding: 0.6rem 0.9rem; border-radius: 6px; }
table { border-collapse: collapse; } details { overflow-x: auto; font-size: 0.85rem; }
td, th { padding: 0.2rem 0.7rem; text-align: left; border-bottom: 1px solid #8883; }
</style></head><body>
<h1>GMEQL: the paper and what was measured</h1>
<p class="note">{{ plan.note }}.</p>
<p>{{ rule }} Significance: Mann-Whitney U on errors, Fisher's exact test on counts of solved runs, both two-sided
at {{ level }}, without correction for the number of comparisons.</p>
<table><tr><th>figure</th><th>against the paper</th></tr>
{% for figure, finding, picture in parts %}<tr><td><a href="#{{ figure.name }}">{{ figure.title }}</a></td>
<td class="{{ finding.agreement }}">{{ finding.agreement }}</td></tr>
{% endfor %}</table>
{% if failures %}<h2>Runs that failed</h2><ul>{% for f in failures %}<li><code>{{ f.key }}</code>: {{ f.error }}
({{ f.attempts }} attempts)</li>{% endfor %}</ul>{% endif %}
{% for figure, finding, picture in parts %}
<section id="{{ figure.name }}"><h2>{{ figure.title }}</h2>
<figure><img alt="{{ figure.title }}" src="data:image/svg+xml;base64,{{ picture }}"></figure>
<div class="beside"><div><h3>The paper says</h3><p>{{ figure.paper_says }}</p></div>
<div><h3>Measured here</h3><p class="verdict {{ finding.agreement }}">{{ agreement[finding.agreement] }}</p>
<ul>{% for sentence in finding.words %}<li>{{ sentence }}</li>{% endfor %}</ul></div></div>
{% set columns = columns_of(finding.rows) %}{% if columns %}<details><summary>Numbers</summary><table><tr>
{% for name in columns %}<th>{{ heading[name] }}</th>{% endfor %}</tr>{% for row in finding.rows %}<tr>
{% for name in columns %}<td>{{ shown(row.get(name)) }}</td>{% endfor %}</tr>{% endfor %}</table></details>{% endif %}
</section>
{% endfor %}
<section><h2>How it was measured</h2><p>{{ done }} of {{ wanted }} runs finished; records checksum
<code>{{ checksum }}</code>; written {{ written }}. Versions: {{ versions }}.</p></section>
</body></html>
"""


def write(folder: Path, plan: BudgetPlan, figures: Sequence[Figure], records: Records) -> None:
    """Draw every figure as PNG and SVG, and write table.json, table.csv and index.html."""
    pictures = folder / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    parts: list[tuple[Figure, Finding, str]] = []
    for figure in figures:
        svg = _draw(figure, plan, records, pictures)
        parts.append((figure, figure.measure(plan, records), base64.b64encode(svg).decode()))
    _write_table(folder, plan, parts)
    _write_page(folder, plan, figures, parts, records)


def _draw(figure: Figure, plan: BudgetPlan, records: Records, folder: Path) -> bytes:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("the figures need matplotlib; install it with: pip install 'gmeql[experiments]'") from error
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context({"svg.hashsalt": figure.name, "font.size": 8, "svg.fonttype": "path"}):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        FigureCanvasAgg(canvas)
        figure.draw(plan, records, canvas)
        canvas.savefig(folder / f"{figure.name}.png", dpi=130)
        buffer = io.BytesIO()
        canvas.savefig(buffer, format="svg", metadata={"Date": None})
    (folder / f"{figure.name}.svg").write_bytes(buffer.getvalue())
    return buffer.getvalue()


def _write_table(folder: Path, plan: BudgetPlan, parts: Sequence[tuple[Figure, Finding, str]]) -> None:
    rows: list[dict[str, Any]] = [{"figure": f.name, **row} for f, finding, _ in parts for row in finding.rows]
    table = {
        "budget": plan.name,
        "note": plan.note,
        "solved": SOLVED_RULE,
        "significance": LEVEL,
        "figures": [
            {
                "figure": f.name,
                "title": f.title,
                "paper_says": f.paper_says,
                "agreement": finding.agreement,
                "measured": finding.words,
            }
            for f, finding, _ in parts
        ],
        "rows": rows,
    }
    (folder / "table.json").write_text(json.dumps(table, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, TABLE_COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)


def _write_page(
    folder: Path,
    plan: BudgetPlan,
    figures: Sequence[Figure],
    parts: Sequence[tuple[Figure, Finding, str]],
    records: Records,
) -> None:
    from jinja2 import Environment

    wanted = {cell.key for figure in figures for cell in figure.cells(plan)}
    finished = [key for key in wanted if records.get(key, {}).get("status") == "done"]
    failures = [records[key] for key in sorted(wanted) if records.get(key, {}).get("status") == "failed"]
    page = (
        Environment(autoescape=True)
        .from_string(_PAGE)
        .render(
            plan=plan,
            parts=parts,
            agreement=AGREEMENT,
            rule=SOLVED_RULE[0].upper() + SOLVED_RULE[1:],
            level=LEVEL,
            columns_of=_columns_of,
            shown=_shown,
            heading=PAGE_COLUMNS,
            failures=failures,
            done=len(finished),
            wanted=len(wanted),
            checksum=checksum(folder)[:16],
            written=datetime.now(UTC).isoformat(timespec="minutes"),
            versions=", ".join(f"{name} {value}" for name, value in versions("gplearn").items()),
        )
    )
    (folder / "index.html").write_text(page, encoding="utf-8")


def _columns_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Columns of the page's table: those in which some row holds a value; none for a table without runs."""
    found = [name for name in PAGE_COLUMNS if any(row.get(name) is not None for row in rows)]
    return found if "runs" in found else []


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
