"""The front as one network: every formula and its wiring."""

from __future__ import annotations

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
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
