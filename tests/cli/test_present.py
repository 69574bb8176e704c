"""What the terminal says: records for programs, tables and large formulas for people; names are text."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from gmeql.cli.present import (
    MAX_SHOWN,
    broken_lines,
    formula_record,
    front_list,
    front_table,
    large_formula,
    model_record,
    print_front,
    shown_front,
)
from gmeql.formula.bounds import Bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.events import Member
from gmeql.search.judging.outlook import Outlook


def power(k: int) -> Expression:
    """x ** (k + 1) as a product, so that complexity rises with k."""
    return Expression(Call("mul", (Variable(0),) * (k + 1)) if k else Constant(2.0), ("[bold]x",))


def front(count: int) -> Front:
    members = [Member(power(k), 1 / (k + 1), power(k).complexity) for k in range(count)]
    return Front.from_members(members, rows=50, target_spread=1.0, target_largest=1.0)


class Model:
    def __init__(self, *fronts: Front) -> None:
        self.front_ = list(fronts) if len(fronts) > 1 else fronts[0]
        self.selected_index_ = [1] * len(fronts)


def test_a_record_holds_the_formula_and_its_front() -> None:
    record = formula_record(front(3), 1)
    assert record["index"] == 1 and record["loss"] == 0.5 and len(record["front"]) == 3
    assert record["formula"] == record["front"][1]["formula"]
    assert model_record(Model(front(3)), [1]) == record
    assert model_record(Model(front(3), front(3)), [1, 1]) == {
        "targets": [{"name": "y1"} | record, {"name": "y2"} | record]
    }


def test_the_front_marks_the_choice_and_takes_names_as_text() -> None:
    stream = io.StringIO()
    print_front(front(3), 1, title="[red]y1", file=stream)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[red]y1" and "[bold]x" in stream.getvalue()
    (marked,) = (line for line in lines if "▶" in line)
    assert marked.split()[1:3] == ["1", str(power(1).complexity)]


def test_the_front_has_the_error_on_unseen_rows_beside_the_loss() -> None:
    outlook = Outlook(0.51234, 0.0287, False, 3.0, Bounds(0.0, 1.0, True))
    known = front(3)
    table = front_table(replace(known, members=(*known[:2], replace(known[2], outlook=outlook))), 1, 40)
    column = next(c for c in table.columns if c.header == "on unseen rows")
    assert [str(cell) for cell in column.cells] == ["–", "–", "0.512 ± 0.029"]
    assert "on unseen rows" not in [c.header for c in front_table(known, 1, 40).columns]  # nothing is known of them
    assert "unseen" not in str(front_list(known, 1, 40))


def test_a_long_front_keeps_its_ends_and_the_choice() -> None:
    long = front(40)
    table = front_table(long, 30, 40)
    shown = [str(cell) for cell in table.columns[1].cells]
    assert len(shown) == MAX_SHOWN + 3 and {"0", "30", "39"} <= set(shown)
    gaps = [str(cell) for cell in table.columns[-1].cells if "more" in str(cell)]
    assert gaps == [f"({30 - MAX_SHOWN + 1} more)", "(8 more)"]
    assert all(gap in str(front_list(long, 30, 40)) for gap in gaps)


def test_a_formula_is_drawn_large_where_it_fits() -> None:
    ratio = Expression(Call("div", (Variable(0), Variable(1))), ("a", "b"))
    assert "\n" in str(large_formula(ratio, "y", 80)) and "─" not in str(large_formula(ratio, "y", 3))
    long = Expression(Call("add", (Variable(0), Variable(1))), ("a rather long name", "b"))
    assert str(large_formula(long, "y", 24)) == "y = `a rather long name`\n+ b"  # names stay whole


@pytest.mark.parametrize("room", [12, 20, 31])
def test_lines_do_not_break_inside_a_name(room: int) -> None:
    lines = broken_lines("3.22*`[S] (mM)`/(`[S] (mM)` + 1.72) + `pH of a/b`*2", room)
    assert len(lines) > 1 and all(line.count("`") % 2 == 0 for line in lines)


LONG = "0.50169*exp(0.61827*(1 - 0.00035297*temperature_of_the_first_inlet*pressure_in_the_second_vessel + 2*flow**2))"


@pytest.mark.parametrize("room", [24, 33, 74])
def test_lines_of_a_formula_break_between_its_parts(room: int) -> None:
    lines = broken_lines(LONG, room)
    assert "".join(lines).replace(" ", "") == LONG.replace(" ", "")
    for line in lines:
        assert len(line) <= max(room, len("pressure_in_the_second_vessel + "))
    words = [word for line in lines for word in re.findall("[a-z_]{2,}", line)]
    assert words == re.findall("[a-z_]{2,}", LONG) and not any(line.startswith("*") for line in lines)


@pytest.mark.parametrize("width", [80, 200])
def test_a_front_of_long_formulas_stays_readable_in_a_narrow_terminal(width: int) -> None:
    names = ("temperature_of_the_first_inlet", "pressure_in_the_second_vessel", "flow")
    expression = Expression(parse_tree(LONG, names), names)
    member = FrontMember(expression, 25310.0, expression.complexity, 0.0, 0)
    members = Front.from_members([member], rows=10, target_spread=1.0, target_largest=9.0)
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(shown_front(members, 0, width))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width and "25310" in text and "▶" in text
    assert all(name in text for name in names)


@pytest.mark.parametrize("width", [60, 80, 84, 100])
def test_wide_figures_leave_names_whole_and_stand_below_each_other(width: int) -> None:
    """`x y` was broken in two where errors on unseen rows take more letters than their heading."""
    names = ("price (€)", "x y", "class")
    texts = ("2.06*`x y`", "`price (€)`*class/`x y` + 1.9995*`x y` + 0.0065")
    outlook = Outlook(0.0097344, 0.00078155, False, 3.0, Bounds(0.0, 1.0, True))
    trees = [Expression(parse_tree(text, names), names) for text in texts]
    members = [replace(FrontMember(e, 0.0086, e.complexity, 0.0, k), outlook=outlook) for k, e in enumerate(trees)]
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(shown_front(replace(front(2), members=tuple(members)), 1, width))
    lines = console.file.getvalue().splitlines()
    assert all(line.count("`") % 2 == 0 for line in lines)
    figures = [line.index("±") for line in lines if "±" in line]
    assert len(figures) == 2 and len(set(figures)) == 1
