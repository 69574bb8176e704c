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
from gmeql.formula.printing.notation import display_names, number_text, round_constants

MAX_NODES = 140  # a larger network is a tangle: simpler formulas are drawn first, and the rest is left out
MAX_LABEL = 14
COLUMN, ROW, HEIGHT = 132, 40, 26
EDGE = 4  # between a box and the edge of the drawing
WEIGHT_HEIGHT, WEIGHT_LETTER = 12.0, 7.4  # of the numbers on wires, which are bold
MOST_DIGITS, LONGEST_WHOLE = 5, 1e5  # of the numbers on wires; larger ones have a power of ten
ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73, 0.2, 0.8, 0.15, 0.85)
"""Where on its wire a number may stand, best first: in the middle, away from the nodes."""
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

    top = fold(round_constants(expression.root, expression.digits), leaf, call)
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
    """A number on a wire: three digits, or as many as stand before its point or tell it from a whole number.

    >>> short(0.60071), short(-1013.253), short(2.0023), short(2.0000001)
    ('0.601', '−1013', '2.002', '2')
    """
    whole = len(str(int(abs(value)))) if abs(value) < LONGEST_WHOLE else 0
    shown = [float(f"{value:.{digits}g}") for digits in range(max(3, whole), MOST_DIGITS + 1)]
    telling = (each for each in shown if whole > 2 or not each.is_integer() or value == each)
    return number_text(next(telling, shown[0])).replace("-", "−")


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
    names = display_names(max((e.names for e in expressions.values()), key=len))
    labels = {key: label(key, names, output) for key in net.users}
    half = max(box_width(text) for key, text in labels.items() if key[0] == 0) / 2
    left, first = EDGE + half, COLUMN + half - HEIGHT  # long names leave the numbers after them their room
    places = layout(net, left, first)
    rows = max(sum(key[0] == height for key in net.users) for height in range(last + 1))
    width, tall = places[output][0] + box_width(labels[output]) / 2 + EDGE, ROW * rows + 20
    size = f'viewBox="0 0 {width:.0f} {tall}" width="{width:.0f}" height="{tall}" style="--width: {width:.0f}px"'
    parts = [
        f'<svg class="net" xmlns="http://www.w3.org/2000/svg" {size} '
        f'role="img" aria-label="The formulas as one network; the wiring of the formula shown is lit">'
    ]
    parts += [wire(places[a], places[b], users) for (a, b), users in sorted(net.wires.items())]
    parts += weights(net, places, labels)
    parts += [box(places[key], labels[key], users) for key, users in sorted(net.users.items())]
    return "".join([*parts, "</svg>"])


def layout(net: Net, left: float, first: float) -> dict[Key, tuple[float, float]]:
    """Centre of every node: a column per height, each ordered by where its inputs stand.

    The inputs stand at `left`, the next column `first` after them.
    """
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
            places[key] = (left + (first + COLUMN * (height - 1) if height else 0.0), top + ROW * (row + 0.5))
    return places


def label(key: Key, names: Sequence[str], output: Key) -> str:
    height, name, _ = key
    if key == ONE or key == output:
        return name
    if height == 0:
        return names[int(name.removeprefix("column "))]
    return SIGNS.get(name, get_operator(name).name)


def shown_text(text: str) -> str:
    """A name in at most `MAX_LABEL` letters, cut in its middle: long names of one table differ at their ends.

    >>> shown_text("temperature of inlet 1"), shown_text("temperature of inlet 2")
    ('tempera…nlet 1', 'tempera…nlet 2')
    """
    half = MAX_LABEL // 2
    return text if len(text) <= MAX_LABEL else f"{text[:half].rstrip()}…{text[half + 1 - MAX_LABEL :].lstrip()}"


def box_width(text: str) -> float:
    return max(HEIGHT + 4, 8.4 * len(shown_text(text)) + 16)  # lit labels are bold


def box(place: tuple[float, float], text: str, users: set[int]) -> str:
    width = box_width(text)
    x, y = place
    corner = f'x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}"'
    return (
        f'<g class="unit" data-users="{_numbers(users)}"><title>{html.escape(text)}</title>'
        f'<rect {corner} width="{width:.1f}" height="{HEIGHT}" rx="{HEIGHT / 2}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{html.escape(shown_text(text))}</text></g>'
    )


def wire(start: tuple[float, float], end: tuple[float, float], users: Mapping[int, str]) -> str:
    (x1, y1), (x2, y2) = start, end
    middle = (x1 + x2) / 2
    path = f"M{x1:.1f} {y1:.1f}C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return f'<path class="wire" data-users="{_numbers(users)}" d="{path}"/>'


def on_wire(start: tuple[float, float], end: tuple[float, float], t: float) -> tuple[float, float]:
    """The point of a wire's curve at `t` between 0 and 1, as `wire` draws it."""
    (x1, y1), (x2, y2) = start, end
    x = x1 + (x2 - x1) * (t**3 + 1.5 * t * (1 - t))  # control points half way across
    return x, y1 + (y2 - y1) * t * t * (3 - 2 * t)


Area = tuple[float, float, float, float]  # left, top, right, bottom


def around(place: tuple[float, float], width: float, height: float) -> Area:
    return place[0] - width / 2, place[1] - height / 2, place[0] + width / 2, place[1] + height / 2


def overlap(one: Area, two: Area) -> float:
    """The area that two boxes share."""
    across = min(one[2], two[2]) - max(one[0], two[0])
    return max(0.0, across) * max(0.0, min(one[3], two[3]) - max(one[1], two[1]))


def weights(net: Net, places: Mapping[Key, tuple[float, float]], labels: Mapping[Key, str]) -> list[str]:
    """The numbers on the wires of each formula, each where it covers no node and no other number of that formula."""
    parts = []
    for number in sorted(set().union(*net.users.values())):
        taken = [around(places[k], box_width(labels[k]), HEIGHT) for k, users in net.users.items() if number in users]
        for (a, b), users in sorted(net.wires.items()):
            text = users.get(number)
            if not text:
                continue
            spots = [on_wire(places[a], places[b], t) for t in ALONG]
            areas = [around(spot, WEIGHT_LETTER * len(text), WEIGHT_HEIGHT) for spot in spots]
            covered = [sum(overlap(area, other) for other in taken) for area in areas]
            best = covered.index(min(covered))
            taken.append(areas[best])
            x, y = spots[best]
            parts.append(
                f'<text class="weight" data-users="{number}" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">'
                f"{html.escape(text)}</text>"
            )
    return parts


def _numbers(users: Mapping[int, str] | set[int]) -> str:
    return " ".join(map(str, sorted(users)))
