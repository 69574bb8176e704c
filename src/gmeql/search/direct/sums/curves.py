"""Sums of few terms of one column, with constants inside up to three of them, where they are known to many digits.

Of one column few functions need be looked through, so that many sums of them can go on: powers, functions as people write
them, and functions with a constant inside, alone or times x or x².

Legend: `N` rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.calculus import Slopes, with_constants
from gmeql.formula.nodes import Constant, Node, Variable, transform
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums.curve_pairs import PLAIN_POWERS, TIMES, WHOLE_POWERS, CurvePairs, plain_powers
from gmeql.search.direct.sums.settling import SETTLING, settled
from gmeql.search.direct.terms.choice import TermChoice, TermsConfig
from gmeql.search.direct.terms.column_functions import LibraryConfig
from gmeql.search.direct.terms.library import TUNED, Library, library
from gmeql.search.polish.scoring import JudgedRows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CurvesConfig:
    """Numbers of the method."""

    rows: int = 120  # that terms are chosen on
    told: float = 50.0  # times its error within which a sum must stay,
    least_told: float = 1e-4  # ... or within this share of the size of the values
    most_weighted: float = 0.1  # of the typical error, below which no row counts for more
    steps: int = 20  # of a fit of the constants of one function
    near: float = 1e-4  # error, relative to the spread, from which a sum may be right but for that
    powers: tuple[int, ...] = (12,)  # sums of each length that go on, made of powers alone
    with_one: tuple[int, ...] = (12, 12)  # with none and one tuned term, which must stay within
    surely: float = 0.1  # ... this share of that, or may be nearly the sum alone,
    every: tuple[int, ...] = (20, 16, 16, 12)  # and with up to three


CURVES = CurvesConfig()
FEW_FUNCTIONS = LibraryConfig(
    powers=(1, 2, 3, 4, -1, -2), roots=(1 / 2, 1 / 3, 3 / 2, -1 / 2), mixed=(1, 2), slow=(0.1, 0.25, 0.5, 1.0)
)
FEW_TERMS = TermsConfig(max_terms=4, fits=3, leading=2, shown=4)


def terms_of_curve(
    x: FloatArray,
    values: FloatArray,
    errors: FloatArray,
    functions: FunctionSet,
    out_of_time: Callable[[], bool],
    *,
    column: int = 0,
    known: Sequence[Node] = (),
) -> list[Node] | None:
    """Terms of `Variable(column)`, x [N], that add up to values [N] within their errors [N], 1 among them where needed.

    The shortest such sum; None where there is none. `known` are functions that may be among the terms, as they are.
    """
    n = min(len(values), CURVES.rows)
    weights = 1.0 / np.maximum(errors, CURVES.most_weighted * np.median(errors)) ** 2
    weights /= weights.mean()
    mean = float(np.average(values, weights=weights))
    spread = math.sqrt(float(np.average((values - mean) ** 2, weights=weights)))
    allowed = CURVES.told * math.sqrt(float(np.average(errors**2, weights=weights)))
    if math.hypot(mean, spread) < allowed:
        return []
    allowed = min(allowed, CURVES.least_told * math.hypot(mean, spread))
    if spread < allowed:
        return [Constant(1.0)]
    weights = weights[:n] / weights[:n].mean()
    terms = library(x[:n, None], functions.allows, numbers=FEW_FUNCTIONS, waves=over(0, known), are_held=True)
    alone = _alone(terms, x[:n], values[:n], weights, allowed)
    if alone is not None:
        return over(column, [alone])
    rows = JudgedRows.of(x[:n, None], values[:n], weights, ["x0"])
    plain = first_within(terms, rows, allowed, [(~terms.plain & ~terms.tuned, CURVES.powers)], out_of_time)
    every = np.ones(len(terms), bool)
    if plain is None:
        plain = first_within(terms, rows, CURVES.surely * allowed, [(every, CURVES.with_one)], out_of_time)
    if plain is None:
        given = (x[:n], values[:n], np.sqrt(weights), functions)
        pairs = CurvePairs(*given, allowed=allowed)
        beside_some, beside_all = (
            CurvePairs(*given, allowed=allowed, numbers=TIMES, plain=plain_powers(x[:n], functions, powers))
            for powers in (WHOLE_POWERS, PLAIN_POWERS)
        )
        for look in (pairs.one, pairs.two, beside_all.one, beside_some.two, beside_all.two):
            found = look(out_of_time)
            if found is not None:
                return over(column, found)
    found = first_within(terms, rows, allowed, [(every, CURVES.every)], out_of_time, best=plain)
    return None if found is None else over(column, found)


def _alone(terms: Library, x: FloatArray, values: FloatArray, weights: FloatArray, allowed: float) -> Node | None:
    """The one function with a constant inside that is the values but for a factor; None where there is none.

    With an offset beside it, one that hardly changes over the rows, exp(-7/x) far from zero, is like many others.
    """
    roots = np.sqrt(weights / weights.sum())
    target = roots * values

    def left_by(column: FloatArray) -> float:
        with np.errstate(all="ignore"):
            column = roots * column
            left = target - column * float(column @ target / (column @ column))
            return math.sqrt(float(left @ left))

    def solved(one: Slopes, constants: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """What a function leaves, with its slopes by its constants, beside itself."""
        with np.errstate(all="ignore"):
            column, slopes, _ = one(constants)
            column, slopes = roots * column, roots[:, None] * slopes
            factor = float(column @ target / (column @ column))
            left = target - factor * column
            slopes = factor * (slopes - np.outer(column, column @ slopes / (column @ column)))
            error = math.sqrt(float(left @ left))
        return error if np.isfinite(constants).all() else math.inf, left, slopes

    started: dict[str, tuple[float, Node]] = {}
    for factor in terms.factors:
        if factor.group in TUNED:
            error = left_by(factor.values)
            if math.isfinite(error) and error < started.get(factor.kind, (math.inf, factor.node))[0]:
                started[factor.kind] = error, factor.node
    best: tuple[float, Node] | None = None
    for _, node in started.values():
        one = Slopes(node, x[:, None])
        constants = np.array(one.constants)
        error, left, slopes = solved(one, constants)
        for _ in range(CURVES.steps):
            scale = np.sqrt(np.sum(slopes**2, axis=0))
            if not (np.isfinite(scale).all() and (scale > 0).all()):
                break
            step = np.linalg.lstsq(slopes / scale, left, rcond=SETTLING.seen)[0] / scale
            trials = ((moved, solved(one, moved)) for moved in (constants + step / h for h in (1, 2, 8)))
            found = next((trial for trial in trials if trial[1][0] < error), None)
            if found is None:
                break
            constants, (error, left, slopes) = found
        if error < min(allowed, math.inf if best is None else best[0]):
            best = error, with_constants(node, constants.tolist())
    return None if best is None else best[1]


def first_within(
    terms: Library,
    rows: JudgedRows,
    allowed: float,
    tiers: Sequence[tuple[NDArray[np.bool_], tuple[int, ...]]],
    out_of_time: Callable[[], bool],
    *,
    best: list[Node] | None = None,
) -> list[Node] | None:
    """The shortest sum within an error, of terms from several vocabularies, with 1 where needed; the best so far, or None,
    where there is none that is shorter.

    Functions over a narrow range are much alike, and a fit by normal equations ends before it tells them apart: what comes
    near is settled by an orthogonal one.
    """
    one = Constant(1.0)
    for used, beams in tiers:
        if not used.any() or out_of_time():
            continue
        for each in TermChoice(terms, used, rows, beams=beams, numbers=FEW_TERMS).run(out_of_time):
            nodes = [term.node for term in each.terms]
            if best is not None and len(nodes) >= len([node for node in best if node != one]):
                break
            error, factors = math.sqrt(each.loss), each.factors
            if each.n_tuned and allowed < error < CURVES.near * rows.spread:
                basis = np.zeros((len(rows.target), 0))
                nodes, factors, error = settled([*nodes, one], rows.X, rows.target, basis, roots=np.sqrt(rows.weights))
                nodes = nodes[:-1]
            if error < allowed:
                best = nodes + [one] * (abs(factors[-1]) > allowed)
                break
    return best


def over(column: int, nodes: Sequence[Node]) -> list[Node]:
    """Functions of one column, over that column of a table."""
    return [transform(node, lambda leaf: Variable(column) if isinstance(leaf, Variable) else leaf) for node in nodes]
