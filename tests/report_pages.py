"""A small fit and its report page, for tests; names that try to leave their place."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

from gmeql import report
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
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
