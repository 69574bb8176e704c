"""Places in a formula, and what would have to stand there for the formula to be the target.

Every step from the root down to a place is undone on the target: a sum by its other terms, a product by its other factors,
a function by its inverse. What is left is the place's own target. A formula that is right but for one part, which a
search finds long before the whole, so hands that part over as a smaller problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from gmeql.formula.nodes import Call, Constant, Node, build, exponent_of
from gmeql.formula.operators import get_operator
from gmeql.search.direct.middle.meeting import Target
from gmeql.search.direct.table import DirectTable, FloatArray

Fill = Callable[[Node], Node]
"""The whole formula, from what is put into the place."""
KEPT_ALONE = 2
"""Terms of a sum, or factors of a product, of which all others may be one part that is missing."""
INVERSES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "neg": np.negative, "exp": np.log, "log": np.exp, "tanh": np.arctanh, "asin": np.sin, "acos": np.cos, "atan": np.tan,
}  # fmt: skip
"""Functions that take every value once, and what undoes them."""


def holes(root: Node, table: DirectTable) -> Iterator[Target]:
    """Places of a formula whose target is finite on all rows, those near the root first."""
    waiting: list[tuple[Node, FloatArray, Fill]] = [(root, table.y, lambda part: part)]
    for node, target, fill in waiting:  # grows on the way
        value = table.values(node)
        if node is not root:
            yield Target(target, fill)
        if not isinstance(node, Constant):
            yield from _finite(Target(target - value, _beside("add", [node], fill)))
            yield from _finite(Target(_over(target, value), _beside("mul", [node], fill)))
        if not isinstance(node, Call):
            continue
        parts = [table.values(arg) for arg in node.args]
        yield from _all_but_few(node, parts, target, fill)
        for i in range(len(node.args)):
            wanted = _undone(node, parts, i, target)
            if wanted is not None and np.isfinite(wanted).all() and np.ptp(wanted) > 0:
                waiting.append((node.args[i], wanted, _at(node, i, fill)))


def _all_but_few(node: Call, parts: list[FloatArray], target: FloatArray, fill: Fill) -> Iterator[Target]:
    """All terms or factors but a few as one place."""
    if node.operator not in ("add", "mul"):
        return
    for n_kept in range(1, min(KEPT_ALONE, len(parts) - 2) + 1):
        for kept in combinations(range(len(parts)), n_kept):
            values, nodes = [parts[i] for i in kept], [node.args[i] for i in kept]
            left = target - sum(values) if node.operator == "add" else _over(target, np.prod(values, axis=0))
            yield from _finite(Target(left, _beside(node.operator, nodes, fill)))


def _finite(hole: Target) -> Iterator[Target]:
    """The place, if its target is finite on all rows and no constant."""
    if np.isfinite(hole.values).all() and np.ptp(hole.values) > 0:
        yield hole


def _over(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotients; not finite, in silence, where there is none."""
    with np.errstate(all="ignore"):
        return np.asarray(above / below)


def _beside(operator: str, nodes: list[Node], fill: Fill) -> Fill:
    """Puts a part beside terms or factors that are kept."""
    return lambda part: fill(build(operator, *nodes, part))


def _at(node: Call, i: int, fill: Fill) -> Fill:
    """Puts a part in the place of argument `i`."""

    def filled(part: Node) -> Node:
        return fill(build(node.operator, *node.args[:i], part, *node.args[i + 1 :]))

    return filled


def _undone(node: Call, parts: list[FloatArray], i: int, target: FloatArray) -> FloatArray | None:
    """What argument `i` of a call must be for the call to be the target; None where that is not known."""
    others = [part for k, part in enumerate(parts) if k != i]
    with np.errstate(all="ignore"):
        if node.operator == "add":
            return np.asarray(target - sum(others))
        if node.operator == "mul":
            return np.asarray(target / np.prod(others, axis=0))
        if node.operator == "sub":
            return target + others[0] if i == 0 else others[0] - target
        if node.operator == "div":
            return np.asarray(target * others[0] if i == 0 else others[0] / target)
        if node.operator in INVERSES:
            wanted = np.asarray(INVERSES[node.operator](target))
            returned = get_operator(node.operator).natural(np, wanted)
            return wanted if np.allclose(returned, target) else None  # an angle of asin and the like has its range
        exponent = exponent_of(node.operator, node.args)
        if exponent and i == 0 and (target > 0).all():
            root = target ** (1.0 / exponent)
            # an even power does not say which sign its base has: that of the part as it is
            return np.asarray(np.where(parts[0] < 0, -root, root) if exponent % 2 == 0 else root)
    return None
