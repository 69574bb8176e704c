"""What the report shows, as plain data: one entry per formula of the front, and the points of every plot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.formula.printing.spreadsheet import cells_used, to_spreadsheet
from gmeql.model.fit.ranges import column_ranges
from gmeql.model.rows.weighing import CountedRows, counted_rows
from gmeql.report.cautions import deciding_text, outliers_in
from gmeql.report.constants import constant_rows
from gmeql.report.groups import group_view, n_columns
from gmeql.report.judgement import Figures, figures, judge, predictions
from gmeql.report.knowledge import kept_lines, unit_texts
from gmeql.report.network import draw as draw_network
from gmeql.report.numbers import four_digits, plain, plain_list, r2_text
from gmeql.report.responses import kinds_of_categories, responses
from gmeql.report.unseen import promise, unseen_text
from gmeql.search.losses.losses import find_loss
from gmeql.tables.categories import columns_of

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.knowledge.knowledge import Knowledge
    from gmeql.model.pareto.front import Front
    from gmeql.model.pareto.member import FrontMember
    from gmeql.search.groups.table import OwnConstants
    from gmeql.tables.training import Training

MAX_POINTS = 1200  # rows drawn in a plot; more are sampled evenly, which the page says
MAX_HISTORY = 600
MAX_RANGES = 50  # columns whose range the page states
MAX_MEMBERS = 60
READINGS = {"logistic": "The formula is the logit of the chance, which is 1/(1 + exp(-formula)): 0 means even odds."}
"""What a formula says where it is not the target itself, by the loss."""
HELD_KINDS = " (a category at its most frequent kind)"
PARITY_LINES = {"logistic": "Rows of other classes stand on the left, rows of this class on the right."}
AXES = {"logistic": ["measured (1: this class)", "predicted chance"]}
EXPORTS = {
    "Text": "text",
    "LaTeX": "latex",
    "Python": "python",
    "SymPy": "sympy",
    "C": "c",
    "Spreadsheet": "spreadsheet",
    "MathML": "mathml",
    "JSON": "json",
}


@dataclass(frozen=True)
class Content:
    """`view` fills the template, `payload` goes to the page's script as JSON."""

    view: dict[str, Any]
    payload: dict[str, Any]


