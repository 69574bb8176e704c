"""Rounding: fitted constants become numbers that people write down, as far as the data allow it."""

from __future__ import annotations

from collections.abc import Callable

from gmeql.formula.customary import customary
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Node, build, fold
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.recognition import is_recognised, plain_nats, recognised, short_decimals
from gmeql.search.polish.scoring import JudgedRows, Scored, clean, refit


def snap(scored: Scored, rows: JudgedRows, out_of_time: Callable[[], bool] = lambda: False) -> Scored:
    """Round constants to recognised numbers, one after the other, as long as the description length does not rise.

    On noise-free data a rounded constant must leave the fit at rounding level; there all are tried at once first.
    """
    current = scored
    for _ in range(POLISH.max_rounded):
        if out_of_time():
            break
        constants = Expression(current.root, rows.names).constants
        exact = rows.is_exact(current.loss)
        # of noisy rows 1.03 is not the last word: 1 says less
        loose = [i for i, v in enumerate(constants) if not is_recognised(v) or (not exact and plain_nats(v) > 0)]
        if not loose:
            break
        tries: list[Node] = []
        if exact:
            tries.append(with_changed(current.root, {i: _closest(constants[i]) for i in loose}, rows.names))
        near = [(i, value) for i in loose for value in _nearby(constants[i], exact) if value != constants[i]]
        tries += [with_changed(current.root, {i: value}, rows.names) for i, value in near]
        best = min(refit(tries, rows), key=lambda s: s.length, default=None)
        if best is None or best.length > current.length:
            break
        tidy = clean(best.root, rows)
        # a formula that came in its customary form leaves in it
        tidied = refit([customary(tidy)], rows) if tidy is not None else []
        current = min([best, *tidied], key=lambda s: (s.length, s.complexity))
    return current


def _closest(value: float) -> float:
    """The recognised number nearest to a constant."""
    return min(recognised(value), key=lambda candidate: abs(candidate - value), default=value)


def _nearby(value: float, exact: bool) -> list[float]:
    """Numbers to try for a constant, the plainest first."""
    if exact:
        close = [number for number in recognised(value) if abs(number - value) < POLISH.near_exact * abs(value)]
        return close[: POLISH.tried_exact]
    return short_decimals(value)  # noise cannot tell 22/5/pi from 1.4


def with_changed(root: Node, changes: dict[int, float], names: tuple[str, ...]) -> Node:
    """A formula with some of its constants, by their place, changed; factors that became 1 are gone."""
    expression = Expression(root, names)
    values = [changes.get(i, v) for i, v in enumerate(expression.constants)]
    changed = expression.with_constants(values).root
    if not any(abs(value) == 1.0 for value in changes.values()):
        return changed
    return fold(changed, lambda leaf: leaf, _without_ones)


def _without_ones(node: Call, args: list[Node]) -> Node:
    return Call(node.operator, tuple(args), node.protected) if node.protected else build(node.operator, *args)
