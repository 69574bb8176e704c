"""The paper's tables and figures: which cells each needs, what the paper says, what was measured, and the picture.

Every `Figure` is a pure function of records. Tests of significance: Mann-Whitney U, two-sided, on the test MAE of the
final expressions and, where the paper shows curves, on the training MAE at their end; Fisher's exact test, two-sided,
on counts of solved runs; all at 0.05, without correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql.evaluation.paper.cells import Cell
from gmeql.evaluation.paper.plan import (
    CURVE_METHODS,
    METHODS,
    NOISE_LEVELS,
    PROBLEMS,
    BudgetPlan,
    cells_for,
    noise_levels,
)
from gmeql.evaluation.paper.records import Record, select
from gmeql.evaluation.problems import PAPER

LABELS = {"gmeql": "GMEQL", "eql": "EQL", "dsr": "DSR", "gp": "GP", "fitted": "fitted (ours)"}
COLOURS = {"gmeql": "#0b6e99", "eql": "#d98e04", "dsr": "#a23b72", "gp": "#6b7280", "fitted": "#2e7d32"}
SETTING_LABELS = {
    "standard": "GMEQL",
    "no_stage1": "without stage 1",
    "no_elites": "without the elite repository",
    "no_offline": "without offline training",
    "squared_difference": "with the rule of appendix B",
}
PAPER_SUCCESS = {"b1": 61, "b2": 70, "b3": 45, "b4": 40, "b5": 53, "b6": 100, "b7": 47, "b8": 100}
"""GMEQL's success rates in the paper, percent."""
PAPER_NOISE_SUCCESS = {0.0: 70, 0.1: 65, 0.2: 35, 0.5: 32}
"""The same on b2 under noise, percent (appendix C)."""
PAPER_SECONDS = {
    "gmeql": "3 to 4 hours",
    "eql": "up to 30 minutes",
    "gp": "up to 30 minutes",
    "dsr": "about 2 hours",
    "fitted": "not in the paper",
}
LEVEL = 0.05
ENOUGH = 5
"""With fewer runs than this a test cannot tell two groups apart, so "alike" stays undecided."""
Records = dict[str, Record]


@dataclass(frozen=True)
class Finding:
    """What was measured: rows for the machine, sentences for people, and how it stands to the paper."""

    rows: list[dict[str, Any]]
    words: list[str]
    agreement: str  # "agrees", "differs", "partly", "undecided", "not comparable", "not measured"


@dataclass(frozen=True)
class Figure:
    """One table or figure of the paper."""

    name: str
    title: str
    paper_says: str
    cells: Callable[[BudgetPlan], list[Cell]]
    measure: Callable[[BudgetPlan, Records], Finding]
    draw: Callable[[BudgetPlan, Records, Any], None]
    size: tuple[float, float] = (6.0, 4.0)
    also: tuple[str, ...] = field(default=())  # other names `only` accepts


# --- numbers ------------------------------------------------------------------------------------------------------


def test_errors(records: Sequence[Record]) -> np.ndarray:
    """Test MAE of final expressions; inf where one is not finite on some test row."""
    return np.array([math.inf if r["test_mae"] is None else r["test_mae"] for r in records], float)


test_errors.__test__ = False  # type: ignore[attr-defined]


def final_errors(records: Sequence[Record]) -> np.ndarray:
    """Training MAE at the end of the curves: for GMEQL that of the best relaxed instance, which the paper draws."""
    return np.array(
        [
            math.inf if not r["curve"]["mae"] or r["curve"]["mae"][-1] is None else r["curve"]["mae"][-1]
            for r in records
        ],
        float,
    )


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """One row of the machine-readable table."""
    errors = test_errors(records)
    finite = errors[np.isfinite(errors)]
    solved = sum(bool(r["solved"]) for r in records)
    return {
        "runs": len(records),
        "solved": solved,
        "solved_share": solved / len(records) if records else None,
        "median_test_mae": _plain(np.median(errors)) if len(errors) else None,
        "mean_test_mae": _plain(np.mean(finite)) if len(finite) else None,
        "std_test_mae": _plain(np.std(finite)) if len(finite) else None,
        "median_training_mae": _plain(np.median(final_errors(records))) if records else None,
        "not_finite": int(len(errors) - len(finite)),
        "seconds_per_run": _plain(np.mean([r["seconds"] for r in records])) if records else None,
        "candidates": _plain(np.median([r["candidates"] for r in records])) if records else None,
    }


