"""Groups and their own constants: labels, rows extended, formulas of one front in one table, plain data."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import tree_complexity
from gmeql.formula.parsing import parse_tree
from gmeql.formula.simplify import simplify
from gmeql.search.groups.table import Grouping, OwnConstants, front_table, own_columns, with_few_own


@pytest.fixture
def own() -> OwnConstants:
    return OwnConstants("star", ("a", "b"), np.array([[1.0, 10.0], [2.0, 20.0]]))


class TestGrouping:
    def test_labels_are_sorted_and_numbers_are_text(self) -> None:
        groups = Grouping.of([3.0, 1, 3, 1.0, 1, 3, 1, 1, 3, 2.5] * 2, "run")
        assert groups.labels == ("1", "2.5", "3")
        assert groups.codes[:3].tolist() == [2, 0, 2]

    def test_a_row_without_a_label_is_refused(self) -> None:
        with pytest.raises(ValueError, match="label in every row"):
            Grouping.of(["a", None, "a", "a"])

    def test_groups_of_single_rows_are_refused(self) -> None:
        with pytest.raises(ValueError, match="no group has 5 rows"):
            Grouping.of([str(i) for i in range(20)])

    def test_taking_rows_drops_groups_without_any(self) -> None:
        groups = Grouping.of(["a"] * 5 + ["b"] * 5 + ["c"] * 5).take(np.array([0, 12, 13]))
        assert groups.labels == ("a", "c")
        assert groups.codes.tolist() == [0, 1, 1]


class TestOwnConstants:
    def test_rows_are_extended_by_their_group(self, own) -> None:
        extended = own.extended(np.array([[5.0], [6.0]]), own.codes(["b", "a"]))
        assert extended.tolist() == [[5.0, 2.0, 20.0], [6.0, 1.0, 10.0]]

    def test_an_unknown_group_is_named_with_what_to_do(self, own) -> None:
        with pytest.raises(ValueError, match=r"unknown star 'c'.*refit_group"):
            own.codes(["a", "c"])

    def test_written_out_it_has_the_same_values(self, own) -> None:
        formula = Expression(parse_tree("x*k + 1", ["x", "k", "l"]), ("x", "k", "l"))
        X, codes = np.array([[5.0], [6.0], [7.0]]), np.array([0, 1, 1])
        written = own.written_out(formula, 1)
        np.testing.assert_allclose(written(own.indicators(X, codes)), formula(own.extended(X, codes)))
        assert len(written.constants) == 3

    def test_a_compact_formula_has_only_its_own(self, own) -> None:
        names = own.names(parse_tree("x*l", ["x", "k", "l"]), ["x"])
        formula = own.compact(Expression(parse_tree("x*l", ["x", "k", "l"]), names), 1)
        assert formula.names == ("x", "k1[star]")
        assert str(formula) == "x*k1[star]"

    def test_plain_data_come_back(self, own) -> None:
        again = OwnConstants.from_dict(own.to_dict())
        assert (again.column, again.labels) == (own.column, own.labels)
        np.testing.assert_array_equal(again.values, own.values)

    @pytest.mark.parametrize(
        "change",
        [
            {"labels": ["a", "a"]},
            {"values": [[1.0], [2.0, 3.0]]},
            {"values": [[1.0, float("nan")], [2.0, 3.0]]},
            {"column": 3},
            {"more": 1},
        ],
    )
    def test_damaged_data_are_refused(self, own, change) -> None:
        with pytest.raises(ValueError, match="groups"):
            OwnConstants.from_dict(own.to_dict() | change)

    def test_a_group_more_and_a_group_changed(self, own) -> None:
        more = own.with_group("c", np.array([3.0, 30.0]))
        assert more.labels == ("a", "b", "c") and more.values[2].tolist() == [3.0, 30.0]
        assert own.with_group("a", np.array([9.0, 9.0])).values[:, 0].tolist() == [9.0, 2.0]


def test_formulas_of_a_front_have_columns_of_their_own() -> None:
    groups = Grouping.of(["a"] * 5 + ["b"] * 5)
    one = (parse_tree("x*k", ["x", "k"]), np.array([[1.0], [2.0]]))
    two = (parse_tree("x*l + k", ["x", "k", "l"]), np.array([[3.0, 5.0], [4.0, 6.0]]))
    none = (parse_tree("2*x", ["x"]), None)
    roots, own = front_table([one, none, two], 1, groups)
    assert [own_columns(root, 1) for root in roots] == [(0,), (), (1, 2)]
    assert own.values.tolist() == [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
    X, codes = np.array([[10.0]]), np.array([1])
    assert Expression(roots[2], own.names(roots[2], ["x"]))(own.extended(X, codes)).tolist() == [64.0]


@pytest.mark.parametrize(
    ("text", "shorter", "factors"),
    [
        ("2*x**2 + 2*k", "2*x**2 + k", [2.0, 1.0]),
        ("3*k*x + 0.5*l", "k*x + l", [3.0, 0.5]),
        ("2*k + k**2", "2*k + k**2", [1.0, 1.0]),
        ("2*sin(k*x)", "2*sin(k*x)", [1.0, 1.0]),
        ("0*k + x", "0*k + x", [1.0, 1.0]),
    ],
)
def test_numbers_before_own_constants_are_taken_over_by_them(text: str, shorter: str, factors: list[float]) -> None:
    names, own = ["x", "k", "l"], np.array([[1.0, 10.0], [2.0, 20.0]])
    root, values = with_few_own(parse_tree(text, names), own, 1)
    assert root == parse_tree(shorter, names)
    assert values.tolist() == (own * factors).tolist()


@pytest.mark.parametrize(
    ("text", "used", "complexity"),
    [
        ("4.9*x*cos(k)", 1, 3),
        ("x + k + 3", 1, 3),
        ("x/(x + k*l)", 1, 5),
        ("x*exp(-k**2)/5 + l", 2, 5),
        ("k + l*x", 2, 5),
    ],
)
def test_what_is_made_of_own_constants_and_numbers_is_one_own_constant(text: str, used: int, complexity: int) -> None:
    """`4.9*exp(x*l)*cos(k)` was chosen where `k*exp(x*l)` is the same."""
    names, own = ["x", "k", "l"], np.array([[1.0, 10.0], [2.0, 20.0]])
    given = simplify(parse_tree(text, names))
    root, values = with_few_own(given, own, 1)
    assert len(own_columns(root, 1)) == used and tree_complexity(root) == complexity
    for before, after in zip(own, values, strict=True):
        there, here = (np.column_stack([[1.5, 2.5], np.tile(row, (2, 1))]) for row in (before, after))
        np.testing.assert_allclose(Expression(root, names)(here), Expression(given, names)(there), rtol=1e-12)
