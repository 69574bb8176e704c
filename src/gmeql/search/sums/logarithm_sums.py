"""Sums of columns in which some stand as their logarithms, as statisticians write them for columns that run over magnitudes.

Of incomes, doses, concentrations and sizes it is a doubling that counts, not one unit more: `0.98*log(a) + 0.5*log(b)`. A search
over few noisy rows comes to odd forms of such a sum: `19.9*a**0.0494*b**0.0261 - 20`, whose exponents mean logarithms, or
`a*(4.59 + 0.338*b)/(a + 0.518) - 3.23`. So each column may come in here as itself or as its logarithm, and a category as a whole,
step by step (`blocks.py`).

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gmeql.formula.nodes import Call, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.sums.blocks import Block, fitted_sum, stated, stepwise, terms_of
from gmeql.search.sums.independent import categories, independent_columns
from gmeql.search.sums.textbook import FloatArray, TextbookCurve, few_rows, with_many_values


@dataclass(frozen=True)
class LogarithmSumsConfig:
    """Numbers of the method."""

    magnitudes: float = 10.0
    """Ratio of a column's largest value to its least from which on its logarithm is asked: over less it is nearly a line."""
    most_blocks: int = 40
    """Columns, logarithms and categories beyond which none are looked at: chance would choose among them."""
    rows_per_term: int = 6
    """Fewer rows than this for each constant do not tell a column from its logarithm."""
    rows: int = 1_000
    """Rows by which terms are chosen; what is kept is fitted to all."""
    kept: int = 3


LOGARITHM_SUMS = LogarithmSumsConfig()


def logarithm_sums(X: FloatArray, y: FloatArray, weights: FloatArray, functions: FunctionSet) -> list[TextbookCurve]:
    """The last few of the sums that come about step by step; those of one term are text-books' curves (`textbook.py`)."""
    few = few_rows(len(y), LOGARITHM_SUMS.rows)
    logs = [k for k in with_many_values(X[few]) if 0 < X[:, k].min() < X[:, k].max() / LOGARITHM_SUMS.magnitudes]
    if not logs or not functions.allows({"add", "mul", "log"}):
        return []
    blocks = _blocks(X, logs)
    if len(blocks) > LOGARITHM_SUMS.most_blocks:
        return []
    of_few = [Block(block.terms, block.values[few]) for block in blocks]
    most = len(few) // LOGARITHM_SUMS.rows_per_term - 1
    steps = [chosen for chosen in stepwise(of_few, y[few], weights[few], most=most) if len(chosen) > 1]
    kept = [chosen for chosen in steps if _has_logarithm(blocks, chosen)][-LOGARITHM_SUMS.kept :]
    return [
        TextbookCurve(fitted_sum(terms_of(blocks, chosen), y, weights), stated(len(blocks), len(chosen)))
        for chosen in kept
    ]


def _blocks(X: FloatArray, logs: list[int]) -> list[Block]:
    """Columns by themselves, logarithms of some, whole categories."""
    kinds = categories(X)
    numbers = [k for k in independent_columns(X) if not any(k in kind for kind in kinds)]
    blocks = [Block((Variable(k),), X[:, [k]]) for k in numbers]
    blocks += [Block((_log(k),), np.log(X[:, [k]])) for k in logs]
    return blocks + [Block(tuple(Variable(k) for k in kind), X[:, kind]) for kind in kinds]


def _log(column: int) -> Node:
    return build("log", Variable(column))


def _has_logarithm(blocks: list[Block], chosen: frozenset[int]) -> bool:
    return any(isinstance(term, Call) for k in chosen for term in blocks[k].terms)
