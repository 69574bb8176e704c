"""Drawings as SVG text: a network with its chosen wiring lit, and the tree of an expression.

The drawings take the text colour of the page they stand on (`currentColor`), so they read on light and dark ground.
A page can set the CSS variables `--gmeql-accent` (lit wiring, operators) and `--gmeql-ground` (fill of nodes). All
text is escaped; nothing is loaded and no script runs.
"""

from __future__ import annotations

import html
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.messages import shortened
from gmeql.formula.nodes import Call, Constant, Node
from gmeql.formula.operators import WHOLE_POWERS, get_operator
from gmeql.formula.printing.notation import DIGITS, display_names, number_text, round_constant, shown
from gmeql.network.architecture import Architecture

MAX_TREE_NODES = 400
"""Larger trees are drawn to this many nodes; what hangs below is shown as its number of nodes."""
MAX_IDLE_INPUTS = 12
"""At most this many unused input columns are drawn; the rest is one node that counts them."""

# sizes in pixels
_FONT, _CHARACTER, _HEIGHT = 13, 7.6, 26
_MARGIN = 10
_PADDING = 14
_LEAF_GAP, _LAYER_GAP = 12, 80
# distances of rows, in heights of a box
_TREE_STEP, _NETWORK_STEP = 2.1, 1.45
_LABEL = 18
"""Characters of a label; the rest stands in the tooltip."""
_ACCENT = "var(--gmeql-accent,#2f7de1)"
_GROUND = "var(--gmeql-ground,none)"


@dataclass(frozen=True, slots=True)
class _Box:
    """One node of a drawing: centre, label, the full text as tooltip, and how it is shown."""

    x: float
    y: float
    label: str
    tooltip: str = ""
    lit: bool = True
    accent: bool = False

    @property
    def width(self) -> float:
        return max(_HEIGHT, len(self.label) * _CHARACTER + _PADDING)


@dataclass(frozen=True, slots=True)
class _Line:
    start: tuple[float, float]
    end: tuple[float, float]
    lit: bool = True
    label: str = ""
    horizontal: bool = False


@dataclass(slots=True)
class _Canvas:
    title: str
    boxes: list[_Box] = field(default_factory=list)
    lines: list[_Line] = field(default_factory=list)

    def svg(self) -> str:
        left = min(box.x - box.width / 2 for box in self.boxes) - _MARGIN
        right = max(box.x + box.width / 2 for box in self.boxes) + _MARGIN
        top = min(box.y for box in self.boxes) - _HEIGHT
        bottom = max(box.y for box in self.boxes) + _HEIGHT
        width, height = right - left, bottom - top
        # idle lines first, so that lit ones lie on top of them
        lines = sorted(self.lines, key=lambda line: line.lit)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gmeql-drawing" role="img" '
            f'viewBox="{left:.1f} {top:.1f} {width:.1f} {height:.1f}" width="{width:.0f}" height="{height:.0f}" '
            f'style="max-width:100%;height:auto;color:inherit" font-family="ui-sans-serif,system-ui,sans-serif" '
            f'font-size="{_FONT}" fill="currentColor">',
            f"<title>{html.escape(self.title)}</title>",
            *(_draw_line(line) for line in lines),
            *(_draw_box(box) for box in self.boxes),
            "</svg>",
        ]
        return "\n".join(parts)


def _draw_line(line: _Line) -> str:
    (x1, y1), (x2, y2) = line.start, line.end
    if line.horizontal:
        middle = (x1 + x2) / 2
        path = f"M{x1:.1f} {y1:.1f}C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    else:
        middle = (y1 + y2) / 2
        path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    if not line.lit:
        return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity="0.15"/>'
    tooltip = f"<title>{html.escape(line.label)}</title>" if line.label else ""
    return f'<path d="{path}" fill="none" stroke-width="1.8" style="stroke:{_ACCENT}">{tooltip}</path>'


def _draw_box(box: _Box) -> str:
    x, y = box.x - box.width / 2, box.y - _HEIGHT / 2
    outline = f"stroke:{_ACCENT}" if box.accent and box.lit else "stroke:currentColor"
    tooltip = f"<title>{html.escape(box.tooltip)}</title>" if box.tooltip else ""
    return (
        f'<g opacity="{1 if box.lit else 0.35}">{tooltip}'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{_HEIGHT}" rx="{_HEIGHT / 2}" '
        f'stroke-width="1.2" style="fill:{_GROUND};{outline}"/>'
        f'<text x="{box.x:.1f}" y="{box.y:.1f}" dy="0.35em" text-anchor="middle">{html.escape(box.label)}</text></g>'
    )


