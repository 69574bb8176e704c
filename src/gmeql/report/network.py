"""The front as one network: every formula's operators in layers, the wiring of each formula to be lit on its own.

A node stands for one operator at one height over the inputs; formulas share nodes where they agree, as the networks of
the search share them. Constants are not nodes: a factor or an exponent is written on its wire, a summand comes from the
input "1". The drawing carries, on every node and wire, the numbers of the formulas that use it; the page lights those
of the formula that is shown.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable, fold
from gmeql.formula.operators import get_operator
from gmeql.formula.printing.notation import display_names, number_text

MAX_NODES = 140  # a larger network is a tangle: simpler formulas are drawn first, and the rest is left out
MAX_LABEL = 14
COLUMN, ROW, HEIGHT = 132, 40, 26
SIGNS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "sqrt": "√", "square": "x²", "cube": "x³", "pow": "xᵃ"}
SIGNS |= {"pow4": "x⁴", "pow5": "x⁵", "pow6": "x⁶", "inv": "1/x", "neg": "−x", "abs": "|x|", "sum": "Σ", "prod": "Π"}
"""How operators are shown to people, here and on the live page; others by their name."""

Key = tuple[int, str, int]  # height, operator or input, which one of these
ONE: Key = (0, "1", 0)


@dataclass
class Net:
    """Nodes and wires, each with the formulas that use it."""

    users: dict[Key, set[int]] = field(default_factory=lambda: defaultdict(set))
    wires: dict[tuple[Key, Key], dict[int, str]] = field(default_factory=lambda: defaultdict(dict))


def add(net: Net, number: int, expression: Expression) -> Key:
    """Enter formula `number`; returns the node that holds its value."""
    seen: dict[tuple[int, str], int] = defaultdict(int)

    def leaf(node: Constant | Variable) -> Key | float:
        if isinstance(node, Constant):
            return node.value
        key = (0, f"column {node.index}", 0)
        net.users[key].add(number)
        return key

    def call(node: Call, args: list[Key | float]) -> Key | float:
        height = 1 + max((arg[0] for arg in args if isinstance(arg, tuple)), default=0)
        place = (height, node.operator)
        key = (height, node.operator, seen[place])
        seen[place] += 1
        net.users[key].add(number)
        for source, label in inputs(node, args):
            net.users[source].add(number)
            before = net.wires[source, key].get(number, "")
            net.wires[source, key][number] = before or label
        return key

    top = fold(expression.root, leaf, call)
    if isinstance(top, tuple):
        return top
    net.users[ONE].add(number)
    return ONE


def inputs(node: Call, args: Sequence[Key | float]) -> list[tuple[Key, str]]:
    """(source, label) of a node's wires: factors and exponents become labels, other constants come from "1"."""
    sources = [arg for arg in args if isinstance(arg, tuple)]
    constants = [arg for arg in args if not isinstance(arg, tuple)]
    if node.operator == "mul" and sources and constants:
        factor = 1.0
        for constant in constants:
            factor *= constant
        return [(source, short(factor) if i == 0 else "") for i, source in enumerate(sources)]
    if node.operator == "pow" and isinstance(args[0], tuple) and not isinstance(args[1], tuple):
        return [(args[0], "^" + short(args[1]))]
    return [(source, "") for source in sources] + [(ONE, short(constant)) for constant in constants]


def short(value: float) -> str:
    return number_text(float(f"{value:.3g}")).replace("-", "−")


def draw(expressions: Mapping[int, Expression], target: str) -> str:
    """The network of formulas, by number, as SVG; classes say what belongs to whom, nothing is lit yet."""
    net = Net()
    tops: dict[int, Key] = {}
    for number, expression in sorted(expressions.items(), key=lambda item: item[1].complexity):
        trial = Net()
        add(trial, number, expression)
        if len(set(net.users) | set(trial.users)) > MAX_NODES and tops:
            continue
        tops[number] = add(net, number, expression)
    last = max(key[0] for key in net.users) + 1
    output: Key = (last, target, 0)
    for number, top in tops.items():
        net.users[output].add(number)
        net.wires[top, output][number] = ""
    names = display_names(next(iter(expressions.values())).names)
    places = layout(net)
    rows = max(sum(key[0] == height for key in net.users) for height in range(last + 1))
    width, tall = COLUMN * last + 120, ROW * rows + 20
    size = f'viewBox="0 0 {width} {tall}" width="{width}" height="{tall}"'
    parts = [
        f'<svg class="net" xmlns="http://www.w3.org/2000/svg" {size} '
        f'role="img" aria-label="The formulas as one network; the wiring of the formula shown is lit">'
    ]
    parts += [wire(places[a], places[b], labels) for (a, b), labels in sorted(net.wires.items())]
    parts += [box(places[key], label(key, names, output), users) for key, users in sorted(net.users.items())]
    return "".join([*parts, "</svg>"])


def layout(net: Net) -> dict[Key, tuple[float, float]]:
    """Centre of every node: a column per height, each ordered by where its inputs stand."""
    columns: dict[int, list[Key]] = defaultdict(list)
    for key in sorted(net.users):
        columns[key[0]].append(key)
    tallest = max(map(len, columns.values()))
    feeders: dict[Key, list[Key]] = defaultdict(list)
    for source, target in net.wires:
        feeders[target].append(source)
    places: dict[Key, tuple[float, float]] = {}
    for height in sorted(columns):
        keys = columns[height]
        if height:
            keys.sort(key=lambda key: sum(places[f][1] for f in feeders[key]) / max(1, len(feeders[key])))
        top = 10 + (tallest - len(keys)) * ROW / 2
        for row, key in enumerate(keys):
            places[key] = (60 + COLUMN * height, top + ROW * (row + 0.5))
    return places


def label(key: Key, names: Sequence[str], output: Key) -> str:
    height, name, _ = key
    if key == ONE or key == output:
        return name
    if height == 0:
        return names[int(name.removeprefix("column "))]
    return SIGNS.get(name, get_operator(name).name)


def box(place: tuple[float, float], text: str, users: set[int]) -> str:
    shown = text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"
    width = max(HEIGHT + 4, 8.4 * len(shown) + 16)  # lit labels are bold
    x, y = place
    corner = f'x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}"'
    return (
        f'<g class="unit" data-users="{_numbers(users)}"><title>{html.escape(text)}</title>'
        f'<rect {corner} width="{width:.1f}" height="{HEIGHT}" rx="{HEIGHT / 2}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{html.escape(shown)}</text></g>'
    )


def wire(start: tuple[float, float], end: tuple[float, float], labels: Mapping[int, str]) -> str:
    (x1, y1), (x2, y2) = start, end
    middle = (x1 + x2) / 2
    path = f"M{x1:.1f} {y1:.1f}C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    parts = [f'<path class="wire" data-users="{_numbers(labels)}" d="{path}"/>']
    # A quarter of the way along the curve, where wires that meet at a node have not met yet.
    x, y = x1 + 0.56 * (x2 - x1), y1 + 0.6 * (y2 - y1)
    for number, text in sorted(labels.items()):
        if text:
            parts.append(
                f'<text class="weight" data-users="{number}" x="{x:.1f}" y="{y - 5:.1f}" text-anchor="middle">'
                f"{html.escape(text)}</text>"
            )
    return "".join(parts)


def _numbers(users: Mapping[int, str] | set[int]) -> str:
    return " ".join(map(str, sorted(users)))
