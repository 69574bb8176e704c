"""The report's table of own constants: values with honest digits, units, intervals that hold the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.knowledge import read_knowledge
from gmeql.knowledge.of_groups import GroupsKnowledge
from gmeql.model.pareto.front import Front
from gmeql.report.content import assemble
from gmeql.report.groups import MAX_GROUPS, group_view
from gmeql.search.events import Member
from gmeql.search.groups.table import OwnConstants
from gmeql.tables.read import Training


def rows(n_groups: int = 3) -> tuple[Training, OwnConstants]:
    rng = np.random.default_rng(0)
    labels = [f"g{i}" for i in range(n_groups)]
    own = OwnConstants("batch", tuple(labels), (np.arange(n_groups) + 1.25)[:, None])
    groups = rng.choice(labels, 40 * n_groups)
    x = rng.uniform(0, 2, len(groups))
    X = own.extended(x[:, None], own.codes(groups))
    y = 2.5 * x + X[:, 1] + 0.1 * rng.standard_normal(len(x))
    given = {"names": ("x", "k1[batch]"), "target": "y", "weights": None, "rows": np.arange(len(y))}
    training = Training(X=X, y=y, notes=(), source="", groups=tuple(groups), group_column="batch", **given)
    return training, own


LAW = Expression(parse_tree("2.5*x + k", ["x", "k"]), ("x", "k1[batch]"))


def test_a_row_for_each_group_with_intervals() -> None:
    training, own = rows()
    view = group_view(LAW, training, own)
    assert view is not None and view["column"] == "batch" and view["names"] == ["k1[batch]"]
    for number, (label, cell) in enumerate(view["rows"]):
        value, half = map(float, cell.split(" ± "))
        assert label == f"g{number}" and abs(value - number - 1.25) < 0.01 and 0.02 < half < 0.1
    assert view["with_intervals"] and view["more"] == ""


def test_units_stand_in_the_heading() -> None:
    training, own = rows()
    (known,) = read_knowledge(["x"], units={"x": "s"}, target_units="m", constant_units=["m", "s"])
    assert known is not None
    view = group_view(LAW, training, own, knowledge=GroupsKnowledge.of(known, 1, own.values))
    assert view is not None and view["names"] == ["k1[batch] [m]"]


def test_many_groups_are_cut_and_have_no_intervals() -> None:
    training, own = rows(300)
    view = group_view(LAW, training, own)
    assert view is not None and len(view["rows"]) == MAX_GROUPS
    assert not view["with_intervals"] and view["more"].startswith("200 more")


def test_nothing_where_there_is_nothing() -> None:
    training, own = rows()
    shared = Expression(parse_tree("2.5*x", ["x", "k"]), ("x", "k1[batch]"))
    assert group_view(shared, training, own) is None
    assert group_view(LAW, training, None) is None
    assert group_view(LAW, replace(training, groups=None), own) is None


def test_the_page_names_the_users_columns_and_draws_the_own_constants_of_each_formula() -> None:
    training, own = rows()
    own = replace(own, values=np.hstack([own.values, 2 * own.values]))  # another formula's, behind those of the law
    assert training.groups is not None
    names = ("x", "k1[batch]", "own constant 2 of another formula")
    training = replace(training, X=own.extended(training.X[:, :1], own.codes(list(training.groups))), names=names)
    other = Expression(parse_tree("k", ["x", "a", "k"]), ("x", "own constant 1 of another formula", "k1[batch]"))
    law = Expression(LAW.root, names)
    members = [Member(other, 1.0, other.complexity), Member(law, 0.1, law.complexity)]
    front = Front.from_members(members, rows=len(training.y), target_spread=1.0, target_largest=5.0)
    page = assemble(front, 1, training, [], {}, {}, "", "", None, own)
    assert page.view["title"] == "y from x, by batch" and page.view["columns"] == "x"
    assert page.view["ranges"].startswith("x: ") and "batch" not in page.view["ranges"]
    assert "another formula" not in page.view["network"] and "k1[batch]" in page.view["network"]
    assert [response["name"] for response in page.payload["members"][1]["responses"]] == ["x"]
