"""Curves of each column: what the others are held at, above all kinds of a category."""

from __future__ import annotations

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable
from gmeql.report.responses import kinds_of_categories, middle_row, responses
from gmeql.tables.read import Training, read


def trees(counts: dict[str, int]) -> Training:
    words = [word for word, count in counts.items() for _ in range(count)]
    lines = [f"{word},{k / 7},{k % 5}" for k, word in enumerate(words)]
    return read("\n".join(["kind,height,y", *lines]).encode(), name="trees.csv").select("y")


def term(factor: float, column: int) -> Node:
    return Call("mul", (Constant(factor), Variable(column)))


def test_a_row_is_of_one_kind() -> None:
    data = trees({"birch": 7, "fir": 8, "oak": 20})
    assert data.names == ("kind=birch", "kind=fir", "kind=oak", "height")
    kinds = kinds_of_categories(data)
    assert kinds == {0: [0, 1, 2], 1: [0, 1, 2], 2: [0, 1, 2]}
    assert middle_row(data, kinds)[:3].tolist() == [0.0, 0.0, 1.0]
    expression = Expression(Call("add", (Call("add", (term(4.0, 1), term(9.0, 2))), term(2.0, 3))), data.names)
    no_errors = np.zeros(len(data.y))
    found = {one["name"]: one for one in responses(expression, data, data.X, no_errors, {1: 0, 2: 1, 3: 2}, 4)}
    assert list(found) == ["kind", "height"]  # as the table has them, each once
    height = 2.0 * float(np.median(data.X[:, 3]))
    assert found["kind"]["kinds"] == ["birch", "fir", "oak"]
    np.testing.assert_allclose(found["kind"]["y"], [height, height + 4, height + 9], rtol=1e-5)
    assert found["kind"]["own"] == [0] * 7 + [1] * 8 + [2] * 20
    np.testing.assert_allclose(found["kind"]["points"], np.take(found["kind"]["y"], found["kind"]["own"]), rtol=1e-5)
    np.testing.assert_allclose(found["height"]["y"][0], 9 + 2.0 * data.X[:, 3].min(), rtol=1e-5)


def test_kinds_that_are_too_rare_for_a_column_stand_together() -> None:
    data = trees({"birch": 7, "fir": 8, "elm": 1, "yew": 1})
    assert data.names == ("kind=birch", "kind=fir", "height")
    expression, errors = Expression(term(4.0, 1), data.names), np.linspace(-1, 1, 17)
    (one,) = responses(expression, data, data.X, errors, {1: 0}, 3)
    assert one["kinds"] == ["birch", "fir", "others"] and one["y"] == [0.0, 4.0, 0.0]
    np.testing.assert_allclose(one["points"], np.take([0.0, 4.0, 0.0], one["own"]) + errors, atol=1e-5)


def test_kinds_without_a_majority_still_make_a_row_that_can_be() -> None:
    data = trees({"birch": 7, "fir": 8, "oak": 9})
    assert middle_row(data, kinds_of_categories(data))[:3].tolist() == [0.0, 0.0, 1.0]  # its medians are all 0


def test_points_are_as_far_off_the_curve_as_the_formula_is_wrong() -> None:
    data = trees({"birch": 7, "fir": 8})
    expression, errors = Expression(term(3.0, 2), data.names), np.linspace(-1, 1, 15)
    (one,) = responses(expression, data, data.X, errors, {2: 0}, 3)
    np.testing.assert_allclose(one["points"], 3 * data.X[:, 2] + errors, atol=1e-5)