def safe_json(value: Any) -> str:
    """JSON that may stand inside a script element: no angle bracket, ampersand or line separator is left in it.

    >>> safe_json({"name": "</script>"})
    '{"name": "\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def assemble(
    front: Front,
    selected: int,
    training: Training,
    history: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    versions: Mapping[str, str],
    created: str,
    command: str,
    knowledge: Knowledge | None = None,
    own: OwnConstants | None = None,
) -> Content:
    """Everything the page shows."""
    from markupsafe import Markup

    rows = sample_rows(len(training.y))
    members = shown_members(len(front), selected)
    X, y = training.X[rows], training.y[rows]
    used = sorted({column for k in members for column in front[k].expression.variables})
    place = {column: i for i, column in enumerate(used)}
    loss = str(settings.get("loss") or "squared")
    columns = training.names[: n_columns(training, own)]
    counted = counted_rows(front, training.X, training.y, training.weights, loss=loss)
    views, records, outliers = [], [], outliers_in(training, counted, [m.expression for m in front])
    for number, k in enumerate(members):
        with np.errstate(all="ignore"):
            predicted = predictions(front[k], training.X, loss)
        found = figures(predicted, training.y, counted.weights)
        shown = member_view(front[k], found, training, counted, knowledge)
        groups = group_view(front[k].expression, training, own, loss=loss, knowledge=knowledge)
        told = judge(front, k, training, loss=loss, outliers=outliers)
        views.append(shown | {"index": number, "judgement": told, "groups": groups})
        records.append(member_record(front[k], training, X, y, predicted[rows], place, len(columns)))
    chosen = members.index(selected)
    log = history_points(history, front[selected].loss)
    names, drawn = ", ".join(columns), [front[k].expression for k in members]
    if own is not None and training.groups is not None:
        drawn = [own.compact(expression, len(columns)) for expression in drawn]
    written = moment_text(created)
    view = {
        "title": f"{training.target} from {_listing(given_columns(training, columns))}"
        + ("" if own is None else f", by {own.column}"),
        "subtitle": " · ".join(
            part
            for part in (
                training.source,
                f"{len(training.y):,} rows",
                f"{len(front)} formulas",
                written,
            )
            if part
        ),
        "members": views,
        "judged": any(front[k].outlook is not None for k in members),
        "selected": chosen,
        "target": training.target,
        "sampled": f" {len(rows):,} of {len(training.y):,} rows are drawn." if len(rows) < len(training.y) else "",
        "search_line": search_line(history, settings, log["loss"]),
        "network": Markup(draw_network(dict(enumerate(drawn)), training.target)),
        "reading": READINGS.get(loss, ""),
        "held_line": HELD_KINDS if kinds_of_categories(training) else "",
        "parity_line": PARITY_LINES.get(loss, "On the dashed line both are equal."),
        "source": training.source,
        "columns": names if len(names) < 2000 else _listing(columns),
        "ranges": ranges_line(training, len(columns)),
        "rows": f"{len(training.y):,}",
        "fingerprint": training.fingerprint,
        "notes": [str(note) for note in training.notes],
        "command": command,
        "repeat_line": repeat_line(settings),
        "facts": facts(settings, versions),
        "version": versions.get("gmeql", ""),
        "written": written,
    }
    payload = {
        "target": training.target,
        "selected": chosen,
        "members": records,
        "x": [plain_list(X[:, column]) for column in used],
        "y": plain_list(y),
        "history": log,
        "exact": plain(front.exact_level),
        "measure": measure_name(loss),
        "axes": AXES.get(loss, [f"measured {training.target}", f"predicted {training.target}"]),
    }
    return Content(view, payload)


def moment_text(created: str) -> str:
    """A moment in ISO form as people write it.

    >>> moment_text("2026-11-18T11:28:05+00:00")
    '2026-11-18 11:28:05 UTC'
    """
    return created.replace("T", " ").replace("+00:00", " UTC")


def member_view(
    member: FrontMember, found: Figures, training: Training, counted: CountedRows, knowledge: Knowledge | None = None
) -> dict[str, Any]:
    """What the template says of one formula."""
    from markupsafe import Markup

    constants, reason = constant_rows(member.expression, training, loss=counted.loss, member=member)
    units = unit_texts(member.expression, knowledge)
    for row in constants if units else ():
        row["unit"] = units[int(row["place"])]
    return {
        "text": str(member.expression),
        "mathml": Markup(equation(training.target, member.expression, constants)),
        "measure": measure_name(counted.loss),
        "loss": four_digits(found.rmse if find_loss(counted.loss).value is None else member.loss),
        "r2": r2_text(found.r2),
        "largest": four_digits(found.largest_error),
        "complexity": member.complexity,
        "unseen": unseen_text(member.outlook),
        "promise": promise(member.outlook),
        "constants": constants,
        "deciding": deciding_text(member, training),
        "no_constants": reason,
        "has_units": bool(units),
        "kept": kept_lines(member.expression, knowledge),
        "drawing": Markup(draw(member.expression)),
        "cells": cells_line(member.expression, training.table_names),
    }


def measure_name(loss: str) -> str:
    """What the losses of a front are called."""
    entry = find_loss(loss)
    return "RMSE" if entry.value is None else entry.measure


def member_record(
    member: FrontMember,
    training: Training,
    X: np.ndarray,
    y: np.ndarray,
    predicted: np.ndarray,
    place: Mapping[int, int],
    n_columns: int,
) -> dict[str, Any]:
    """What the page's script draws of one formula, on the rows X [n, V], y [n] that are drawn."""
    return {
        "text": str(member.expression),
        "complexity": member.complexity,
        "loss": plain(member.loss),
        "outlook": None if member.outlook is None else member.outlook.to_dict(),
        "predicted": plain_list(predicted),
        "residuals": plain_list(y - predicted),
        "responses": responses(member.expression, training, X, y - predicted, place, n_columns),
        "exports": exports(member.expression, training.table_names),
    }


def given_columns(training: Training, names: Sequence[str]) -> list[str]:
    """The columns of the user's table that the names stand for, each once: of a category its column of words."""
    return columns_of(names, training.table_names or ())


def _listing(names: Sequence[str], most: int = 4) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def sample_rows(count: int) -> np.ndarray:
    """Row numbers to draw: all, or an even sample that is the same every time."""
    if count <= MAX_POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MAX_POINTS, replace=False))


def shown_members(count: int, selected: int) -> list[int]:
    """Indices of the front that get a place on the page: all, or the chosen one and an even spread of the others."""
    if count <= MAX_MEMBERS:
        return list(range(count))
    spread = {round(i * (count - 1) / (MAX_MEMBERS - 2)) for i in range(MAX_MEMBERS - 1)}
    return sorted(spread | {selected})


