"""Sums of columns and plain curves beside a finished front, judged as its members are.

While a search goes on, a sum of weak columns falls behind whatever odd form fits the rows a little better, and is lost. So in
the end all plain forms are looked at once more: sums chosen step by step, those of whole categories (`sums/kind_sums.py`), the
sum of all columns with factors drawn towards 0 (`sums/shrinking.py`), text-book curves (`sums/textbook.py`), products of two
columns (`sums/products.py`) and power laws of several (`sums/power_laws.py`). The front takes in the one that describes the
rows most briefly of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.front.choosing import errors_chosen_anew, sums_of_columns
from gmeql.search.losses.converging import mean_loss
from gmeql.search.events import Member
from gmeql.search.sums.curve_sums import curves_beside_columns
from gmeql.search.sums.kind_sums import sums_of_kinds
from gmeql.search.sums.logarithm_sums import logarithm_sums
from gmeql.search.losses.losses import Loss, find_loss
from gmeql.search.judging.deferred import carried
from gmeql.search.judging.outlook import left_out_costs, outlooks
from gmeql.search.polish.printable import is_printable, with_known_digits
from gmeql.search.data.rows import SearchRows
from gmeql.search.sums.power_laws import power_laws
from gmeql.search.sums.products import plain_products
from gmeql.search.sums.textbook import textbook_curves
from gmeql.search.sums.shrinking import ShrunkSum, chance_of_shrunk, shrunk_likelihood_sum, shrunk_sum

MOST_ROWS = 20_000
"""Beyond so many rows luck is small and least squares needs no help."""
SAME_FACTOR = 1e-9
"""How far the quotient of two formulas may vary, relative to itself, where one is a multiple of the other."""
MOST_SHUFFLED = 2_000
"""Rows up to which chance is asked what it does: beyond, errors on rows left out are enough."""
LONGER_SUM = 0.98
"""Share of the error that a sum of more columns than other formulas may have must promise: less is no reason for its length."""
NODES_PER_COLUMN = 4
"""Complexity of one more column in a sum: plus, times, factor, column."""


def judged_sums(front: Sequence[Member], rows: SearchRows) -> tuple[Member, ...]:
    """Sums of columns with what they promise on unseen rows; none where the front is exact or not judged, where rows are
    many or have groups or errors, or where the user knows of the form.

    Under a loss with a value of its own the front has those chosen step by step; of the others, likelihoods with a link
    have one with factors drawn towards 0.
    """
    config, functions, loss = rows.config, FunctionSet(rows.config.functions), find_loss(rows.config.loss)
    if any(carried(member) is None for member in front):
        return ()
    if len(rows.y) > MOST_ROWS or any(given is not None for given in (rows.groups, rows.errors, rows.knowledge)):
        return ()
    if not functions.allows({"add"}):
        return ()
    most = (config.max_complexity - 1) // NODES_PER_COLUMN
    known = [member.expression.root for member in front]
    if loss.value is not None:
        return _likelihood_sums(known, rows, loss, max(most, config.most_summed or 0))
    if rows.polished.is_exact(front[-1].loss ** 2):
        return ()
    found = sums_of_columns(rows.X, rows.y, rows.weights, functions)[:most]
    laws = power_laws(rows.X, rows.y, rows.weights, functions)
    laws = [root for root in laws if not any(_is_multiple(root, one, rows) for one in known)]
    found += [root for root in laws if tree_complexity(root) <= config.max_complexity]
    found = [_rounded(root, rows) for root in found]
    shrunk = _shrunk_sums(rows, most)
    kinds = sums_of_kinds(rows.X, rows.y, rows.weights, most_columns=most, products=functions.allows({"mul"}))
    curves = textbook_curves(rows.X, rows.y, rows.weights, functions)
    curves += plain_products(rows.X, rows.y, rows.weights, functions)
    curves += curves_beside_columns(rows.X, rows.y, rows.weights, functions)
    curves += logarithm_sums(rows.X, rows.y, rows.weights, functions)
    stated = [(s.root, s.nats) for s in kinds] + [(c.root, c.nats) for c in curves]
    known_costs: dict[Node, ShrunkSum] = {}
    for root, nats in [(_rounded(root, rows), nats) for root, nats in stated]:
        if tree_complexity(root) <= config.max_complexity:
            known_costs[root] = ShrunkSum(root, left_out_costs(root, rows.X, rows.y, rows.weights), None, nats)
    known_costs |= {each.root: each for each in shrunk}
    roots = [root for root in dict.fromkeys([*found, *known_costs]) if math.isfinite(_loss(root, rows))]
    judged = outlooks(roots, rows.X, rows.y, rows.weights, rivals=known, shrunk=known_costs)
    sums = []
    for root, outlook in zip(roots, judged, strict=True):
        error, expression = _loss(root, rows), Expression(root, rows.names)
        if is_printable(root, error, rows.polished):
            sums.append(Member(expression, math.sqrt(error), expression.complexity, outlook))
    return tuple(_held_against_others(member, rows) for member in _with_one_shrunk(sums))


def _shrunk_sums(rows: SearchRows, most: int) -> list[ShrunkSum]:
    """The sum of all columns with factors drawn towards 0: of as many as formulas may have, and of more where those may."""
    lengths = dict.fromkeys(min(each, rows.X.shape[1]) for each in (most, max(most, rows.config.most_summed or 0)))
    found = [shrunk_sum(rows.X, rows.y, rows.weights, most_columns=each) for each in lengths]
    return [replace(each, root=_rounded(each.root, rows)) for each in found if each is not None]


def _with_one_shrunk(sums: Sequence[Member]) -> list[Member]:
    """All sums but for the longer of two with factors drawn towards 0, or the shorter where that one promises more error."""
    shrunk = sorted((m for m in sums if _freedom(m) is not None), key=lambda m: m.complexity)
    if len(shrunk) < 2:
        return list(sums)
    errors = [m.outlook.error for m in shrunk if m.outlook is not None]
    return [m for m in sums if m is not shrunk[0 if errors[1] < LONGER_SUM * errors[0] else 1]]


def _freedom(member: Member) -> float | None:
    return None if member.outlook is None else member.outlook.freedom


def _held_against_others(member: Member, rows: SearchRows) -> Member:
    """A sum with factors drawn towards 0 with how often chance does as well, and how sums of some columns err beside it; any
    other, or of many rows, as it is."""
    if member.outlook is None or member.outlook.saved is None or len(rows.y) > MOST_SHUFFLED:
        return member
    table, most = (rows.X, rows.y, rows.weights), len(member.expression.variables)
    chance = chance_of_shrunk(*table, member.outlook.saved, most_columns=most)
    anew = errors_chosen_anew(*table, most_columns=most)
    return replace(member, outlook=replace(member.outlook, chance=chance, chosen_anew=anew))


def _likelihood_sums(known: Sequence[Node], rows: SearchRows, loss: Loss, most_columns: int) -> tuple[Member, ...]:
    """The sum of all columns under a likelihood of something else than the formula's value itself."""
    if not loss.mean_is_nats or loss.link is None:
        return ()
    # the penalty says how far chances are believed, so the fit is to the classes too
    table = rows.X, rows.judged_y, rows.given_weights
    shrunk = shrunk_likelihood_sum(*table, loss, most_columns=most_columns)
    if shrunk is None:
        return ()
    expression = Expression(shrunk.root, rows.names)
    (outlook,) = outlooks([shrunk.root], *table, loss=loss, rivals=known, shrunk={shrunk.root: shrunk})
    mean = mean_loss(expression(rows.X), rows.judged_y, rows.given_weights, loss)
    return (Member(expression, mean, expression.complexity, outlook),) if math.isfinite(mean) else ()


def _is_multiple(law: Node, member: Node, rows: SearchRows) -> bool:
    """Whether the front has a law already: with the factor that people write, it may be, where a fit has another."""
    with np.errstate(all="ignore"):
        times = Expression(law, rows.names)(rows.X) / Expression(member, rows.names)(rows.X)
    return bool(np.ptp(times) < SAME_FACTOR * abs(times[0]))


def _rounded(root: Node, rows: SearchRows) -> Node:
    return with_known_digits(Expression(root, rows.names), rows.X, rows.y, rows.weights).root


def _loss(root: Node, rows: SearchRows) -> float:
    """Mean squared error over all rows."""
    with np.errstate(all="ignore"):
        return float(np.average((Expression(root, rows.names)(rows.X) - rows.y) ** 2, weights=rows.weights))
