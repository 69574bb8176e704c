"""Formulas as plain data for files: a list of nodes, arguments before the call that takes them, the root last.

>>> to_plain(Call("sin", (Variable(0),)), ["angle"])
{'names': ['angle'], 'nodes': [{'variable': 0}, {'call': 'sin', 'args': [0]}]}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gmeql.formula.messages import listing, short
from gmeql.formula.nodes import MAX_COLUMNS, MAX_NODES, Call, Constant, Leaf, Node, Variable, fold


def to_plain(root: Node, names: Sequence[str]) -> dict[str, Any]:
    """Plain data for JSON: the nodes in a list, arguments before the call that takes them, the root last."""
    nodes: list[dict[str, Any]] = []

    def leaf(node: Leaf) -> int:
        nodes.append({"constant": node.value} if isinstance(node, Constant) else {"variable": node.index})
        return len(nodes) - 1

    def call(node: Call, args: list[int]) -> int:
        entry: dict[str, Any] = {"call": node.operator, "args": args}
        if node.protected:
            entry["protected"] = True
        nodes.append(entry)
        return len(nodes) - 1

    fold(root, leaf, call)
    return {"names": list(names), "nodes": nodes}


def from_plain(data: Any) -> tuple[Node, tuple[str, ...]]:
    """Root and names of `to_plain`'s data; anything else is refused with a ValueError that names the bad entry."""
    if not isinstance(data, dict) or set(data) != {"names", "nodes"}:
        found = listing([short(key) for key in data]) if isinstance(data, dict) else short(data)
        raise ValueError(f"an expression must be a mapping with 'names' and 'nodes', got {found}")
    names, entries = data["names"], data["nodes"]
    if not isinstance(names, list | tuple) or len(names) > MAX_COLUMNS:
        raise ValueError(f"'names' must be a list of at most {MAX_COLUMNS} texts, got {short(names)}")
    if not isinstance(entries, list | tuple) or not 1 <= len(entries) <= MAX_NODES:
        raise ValueError(f"'nodes' must be a list of 1 to {MAX_NODES} nodes, got {short(entries)}")
    nodes: list[Node] = []
    used = [False] * len(entries)
    for number, entry in enumerate(entries):
        try:
            nodes.append(_node_from(entry, nodes, used))
        except ValueError as error:
            raise ValueError(f"node {number}: {error}") from None
    if not all(used[:-1]):
        raise ValueError(f"node {used.index(False)} is not an argument of any other")
    return nodes[-1], tuple(names)


def _node_from(entry: Any, nodes: list[Node], used: list[bool]) -> Node:
    """One checked node of the dict form; marks the arguments it takes as used."""
    if not isinstance(entry, dict):
        raise ValueError(f"must be a mapping, got {short(entry)}")
    keys = set(entry)
    if keys == {"constant"}:
        return Constant(entry["constant"])
    if keys == {"variable"}:
        return Variable(entry["variable"])
    if not {"call", "args"} <= keys <= {"call", "args", "protected"}:
        raise ValueError(f"must hold 'constant', 'variable' or 'call' with 'args', got {listing(map(short, keys))}")
    operator, positions, protected = entry["call"], entry["args"], entry.get("protected", False)
    if not isinstance(operator, str) or len(operator) > 100:
        raise ValueError(f"'call' must name an operator, got {short(operator)}")
    if not isinstance(protected, bool):
        raise ValueError(f"'protected' must be true or false, got {short(protected)}")
    if not isinstance(positions, list | tuple):
        raise ValueError(f"'args' must be a list of node numbers, got {short(positions)}")
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < len(nodes):
            raise ValueError(f"'args' must be numbers of earlier nodes, got {short(position)}")
        if used[position]:
            raise ValueError(f"node {position} is an argument of two calls; write it twice")
        used[position] = True
    return Call(operator, tuple(nodes[position] for position in positions), protected)
