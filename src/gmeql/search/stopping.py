"""When a search ends by itself."""

from __future__ import annotations

import math

import numpy as np

from gmeql.formula.calculus import constant_slopes
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Node, fold, row_values
from gmeql.search.clock import Clock
from gmeql.search.config import FrontConfig
from gmeql.search.groups.surplus import is_surplus
from gmeql.search.polish.recognition import is_recognised, n_loose_constants
from gmeql.search.polish.scoring import JudgedRows, Scored
from gmeql.search.data.rows import FloatArray
from gmeql.search.state import SearchState


def why_stop(state: SearchState, clock: Clock, idle_rounds: int) -> str:
    """The reason (a key of `events.REASONS`) for which the search ends after this round, or nothing.

    `idle_rounds` are rounds in a row that found no structure to try: a small network has only so many.
    """
    config = state.config
    if has_exact_formula(state):
        return "exact"
    if config.max_candidates is not None and state.candidates >= config.max_candidates:
        return "max_candidates"
    if clock.is_closing():
        return "max_time"
    if config.patience is not None and state.candidates - state.last_gain >= config.patience:
        return "no gain"
    return "exhausted" if idle_rounds >= config.max_idle_rounds else ""


def has_exact_formula(state: SearchState) -> bool:
    """Whether the best formula is exact on every row, on more than its constants could explain, without a likely twin.

    Unless its constants are numbers people write, a long exact formula may have a shorter twin, and so may a short one
    with several such constants: the search looks on, for the short one briefly. What may be a series, or has constants of
    groups' own that others make up for, it never takes for the end.
    """
    best, numbers = state.leaderboard.best, state.config.front
    if not state.rows.polished.is_exact(best.loss):
        return False
    n_loose = n_loose_constants(best.root)
    n_fitted = n_loose + (0 if best.own is None else best.own.size)
    if len(state.rows.y) <= 2 * n_fitted + 2 or not holds_on_every_row(best, state.rows.polished, numbers):
        return False
    if has_surplus(best, state.rows.polished):
        return False
    if n_loose == 0:
        return True
    if may_be_a_series(best, state.rows.polished, numbers):
        return False
    if best.complexity <= numbers.short:
        return n_loose <= numbers.short_loose or state.candidates >= state.last_gain + numbers.look_on_briefly
    grown = numbers.look_on * max(state.last_gain, numbers.look_on_candidates)
    return state.candidates >= min(grown, state.last_gain + numbers.look_on_most)


def holds_on_every_row(scored: Scored, rows: JudgedRows, numbers: FrontConfig) -> bool:
    """Whether a formula agrees with every target to rounding in that target's own size, or in that of its terms.

    The mean square of a target that spans many magnitudes is that of its largest rows alone. A formula with constants of
    each group is taken by its loss.
    """
    if scored.own is not None:
        return True
    if scored.held_on is None or scored.held_on[0] is not rows:
        scored.held_on = rows, _holds(scored.root, rows, numbers)
    return scored.held_on[1]


def _holds(root: Node, rows: JudgedRows, numbers: FrontConfig) -> bool:
    """The same of a formula without such constants."""
    counted = rows.weights > 0
    with np.errstate(all="ignore"):
        error = np.abs(row_values(root, rows.names, rows.X) - rows.target)[counted]
        own = numbers.own_size * np.abs(rows.target)[counted]
        terms = numbers.cancelled * _term_sizes(root, rows)[counted]
    # terms that cancel on most rows are huge ones that happen to: they would excuse anything
    return bool((error <= own + terms).all() and np.mean(error <= own) >= numbers.least_own)


def has_surplus(scored: Scored, rows: JudgedRows) -> bool:
    """Whether the rows leave some constants of groups' own open."""
    if scored.own is None or rows.groups is None:
        return False
    return is_surplus(scored.root, scored.own, rows.X, rows.groups)


def may_be_a_series(scored: Scored, rows: JudgedRows, numbers: FrontConfig) -> bool:
    """Whether a fitted constant of a formula hardly matters to any row, as those of the last terms of a series.

    Over a narrow range a polynomial or a fraction is any smooth function to rounding: 1/sqrt(1 - u) for u below 0.001 is one
    of three terms above and below the line. The last of them is then small against all the others, and large against rounding.
    """
    if scored.own is not None:
        return False
    constants = np.array(Expression(scored.root).constants)
    loose = [i for i, value in enumerate(constants) if not is_recognised(float(value))]
    with np.errstate(all="ignore"):
        values, slopes = constant_slopes(scored.root, rows.X[rows.weights > 0])
        sizes = np.maximum(np.abs(values), np.median(np.abs(values)))  # where the target passes zero anything matters
        felt = np.nan_to_num(np.abs(slopes * constants) / sizes[:, None], nan=np.inf).max(axis=0)
    return bool((felt[loose] < numbers.hardly_felt).any())


def _term_sizes(root: Node, rows: JudgedRows) -> FloatArray:
    """What a formula would come to if no terms cancelled, for every row: sums add the sizes of their terms."""

    def size(node: Node) -> FloatArray:
        return np.asarray(np.abs(row_values(node, rows.names, rows.X)))

    def call(node: Call, sizes: list[FloatArray]) -> FloatArray:
        if node.operator in ("add", "sub", "neg"):
            return np.asarray(sum(sizes))
        return np.asarray(math.prod(sizes)) if node.operator == "mul" else size(node)

    return fold(root, size, call)
