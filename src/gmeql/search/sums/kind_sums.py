"""Sums of columns over tables with categories: whole categories in or out, with slopes of their own if rows ask for it.

A category of eight kinds is one question to a statistician, not seven: does the target differ between its kinds, and does its
slope over a number? So columns come in blocks here (analysis of covariance, `blocks.py`):

- a number,
- the kinds of a category, without its reference (`independent.py`),
- the products of these with a number that is already in,
- the products of two categories: the cells that differ from what both say by themselves.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Node, Variable, build
from gmeql.search.sums.blocks import Block, fitted_sum, merged_kinds, stated, stepwise, terms_of
from gmeql.search.sums.independent import categories, independent_columns, reference_of

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class KindSumsConfig:
    """Numbers of the method."""

    most_blocks: int = 60
    """Blocks beyond which none are looked at: chance would choose among them, and each takes a fit."""
    rows_per_term: int = 4
    """Fewer rows than this for each constant say little about slopes of kinds."""
    rows_per_cell: int = 4
    """Fewer rows than this of two kinds together tell nothing about them."""


KIND_SUMS = KindSumsConfig()


@dataclass(frozen=True, eq=False)
class KindSum:
    """A sum of blocks of columns, and the nats that stating them takes."""

    root: Node
    nats: float


def sums_of_kinds(
    X: FloatArray, y: FloatArray, weights: FloatArray, *, most_columns: int, products: bool
) -> list[KindSum]:
    """Sums of blocks, each with a shorter description than the one before; none where no column tells kinds apart.

    With `products`, slopes may differ from kind to kind, and what one category is worth by the kinds of another.
    """
    blocks = _blocks(X, products=products)
    if not 0 < len(blocks) <= KIND_SUMS.most_blocks:
        return []
    most = min(most_columns, len(y) // KIND_SUMS.rows_per_term - 1)
    steps = list(stepwise(blocks, y, weights, most=most))
    sums = [
        KindSum(fitted_sum(terms_of(blocks, chosen), y, weights), stated(len(blocks), len(chosen))) for chosen in steps
    ]
    merged = merged_kinds(blocks, steps[-1], y, weights) if steps else []
    return sums + [KindSum(fitted_sum(each.terms, y, weights), sums[-1].nats + each.nats) for each in merged]


def _blocks(X: FloatArray, *, products: bool) -> list[Block]:
    """Numbers, categories, and products of these; none where there is no category."""
    kinds = categories(X)
    in_kinds = {k for columns in kinds for k in columns}
    numbers = [k for k in independent_columns(X) if k not in in_kinds]
    if not kinds:
        return []
    blocks = [Block((Variable(k),), X[:, [k]]) for k in numbers]
    references = [reference_of(X, columns) for columns in kinds]
    for columns, own in zip(kinds, references, strict=True):
        reference = None if own is None else (Variable(own), X[:, own])
        blocks.append(Block(tuple(Variable(k) for k in columns), X[:, columns], reference=reference))
    for place, number in enumerate(numbers if products else ()):
        for columns, own in zip(kinds, references, strict=True):
            terms = tuple(build("mul", Variable(number), Variable(k)) for k in columns)
            product = None if own is None else (build("mul", Variable(number), Variable(own)), X[:, number] * X[:, own])
            blocks.append(Block(terms, X[:, columns] * X[:, [number]], needs=(place,), reference=product))
    first = len(numbers)
    for a, b in itertools.combinations(range(len(kinds)) if products else (), 2):
        cells = [(k, m) for k in kinds[a] for m in kinds[b] if (X[:, k] * X[:, m]).sum() >= KIND_SUMS.rows_per_cell]
        if cells:
            terms = tuple(build("mul", Variable(k), Variable(m)) for k, m in cells)
            values = np.column_stack([X[:, k] * X[:, m] for k, m in cells])
            blocks.append(Block(terms, values, needs=(first + a, first + b)))
    return blocks
