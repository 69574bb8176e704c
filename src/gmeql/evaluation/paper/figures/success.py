"""Success rates on b1 to b8: the paper's, strictly solved runs, true structures, with 95 % intervals."""

from __future__ import annotations

from typing import Any

from gmeql.evaluation.paper.cells import MAIN_SETTING, SETTINGS, Cell
from gmeql.evaluation.paper.figures.drawing import add_note, draw_bars
from gmeql.evaluation.paper.figures.figure import Figure, Finding, Records
from gmeql.evaluation.paper.figures.statistics import ENOUGH, TOO_FEW, counts, interval, overall
from gmeql.evaluation.paper.methods import METHODS
from gmeql.evaluation.paper.plan import PROBLEMS, BudgetPlan, cells_for
from gmeql.evaluation.paper.records import select

PAPER_SUCCESS = {"b1": 61, "b2": 70, "b3": 45, "b4": 40, "b5": 53, "b6": 100, "b7": 47, "b8": 100}
"""GMEQL's success rates in the paper, percent."""
PAPER_RUNS = 20
COLOURS = {"paper": "#b9d7e5", "structure": "#0b6e99", "solved": "#8fc1d9"}
OTHERS = tuple(name for name in METHODS if name != "gmeql")


def paper_interval(problem: str) -> tuple[float, float]:
    """The 95 % interval of the paper's rate, as of 20 runs.

    >>> [round(end, 2) for end in paper_interval("b1")]
    [0.36, 0.81]
    """
    return interval(round(PAPER_SUCCESS[problem] / 100 * PAPER_RUNS), PAPER_RUNS)


def success() -> Figure:
    def cells(plan: BudgetPlan) -> list[Cell]:
        own = [c for s in plan.gmeql_settings for c in cells_for(plan, PROBLEMS, ["gmeql"], setting=s)]
        return own + cells_for(plan, PROBLEMS, OTHERS)

    def row(plan: BudgetPlan, records: Records, problem: str, method: str, setting: str | None) -> dict[str, Any]:
        found = counts(select(records, cells_for(plan, [problem], [method], setting=setting)))
        shown: dict[str, Any] = {"problem": problem, "method": method, **found}
        if setting:
            shown["setting"] = setting
        if found["runs"]:
            low, high = interval(found["structure"], found["runs"])
            shown |= {"structure_low": low, "structure_high": high}
        return shown

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows, words, verdicts = [], [], []
        for problem in PROBLEMS:
            low, high = paper_interval(problem)
            for setting in plan.gmeql_settings:
                mine = row(plan, records, problem, "gmeql", setting)
                mine |= {"paper_share": PAPER_SUCCESS[problem] / 100, "paper_low": low, "paper_high": high}
                rows.append(mine)
                if setting != MAIN_SETTING or not mine["runs"]:
                    continue
                reached = "agrees" if mine["structure_share"] >= low else "differs"
                verdicts.append(TOO_FEW if mine["runs"] < ENOUGH else reached)
                mine["verdict"] = verdicts[-1]
                words.append(_sentence(problem, mine, [row(plan, records, problem, m, None) for m in OTHERS]))
            rows += [row(plan, records, problem, method, None) for method in OTHERS]
        return Finding(rows, words, overall(verdicts))

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        own = [row(plan, records, p, "gmeql", MAIN_SETTING) for p in PROBLEMS]
        values = {"paper": [float(PAPER_SUCCESS[p]) for p in PROBLEMS]}
        if any(mine["runs"] for mine in own):  # an empty place would read as "never solved"
            for count in ("structure", "solved"):
                values[count] = [100 * mine[count] / mine["runs"] if mine["runs"] else 0.0 for mine in own]
        names = {"paper": "the paper", "structure": "true structure", "solved": "strictly solved"}
        draw_bars(ax, values, PROBLEMS, COLOURS, names)
        _draw_intervals(ax, [paper_interval(p) for p in PROBLEMS], -(len(values) - 1) / 2 * 0.8 / len(values))
        if "structure" in values:
            ends = [(mine.get("structure_low", 0.0), mine.get("structure_high", 0.0)) for mine in own]
            _draw_intervals(ax, ends, (1 - (len(values) - 1) / 2) * 0.8 / len(values))
        ax.set_ylabel("% of runs, with 95 % intervals")
        ax.set_ylim(0, 124)
        ax.set_title(f"GMEQL's success rates, {SETTINGS[MAIN_SETTING].label}", fontsize=9)
        add_note(plan, figure)

    return Figure(
        "success",
        "Success rates on b1 to b8",
        "GMEQL finds the truth in 61, 70, 45, 40, 53, 100, 47 and 100 percent of the runs on b1 to b8, "
        "consistently more often than the other algorithms.",
        cells,
        measure,
        draw,
        size=(9.0, 4.0),
    )


def markdown(plan: BudgetPlan, records: Records) -> str:
    """The one table: the paper, then of each setting true structures, whose they are, and strictly solved runs."""
    settings = sorted(plan.gmeql_settings, key=lambda setting: setting != MAIN_SETTING)
    heads = ["", "the paper, 95 % of 20 runs"]
    for setting in settings:
        label = SETTINGS[setting].label
        heads += [f"{label}: structure", *(["95 %"] if setting == MAIN_SETTING else []), "T* / mode", "strict"]
    lines = [heads, ["---"] * len(heads)]
    for problem in PROBLEMS:
        low, high = paper_interval(problem)
        cells = [problem, f"{PAPER_SUCCESS[problem]} % ({100 * low:.0f} to {100 * high:.0f})"]
        for setting in settings:
            found = counts(select(records, cells_for(plan, [problem], ["gmeql"], setting=setting)))
            low, high = interval(found["structure"], found["runs"])
            missing = not found["runs"]
            shown = [f"**{found['structure']}** of {found['runs']}"]
            shown += [f"{100 * low:.0f} to {100 * high:.0f} %"] if setting == MAIN_SETTING else []
            shown += [f"{found['structure_best']} / {found['structure_mode'] or 0}", str(found["solved"])]
            cells += ["not measured"] * len(shown) if missing else shown
        lines.append(cells)
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _sentence(problem: str, mine: dict[str, Any], others: list[dict[str, Any]]) -> str:
    """The paper's rate beside both counts of a problem."""
    text = f"{problem}: the paper {PAPER_SUCCESS[problem]} %, here true structure {mine['structure']} of {mine['runs']}"
    if mine["runs"] >= ENOUGH:
        text += f" (95 % interval {100 * mine['structure_low']:.0f} to {100 * mine['structure_high']:.0f} %)"
    text += f" (T* {mine['structure_best']}, mode of the logits {mine['structure_mode'] or 0}), strict {mine['solved']}"
    shares = [
        f"{METHODS[o['method']].label} {o['structure']} and {o['solved']} of {o['runs']}"
        if o["runs"]
        else f"{METHODS[o['method']].label} not measured"
        for o in others
    ]
    return f"{text}; {', '.join(shares)}."


def _draw_intervals(ax: Any, intervals: list[tuple[float, float]], shift: float) -> None:
    """Thin lines over the bars of one group."""
    for place, (low, high) in enumerate(intervals):
        ax.plot([place + shift] * 2, [100 * low, 100 * high], color="#333333", lw=1.0)
