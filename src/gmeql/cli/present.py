"""What the command line shows at the end: the formula large and clear, the front, how sure, where the report lies."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from gmeql.model.rows.weighing import counted_rows
from gmeql.model.targets import as_list, names_of
from gmeql.report.judgement import figures, judge, predictions
from gmeql.report.numbers import four_digits
from gmeql.report.unseen import unseen_text
from gmeql.runs.records import member_record

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gmeql.estimator import GMEQLRegressor
    from gmeql.model.pareto.front import Front
    from gmeql.model.pareto.member import FrontMember
    from gmeql.runs.execute import RunOutcome
    from gmeql.runs.folder import Run
    from gmeql.tables.training import Training

MAX_SHOWN = 15
SHOWN_GROUPS = 20
MAX_PRETTY_NODES = 60  # a larger formula is clearer on one line than drawn over many
MOST_LINES = 4  # a formula that takes more beside its figures goes below them


def print_json(record: Any) -> None:
    """One JSON object on stdout."""
    print(json.dumps(record, ensure_ascii=False, allow_nan=False))


def fit_record(run: Run, training: Training, outcome: RunOutcome) -> dict[str, Any]:
    """The outcome of a fit for programs."""
    model = outcome.model
    assert model is not None
    counted = counted_rows(model.front_, training.X, training.y, training.weights, loss=str(model.loss))
    predicted = predictions(model.front_[model.selected_index_], training.X, str(model.loss))
    found = figures(predicted, training.y, counted.weights)
    return {
        "target": training.target,
        **formula_record(model.front_, model.selected_index_),
        "r2": found.r2 if np.isfinite(found.r2) else None,
        "rmse": found.rmse if np.isfinite(found.rmse) else None,
        "judgement": judge(model.front_, model.selected_index_, training, loss=str(model.loss)),
        "rows": len(training.y),
        "columns": list(training.names),
        "notes": [note.message for note in training.notes],
        "state": outcome.state,
        "reason": outcome.reason,
        "seconds": model.seconds_,
        "candidates": model.candidates_,
        "run": str(run.folder),
        "model": str(run.model_path),
        "report": str(outcome.report) if outcome.report else None,
    }


def model_record(model: GMEQLRegressor, picks: Sequence[int]) -> dict[str, Any]:
    """A model's formula and front for programs; with several targets, a list of them under "targets"."""
    records = [formula_record(front, k) for front, k in zip(as_list(model.front_), picks, strict=True)]
    if len(records) == 1:
        return records[0]
    return {"targets": [{"name": name} | each for name, each in zip(names_of(model), records, strict=True)]}


def formula_record(front: Front, index: int) -> dict[str, Any]:
    """One formula of a front, and the front."""
    member = front[index]
    return {
        "formula": str(member.expression),
        "exact": member.expression.exact(),
        "latex": member.expression.latex(),
        "loss": member.loss,
        "complexity": member.complexity,
        "index": index,
        "front": [member_record(other) for other in front],
    }


# ------------------------------------------------------------------------------------------------- for people


def print_result(run: Run, training: Training, outcome: RunOutcome, *, file: TextIO) -> None:
    """The end of a fit: formula, front, judgement, where things are."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.text import Text

    model = outcome.model
    assert model is not None
    console = Console(file=file, highlight=False)
    console.print()
    console.print(
        Panel(large_formula(model.expression_, training.target, console.width - 8), expand=False, padding=(1, 3))
    )
    sentences = judge(model.front_, model.selected_index_, training, loss=str(model.loss))
    console.print(Padding(Text(" ".join(sentences)), (0, 1)))
    console.print()
    console.print(shown_front(model.front_, model.selected_index_, console.width))
    console.print()
    if hasattr(model, "group_constants_"):
        console.print(groups_table(model))
        console.print()
    reason = f"{outcome.reason}: " if outcome.reason else ""
    console.print(Text(f"{reason}{model.candidates_:,} candidates in {model.seconds_:.1f} s", style="dim"))
    console.print(Text(f"model   {run.model_path}"), soft_wrap=True)
    if outcome.report is not None:
        console.print(Text(f"report  {outcome.report}"), soft_wrap=True)


def groups_table(model: GMEQLRegressor) -> RenderableType:
    """The own constants of the chosen formula, a row for each group; the first of many."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    own = model.group_constants_
    constants = own.of_formula(model.expression_.root, model.n_features_in_)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (own.column, *constants):
        table.add_column(Text(name), justify="left" if name == own.column else "right")
    for g, label in enumerate(own.labels[:SHOWN_GROUPS]):
        table.add_row(Text(label), *(f"{values[g]:.5g}" for values in constants.values()))
    if len(own.labels) > SHOWN_GROUPS:
        table.add_row(Text(f"and {len(own.labels) - SHOWN_GROUPS} more in groups.csv"))
    return table


def print_front(front: Front, selected: int, *, title: str = "", file: TextIO) -> None:
    """The front as a table, the chosen formula marked; `title` stands above it."""
    from rich.console import Console

    console = Console(file=file, highlight=False, width=None if file.isatty() else 200)
    if title:
        console.print(title, markup=False)
    console.print(shown_front(front, selected, console.width))