def _plain(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _tested(other: str, p: float, verdict: str) -> dict[str, Any]:
    return {"compared_with": other, "p_value": _plain(p), "test": "Mann-Whitney U", "verdict": verdict}


def mann_whitney(a: Sequence[Record], b: Sequence[Record], errors: Callable[..., np.ndarray] = test_errors) -> float:
    """Two-sided p-value that two groups' errors come from one distribution; 1 where nothing can be told."""
    from scipy.stats import mannwhitneyu

    left, right = (np.minimum(errors(g), 1e300) for g in (a, b))
    if len(left) == 0 or len(right) == 0 or np.ptp(np.concatenate([left, right])) == 0:
        return 1.0
    return float(mannwhitneyu(left, right, alternative="two-sided").pvalue)


def fisher(solved_a: int, runs_a: int, solved_b: int, runs_b: int) -> float:
    """Two-sided p-value of Fisher's exact test on two counts of solved runs."""
    from scipy.stats import fisher_exact

    return float(fisher_exact([[solved_a, runs_a - solved_a], [solved_b, runs_b - solved_b]]).pvalue)


def _median(records: Sequence[Record], errors: Callable[..., np.ndarray] = test_errors) -> float:
    return float(np.median(errors(records))) if records else math.nan


def _say(value: float) -> str:
    return "not finite" if not math.isfinite(value) else f"{value:.3g}"


def compare(
    better: Sequence[Record],
    worse: Sequence[Record],
    names: tuple[str, str],
    claim: str = "<",
    *,
    errors: Callable[..., np.ndarray] = test_errors,
) -> tuple[str, str, float]:
    """Verdict, sentence and p-value for the claim that the first group's error is smaller ("<") or alike ("=")."""
    if not better or not worse:
        return "not measured", f"{names[0]} against {names[1]}: not measured yet.", math.nan
    p = mann_whitney(better, worse, errors)
    a, b = _median(better, errors), _median(worse, errors)
    relation = "equals" if a == b else "is below" if a < b else "is above"
    kind = "test MAE" if errors is test_errors else "training MAE at the end of the curve"
    sentence = (
        f"The median {kind} of {names[0]} ({_say(a)}) {relation} that of {names[1]} ({_say(b)}), "
        f"p = {p:.2g} (Mann-Whitney U, n = {len(better)} and {len(worse)})."
    )
    if claim == "=":
        alike = "agrees" if min(len(better), len(worse)) >= ENOUGH else "undecided"
        return (alike if p >= LEVEL else "differs"), sentence, p
    if p >= LEVEL:
        return "undecided", sentence + " The difference is not significant.", p
    return ("agrees" if a < b else "differs"), sentence, p


def overall(verdicts: Sequence[str]) -> str:
    """One word for several verdicts."""
    known = [v for v in verdicts if v != "not measured"]
    if not known:
        return "not measured"
    if len(set(known)) == 1:
        return known[0]
    return "partly" if "agrees" in known else "differs" if "differs" in known else "undecided"


# --- curves -------------------------------------------------------------------------------------------------------


def curve_on(record: Record, grid: np.ndarray) -> np.ndarray:
    """Training MAE of a run at given numbers of candidates: the last value known; nan before the first."""
    x = np.asarray(record["curve"]["candidates"], float)
    y = np.array([math.inf if v is None else v for v in record["curve"]["mae"]], float)
    if len(x) == 0:
        return np.full(len(grid), np.nan)
    place = np.searchsorted(x, grid, side="right") - 1
    return np.where(place >= 0, y[np.maximum(place, 0)], np.nan)


def draw_curves(ax: Any, groups: dict[str, tuple[Sequence[Record], str]]) -> None:
    """Mean over runs with a band of one standard deviation, both axes logarithmic."""
    for label, (records, colour) in groups.items():
        if not records:
            continue
        first = min(r["curve"]["candidates"][0] for r in records if r["curve"]["candidates"])
        last = max(r["curve"]["candidates"][-1] for r in records if r["curve"]["candidates"])
        grid = np.geomspace(max(first, 1), max(last, first + 1), 200)
        values = np.array([curve_on(r, grid) for r in records])
        values[~np.isfinite(values)] = np.nan
        enough = np.isfinite(values).any(axis=0)
        grid, values = grid[enough], values[:, enough]
        mean, std = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
        floor = 1e-17
        ax.plot(grid, np.maximum(mean, floor), color=colour, label=f"{label} (n = {len(records)})", lw=1.6)
        ax.fill_between(
            grid,
            np.maximum(mean - std, np.maximum(mean, floor) * 0.05),
            np.maximum(mean + std, floor),
            color=colour,
            alpha=0.18,
            lw=0,
        )
    ax.set_xlabel("expressions evaluated" + (" (EQL: training steps)" if LABELS["eql"] in groups else ""))
    ax.set_ylabel("training MAE, mean ± std")
    if ax.has_data():
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.legend(fontsize=7, frameon=False)


def _note(plan: BudgetPlan, figure: Any) -> None:
    if not plan.is_full:
        note = plan.note.split(":")[0] + ", not the paper's"
        figure.supxlabel(note, fontsize=6.5, color="#666666")


# --- the figures --------------------------------------------------------------------------------------------------


def _table1() -> Figure:
    def rows() -> list[dict[str, Any]]:
        return [
            {"problem": name, "expression": formula, "variables": width, "rows": 300, "low": low, "high": high}
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
    )


def _learning_curve(problem: str, letter: str) -> Figure:
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
                    compare(mine["gmeql"], found, ("GMEQL", LABELS[method]), claim, errors=errors)
                    for errors in (test_errors, final_errors)
                ]
                verdicts += [verdict for verdict, _, _ in both]
                words += dict.fromkeys(sentence for _, sentence, _ in both)
                rows[-1] |= _tested("gmeql", both[0][2], overall([verdict for verdict, _, _ in both]))
                rows[-1]["p_value_training"] = _plain(both[1][2])
        if mine["fitted"]:
            solved = sum(r["solved"] for r in mine["fitted"])
            words.append(
                f"The fitted method of this library: median test MAE {_say(_median(mine['fitted']))}, "
                f"{solved} of {len(mine['fitted'])} runs solved."
            )
        return Finding(rows, words, overall(verdicts))

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        draw_curves(ax, {LABELS[m]: (found, COLOURS[m]) for m, found in groups(plan, records).items()})
        ax.set_title(f"{problem}: {PAPER[problem][0].replace('**', '^').replace('*', ' ')}", fontsize=8)
        _note(plan, figure)

    return Figure(f"fig2{letter}", f"Figure 2{letter}: learning curves on {problem}", says, cells, measure, draw)


