"""Members of a front as tables."""

from __future__ import annotations

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.model.pareto.listing import html_table, members_frame
from gmeql.model.pareto.member import FrontMember


def member(text: str, index: int) -> FrontMember:
    expression = Expression(parse_tree(text, ("<b>", "x")), ("<b>", "x"))
    return FrontMember(expression, 0.5, expression.complexity, 0.0, index)


def test_names_are_text_and_the_chosen_row_is_marked() -> None:
    page = html_table([member("x", 0), member("2*`<b>`", 1)], selected=1)
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert page.index("font-weight:bold") > page.index("<td>0</td>")


def test_frames_have_a_row_for_each() -> None:
    frame = members_frame([member("x", 0), member("x + 1", 1)])
    assert list(frame["complexity"]) == [1, 3] and "x" in list(frame["formula"])