def _cut(text: str) -> str:
    return shortened(text, _LABEL)


def _word(operator: str) -> str:
    """How an operator is shown in a node."""
    entry = get_operator(operator)
    if entry.name == "id":
        return "id"
    if entry.name in WHOLE_POWERS:
        return "x" + f"{entry.exponent:g}".translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    signs = {"pow": "^", "sub": "−", "mul": "×", "div": "÷", "inv": "1/x", "neg": "−", "sqrt": "√"}
    return signs.get(entry.name, _cut(entry.symbol))


# --- the tree of an expression ----------------------------------------------------------------


def draw_expression(expression: Expression) -> str:
    """The expression tree as SVG, the root on top.

    >>> draw_expression(Expression(Call("sin", (Constant(2.0),)))).startswith("<svg")
    True
    """
    names = display_names(expression.names)
    drawn = _first_nodes(expression.root, MAX_TREE_NODES)
    canvas = _Canvas(title=str(expression))
    cursor = 0.0
    # Leaves stand side by side from left to right, each call over the middle of its arguments. Walked bottom-up
    # without recursion: `placed` holds the finished boxes that wait for their call.
    placed: list[_Box] = []
    waiting: list[tuple[tuple[int, ...], Node, Node, bool]] = [((), expression.root, shown(expression), False)]
    while waiting:
        path, node, seen, ready = waiting.pop()
        expanded = isinstance(node, Call) and (*path, 0) in drawn
        if expanded and not ready:
            assert isinstance(node, Call) and isinstance(seen, Call)
            waiting.append((path, node, seen, True))
            cursor += _overhang(node)
            pairs = list(enumerate(zip(node.args, seen.args, strict=True)))
            waiting.extend(((*path, i), arg, rounded, False) for i, (arg, rounded) in reversed(pairs))
            continue
        y = len(path) * _TREE_STEP * _HEIGHT
        if expanded:
            assert isinstance(node, Call)
            children = placed[-len(node.args) :]
            del placed[-len(node.args) :]
            note = f"protected {node.operator}" if node.protected else node.operator
            box = _Box((children[0].x + children[-1].x) / 2, y, _word(node.operator), note, accent=True)
            cursor += _overhang(node)
            canvas.lines += [_Line((box.x, box.y + _HEIGHT / 2), (c.x, c.y - _HEIGHT / 2)) for c in children]
        else:
            label, tooltip = _leaf_label(node, seen, names)
            box = _Box(0.0, y, label, tooltip, lit=not isinstance(node, Call))
            box = _Box(cursor + box.width / 2, y, label, tooltip, lit=box.lit)
            cursor += box.width + _LEAF_GAP
        canvas.boxes.append(box)
        placed.append(box)
    return canvas.svg()


def _overhang(node: Call) -> float:
    """Room to keep on either side of a call whose label is wider than the narrowest leaf."""
    return (_Box(0.0, 0.0, _word(node.operator)).width - _HEIGHT) / 2


def _leaf_label(node: Node, seen: Node, names: Sequence[str]) -> tuple[str, str]:
    """Label of a node and what a pointer on it tells; `seen` is the node with constants as people see them."""
    if isinstance(node, Constant):
        assert isinstance(seen, Constant)
        return number_text(seen.value, DIGITS), repr(node.value)
    if isinstance(node, Call):
        return f"… {node.size} nodes", node.operator
    return _cut(names[node.index]), names[node.index]


def _first_nodes(root: Node, limit: int) -> set[tuple[int, ...]]:
    """Paths of the nodes nearest the root; all arguments of a call or none."""
    shown: set[tuple[int, ...]] = {()}
    queue: deque[tuple[tuple[int, ...], Node]] = deque([((), root)])
    while queue:
        path, node = queue.popleft()
        if isinstance(node, Call) and len(shown) + len(node.args) <= limit:
            for i, arg in enumerate(node.args):
                shown.add((*path, i))
                queue.append(((*path, i), arg))
    return shown


# --- the network ----------------------------------------------------------------