def _ablation(name: str, title: str, says: str, problem: str, setting: str, claim: str) -> Figure:
    def groups(plan: BudgetPlan, records: Records) -> tuple[list[Record], list[Record]]:
        return tuple(
            select(records, cells_for(plan, [problem], ["gmeql"], setting=s))  # type: ignore[return-value]
            for s in ("standard", setting)
        )

    def cells(plan: BudgetPlan) -> list[Cell]:
        return [c for s in ("standard", setting) for c in cells_for(plan, [problem], ["gmeql"], setting=s)]

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        whole, cut = groups(plan, records)
        names = "GMEQL as published", f"GMEQL {SETTING_LABELS[setting]}"
        rows = [
            {"problem": problem, "method": "gmeql", "setting": s, **summary(g)}
            for s, g in (("standard", whole), (setting, cut))
        ]
        if not whole or not cut:
            return Finding(rows, [compare(whole, cut, names)[1]], "not measured")
        verdict, sentence, p = compare(whole, cut, names, claim)
        on_curve, curve_sentence, curve_p = compare(whole, cut, names, claim, errors=final_errors)
        solved = [sum(bool(r["solved"]) for r in g) for g in (whole, cut)]
        solved_p = fisher(solved[0], len(whole), solved[1], len(cut))
        words = [
            _direction(names[1], whole, cut, p, curve_p),
            curve_sentence,
            sentence,
            f"Solved: {solved[0]} of {len(whole)} and {solved[1]} of {len(cut)}, p = {solved_p:.2g} "
            "(Fisher's exact test).",
        ]
        both = overall([verdict, on_curve])
        rows[1] |= {**_tested("standard", p, both), "p_value_training": _plain(curve_p), "p_value_solved": solved_p}
        return Finding(rows, words, both)

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        whole, cut = groups(plan, records)
        draw_curves(ax, {"GMEQL": (whole, COLOURS["gmeql"]), SETTING_LABELS[setting]: (cut, "#c0392b")})
        ax.set_title(f"{title.split(': ', 1)[1]} ({problem})", fontsize=9)
        _note(plan, figure)

    return Figure(name, title, says, cells, measure, draw)