def exports(expression: Expression, table_columns: Sequence[str] | None = None) -> dict[str, str]:
    """Every form the copy buttons offer, the spreadsheet's for the cells of the user's table; a form that this formula
    does not have is left out.
    """
    found = {}
    for label, name in EXPORTS.items():
        try:
            in_cells = name == "spreadsheet"
            found[label] = to_spreadsheet(expression, table_columns) if in_cells else str(expression.export(name))
        except (ValueError, ImportError):
            continue
    return found


def cells_line(expression: Expression, table_columns: Sequence[str] | None) -> str:
    """Which cell of the spreadsheet formula is which column; nothing where the sheet has none of that name: then there is
    no such formula either.
    """
    try:
        used = cells_used(expression, table_columns)
    except ValueError:
        return ""
    cells = ", ".join(f"{cell} is {name}" for cell, name in used.items())
    where = f"In the spreadsheet formula, for row 2 under a row of headings, {cells}; " if cells else ""
    return f"{where}functions and separators of the spreadsheet formula are English."


def ranges_line(training: Training, n_columns: int) -> str:
    """The smallest and largest value of each column, between which the formulas were fitted."""
    names = training.names[: min(MAX_RANGES, n_columns)]
    ranges = zip(names, column_ranges(training.X), strict=False)
    shown = [f"{name}: {low:.6g} to {high:.6g}" for name, (low, high) in ranges]
    more = n_columns - MAX_RANGES
    return "; ".join(shown) + (f" and {more} more" if more > 0 else "")


def draw(expression: Expression) -> str:
    """The formula's operators and wiring as SVG."""
    from gmeql.network.drawing import draw_expression

    return draw_expression(expression)


def equation(target: str, expression: Expression, constants: Sequence[Mapping[str, str]] = ()) -> str:
    """target = formula, typeset as one piece so that both stand on one line, the constants of the table marked."""
    from gmeql.formula.expression import Expression
    from gmeql.formula.nodes import Variable
    from gmeql.formula.printing.markup import to_mathml

    name = to_mathml(Expression(Variable(0), (target,)))
    formula = to_mathml(expression, marks={int(row["place"]): row["mark"] for row in constants})
    start, end = name.index("<mrow>"), name.rindex("</math>")
    head, left, right = name[:start], name[start:end], formula[formula.index("<mrow>") : formula.rindex("</math>")]
    return f"{head}<mrow>{left}<mo>=</mo>{right}</mrow></math>"


def history_points(history: Sequence[Mapping[str, Any]], chosen: float) -> dict[str, list[float | None]]:
    """Time and loss of the leading formula, thinned to what a plot can show; the first and the last stay.

    A finished search ends at the loss of the `chosen` formula: what is judged after the last record may be another one.
    """
    points: list[tuple[float, float]] = []
    for entry in history:
        best = entry.get("best") or {}
        loss = best.get("loss")
        if isinstance(loss, int | float):
            points.append((float(entry["elapsed"]), float(chosen if entry.get("done") else loss)))
    if len(points) > MAX_HISTORY:
        step = len(points) / MAX_HISTORY
        keep = {int(i * step) for i in range(MAX_HISTORY)} | {len(points) - 1}
        points = [p for i, p in enumerate(points) if i in keep]
    return {"elapsed": [plain(t) for t, _ in points], "loss": [plain(loss) for _, loss in points]}


def search_line(
    history: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], losses: Sequence[float | None] = ()
) -> str:
    """How long, how many, and why it ended, and why `losses` of the leading formula rise, where they do; empty where the
    run kept no log."""
    if not history:
        return ""
    last = history[-1]
    ended = f", then {last['reason']}" if last.get("reason") else ""
    method = settings.get("method", "fitted")
    line = f"{last.get('candidates', 0):,} candidates in {last['elapsed']:.1f} s{ended}; method {method}."
    known = [loss for loss in losses if loss is not None]
    if any(later > earlier for earlier, later in pairwise(known)):
        line += " Where the curve rises, a formula that promises more on unseen rows, or a shorter one, took the lead."
    return line


def repeat_line(settings: Mapping[str, Any]) -> str:
    if settings.get("max_candidates") is not None and settings.get("max_time") is None:
        return "The budget counts candidates, so the same versions repeat this run exactly."
    return "The budget is time, so a faster machine may find more; with --max-candidates a run repeats exactly."


def facts(settings: Mapping[str, Any], versions: Mapping[str, str]) -> list[tuple[str, str]]:
    """Settings that were set and versions, for the fold-out."""
    given = [
        (key.replace("_", " "), _plain_setting(value))
        for key, value in settings.items()
        if value not in (None, [], False)
    ]
    return given + list(versions.items())


def _plain_setting(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
