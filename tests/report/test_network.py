"""The front as one network: every formula and its wiring."""

from __future__ import annotations

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.report import network
from report_pages import HOSTILE, front_for, parsed, training


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


def test_boxes_stand_inside_the_drawing_and_numbers_on_wires_cover_nothing():
    names = ("temperature_of_the_first_inlet", "pressure_in_the_second_vessel", "flow")
    a, b, c = names
    text = (
        f"0.5*exp(0.618*(1 - 0.000353*{a}*{b} - 0.00065*{a}*{c} + 0.0444*{a} + 0.618*log({b}) + 0.715*sin(1.94*{c})))"
    )
    long = Expression(parse_tree(text, names), names)
    drawing = network.draw({0: Expression(Variable(1), names), 1: long}, "a_target_of_some_length")
    found = parsed(drawing).found
    width = float(found[0][1]["width"])
    boxes = [attributes for tag, attributes in found if tag == "rect"]
    assert all(float(box["x"]) >= 0 and float(box["x"]) + float(box["width"]) <= width for box in boxes)
    numbers = [
        network.around(
            (float(attributes["x"]), float(attributes["y"]) - 4),
            len("0.000353") * network.WEIGHT_LETTER,
            network.WEIGHT_HEIGHT,
        )
        for tag, attributes in found
        if tag == "text" and attributes.get("data-users") == "1"
    ]
    assert len(numbers) >= 8
    assert not any(network.overlap(one, two) for i, one in enumerate(numbers) for two in numbers[:i])


def test_a_number_stands_on_its_wire():
    start, end = (10.0, 20.0), (110.0, 70.0)
    assert network.on_wire(start, end, 0.0) == start and network.on_wire(start, end, 1.0) == end
    assert network.on_wire(start, end, 0.5) == (60.0, 45.0)
    assert network.overlap((0, 0, 2, 2), (1, 1, 3, 3)) == 1.0 and network.overlap((0, 0, 1, 1), (2, 0, 3, 1)) == 0.0


def test_a_number_on_a_wire_is_not_taken_for_another_one():
    """In three digits 1013.253 was 1010, and an exponent of 2.0023 was 2."""
    expression = Expression(parse_tree("1013.253 + 0.60071*x1**2.0023", ("x1",)), ("x1",))
    drawing = network.draw({0: expression}, "y")
    assert ">1013<" in drawing and ">^2.002<" in drawing and ">0.601<" in drawing


def test_numbers_on_wires_and_names_are_those_of_the_formula_that_is_read():
    """16470 stood on a wire of a formula that said 16000; of two long names neither told which it was."""
    names = ("temperature of inlet 1", "temperature of inlet 2")
    expression = Expression(parse_tree("16470.3*`temperature of inlet 1` + `temperature of inlet 2`", names), names)
    drawing = network.draw({0: expression.with_digits([2])}, "y")
    assert ">16000<" in drawing and "16470" not in drawing
    assert ">tempera…nlet 1<" in drawing and ">tempera…nlet 2<" in drawing