def _direction(changed: str, whole: Sequence[Record], cut: Sequence[Record], p: float, curve_p: float) -> str:
    """The direction of an ablation in words: where leaving a part out helps, harms, or cannot be told to do either."""
    said = []
    for kind, errors, chance in (
        ("the training error of the best instance", final_errors, curve_p),
        ("the test error of the formula", test_errors, p),
    ):
        word = "smaller" if _median(cut, errors) < _median(whole, errors) else "larger"
        said.append(f"{kind} is {'not significantly different' if chance >= LEVEL else word} (p = {chance:.2g})")
    return f"{changed}: {said[0]}; {said[1]}."


def _bars(
    ax: Any, groups: dict[str, list[float]], labels: Sequence[str], colours: dict[str, str], names: dict[str, str]
) -> None:
    width = 0.8 / max(len(groups), 1)
    for number, (key, values) in enumerate(groups.items()):
        ax.bar(
            np.arange(len(labels)) + (number - (len(groups) - 1) / 2) * width,
            values,
            width * 0.92,
            color=colours[key],
            label=names[key],
        )
    ax.set_xticks(np.arange(len(labels)), labels)
    ax.legend(fontsize=7, frameon=False, ncols=3)


def _gp() -> Figure:
    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows: list[dict[str, Any]] = []
        words: list[str] = []
        verdicts: list[str] = []
        for problem in PROBLEMS:
            ours, gp = (select(records, cells_for(plan, [problem], [m])) for m in ("gmeql", "gp"))
            both = [compare(ours, gp, ("GMEQL", "GP"), errors=errors) for errors in (test_errors, final_errors)]
            verdicts += [verdict for verdict, _, _ in both]
            words += dict.fromkeys(f"{problem}: {sentence}" for _, sentence, _ in both)
            tested = _tested("gmeql", both[0][2], overall([verdict for verdict, _, _ in both]))
            rows.append(
                {"problem": problem, "method": "gp", **summary(gp), **tested, "p_value_training": _plain(both[1][2])}
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
                float(np.maximum(_median(select(records, cells_for(plan, [p], [method])), errors), 1e-17))
                for p in PROBLEMS
            ]
            for name, method, errors in (
                ("gmeql", "gmeql", test_errors),
                ("best", "gmeql", final_errors),
                ("gp", "gp", test_errors),
            )
        }
        _bars(ax, values, PROBLEMS, {**COLOURS, "best": "#8fc1d9"}, names)
        if np.isfinite(list(values.values())).any():
            ax.set_yscale("log")
            low, high = ax.get_ylim()
            ax.set_ylim(low, 3 * high)  # room for the legend
        ax.set_ylabel("median MAE")
        ax.set_title("GMEQL and genetic programming", fontsize=9)
        _note(plan, figure)

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


def _success() -> Figure:
    def counts(plan: BudgetPlan, records: Records, problem: str, method: str) -> tuple[int, int]:
        found = select(records, cells_for(plan, [problem], [method]))
        return sum(bool(r["solved"]) for r in found), len(found)

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows, words, verdicts = [], [], []
        for problem in PROBLEMS:
            own = counts(plan, records, problem, "gmeql")
            claimed = round(PAPER_SUCCESS[problem] / 5)  # of 20 runs
            p = fisher(*own, claimed, 20) if own[1] else math.nan
            if own[1]:
                share = 100 * own[0] / own[1]
                verdicts.append("differs" if p < LEVEL else "agrees" if own[1] >= ENOUGH else "undecided")
                others = ", ".join(_share(LABELS[m], *counts(plan, records, problem, m)) for m in METHODS[1:])
                words.append(
                    f"{problem}: the paper {PAPER_SUCCESS[problem]} %, here {own[0]} of {own[1]} "
                    f"({share:.0f} %), p = {p:.2g} (Fisher's exact test); {others}."
                )
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
                    row |= {"paper_share": PAPER_SUCCESS[problem] / 100, "p_value": _plain(p), "test": "Fisher's exact"}
                rows.append(row)
        return Finding(rows, words, overall(verdicts))

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        ax = figure.subplots()
        values = {"paper": [float(PAPER_SUCCESS[p]) for p in PROBLEMS]}
        for method in METHODS:
            pairs = [counts(plan, records, p, method) for p in PROBLEMS]
            if any(n for _, n in pairs):  # an empty place would read as "never solved"
                values[method] = [100 * s / n if n else 0.0 for s, n in pairs]
        _bars(ax, values, PROBLEMS, {"paper": "#b9d7e5", **COLOURS}, {"paper": "GMEQL, the paper", **LABELS})
        ax.set_ylabel("solved, % of runs")
        ax.set_ylim(0, 119)
        ax.set_title("Success rates", fontsize=9)
        _note(plan, figure)

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


