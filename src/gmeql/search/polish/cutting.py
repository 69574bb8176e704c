"""Cutting: every shorter formula that one cut makes is refitted, and kept when the description length falls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, exponent_of, fold, is_plain_exponent, leaves
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.scoring import JudgedRows, Scored, clean, refit


def reductions(node: Node) -> Iterator[Node]:
    """Every formula that one cut makes: a term or factor less, an exponent rounded, a phase turned into a cosine."""
    if not isinstance(node, Call) or node.protected:
        return
    for i, arg in enumerate(node.args):
        for shorter in reductions(arg):
            yield build(node.operator, *node.args[:i], shorter, *node.args[i + 1 :])
    name = node.operator
    if name in ("add", "mul"):
        for i, arg in enumerate(node.args):
            if name == "add" or not isinstance(arg, Constant):
                yield build(name, *node.args[:i], *node.args[i + 1 :])
    elif name == "div":
        if not isinstance(node.args[0], Constant):
            yield build("inv", node.args[1])
        yield node.args[0]
    elif name == "sub":
        yield node.args[0]
        yield build("neg", node.args[1])
    elif name == "pow" and isinstance(node.args[1], Constant) and not is_plain_exponent(node.args[1]):
        exponent = node.args[1].value
        for parts in POLISH.exponent_parts:
            near = round(exponent * parts) / parts
            if near != exponent and abs(near - exponent) < POLISH.near_exponent:
                yield build("pow", node.args[0], Constant(near))
        yield Constant(1.0)
    elif name in ("sin", "cos") and isinstance(node.args[0], Call) and node.args[0].operator == "add":
        yield from _without_phase(node)
    elif name in ("asin", "acos") and isinstance(node.args[0], Call) and node.args[0].operator in ("sin", "cos"):
        inner = node.args[0].args[0]  # on one half-turn these undo each other, up to a quarter turn and the sign
        if name[1:] == node.args[0].operator:
            yield inner
        else:
            yield build("sub", Constant(math.pi / 2), inner)
        yield build("neg", inner)
        yield build("add", Constant(math.pi / 2), inner)


_FUNCTIONS = frozenset({"sin", "cos", "exp", "log", "tanh"})


def exchanges(node: Node) -> Iterator[Node]:
    """Every formula that one exchange makes: another power of a column, or one or two powers instead of a function.

    Under noise a sine or a fifth power can stand in for a cube so well that only trying the cube shows it is better.
    """
    if not isinstance(node, Call) or node.protected:
        return
    for i, arg in enumerate(node.args):
        for other in exchanges(arg):
            yield build(node.operator, *node.args[:i], other, *node.args[i + 1 :])
    columns = {leaf for leaf in leaves(node) if isinstance(leaf, Variable)}
    if len(columns) != 1:
        return
    (column,) = columns
    is_power = node.operator != "inv" and exponent_of(node.operator, node.args) is not None
    if (is_power and node.args[0] == column) or node.operator in _FUNCTIONS:
        powers = [build("pow", column, Constant(float(whole))) for whole in range(1, POLISH.largest_power + 1)]
        yield from (power for power in powers if power != node)
        for low, high in itertools.combinations(powers, 2):
            yield build("add", low, Call("mul", (Constant(1.0), high)))


def straightened(node: Node) -> Iterator[Node]:
    """Every formula with a sum in place of a function of it: over little of its course a function is a straight line.

    Islands learn readings of the target, such as its root; what they find is then a square of a sum where the sum would do.
    """
    if not isinstance(node, Call) or node.protected:
        return
    for i, arg in enumerate(node.args):
        for other in straightened(arg):
            yield build(node.operator, *node.args[:i], other, *node.args[i + 1 :])
    is_curve = node.operator in _FUNCTIONS or exponent_of(node.operator, node.args) is not None
    inner = node.args[-1] if node.operator == "div" and isinstance(node.args[0], Constant) else node.args[0]
    if (is_curve or inner is not node.args[0]) and isinstance(inner, Call) and inner.operator in ("add", "sub"):
        yield inner if any(isinstance(arg, Constant) for arg in inner.args) else build("add", inner, Constant(1.0))


def _without_phase(node: Call) -> Iterator[Node]:
    """sin(u + c) with c near a multiple of a quarter turn, as plus or minus sin(u) or cos(u)."""
    inner = node.args[0]
    assert isinstance(inner, Call)
    phase = sum(arg.value for arg in inner.args if isinstance(arg, Constant))
    rest = [arg for arg in inner.args if not isinstance(arg, Constant)]
    if phase == 0.0 or not rest:
        return
    quarters = round(phase / (math.pi / 2))
    if abs(phase - quarters * math.pi / 2) > POLISH.near_phase:
        return
    turned = (quarters + (node.operator == "cos")) % 4
    function = build("sin" if turned % 2 == 0 else "cos", build("add", *rest))
    yield build("neg", function) if turned >= 2 else function


def prune(
    root: Node,
    rows: JudgedRows,
    *,
    max_rounds: int = POLISH.max_rounds,
    exchange: bool = False,
    out_of_time: Callable[[], bool] = lambda: False,
) -> list[Scored]:
    """Cut as long as the description length falls. Returns every formula met, the final one first.

    `exchange` also tries other powers, functions and straight lines in place; for formulas that no cut makes exact.
    """
    start = clean(root, rows)
    met = refit([without_dead_terms(start, rows)], rows, keep_recognised=False) if start is not None else []
    if not met:
        return []
    current = met[0]
    seen = {current.root}
    for _ in range(max_rounds):
        if out_of_time():
            break
        exchanging = exchange and not rows.is_exact(current.loss) and current.complexity <= POLISH.largest_exchanged
        tried = _tried([current], exchanging, rows, seen, out_of_time)
        met += tried
        better = sorted((t for t in tried if t.length < current.length), key=lambda scored: scored.length)
        if not better and exchanging and not out_of_time():
            # two terms that stand in for one another's neighbours only come right together
            starts = sorted(tried, key=lambda scored: scored.length)[: POLISH.look_ahead]
            starts += [t for t in sorted(tried, key=lambda scored: scored.loss)[: POLISH.look_ahead] if t not in starts]
            tried = _tried(starts, exchanging, rows, seen, out_of_time)
            met += tried
            better = sorted((t for t in tried if t.length < current.length), key=lambda scored: scored.length)
        if not better:
            break
        again = clean(better[0].root, rows)
        refitted = refit([again], rows, keep_recognised=False) if again not in (None, better[0].root) else []
        current = min([*refitted, better[0]], key=lambda scored: round(scored.length, 6))  # normal form wins ties
        met.append(current)
    return [current, *(scored for scored in met if scored is not current)]


def _tried(
    starts: list[Scored], exchanging: bool, rows: JudgedRows, seen: set[Node], out_of_time: Callable[[], bool]
) -> list[Scored]:
    """What one cut, exchange or straightened curve makes of some formulas, refitted; none that was `seen`."""
    others: set[Node] = set()
    for start in starts:
        others.update(reductions(start.root))
        if exchanging:
            others.update(exchanges(start.root))
            plain = (clean(straight, rows) for straight in straightened(start.root))
            others.update(straight for straight in plain if straight is not None)
    others = {other for other in others - seen if not isinstance(other, Constant)}
    seen |= others
    ordered = sorted(others, key=_stable_order)
    tried: list[Scored] = []
    for first in range(0, len(ordered), POLISH.refitted_together):
        if out_of_time():
            break
        tried += refit(ordered[first : first + POLISH.refitted_together], rows, keep_recognised=False)
    return tried


def _stable_order(node: Node) -> tuple[int, str]:
    """An order that is the same in every process."""
    return node.size, repr(node)


def without_dead_terms(node: Node, rows: JudgedRows) -> Node:
    """Sums without terms that rounding swallows beside the largest one."""
    sample = rows.X[: POLISH.dead_rows]

    def call(part: Call, args: list[Node]) -> Node:
        if part.operator != "add":
            return build(part.operator, *args) if not part.protected else Call(part.operator, tuple(args), True)
        sizes = [float(np.abs(Expression(arg, rows.names)(sample)).max()) for arg in args]
        kept = [arg for arg, size in zip(args, sizes, strict=True) if not size < POLISH.dead * max(sizes)]
        return build("add", *kept)

    alive: Node = fold(node, lambda leaf: leaf, call)
    return alive
