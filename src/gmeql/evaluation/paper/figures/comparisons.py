"""Comparisons over all problems: Table 1, GP (figure 2 l), running time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gmeql.evaluation.paper.figures.drawing import add_note, draw_bars
from gmeql.evaluation.paper.figures.figure import Figure, Finding, Records
from gmeql.evaluation.paper.figures.statistics import (
    compare,
    final_errors,
    median_error,
    number_or_none,
    overall,
    summary,
    test_errors,
    tested,
)
from gmeql.evaluation.paper.methods import METHODS
from gmeql.evaluation.paper.plan import PROBLEMS, BudgetPlan, cells_for
from gmeql.evaluation.paper.records import Record, select
from gmeql.evaluation.problems.paper import PAPER, PAPER_ROWS

COLOURS = {name: method.colour for name, method in METHODS.items()}


def table1() -> Figure:
    def rows() -> list[dict[str, Any]]:
        return [
            {"problem": name, "expression": formula, "variables": width, "rows": PAPER_ROWS, "low": low, "high": high}
            for name, (formula, width, low, high) in PAPER.items()
        ]

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        ax.axis("off")
        text = [
            [
                r["problem"],
                r["expression"].replace("**", "^").replace("*", " "),
                str(r["rows"]),
                f"({r['low']}, {r['high']})^{r['variables']}",
            ]
            for r in rows()
        ]
        cells = ax.table(
            text,
            colLabels=["ID", "expression", "examples", "range"],
            loc="center",
            cellLoc="left",
            colWidths=[0.06, 0.68, 0.11, 0.15],
        )
        cells.auto_set_font_size(False)
        cells.set_fontsize(8)
        cells.scale(1, 1.5)

    return Figure(
        "table1",
        "Table 1: the eight benchmark problems",
        "Eight problems, 300 examples each; b1-b6 extend public ones, b7 and b8 come from physics.",
        lambda plan: [],
        lambda plan, records: Finding(
            rows(),
            ["The same eight problems, drawn afresh for every seed; 300 training and 300 test points."],
            "agrees",
        ),
        draw,
        size=(9.0, 3.2),
        is_table=True,
    )


def genetic_programming() -> Figure:
    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows: list[dict[str, Any]] = []
        words: list[str] = []
        verdicts: list[str] = []
        for problem in PROBLEMS:
            ours, gp = (select(records, cells_for(plan, [problem], [m])) for m in ("gmeql", "gp"))
            both = [compare(ours, gp, ("GMEQL", "GP"), errors=errors) for errors in (test_errors, final_errors)]
            verdicts += [verdict for verdict, _, _ in both]
            words += dict.fromkeys(f"{problem}: {sentence}" for _, sentence, _ in both)
            against = tested("gmeql", both[0][2], overall([verdict for verdict, _, _ in both]))
            rows.append(
                {
                    "problem": problem,
                    "method": "gp",
                    **summary(gp),
                    **against,
                    "p_value_training": number_or_none(both[1][2]),
                }
            )
        return Finding(rows, words, overall(verdicts))

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        names = {
            "gmeql": "GMEQL, formula on test rows",
            "best": "GMEQL, best instance on training rows",
            "gp": "GP, formula on test rows",
        }
        values = {
            name: [
                float(np.maximum(median_error(select(records, cells_for(plan, [p], [method])), errors), 1e-17))
                for p in PROBLEMS
            ]
            for name, method, errors in (
                ("gmeql", "gmeql", test_errors),
                ("best", "gmeql", final_errors),
                ("gp", "gp", test_errors),
            )
        }
        draw_bars(ax, values, PROBLEMS, {**COLOURS, "best": "#8fc1d9"}, names)
        if np.isfinite(list(values.values())).any():
            ax.set_yscale("log")
            low, high = ax.get_ylim()
            ax.set_ylim(low, 3 * high)  # room for the legend
        ax.set_ylabel("median MAE")
        ax.set_title("GMEQL and genetic programming", fontsize=9)
        add_note(plan, figure)

    return Figure(
        "fig2l",
        "Figure 2l: comparison with GP",
        "On all benchmark problems, GMEQL achieved clearly better accuracy than GP.",
        lambda plan: cells_for(plan, PROBLEMS, ("gmeql", "gp")),
        measure,
        draw,
        size=(8.0, 4.0),
        also=("gp",),
    )


def running_time() -> Figure:
    def found(plan: BudgetPlan, records: Records, method: str) -> list[Record]:
        return select(records, cells_for(plan, PROBLEMS, [method]))

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows, words = [], []
        for method in METHODS:
            mine = found(plan, records, method)
            rows.append({"method": method, "paper": METHODS[method].paper_time, **summary(mine)})
            if mine:
                devices = sorted({r["device"] for r in mine})
                seconds, batch = np.mean([r["seconds"] for r in mine]), int(np.median([r["batch"] for r in mine]))
                words.append(
                    f"{METHODS[method].label}: {seconds:.3g} s a run on {', '.join(devices)} in batches of {batch} "
                    f"(the paper: {METHODS[method].paper_time})."
                )
        words.append(
            "A run's seconds are its batch's wall clock divided by the runs in the batch. The paper gave each "
            "run one core of a desktop processor."
        )
        order = {row["method"]: row["seconds_per_run"] for row in rows if row["runs"] and row["method"] != "fitted"}
        if len(order) < 4:
            return Finding(rows, words, "not measured")
        if not plan.is_full:
            words.append("This budget is not the paper's: the order of these times says nothing about the paper's.")
            return Finding(rows, words, "not comparable")
        if len({r["device"] for method in order for r in found(plan, records, method)}) > 1:
            words.append("The methods ran on different hardware: their order here says nothing about the paper's.")
            return Finding(rows, words, "not comparable")
        as_said = order["gmeql"] > order["dsr"] > max(order["eql"], order["gp"])
        return Finding(rows, words, "agrees" if as_said else "differs")

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        groups = [(m, [r["seconds"] for r in found(plan, records, m)]) for m in METHODS]
        groups = [(m, s) for m, s in groups if s]
        ax.barh(
            [METHODS[m].label for m, _ in groups],
            [float(np.mean(s)) for _, s in groups],
            color=[METHODS[m].colour for m, _ in groups],
        )
        if groups:
            ax.set_xscale("log")
        ax.set_xlabel("seconds a run, mean over b1 to b8")
        ax.set_title("Running time", fontsize=9)
        add_note(plan, figure)

    return Figure(
        "time",
        "Appendix C: running time of one run",
        "GMEQL 3 to 4 hours, DSR about 2 hours, EQL and GP within 30 minutes, each on one CPU core.",
        lambda plan: cells_for(plan, PROBLEMS, METHODS),
        measure,
        draw,
        size=(6.0, 3.0),
    )