def _time() -> Figure:
    def found(plan: BudgetPlan, records: Records, method: str) -> list[Record]:
        return select(records, cells_for(plan, PROBLEMS, [method]))

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows, words = [], []
        for method in METHODS:
            mine = found(plan, records, method)
            rows.append({"method": method, "paper": PAPER_SECONDS[method], **summary(mine)})
            if mine:
                devices = sorted({r["device"] for r in mine})
                seconds, batch = np.mean([r["seconds"] for r in mine]), int(np.median([r["batch"] for r in mine]))
                words.append(
                    f"{LABELS[method]}: {seconds:.3g} s a run on {', '.join(devices)} in batches of {batch} "
                    f"(the paper: {PAPER_SECONDS[method]})."
                )
        words.append(
            "A run's seconds are its batch's wall clock divided by the runs in the batch. The paper gave each "
            "run one core of a desktop processor."
        )
        order = {row["method"]: row["seconds_per_run"] for row in rows if row["runs"] and row["method"] != "fitted"}
        if len(order) < 4:
            return Finding(rows, words, "not measured")
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
            [LABELS[m] for m, _ in groups],
            [float(np.mean(s)) for _, s in groups],
            color=[COLOURS[m] for m, _ in groups],
        )
        if groups:
            ax.set_xscale("log")
        ax.set_xlabel("seconds a run, mean over b1 to b8")
        ax.set_title("Running time", fontsize=9)
        _note(plan, figure)

    return Figure(
        "time",
        "Appendix C: running time of one run",
        "GMEQL 3 to 4 hours, DSR about 2 hours, EQL and GP within 30 minutes, each on one CPU core.",
        lambda plan: cells_for(plan, PROBLEMS, METHODS),
        measure,
        draw,
        size=(6.0, 3.0),
    )


