"""Constants in the report: intervals, digits that say no more than the data do, marks that stand where they belong."""

from __future__ import annotations

import re
from dataclasses import replace

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.report.constants import circled, constant_rows
from gmeql.report.content import equation
from report_pages import front_for, training


def test_constants_come_with_intervals():
    rows, _ = constant_rows(front_for(training())[-1].expression, training())
    assert [float(row["value"]) for row in rows] == [2.0, 3.0]
    assert all(float(row["low"]) < float(row["value"]) < float(row["high"]) for row in rows)
    rows, reason = constant_rows(Expression(Variable(0), ("t",)), training())
    assert rows == [] and "no fitted constant" in reason


def test_value_and_bounds_have_the_same_decimals():
    for row in constant_rows(front_for(training())[-1].expression, training())[0]:
        assert len({len(row[name].partition(".")[2]) for name in ("value", "low", "high")}) == 1


def test_what_the_data_do_not_determine_is_said():
    data = training()
    twice = Expression(Call("add", (Constant(1.5), Call("add", (Constant(0.5), Variable(0))))), data.names)
    rows, _ = constant_rows(twice, replace(data, y=2.0 + data.X[:, 0]))
    assert [row["low"] for row in rows] == ["not determined"] * 2 and rows[0]["value"] == "1.5"


def test_each_mark_stands_under_its_own_constant():
    data = training()
    x = Variable(0)
    inner = Call("sin", (Call("mul", (Constant(-4.5), x)),))
    tree = Call("add", (Call("mul", (inner, Constant(3.25e-9))), Call("pow", (x, Constant(2.0))), Constant(-7.75)))
    expression = Expression(tree, data.names)
    rows, _ = constant_rows(expression, data)
    assert len(rows) == 3
    page = equation("y", expression, rows)
    for row, shown in zip(rows, ("4.5", "3.25", "7.75"), strict=True):
        part = re.search(rf'<munder data-constant="{row["place"]}">(.*?)</munder>', page)
        assert part is not None and f"<mn>{shown}</mn>" in part[1] and f"<mtext>{row['mark']}</mtext>" in part[1]
    assert page.count("<munder") == 3 and "munder" not in equation("y", expression)


def test_marks_are_told_apart():
    assert len({circled(number) for number in range(1, 80)}) == 79
