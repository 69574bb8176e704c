"""Figures: what they show is what the front, the rows and the formula hold, and every text is escaped."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.pareto.front import Front
from gmeql.model.plots import (
    LABEL_WIDTH,
    MOST_TICKS,
    expression_figure,
    front_figure,
    history_figure,
    log_ticks,
    parity_figure,
    residuals_figure,
)
from gmeql.search.events import Member

HOSTILE = "<img src=x onerror=alert(1)>"


def front(losses: list[float]) -> Front:
    formulas = [Expression(Constant(1.0), (HOSTILE,)), Expression(Call("sin", (Variable(0),)), (HOSTILE,))]
    members = [Member(e, loss, e.complexity) for e, loss in zip(formulas, losses, strict=True)]
    return Front.from_members(members, rows=10, target_spread=1.0, target_largest=1.0)


def test_the_front_is_drawn_by_complexity_with_the_choice_marked() -> None:
    figure = front_figure(front([0.5, 0.25]), 1)
    line, mark = figure.data
    assert list(line.y) == [0.5, 0.25] and list(mark.x) == [line.x[1]] and list(mark.y) == [0.25]
    assert "<img" not in "".join(line.hovertext) and "&lt;img" in line.hovertext[1]
    assert len(front_figure(front([0.5, 0.25])).data) == 1


@pytest.mark.parametrize("rounding", [0.0, 1e-15, 1e-12])
def test_losses_at_rounding_level_stand_on_one_line_named_exact(rounding) -> None:
    figure = front_figure(front([0.5, rounding]))
    top, floor = figure.data[0].y
    assert top == 0.5 and 0.05 < floor < 0.5
    labels = dict(zip(figure.layout.yaxis.ticktext, figure.layout.yaxis.tickvals, strict=True))
    assert labels.pop("exact") == floor == figure.layout.shapes[0].y0
    assert labels and all(float(text) == value for text, value in labels.items())
    assert "exact" not in front_figure(front([0.5, 1e-6])).layout.yaxis.ticktext


@pytest.mark.parametrize(
    ("low", "high"), [(0.9, 1.4), (0.3, 8.0), (99.0, 101.0), (2e-9, 3e4), (1e-200, 1e-100), (7, 7.1)]
)
def test_a_logarithmic_axis_has_true_labels_at_round_values(low, high) -> None:
    ticks = log_ticks(low, high)
    assert 2 <= len(ticks) <= MOST_TICKS and low <= min(ticks) and max(ticks) <= high * (1 + 1e-9)
    assert all(float(f"{tick:.12g}") == tick for tick in ticks) and sorted(set(ticks)) == ticks


def test_rows_without_a_value_are_left_out() -> None:
    observed, predicted = np.array([1.0, 2.0, 3.0]), np.array([1.5, np.nan, 3.0])
    line, rows = parity_figure(observed, predicted).data
    assert list(rows.x) == [1.0, 3.0] and list(rows.y) == [1.5, 3.0] and list(line.x) == [1.0, 3.0]
    assert list(residuals_figure(observed, predicted).data[0].y) == [-0.5, 0.0]
    assert len(parity_figure(observed, np.full(3, np.nan)).data) == 1


def test_the_history_is_drawn_against_time() -> None:
    history = {
        "elapsed": np.array([0.1, 0.2, 0.3]),
        "candidates": np.array([1, 2, 3]),
        "loss": np.array([np.inf, 2.0, 0.0]),
    }
    drawn = history_figure(history).data[0]
    assert list(drawn.x) == [0.2, 0.3] and list(drawn.y) == pytest.approx([2.0, 2.0 / 3.0])
    assert list(drawn.hovertext) == ["2 candidates", "3 candidates"]


def test_a_formula_is_a_tree_whose_operators_stand_above_their_arguments() -> None:
    root = Call("add", (Call("sin", (Variable(0),)), Constant(2.5)))
    edges, nodes = expression_figure(Expression(root, (HOSTILE,))).data
    assert len(nodes.text) == 4 and "2.5" in nodes.text and "<img" not in "".join(nodes.text)
    height = dict(zip(nodes.text, nodes.y, strict=True))
    assert height["+"] > height["sin"] > height["2.5"] == 0.0
    assert sum(x is None for x in edges.x) == 3


def test_long_formulas_are_cut_in_labels() -> None:
    long = Expression(Variable(0), ("x" * 500,))
    assert len(expression_figure(long).layout.title.text) == LABEL_WIDTH