def _noise() -> Figure:
    def group(plan: BudgetPlan, records: Records, problem: str, method: str, noise: float) -> list[Record]:
        return select(records, cells_for(plan, [problem], [method], noise=noise))

    def cells(plan: BudgetPlan) -> list[Cell]:
        return [
            cell
            for problem in plan.noise_problems
            for noise in noise_levels(problem)
            for cell in cells_for(plan, [problem], plan.noise_methods, noise=noise)
        ]

    def measure(plan: BudgetPlan, records: Records) -> Finding:
        rows, words, verdicts = [], [], []
        for problem in plan.noise_problems:
            for method in plan.noise_methods:
                clean = group(plan, records, problem, method, 0.0)
                for noise in noise_levels(problem):
                    mine = group(plan, records, problem, method, noise)
                    row = {"problem": problem, "method": method, "noise": noise, **summary(mine)}
                    if noise and mine and clean:
                        p = mann_whitney(clean, mine)
                        row |= {"compared_with": "noise 0", "p_value": _plain(p), "test": "Mann-Whitney U"}
                        if (problem, method) == ("b2", "gmeql") and noise in (0.1, 0.5):
                            worse = p < LEVEL and _median(mine) > _median(clean)
                            as_said = p >= LEVEL if noise == 0.1 else worse
                            verdicts.append("undecided" if len(mine) < ENOUGH else "agrees" if as_said else "differs")
                            row["verdict"] = verdicts[-1]
                    if problem == "b2" and method == "gmeql":
                        row["paper_share"] = PAPER_NOISE_SUCCESS[noise] / 100
                    rows.append(row)
                words += _noise_words(
                    problem, method, {n: group(plan, records, problem, method, n) for n in noise_levels(problem)}
                )
        return Finding(rows, words, overall(verdicts))

    def draw(plan: BudgetPlan, records: Records, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for method in plan.noise_methods:
            groups = [group(plan, records, "b2", method, n) for n in NOISE_LEVELS]
            if not any(groups):
                continue
            left.plot(NOISE_LEVELS, [_median(g) for g in groups], "o-", color=COLOURS[method], label=LABELS[method])
            right.plot(
                NOISE_LEVELS,
                [100 * np.mean([r["solved"] for r in g]) if g else math.nan for g in groups],
                "o-",
                color=COLOURS[method],
                label=LABELS[method],
            )
        right.plot(
            list(PAPER_NOISE_SUCCESS),
            list(PAPER_NOISE_SUCCESS.values()),
            "s--",
            color="#b9d7e5",
            label="GMEQL, the paper",
        )
        if any(np.isfinite(line.get_ydata()).any() for line in left.lines):
            left.set_yscale("log")
        left.set_ylabel("median MAE on noise-free test points")
        right.set_ylabel("solved, % of runs")
        for ax in (left, right):
            ax.set_xlabel("standard deviation of the noise on y")
            if ax.lines:
                ax.legend(fontsize=7, frameon=False)
        figure.suptitle("Noise on b2", fontsize=9)
        _note(plan, figure)

    return Figure(
        "noise",
        "Appendix C: noise on b2, and on the other problems",
        "At noise 0.1 the accuracy is that of noise-free data; at 0.5 the difference is noticeable. The "
        "truth is found in 70, 65, 35 and 32 percent of the runs at 0, 0.1, 0.2 and 0.5.",
        cells,
        measure,
        draw,
        size=(9.0, 3.6),
    )


def _noise_words(problem: str, method: str, groups: dict[float, list[Record]]) -> list[str]:
    """One sentence on a method under the noise levels of a problem; none where only noise-free runs are there."""
    clean = groups[0.0]
    if not any(mine for noise, mine in groups.items() if noise):
        return []
    parts = []
    for noise, mine in groups.items():
        if not mine:
            parts.append(f"{noise:g}: not measured")
            continue
        solved = sum(bool(r["solved"]) for r in mine)
        chance = f", p = {mann_whitney(clean, mine):.2g}" if noise and clean else ""
        parts.append(f"{noise:g}: {_say(_median(mine))}{chance}, solved {solved} of {len(mine)}")
    text = f"{LABELS[method]} on {problem}, median test MAE at noise " + "; ".join(parts)
    if (problem, method) == ("b2", "gmeql"):
        text += f" (the paper solves {', '.join(f'{v} %' for v in PAPER_NOISE_SUCCESS.values())})"
    return [text + ". p: Mann-Whitney U against noise 0."]


FIGURES: tuple[Figure, ...] = (
    _table1(),
    *(_learning_curve(problem, letter) for problem, letter in zip(PROBLEMS, "abcdefgh", strict=True)),
    _ablation(
        "fig2i",
        "Figure 2i: effect of stage 1",
        "Without stage 1 training progresses fast at first, then converges to poor local optima.",
        "b4",
        "no_stage1",
        "<",
    ),
    _ablation(
        "fig2j",
        "Figure 2j: effect of the elite repository",
        "Without the elite repository performance is clearly inferior.",
        "b4",
        "no_elites",
        "<",
    ),
    _ablation(
        "fig2k",
        "Figure 2k: effect of offline training",
        "Offline training improves accuracy and sample efficiency.",
        "b7",
        "no_offline",
        "<",
    ),
    _gp(),
    _success(),
    _time(),
    _ablation(
        "offline",
        "Appendix C: the two offline rules",
        "The rule of appendix B trains as well; the differences are not statistically significant.",
        "b2",
        "squared_difference",
        "=",
    ),
    _noise(),
)


def chosen(only: Sequence[str] | None) -> list[Figure]:
    """The figures of those names; all without names. "fig2" stands for all of figure 2."""
    if not only:
        return list(FIGURES)
    known = {name for figure in FIGURES for name in (figure.name, *figure.also)} | {"fig2"}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ValueError(f"--only: unknown {unknown[0]!r}; one or more of fig2, {', '.join(f.name for f in FIGURES)}")
    return [
        figure
        for figure in FIGURES
        if {figure.name, *figure.also} & set(only) or ("fig2" in only and figure.name.startswith("fig2"))
    ]
