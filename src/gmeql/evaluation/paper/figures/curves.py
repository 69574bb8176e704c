"""Figure 2 a to h: learning curves of the methods on the eight problems."""

from __future__ import annotations

from typing import Any

from gmeql.evaluation.paper.cells import Cell
from gmeql.evaluation.paper.figures.drawing import add_note, draw_curves
from gmeql.evaluation.paper.figures.figure import Figure, Finding, Records
from gmeql.evaluation.paper.figures.statistics import (
    compare,
    counts,
    final_errors,
    median_error,
    number_or_none,
    overall,
    said,
    summary,
    test_errors,
    tested,
)
from gmeql.evaluation.paper.methods import CURVE_METHODS, METHODS
from gmeql.evaluation.paper.plan import BudgetPlan, cells_for
from gmeql.evaluation.paper.records import Record, select
from gmeql.evaluation.problems import PAPER


def learning_curve(problem: str, letter: str) -> Figure:
    similar = {"b6": ("dsr",), "b7": ("dsr",)}.get(problem, ())
    says = {
        "b6": "GMEQL clearly beats EQL; DSR is slightly better than GMEQL, not significantly.",
        "b7": "GMEQL clearly beats EQL; GMEQL and DSR perform alike.",
    }.get(problem, "GMEQL clearly outperforms EQL and DSR.")

    def cells(plan: BudgetPlan) -> list[Cell]:
        return cells_for(plan, [problem], CURVE_METHODS)

    def groups(plan: BudgetPlan, records: Records) -> dict[str, list[Record]]:
        return {m: select(records, cells_for(plan, [problem], [m])) for m in CURVE_METHODS}

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        mine = groups(plan, records)
        verdicts: list[str] = []
        words: list[str] = []
        rows: list[dict[str, Any]] = []
        for method, found in mine.items():
            rows.append({"problem": problem, "method": method, **summary(found)})
            if method in ("eql", "dsr"):
                claim = "=" if method in similar else "<"
                both = [
                    compare(mine["gmeql"], found, ("GMEQL", METHODS[method].label), claim, errors=errors)
                    for errors in (test_errors, final_errors)
                ]
                verdicts += [verdict for verdict, _, _ in both]
                words += dict.fromkeys(sentence for _, sentence, _ in both)
                rows[-1] |= tested("gmeql", both[0][2], overall([verdict for verdict, _, _ in both]))
                rows[-1]["p_value_training"] = number_or_none(both[1][2])
        if mine["fitted"]:
            told = counts(mine["fitted"])
            words.append(
                f"The fitted method of this library: median test MAE {said(median_error(mine['fitted']))}, "
                f"true structure {told['structure']}, strict {told['solved']} of {told['runs']} runs."
            )
        return Finding(rows, words, overall(verdicts))

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        draw_curves(ax, {METHODS[m].label: (found, METHODS[m].colour) for m, found in groups(plan, records).items()})
        ax.set_title(f"{problem}: {PAPER[problem][0].replace('**', '^').replace('*', ' ')}", fontsize=8)
        add_note(plan, figure)

    return Figure(f"fig2{letter}", f"Figure 2{letter}: learning curves on {problem}", says, cells, measure, draw)
