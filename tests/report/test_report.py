"""The report page: complete, escaped, and the same figures that the model has."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from gmeql import report
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.front import Front, FrontMember
from gmeql.report import content, network
from gmeql.report.judgement import figures, has_pattern, judge, percent
from gmeql.tables import read as tables

HOSTILE = '</script><img src=x onerror="alert(1)">&\'"{{7*7}}`'


def training(name: str = "time", rows: int = 40) -> tables.Training:
    t = np.linspace(0.5, 6, rows)
    y = 2 + 3 * np.sin(t) + 0.05 * np.cos(37 * t)
    quoted = name.replace('"', '""')
    lines = [f'"{quoted}",who,"y {quoted}"'] + [f"{a!r},x,{b!r}" for a, b in zip(t.tolist(), y.tolist(), strict=True)]
    return tables.read("\n".join([*lines, ",x,1"]).encode(), name="data <b>.csv").select(f"y {name}")


def front_for(data: tables.Training) -> Front:
    x = Variable(0)
    trees = [
        Constant(float(data.y.mean())),
        Call("add", (Constant(2.0), Call("mul", (Constant(-0.4), x)))),
        Call("add", (Constant(2.0), Call("mul", (Constant(3.0), Call("sin", (x,)))))),
    ]
    members = []
    for tree in trees:
        expression = Expression(tree, data.names)
        loss = float(np.sqrt(np.mean((expression(data.X) - data.y) ** 2)))
        members.append(FrontMember(expression, loss, expression.complexity, 0.0, 0))
    return Front.from_members(members, rows=len(data.y), target_spread=data.y.std(), target_largest=abs(data.y).max())


def page_for(data: tables.Training, **options) -> str:
    front = front_for(data)
    settings = {
        "history": [{"elapsed": 0.5, "candidates": 10, "best": {"loss": 1.0}, "reason": HOSTILE}],
        "settings": {"method": "fitted", "seed": 0, "target": HOSTILE},
        "versions": {"gmeql": "1"},
        "created": "2026-01-01T00:00:00+00:00",
        "command": f"gmeql fit {HOSTILE}",
    } | options
    return report.build(front=front, selected=len(front) - 1, training=data, **settings)


class Tags(HTMLParser):
    """Start tags with their attributes, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._script = False

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self._script = tag == "script"
        if self._script:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._script = self._script and tag != "script"

    def handle_data(self, data):
        if self._script:
            self.scripts[-1] += data


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


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


def test_constants_come_with_intervals():
    rows, _ = content.constant_rows(front_for(training())[-1].expression, training())
    assert [row["value"] for row in rows] == ["2", "3"]
    assert all(float(row["low"]) < float(row["value"]) < float(row["high"]) for row in rows)
    rows, reason = content.constant_rows(Expression(Variable(0), ("t",)), training())
    assert rows == [] and "no fitted constant" in reason


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


def test_the_network_holds_every_formula_and_its_wiring():
    data = training(HOSTILE)
    front = front_for(data)
    net = network.Net()
    for number, member in enumerate(front):
        network.add(net, number, member.expression)
    best = len(front) - 1
    used = {(a, b): labels[best] for (a, b), labels in net.wires.items() if best in labels}
    column, sine, times, plus = (0, "column 0", 0), (1, "sin", 0), (2, "mul", 0), (3, "add", 0)
    assert used == {(column, sine): "", (sine, times): "3", (times, plus): "", (network.ONE, plus): "2"}
    assert net.users[network.ONE] == set(range(len(front))) and best in net.users[column]
    drawing = network.draw({i: member.expression for i, member in enumerate(front)}, data.target)
    tags = parsed(drawing)
    assert {tag for tag, _ in tags.found} == {"svg", "path", "g", "title", "rect", "text"}
    numbers = {int(n) for _, attributes in tags.found for n in (attributes.get("data-users") or "").split()}
    assert numbers == set(range(len(front)))


def test_a_network_of_too_many_nodes_leaves_out_the_longest():
    x = Variable(0)
    shifted = (Call("sin", (Call("add", (x, Constant(float(k)))),)) for k in range(network.MAX_NODES))
    long = Call("add", tuple(shifted))
    drawing = network.draw({0: Expression(Call("sin", (x,)), ("x",)), 1: Expression(long, ("x",))}, "y")
    assert 'data-users="0"' in drawing and 'data-users="1"' not in drawing


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "&amp;", "<script"])
def test_safe_json_reads_back_and_holds_no_markup(text):
    encoded = content.safe_json({"a": text})
    assert json.loads(encoded) == {"a": text} and not re.search("[<>&\u2028\u2029]", encoded)


def test_judgement_follows_the_fit():
    data = training()
    front = front_for(data)
    best = " ".join(judge(front, len(front) - 1, data))
    assert "99." in best and "million to one" in best
    assert "prefer formula" in " ".join(judge(front, 0, data))
    exact = tables.Training(data.X, front[-1].expression(data.X), data.names, "y", None, data.rows, (), "x")
    assert "to rounding" in judge(front_for(exact), len(front_for(exact)) - 1, exact)[0]


def test_figures_are_weighted():
    y, predicted = np.array([0.0, 1.0, 10.0]), np.array([0.0, 1.0, 0.0])
    assert figures(predicted, y, np.array([1.0, 1.0, 0.0])).rmse == 0.0
    assert figures(predicted, y).largest_error == 10.0
    assert figures(np.array([0.0, np.nan, 1.0]), y).rmse == np.inf


def test_a_pattern_in_the_errors_is_seen():
    x = np.linspace(0, 6, 100)
    noise = np.random.default_rng(0).normal(size=100)
    assert has_pattern(x, x + np.sin(x)) and not has_pattern(x, x + noise)


def test_percent_never_says_100():
    assert [percent(r2) for r2 in (0.5, 0.99983, 0.9998, -1)] == ["50 %", "99.983 %", "99.980 %", "nothing"]
    assert not any("100" in percent(1 - 10**-k) for k in range(1, 15))
