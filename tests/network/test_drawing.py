"""Drawings: well-formed, complete, escaped, and lit where the outputs depend on it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import MAX_DEPTH, MAX_NODES, Node, Variable
from gmeql.formula.registration import register_operator, unregister_operator
from gmeql.network.architecture import Architecture, architecture_preset
from gmeql.network.drawing import MAX_IDLE_INPUTS, MAX_TREE_NODES, draw_expression, draw_network
from random_trees import NAMES, call, expressions

SVG = "{http://www.w3.org/2000/svg}"
x1, x2, x3 = (Variable(i) for i in range(3))


def labels(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def lit_wires(svg: str) -> int:
    paths = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return sum("stroke:var(--gmeql-accent" in path.get("style", "") for path in paths)


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    return [
        tuple(float(rect.get(key, "nan")) for key in ("x", "y", "width", "height"))  # type: ignore[misc]
        for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect")
    ]


@given(expressions())
def test_tree_has_a_node_per_node_and_a_line_per_argument(expression: Expression) -> None:
    svg = draw_expression(expression)
    assert len(labels(svg)) == expression.size
    assert lit_wires(svg) == expression.size - 1


@given(expressions())
def test_nodes_of_a_tree_do_not_overlap_and_lie_inside(expression: Expression) -> None:
    check_places(expression)


def test_wide_operator_names_do_not_overlap() -> None:
    register_operator("a_long_operator", lambda xp, x: xp.sin(x), derivative=lambda xp, x: xp.cos(x))
    try:
        check_places(Expression(call("add", call("a_long_operator", x1), call("a_long_operator", x2), x3)))
        check_places(Expression(call("add", call("sin", x1), call("a_long_operator", x2), call("sin", x1))))
    finally:
        unregister_operator("a_long_operator")


def check_places(expression: Expression) -> None:
    svg = draw_expression(expression)
    left, top, width, height = map(float, (ElementTree.fromstring(svg).get("viewBox") or "").split())
    places = boxes(svg)
    for x, y, w, h in places:
        assert left <= x and x + w <= left + width and top <= y and y + h <= top + height
    for i, (x, y, w, h) in enumerate(places):
        for u, v, w2, h2 in places[:i]:
            assert x + w <= u + 0.2 or u + w2 <= x + 0.2 or y + h <= v + 0.2 or v + h2 <= y + 0.2


def test_tree_shows_names_and_rounded_constants() -> None:
    root = call("sqrt", call("add", 1.234567890123, call("div", x2, call("square", x1))))
    assert sorted(labels(draw_expression(Expression(root, ("mass", "x2"))))) == sorted(
        ["√", "+", "1.2346", "÷", "x2", "x²", "mass"]
    )


def test_large_trees_are_cut_and_say_so() -> None:
    wide = Expression(call("add", *[call("sin", x1)] * 300))
    svg = draw_expression(wide)
    assert len(labels(svg)) <= MAX_TREE_NODES
    assert any(label.endswith("nodes") for label in labels(svg))
    widest = Expression(call("add", *[x1] * (MAX_NODES - 1)))
    assert labels(draw_expression(widest)) == [f"… {MAX_NODES} nodes"]
    node: Node = x1
    for _ in range(MAX_DEPTH - 1):
        node = call("sin", node)
    assert len(labels(draw_expression(Expression(node)))) == MAX_DEPTH


HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a&b", "]]>", "\x00\x1b", "\ud800", "\ufffe", "",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_escaped(name: str) -> None:
    tree = draw_expression(Expression(call("mul", x1, x2), (name, "b")))
    network = draw_network(Architecture(2, (("add",),)), [0, 1, 0], names=[name, "b"], outputs=[name])
    for svg in (tree, network):
        tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(svg).iter()}
        assert tags <= {"svg", "title", "g", "rect", "text", "path"}
        assert "<script" not in svg and "<img" not in svg
        svg.encode("utf-8")
    if name == "<script>alert(1)</script>":
        titles = [title.text for title in ElementTree.fromstring(tree).iter(f"{SVG}title")]
        assert name in titles  # the whole name stays readable in the tooltip


def test_drawings_take_the_colours_of_the_page() -> None:
    for svg in (draw_expression(Expression(call("add", x1, 1.0))), draw_network(Architecture(1, (("sin",),)), [0, 0])):
        assert 'fill="currentColor"' in svg and "var(--gmeql-accent," in svg
        fixed = re.findall(r"#[0-9a-f]{3,6}", svg)
        assert set(fixed) == {"#2f7de1"}  # the accent's fallback only, readable on both grounds
        assert "href" not in svg and "url(" not in svg and "<style" not in svg


def test_network_lights_what_the_output_depends_on() -> None:
    # x1, x2, constant 1 -> square, sin -> add, mul -> y
    network = Architecture(n_variables=2, layers=(("square", "sin"), ("add", "mul")))
    choices = np.array([0, 1, 0, 0, 1, 1, 0])  # square(x1), sin(x2), add(square, square), mul(sin, sin), y = add
    svg = draw_network(network, choices)
    assert lit_wires(svg) == 4  # y <- add, add <- square twice, square <- x1
    opacity = {
        group.find(f"{SVG}text").text: group.get("opacity")  # type: ignore[union-attr]
        for group in ElementTree.fromstring(svg).iter(f"{SVG}g")
    }
    assert {label for label, value in opacity.items() if value == "1"} == {"x1", "x²", "+", "y"}
    assert {label for label, value in opacity.items() if value != "1"} == {"x2", "1", "sin", "×"}


def test_network_draws_dense_nodes_with_all_their_inputs() -> None:
    network = Architecture(n_variables=2, layers=(("sum",),))
    svg = draw_network(network, [0], weights=[1.0, 0.5, -2.0, 0.25])
    assert lit_wires(svg) == 4  # three inputs of the sum, one of the output
    titles = [title.text for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert {"0.5", "-2", "0.25"} <= set(titles)


@pytest.mark.parametrize("preset", ["released", "general", "sums"])
def test_presets_can_be_drawn(preset: str, rng: np.random.Generator) -> None:
    network = architecture_preset(preset, 3)
    choices = rng.integers(0, network.n_choices)
    svg = draw_network(network, choices, names=NAMES)
    assert len(labels(svg)) == network.n_nodes
    active = network.active_nodes(choices)
    dense = sum(len(network.dense_of(node)[0]) for node in np.flatnonzero(active))
    assert lit_wires(svg) == network.active_connections(choices).sum() + dense
    assert lit_wires(draw_network(network)) == 0  # nothing chosen, nothing lit


def test_idle_inputs_of_wide_tables_are_counted() -> None:
    network = Architecture(n_variables=500, layers=(("sin",),))
    shown = labels(draw_network(network, [321, 0]))
    assert "x322" in shown
    hidden = 501 - 1 - MAX_IDLE_INPUTS
    assert f"+ {hidden} more" in shown
    assert len(shown) == MAX_IDLE_INPUTS + 1 + 1 + 2
    assert len(labels(draw_network(network))) == MAX_IDLE_INPUTS + 1 + 2


def test_wrong_input_is_refused() -> None:
    network = Architecture(n_variables=2, layers=(("sin",),))
    with pytest.raises(ValueError, match="names must hold 2"):
        draw_network(network, names=["a"])
    with pytest.raises(ValueError, match="outputs must hold 1"):
        draw_network(network, outputs=["a", "b"])
    with pytest.raises(ValueError, match="weights must have shape"):
        draw_network(network, weights=[1.0])
    with pytest.raises(ValueError, match="one structure"):
        draw_network(network, [[0, 0], [0, 0]])
    with pytest.raises(ValueError, match="connection 0 must choose"):
        draw_network(network, [9, 0])
