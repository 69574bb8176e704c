"""Plain data: a round trip, and what is damaged is refused."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import (
    MAX_DEPTH,
    MAX_NODES,
    Variable,
)
from random_trees import call, expressions, rows

x1, x2, x3 = (Variable(i) for i in range(3))


@given(expressions())
def test_plain_data_round_trip(expression: Expression) -> None:
    again = Expression.from_dict(json.loads(json.dumps(expression.to_dict(), allow_nan=False)))
    assert again == expression
    assert str(again) == str(expression) and again.exact() == expression.exact()
    np.testing.assert_array_equal(again(rows()), expression(rows()))


def test_plain_data_is_flat() -> None:
    data = Expression(call("sqrt", call("add", x1, 1.5), protected=True), ("a",)).to_dict()
    assert data == {
        "names": ["a"],
        "nodes": [
            {"variable": 0},
            {"constant": 1.5},
            {"call": "add", "args": [0, 1]},
            {"call": "sqrt", "args": [2], "protected": True},
        ],
    }


GOOD = {"names": ["a"], "nodes": [{"variable": 0}, {"constant": 1.5}, {"call": "add", "args": [0, 1]}]}


def damaged(*path: object, to: object) -> dict[str, object]:
    data = copy.deepcopy(GOOD)
    target: object = data
    for step in path[:-1]:
        target = target[step]  # type: ignore[index]
    target[path[-1]] = to  # type: ignore[index]
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "mapping"),
        ([], "mapping"),
        ({"names": []}, "mapping with 'names' and 'nodes'"),
        (damaged("extra", to=1), "mapping with 'names' and 'nodes'"),
        (damaged("names", to="a"), "'names' must be a list"),
        (damaged("names", to=[]), "x"),
        (damaged("names", to=[1]), "must be texts"),
        (damaged("nodes", to=[]), "'nodes' must be a list of 1"),
        (damaged("nodes", to={}), "'nodes' must be a list"),
        (damaged("nodes", to=[{"constant": 1.0}] * (MAX_NODES + 1)), "'nodes' must be a list"),
        (damaged("nodes", 0, to=None), "node 0: must be a mapping"),
        (damaged("nodes", 0, to={}), "node 0: must hold"),
        (damaged("nodes", 0, to={"variable": 5}), "uses column 5"),
        (damaged("nodes", 0, to={"variable": -1}), "node 0: .*index"),
        (damaged("nodes", 0, to={"variable": 0, "constant": 1}), "node 0: must hold"),
        (damaged("nodes", 1, to={"constant": math.nan}), "node 1: .*finite"),
        (damaged("nodes", 1, to={"constant": "1.5"}), "node 1: .*finite"),
        (damaged("nodes", 1, to={"constant": [1.5]}), "node 1: .*finite"),
        (damaged("nodes", 1, to={"constant": 10**400}), "node 1: .*finite"),
        (damaged("nodes", 2, "call", to="os.system"), "node 2: unknown operator"),
        (damaged("nodes", 2, "call", to="a" * 10**6), "node 2: 'call' must name"),
        (damaged("nodes", 2, "call", to=["add"]), "node 2: 'call' must name"),
        (damaged("nodes", 2, "call", to="sum"), "node 2: .*network node"),
        (damaged("nodes", 2, "call", to="sin"), "node 2: .*takes 1"),
        (damaged("nodes", 2, "args", to=[0, 2]), "node 2: .*earlier nodes"),
        (damaged("nodes", 2, "args", to=[0, -1]), "node 2: .*earlier nodes"),
        (damaged("nodes", 2, "args", to=[0, True]), "node 2: .*earlier nodes"),
        (damaged("nodes", 2, "args", to=[0, 1.0]), "node 2: .*earlier nodes"),
        (damaged("nodes", 2, "args", to=[0, 0]), "node 2: node 0 is an argument of two"),
        (damaged("nodes", 2, "args", to="01"), "node 2: 'args' must be a list"),
        (damaged("nodes", 2, "protected", to=1), "node 2: 'protected'"),
        (damaged("nodes", 2, to={"call": "sin", "args": [0]}), "node 1 is not an argument"),
    ],
)
def test_damaged_data_is_refused(data: object, message: str) -> None:
    if message == "x":  # no names given means the default ones
        assert Expression.from_dict(data).names == ("x1",)
        return
    with pytest.raises(ValueError, match=message) as caught:
        Expression.from_dict(data)
    assert len(str(caught.value)) < 500


def test_deep_data_is_refused() -> None:
    nodes: list[dict[str, object]] = [{"variable": 0}]
    nodes += [{"call": "sin", "args": [i]} for i in range(MAX_DEPTH)]
    with pytest.raises(ValueError, match=f"at most {MAX_DEPTH} levels"):
        Expression.from_dict({"names": ["a"], "nodes": nodes})


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("add")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["names", "nodes", "call", "args", "constant", "variable"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(expressions(), st.data())
def test_mutated_data_loads_or_is_refused_cleanly(expression: Expression, data: st.DataObject) -> None:
    plain = expression.to_dict()
    number = data.draw(st.integers(0, len(plain["nodes"]) - 1))
    entry = plain["nodes"][number]
    key = data.draw(st.sampled_from([*entry, "protected", "extra"]))
    entry[key] = data.draw(json_values)
    try:
        loaded = Expression.from_dict(plain)
    except ValueError:
        return
    assert Expression.from_dict(loaded.to_dict()) == loaded
