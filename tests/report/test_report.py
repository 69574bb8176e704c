"""The report page: complete, escaped, and the same figures that the model has."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gmeql import report
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.report import content
from report_pages import HOSTILE, front_for, page_for, parsed, training


def test_the_page_loads_nothing():
    tags = parsed(page_for(training()))
    for tag, attributes in tags.found:
        assert tag not in ("iframe", "object", "embed", "form") and not (tag == "script" and "src" in attributes)
        for name in ("src", "href", "data", "action"):
            value = attributes.get(name)
            assert value is None or value == "data:,", (tag, value)
        assert not any(name.startswith("on") for name in attributes)
    assert "http://" not in page_for(training()).replace("http://www.w3.org/", "") and "@import" not in page_for(
        training()
    )


def test_names_cannot_leave_their_place():
    page = page_for(training(HOSTILE))
    tags = parsed(page)
    assert not [tag for tag, _ in tags.found if tag == "img"]
    assert len(tags.scripts) == 2 and "alert(1)" not in tags.scripts[1] and "49" not in tags.scripts[0][:200]
    payload = json.loads(tags.scripts[0])
    assert payload["target"] == f"y {HOSTILE}"
    assert payload["members"][-1]["responses"][0]["name"] == HOSTILE
    assert "{{7*7}}" in page


def test_the_policy_allows_the_own_script_only():
    page = page_for(training())
    tags = parsed(page)
    policy = next(
        a["content"] for tag, a in tags.found if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert (
        report.script_hash(tags.scripts[1]) in policy
        and "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    )
    assert policy.startswith("default-src 'none'")


def test_every_formula_has_its_panels():
    data = training()
    page = page_for(data)
    front = front_for(data)
    payload = json.loads(parsed(page).scripts[0])
    assert len(payload["members"]) == len(front) and payload["selected"] == len(front) - 1
    for member, record in zip(front, payload["members"], strict=True):
        np.testing.assert_allclose(record["predicted"], member.expression(data.X), rtol=1e-5, atol=1e-9)
        assert set(record["exports"]) == set(content.EXPORTS)
    assert page.count("<math") >= len(front) and page.count('class="drawing" data-member=') == len(front)
    curve = payload["members"][-1]["responses"][0]
    expected = front[-1].expression(np.array(curve["x"])[:, None])
    np.testing.assert_allclose(curve["y"], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(curve["points"], data.y, rtol=1e-4, atol=1e-4)  # one column: the data themselves
    for words in ("1 of 41 rows left out", "is text, not numbers", data.fingerprint, "95 % confidence"):
        assert words in page


def test_many_rows_are_sampled_and_said_so():
    page = page_for(training(rows=5000))
    assert f"{content.MAX_POINTS:,} of 5,000 rows are drawn" in page
    assert len(json.loads(parsed(page).scripts[0])["y"]) == content.MAX_POINTS


def test_undefined_values_become_null():
    data = training()
    expression = Expression(Call("log", (Call("add", (Variable(0), Constant(-3.0))),)), data.names)
    good = Expression(Constant(2.0), data.names)
    members = [FrontMember(good, 5.0, 1, 0, 0), FrontMember(expression, 1.0, 5, 0, 0)]
    front = Front.from_members(members, rows=40, target_spread=1.0, target_largest=5.0)
    page = report.build(front=front, selected=1, training=data)
    payload = json.loads(parsed(page).scripts[0])
    assert (
        None in payload["members"][1]["predicted"]
        and "not defined on some" in page
        and "NaN" not in parsed(page).scripts[0]
    )


def test_a_formula_without_a_share_of_the_evidence_is_not_nearly_as_good():
    shares = {"x": 0.9, "2*x": 0.0994, "3*x": 0.0005, "4*x": 0.0001}
    others = [{"weight": share, "loss": 1.0, "complexity": 3, "formula": text} for text, share in shares.items()]
    page = page_for(training(), others=others)
    assert ">below 1 %<" in page and ">90 %<" in page and "nearly as good" in page and ">0 %" not in page
    assert "nearly as good" not in page_for(training(), others=[others[0], others[-1]])  # the chosen one alone


def test_several_targets_are_refused_with_what_to_do():
    front = front_for(training())
    with pytest.raises(ValueError, match=r"2 targets.*front=model.front_\[0\]"):
        report.build(front=[front, front], selected=[0, 0], training=training())