def shown_front(front: Front, selected: int, width: int) -> RenderableType:
    """The front as a table where its formulas have room, else each formula below its figures."""
    widths = _widths(front, selected)
    room = width - sum(widths) - 3 * len(widths) - 6  # lines of the table, and the mark of the choice
    cramped = any(
        len(lines := broken_lines(str(m), room)) > MOST_LINES or max(map(len, lines)) > room
        for m in _shown_members(front, selected)
    )
    return front_list(front, selected, width) if cramped else front_table(front, selected, room)


def broken_lines(text: str, room: int) -> list[str]:
    """A formula in lines of at most `room` letters, broken where a term, a factor or a bracket begins, never in a name.

    >>> broken_lines("2.5*speed**2*(grip + 1)", 14)
    ['2.5*speed**2*', '(grip + 1)']
    """
    lines = [""]
    between_names = r"(?=(?:[^`]*`[^`]*`)*[^`]*$)"  # an even number of backticks follows
    for piece in re.split(rf"(?:(?<=[ /])|(?<=[a-z]\()|(?<=[^*]\*)(?=[^*])){between_names}", text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > room:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _shown_members(front: Front, selected: int) -> list[FrontMember]:
    """All members of a short front; of a long one the simplest, the chosen one and the last."""
    members = list(front)
    shown = members if len(members) <= MAX_SHOWN else [*members[: MAX_SHOWN - 1], members[-1]]
    if selected < len(members) and members[selected] not in shown:
        shown.insert(-1, members[selected])
    return shown


def _headings(front: Front) -> list[str]:
    """Names of the figures; where a search was stopped early, nothing may be known of unseen rows."""
    judged = any(member.outlook is not None for member in front)
    return ["index", "complexity", "loss", *(["on unseen rows"] if judged else [])]


def _figures(member: FrontMember, headings: Sequence[str]) -> list[str]:
    """The figures of a member, as many as there are headings."""
    figures = [str(member.index), str(member.complexity), four_digits(member.loss), unseen_text(member.outlook)]
    return figures[: len(headings)]


def _widths(front: Front, selected: int) -> list[int]:
    """Letters that each figure takes, its heading included."""
    headings = _headings(front)
    lines = [headings, *(_figures(member, headings) for member in _shown_members(front, selected))]
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _left_out(members: Sequence[FrontMember]) -> dict[int, str]:
    """By the place before which they are missing, how many of a long front are not shown."""
    pairs = enumerate(pairwise(members), start=1)
    gaps = {place: after.index - before.index - 1 for place, (before, after) in pairs}
    return {place: f"({count} more)" for place, count in gaps.items() if count}


def front_list(front: Front, selected: int, width: int) -> RenderableType:
    """The front in lines: the figures of a member, and below them its formula."""
    from rich.text import Text

    headings, widths = _headings(front), _widths(front, selected)
    members = _shown_members(front, selected)
    gaps = _left_out(members)

    def line(mark: str, cells: Sequence[str]) -> str:
        return f"{mark} " + "   ".join(cell.rjust(size) for cell, size in zip(cells, widths, strict=True)) + "\n"

    text = Text(line(" ", headings), style="bold")
    text.append("─" * min(width, 80) + "\n", style="")
    for place, member in enumerate(members):
        chosen = member.index == selected
        if place in gaps:
            text.append(f"      {gaps[place]}\n", style="not bold")
        below = "".join(f"      {part}\n" for part in broken_lines(str(member), width - 6))
        figures = line("▶" if chosen else " ", _figures(member, headings))
        text.append(figures + below, style="bold green" if chosen else "not bold")
    text.right_crop(1)
    return text


def front_table(front: Front, selected: int, room: int) -> RenderableType:
    """The front as a rich table, formulas in lines of `room` letters; names are shown as text, whatever they hold."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    headings = _headings(front)
    members = _shown_members(front, selected)
    gaps = _left_out(members)
    for name in ("", *headings, "formula"):
        is_formula = name == "formula"
        justify = "left" if is_formula or not name else "right"
        overflow = "fold" if is_formula else "ellipsis"
        table.add_column(name, justify=justify, overflow=overflow, no_wrap=not is_formula)  # type: ignore[arg-type]
    for place, member in enumerate(members):
        chosen = member.index == selected
        if place in gaps:
            table.add_row(*[""] * (1 + len(headings)), gaps[place])
        cells = ["▶" if chosen else " ", *_figures(member, headings), "\n".join(broken_lines(str(member), room))]
        table.add_row(*(Text(cell, style="bold green" if chosen else "") for cell in cells))
    return table


def large_formula(expression: Any, target: str, width: int) -> RenderableType:
    """The formula drawn over several lines, as on paper, where that fits; else on one line."""
    from rich.text import Text

    from gmeql.formula.printing.notation import display_names
    from gmeql.formula.printing.sympy import to_drawing

    name = display_names([target])[0]
    flat = Text("\n".join(broken_lines(f"{name} = {expression}", width)), style="bold")
    if expression.size > MAX_PRETTY_NODES:
        return flat
    drawn = to_drawing(expression, name)
    if max(map(len, drawn.split("\n"))) > width:
        return flat
    return Text(drawn, style="bold", no_wrap=True)
