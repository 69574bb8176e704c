"""Comparisons over all problems: Table 1, GP (figure 2 l), success rates, running time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gmeql.evaluation.paper.figures.drawing import add_note, draw_bars
from gmeql.evaluation.paper.figures.figure import Figure, Finding, Records
from gmeql.evaluation.paper.figures.statistics import (
    LEVEL,
    TOO_FEW,
    compare,
    final_errors,
    fisher,
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

PAPER_SUCCESS = {"b1": 61, "b2": 70, "b3": 45, "b4": 40, "b5": 53, "b6": 100, "b7": 47, "b8": 100}
"""GMEQL's success rates in the paper, percent."""
COLOURS = {name: method.colour for name, method in METHODS.items()}
OTHERS = tuple(name for name in METHODS if name != "gmeql")


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


def success() -> Figure:
    def counts(plan: BudgetPlan, records: Records, problem: str, method: str) -> tuple[int, int]:
        found = select(records, cells_for(plan, [problem], [method]))
        return sum(bool(r["solved"]) for r in found), len(found)

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows, words, verdicts = [], [], []
        for problem in PROBLEMS:
            own = counts(plan, records, problem, "gmeql")
            claimed = round(PAPER_SUCCESS[problem] / 5)  # of 20 runs
            p = fisher(*own, claimed, 20)
            if own[1]:
                verdicts.append(TOO_FEW if math.isnan(p) else "differs" if p < LEVEL else "agrees")
                found = f"{own[0]} of {own[1]}"
                if not math.isnan(p):
                    found += f" ({100 * own[0] / own[1]:.0f} %), p = {p:.2g} (Fisher's exact test)"
                others = ", ".join(_share(METHODS[m].label, *counts(plan, records, problem, m)) for m in OTHERS)
                words.append(f"{problem}: the paper {PAPER_SUCCESS[problem]} %, here {found}; {others}.")
            for method in METHODS:
                solved, runs = counts(plan, records, problem, method)
                row = {
                    "problem": problem,
                    "method": method,
                    "runs": runs,
                    "solved": solved,
                    "solved_share": solved / runs if runs else None,
                }
                if method == "gmeql":
                    row |= {
                        "paper_share": PAPER_SUCCESS[problem] / 100,
                        "p_value_solved": number_or_none(p),
                        "test": "Fisher's exact",
                    }
                rows.append(row)
        return Finding(rows, words, overall(verdicts))

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        values = {"paper": [float(PAPER_SUCCESS[p]) for p in PROBLEMS]}
        for method in METHODS:
            pairs = [counts(plan, records, p, method) for p in PROBLEMS]
            if any(n for _, n in pairs):  # an empty place would read as "never solved"
                values[method] = [100 * s / n if n else 0.0 for s, n in pairs]
        draw_bars(
            ax,
            values,
            PROBLEMS,
            {"paper": "#b9d7e5", **COLOURS},
            {"paper": "GMEQL, the paper"} | {name: method.label for name, method in METHODS.items()},
        )
        ax.set_ylabel("solved, % of runs")
        ax.set_ylim(0, 119)
        ax.set_title("Success rates", fontsize=9)
        add_note(plan, figure)

    return Figure(
        "success",
        "Success rates on b1 to b8",
        "GMEQL finds the truth in 61, 70, 45, 40, 53, 100, 47 and 100 percent of the runs on b1 to b8, "
        "consistently more often than the other algorithms.",
        lambda plan: cells_for(plan, PROBLEMS, METHODS),
        measure,
        draw,
        size=(9.0, 4.0),
    )


def _share(label: str, solved: int, runs: int) -> str:
    return f"{label} {solved} of {runs}" if runs else f"{label} not measured"


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
