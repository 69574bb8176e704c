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
from gmeql.evaluation.paper.figures.statistics import ENOUGH, LEVEL
from gmeql.evaluation.paper.figures.success import markdown
from gmeql.evaluation.paper.judging import SOLVED_RULE, STRUCTURE_RULE
from gmeql.evaluation.paper.page import page_of
from gmeql.evaluation.paper.plan import BudgetPlan
from gmeql.evaluation.paper.records import checksum
from gmeql.model.files.storage import write_atomic

TABLE_COLUMNS = (
    "figure",
    "problem",
    "method",
    "setting",
    "noise",
    "runs",
    "solved",
    "solved_share",
    "structure",
    "structure_share",
    "structure_low",
    "structure_high",
    "structure_best",
    "structure_mode",
    "paper_share",
    "paper_low",
    "paper_high",
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
    "p_value_structure",
    "verdict",
    "paper",
    "expression",
    "variables",
    "rows",
    "low",
    "high",
)


def write(folder: Path, plan: BudgetPlan, figures: Sequence[Figure], records: Records) -> None:
    """Draw every figure as PNG and SVG, and write table.json, table.csv, success.md and index.html."""
    pictures = folder / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    parts: list[tuple[Figure, Finding, str]] = []
    for figure in figures:
        svg = _draw(figure, plan, records, pictures)
        parts.append((figure, figure.measure(plan, records), base64.b64encode(svg).decode()))
    _write_table(folder, plan, parts)
    write_atomic(folder / "success.md", markdown(plan, records).encode())
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
        "structure": STRUCTURE_RULE,
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
    write_atomic(folder / "table.json", (json.dumps(table, indent=1, allow_nan=False) + "\n").encode())
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, TABLE_COLUMNS, restval="")
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(folder / "table.csv", text.getvalue().encode())


def _write_page(
    folder: Path,
    plan: BudgetPlan,
    figures: Sequence[Figure],
    parts: Sequence[tuple[Figure, Finding, str]],
    records: Records,
) -> None:
    wanted = {cell.key for figure in figures for cell in figure.cells(plan)}
    page = page_of(
        parts,
        note=plan.note,
        rule=" ".join(rule[0].upper() + rule[1:] for rule in (SOLVED_RULE, STRUCTURE_RULE)),
        level=LEVEL,
        enough=ENOUGH,
        failures=[records[key] for key in sorted(wanted) if records.get(key, {}).get("status") == "failed"],
        done=sum(records.get(key, {}).get("status") == "done" for key in wanted),
        wanted=len(wanted),
        checksum=checksum(folder)[:16],
        written=datetime.now(UTC).isoformat(timespec="minutes"),
        versions=versions("gplearn"),
    )
    write_atomic(folder / "index.html", page.encode())
