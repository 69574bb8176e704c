"""Figure 2 i to k and the offline rules of appendix C: GMEQL with one of its parts left out or exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gmeql.evaluation.paper.cells import MAIN_SETTING, SETTINGS, Cell
from gmeql.evaluation.paper.figures.drawing import add_note, draw_curves
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
from gmeql.evaluation.paper.plan import BudgetPlan, cells_for
from gmeql.evaluation.paper.records import Record, select


def ablation(name: str, title: str, says: str, problem: str, setting: str, claim: str) -> Figure:
    def groups(plan: BudgetPlan, records: Records) -> tuple[list[Record], list[Record]]:
        return tuple(
            select(records, cells_for(plan, [problem], ["gmeql"], setting=s))  # type: ignore[return-value]
            for s in (MAIN_SETTING, setting)
        )

    def cells(plan: BudgetPlan) -> list[Cell]:
        return [c for s in (MAIN_SETTING, setting) for c in cells_for(plan, [problem], ["gmeql"], setting=s)]

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        whole, cut = groups(plan, records)
        names = "GMEQL whole", f"GMEQL {SETTINGS[setting].label}"
        rows = [
            {"problem": problem, "method": "gmeql", "setting": s, **summary(g)}
            for s, g in ((MAIN_SETTING, whole), (setting, cut))
        ]
        if not whole or not cut:
            return Finding(rows, [compare(whole, cut, names)[1]], "not measured")
        verdict, sentence, p = compare(whole, cut, names, claim)
        on_curve, curve_sentence, curve_p = compare(whole, cut, names, claim, errors=final_errors)
        told = []
        chances = {}
        for count, label in (("structure", "True structure"), ("solved", "Strictly solved")):
            a, b = (row[count] for row in rows)
            chances[count] = fisher(a, len(whole), b, len(cut))
            chance = "" if TOO_FEW in (verdict, on_curve) else f", p = {chances[count]:.2g} (Fisher's exact test)"
            told.append(f"{label}: {a} of {len(whole)} and {b} of {len(cut)}{chance}.")
        told += [f"Of T* and of the mode: {', '.join(_whose(row) for row in rows)}."]
        words = [curve_sentence, sentence, *told]
        if TOO_FEW not in (verdict, on_curve):
            words.insert(0, _direction(names[1], whole, cut, p, curve_p))
        both = overall([verdict, on_curve])
        rows[1] |= {
            **tested(MAIN_SETTING, p, both),
            "p_value_training": number_or_none(curve_p),
            "p_value_solved": number_or_none(chances["solved"]),
            "p_value_structure": number_or_none(chances["structure"]),
        }
        return Finding(rows, words, both)

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        whole, cut = groups(plan, records)
        draw_curves(ax, {"GMEQL": (whole, METHODS["gmeql"].colour), SETTINGS[setting].label: (cut, "#c0392b")})
        ax.set_title(f"{title.split(': ', 1)[1]} ({problem})", fontsize=9)
        add_note(plan, figure)

    return Figure(name, title, says, cells, measure, draw)


def _whose(row: Mapping[str, Any]) -> str:
    """How many true structures T* writes, and how many the mode of the final logits."""
    return f"{row['structure_best']} and {row['structure_mode'] or 0} of {row['runs']}"


def _direction(changed: str, whole: Sequence[Record], cut: Sequence[Record], p: float, curve_p: float) -> str:
    """The direction of an ablation in words: where leaving a part out helps, harms, or cannot be told to do either."""
    said = []
    for kind, errors, chance in (
        ("the training error of the best instance", final_errors, curve_p),
        ("the test error of the formula", test_errors, p),
    ):
        word = "smaller" if median_error(cut, errors) < median_error(whole, errors) else "larger"
        said.append(f"{kind} is {'not significantly different' if chance >= LEVEL else word} (p = {chance:.2g})")
    return f"{changed}: {said[0]}; {said[1]}."
