"""Sums of columns judged with their choice: columns are chosen anew without the rows that judge them.

The luckiest of many sums of columns fits well by chance, and what stating its columns takes bounds by how much
(`judging/structure.py`). Choosing them step by step takes no time to speak of, so that can be measured instead:
in each fold columns are chosen and fitted on the other rows alone, and its own rows tell what a sum of so many columns is
worth (Stone 1974). That tells many weak columns from as many lucky ones, which the bound cannot.

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
from gmeql.search.losses.converging import converged
from gmeql.search.direct import linear
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.losses.losses import Loss
from gmeql.search.judging.outlook import Outlook, paired_z
from gmeql.search.judging.structure import linear_columns

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ChoosingConfig:
    """Numbers of the method."""

    folds: int = 5
    """As many as are usual: more take longer and tell little more (Hastie, Tibshirani and Friedman 2009, section 7.10)."""
    most_rows: int = 3000
    """Beyond so many rows luck is small beside them, and the bound on it does no harm."""
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