def draw_network(
    architecture: Architecture,
    choices: Any = None,
    *,
    names: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    weights: Any = None,
) -> str:
    """The network as SVG, inputs on the left; with `choices` [C] its wiring drawn, what the outputs depend on lit.

    `names` are the column names, `outputs` the targets'; `weights` [n_weights] appear as tooltips of the wires.

    >>> network = Architecture(n_variables=2, layers=(("square", "sin"), ("add",)))
    >>> draw_network(network, [0, 1, 0, 1, 0]).count("<path")
    5
    """
    names = tuple(names) if names is not None else tuple(f"x{i + 1}" for i in range(architecture.n_variables))
    outputs = tuple(outputs) if outputs is not None else ("y",) * architecture.n_outputs
    if len(names) != architecture.n_variables:
        raise ValueError(f"names must hold {architecture.n_variables} column names, got {len(names)}")
    if len(outputs) != architecture.n_outputs:
        raise ValueError(f"outputs must hold {architecture.n_outputs} target names, got {len(outputs)}")
    if weights is not None and np.shape(weights) != (architecture.n_weights,):
        raise ValueError(f"weights must have shape ({architecture.n_weights},), got {np.shape(weights)}")
    if choices is not None:
        choices = architecture.validate_choices(choices)
        if choices.ndim != 1:
            raise ValueError(f"choices must be one structure [{architecture.n_connections}], got shape {choices.shape}")
    active = np.ones(architecture.n_nodes, bool) if choices is None else architecture.active_nodes(choices)

    labels = _network_labels(architecture, names, outputs)
    canvas = _Canvas(title=f"network {architecture}")
    box_of = _place_layers(architecture, labels, active, canvas, chosen=choices is not None)
    for source, target, weight in _wires(architecture, choices):
        if source not in box_of:
            continue
        start, end = box_of[source], box_of[target]
        label = "" if weights is None else number_text(round_constant(float(weights[weight])), DIGITS)
        lit = choices is not None and bool(active[target])
        canvas.lines.append(
            _Line((start.x + start.width / 2, start.y), (end.x - end.width / 2, end.y), lit, label, horizontal=True)
        )
    return canvas.svg()


def _network_labels(architecture: Architecture, names: Sequence[str], outputs: Sequence[str]) -> list[str]:
    hidden = architecture.node_operator[architecture.n_inputs : architecture.layer_slices[-1].start]
    constants = [number_text(round_constant(value), DIGITS) for value in architecture.constants]
    return [*display_names(names), *constants, *(_word(name) for name in hidden), *display_names(outputs)]


def _place_layers(
    architecture: Architecture, labels: list[str], active: np.ndarray, canvas: _Canvas, *, chosen: bool
) -> dict[int, _Box]:
    """One column of boxes per layer, centred; idle inputs beyond a few are counted in one box."""
    box_of: dict[int, _Box] = {}
    x = 0.0
    for number, layer in enumerate(architecture.layer_slices):
        nodes = list(range(layer.start, layer.stop))
        hidden_inputs = 0
        if number == 0:
            idle = [node for node in nodes if not (chosen and active[node])]
            extra = set(idle[MAX_IDLE_INPUTS:])
            hidden_inputs = len(extra)
            nodes = [node for node in nodes if node not in extra]
        shown = [(node, _cut(labels[node]), labels[node], bool(active[node])) for node in nodes]
        if hidden_inputs:
            shown.append((-1, f"+ {hidden_inputs} more", f"{hidden_inputs} more inputs", False))
        widest = max(_Box(0, 0, label).width for _, label, _, _ in shown)
        x += widest / 2
        for row, (node, label, tooltip, lit) in enumerate(shown):
            y = (row - (len(shown) - 1) / 2) * _NETWORK_STEP * _HEIGHT
            is_function = architecture.n_inputs <= node < architecture.layer_slices[-1].start
            box = _Box(x, y, label, tooltip, lit=lit, accent=is_function)
            canvas.boxes.append(box)
            box_of[node] = box
        x += widest / 2 + _LAYER_GAP
    return box_of


def _wires(architecture: Architecture, choices: np.ndarray | None) -> list[tuple[int, int, int]]:
    """(source, target, weight number) of the chosen wiring, or of every possible wire where nothing is chosen."""
    wires = []
    for connection, target in enumerate(architecture.connection_node):
        low, high = int(architecture.source_low[connection]), int(architecture.source_high[connection])
        sources = range(low, high) if choices is None else [low + int(choices[connection])]
        wires += [(source, int(target), connection) for source in sources]
    for target in range(architecture.n_inputs, architecture.n_nodes):
        for source, weight in zip(*architecture.dense_of(target), strict=True):
            wires.append((int(source), target, int(weight)))
    return wires
