"""Sums of columns judged together with their choice: columns are chosen anew without the rows that judge them.

The luckiest of many sums of columns fits well by chance. The price of naming its columns only bounds by how much
(`judging/structure.py`). But choosing columns step by step takes hardly any time, so the luck can be measured: in each fold,
columns are chosen and fitted on the other rows alone, and the fold's own rows tell what a sum of so many columns is worth
(Stone 1974). That tells many weak columns from as many lucky ones, which the bound cannot.

The sum of all columns with factors drawn towards 0 is compared with sums of some in the same way. Three of sixty columns that 25
rows chose left half of the mean's error on rows left out one by one, and half as much again as the mean on others.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.sums import linear
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.judging.outlook import Outlook, paired_z
from gmeql.search.judging.structure import linear_columns
from gmeql.search.losses.converging import converged
from gmeql.search.losses.losses import Loss
from gmeql.search.sums.independent import independent_columns
from gmeql.search.sums.shrinking import shrunk_values

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ChoosingConfig:
    """Numbers of the method."""

    folds: int = 5
    """As many as are usual: more take longer and tell little more (Hastie, Tibshirani and Friedman 2009, section 7.10)."""
    most_rows: int = 3000
    """Beyond so many rows luck is small beside them, and the bound on it does no harm."""
    rounds: int = 4
    """Times that rows are dealt into folds to hold sums of some columns against that of all: of few rows one deal says
    little, ..."""
    rows_dealt: int = 2000
    """... and how many rows these may have in all, where one round has fewer."""
    seed: int = 0


CHOOSING = ChoosingConfig()


def sums_of_columns(X: FloatArray, y: FloatArray, weights: FloatArray, functions: FunctionSet) -> list[Node]:
    """Sums of one column, of two, ..., chosen step by step."""
    table, rng = DirectTable(X, y, weights), np.random.default_rng(0)
    found = linear.propose(table, functions=functions, effort=Effort(math.inf), rng=rng)
    return [root for root in found if linear_columns(root) is not None]


def costs_by_length(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    loss: Loss,
    functions: FunctionSet,
    *,
    most_columns: int,
    judged_by: FloatArray | None = None,
) -> dict[int, FloatArray]:
    """For sums of 1, 2, ... columns what each row [N] costs that neither chose nor fitted them; none where rows are too
    many or too few. They are `judged_by` the target, or what it stands for."""
    judged_y = y if judged_by is None else judged_by
    assert loss.value is not None
    if not CHOOSING.folds * linear.LINEAR.rows_per_term < len(y) <= CHOOSING.most_rows:
        return {}
    fold = np.random.default_rng(CHOOSING.seed).permutation(len(y)) % CHOOSING.folds
    names = tuple(f"x{i + 1}" for i in range(X.shape[1]))
    costs: dict[int, FloatArray] = {}
    met = np.zeros(most_columns + 1, dtype=np.int64)
    for number in range(CHOOSING.folds):
        kept, judged = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        roots = sums_of_columns(X[kept], y[kept], weights[kept], functions)
        for k, root in enumerate(islice(roots, most_columns), start=1):
            fitted, _ = converged(root, X[kept], y[kept], weights[kept], loss)
            with np.errstate(all="ignore"):
                values = loss.value(Expression(fitted, names)(X[judged]), judged_y[judged])
            costs.setdefault(k, np.zeros(len(y)))[judged] = np.where(np.isfinite(values), values, np.inf)
            met[k] += 1
    return {k: cost for k, cost in costs.items() if met[k] == CHOOSING.folds}


def errors_chosen_anew(X: FloatArray, y: FloatArray, weights: FloatArray, *, most_columns: int) -> tuple[float, ...]:
    """Root mean squared errors of sums of 1, 2, ... columns on rows that neither chose nor fitted them, in units of that of the
    sum of all, drawn towards 0, or of the `most_columns` that count most; of as many lengths as every fold has."""
    if len(y) <= CHOOSING.folds * linear.LINEAR.rows_per_term:
        return ()
    rng = np.random.default_rng(CHOOSING.seed)
    independent = X[:, independent_columns(X, weights)]
    lengths = linear.LINEAR.max_terms
    squares = np.zeros(1 + lengths)
    for _ in range(max(min(CHOOSING.rounds, CHOOSING.rows_dealt // len(y)), 1)):
        fold = rng.permutation(len(y)) % CHOOSING.folds
        for number in range(CHOOSING.folds):
            kept, judged = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            few, others = (independent[kept], y[kept], weights[kept]), independent[judged]
            drawn, some = shrunk_values(*few, others, most_columns=most_columns), linear.values_by_length(*few, others)
            lengths = min(lengths, some.shape[1])
            values = np.column_stack([drawn, some[:, :lengths]])
            squares[: lengths + 1] += weights[judged] @ (y[judged, None] - values) ** 2
    with np.errstate(all="ignore"):
        ratios = np.sqrt(squares[1 : lengths + 1] / squares[0])
    return tuple(map(float, ratios)) if np.isfinite(ratios).all() and (ratios > 0).all() else ()


def measured(
    found: Sequence[Outlook], roots: Sequence[Node], costs: Mapping[int, FloatArray], weights: FloatArray
) -> list[Outlook]:
    """The outlooks with what was measured in place of a bound on luck, for the sums of columns among the formulas.

    Such a sum is supported by what it gains over measured sums of fewer columns.
    """
    answers = []
    for outlook, root in zip(found, roots, strict=True):
        k = _columns_of_line(root)
        mean = float(np.average(costs[k], weights=weights)) if k in costs else math.inf
        if not math.isfinite(mean) or not 0 < outlook.left_out < math.inf:
            answers.append(outlook)
            continue
        support = min((paired_z(costs[fewer], costs[k], weights) for fewer in costs if fewer < k), default=math.inf)
        error, spread = max(mean, outlook.left_out), outlook.standard_error / outlook.luck
        luck = error / outlook.left_out
        answers.append(replace(outlook, error=error, standard_error=spread * luck, luck=luck, support=support))
    return answers


def _columns_of_line(root: Node) -> int:
    """Of how many columns a formula is the sum of multiples, with a constant; 0 where it is no such sum."""
    columns = linear_columns(root)
    if not columns or tree_complexity(root) != 4 * len(columns) + 1:
        return 0
    return len(columns)
