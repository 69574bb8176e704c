"""A curve of one column beside others: what a batch, a second column or a starting level adds to a text-book curve.

A dose-response has batches, a reaction has a second substance, and what cools does so towards its own surroundings:
`room + (92 - room)*exp(-0.043*minute)`. From few noisy rows a search arrives at odd forms of these. A person takes the
text-book curve and asks of every other column whether it shifts or scales it. This module does the same: the best few curves
are looked for beside all other columns, and then blocks come in step by step (`blocks.py`): other columns, whole categories,
and products of these with the curve. In the end all constants are fitted, those inside the curve too.

Legend: `N` rows, `V` columns, `G` values of what stands inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, transform
from gmeql.network.families import FunctionSet
from gmeql.search.sums.blocks import Block, Term, factors_of, merged_kinds, stated, stepwise, terms_of
from gmeql.search.sums.curves import SHAPES, Shape
from gmeql.search.sums.independent import categories, independent_columns, reference_of
from gmeql.search.sums.textbook import (
    TEXTBOOK,
    FloatArray,
    TextbookCurve,
    few_rows,
    fitted_curve,
    fitted_tables,
    with_many_values,
)


@dataclass(frozen=True)
class CurveSumsConfig:
    """Numbers of the method."""

    asked: int = 6
    """Curves that others are asked beside, the best of the grids."""
    kept: int = 4
    powers: int = 3
    """Powers that are asked too, of a column each, the best of the grids;"""
    aside: float = 0.01
    """how far from an exponent of the grid a fit of it begins."""
    rows: int = 2_000
    """Rows that others are asked by; what is kept is fitted to all."""
    most_columns: int = 12
    """Columns beyond which none is asked: chance would choose among them."""


CURVE_SUMS = CurveSumsConfig()
_SCALE, _LEVEL = 1.5e200, 2.5e200  # stand for what is written in the places of a curve's factor and level


def _has_one_part(shape: Shape) -> bool:
    """Whether it is a multiple of one curve; those with something inside stand in the table without a level too."""
    x = np.arange(1.0, 9.0)
    inside = shape.inside(x)
    n_parts = len(shape.parts(x, tuple(inside[:1].T[:, :, None])))
    return n_parts == 1 or (n_parts == 2 and not inside.shape[1])


_SHAPES = [shape for shape in SHAPES if _has_one_part(shape)]


def curves_beside_columns(
    X: FloatArray, y: FloatArray, weights: FloatArray, functions: FunctionSet
) -> list[TextbookCurve]:
    """The briefest few sums of a curve and others; none of a curve alone, which `textbook.py` has."""
    few = few_rows(len(y))
    columns = with_many_values(X[few])
    shapes = [shape for shape in _SHAPES if functions.allows({*shape.operators, "add", "mul"})]
    kinds = categories(X)
    numbers = [k for k in independent_columns(X) if not any(k in kind for kind in kinds)]
    others = len(kinds) + len(numbers)
    if not columns or not shapes or not 2 <= others <= CURVE_SUMS.most_columns:
        return []
    grids = []
    for k in columns:
        beside = [j for j in (*numbers, *(j for kind in kinds for j in kind)) if j != k]
        for shape in shapes:
            with np.errstate(all="ignore"):  # what is beyond the numbers is no curve
                best = _best_beside(shape, X[few, k], X[few][:, beside], y[few], weights[few])
            if best is not None:
                grids.append((best[0], k, shape, best[1]))
    asked = few_rows(len(y), CURVE_SUMS.rows)
    rows = X[asked], y[asked], weights[asked]
    grids.sort(key=lambda each: each[0])
    nats = math.log(len(shapes) * len(columns) + 1)
    answers: list[tuple[float, TextbookCurve]] = []
    leading = [(k, shape, inside) for _, k, shape, inside in grids[: CURVE_SUMS.asked]]
    # a column that scales a power is not seen beside it, where curves that bend as they like come closer: powers of the best
    # few columns are asked in any case, from where their exponents are fitted, as plain ones are not
    powers = [(k, shape, (b[0] + CURVE_SUMS.aside,)) for _, k, shape, b in grids if shape.operators == {"pow"}]
    for k, shape, inside in [*leading, *powers[: CURVE_SUMS.powers]]:
        found = _with_blocks(shape, k, inside, [j for j in numbers if j != k], kinds, *rows)
        if found is not None:
            answers.append((found[0], TextbookCurve(found[1], nats + found[2])))
    answers.sort(key=lambda each: each[0] + each[1].nats)
    kept = [curve for length, curve in answers[: CURVE_SUMS.kept] if math.isfinite(length)]
    if len(asked) == len(y):
        return kept
    return [replace(curve, root=fitted_curve(curve.root, X, y, weights)[0]) for curve in kept]


def _best_beside(
    shape: Shape, x: FloatArray, others: FloatArray, y: FloatArray, weights: FloatArray
) -> tuple[float, tuple[float, ...]] | None:
    """Nats of what a curve leaves beside the columns themselves, and what stands inside it."""
    inside = shape.inside(x)
    if not len(inside) or len(y) < TEXTBOOK.rows_per_constant * (others.shape[1] + inside.shape[1] + 2):
        return None
    values = np.broadcast_to(shape.parts(x, tuple(each[:, None] for each in inside.T))[0], (len(inside), len(x)))
    root = np.sqrt(weights)
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(y)), others]) * root[:, None])
    left = y * root - basis @ (basis.T @ (y * root))
    curves = np.where(np.isfinite(values), values, 0.0) * root
    curves = curves - (curves @ basis) @ basis.T
    curves[~np.isfinite(values).all(axis=1)] = np.nan
    tables = curves[:, :, None]
    _, lengths = fitted_tables(tables, left, np.ones(len(y)), inside.shape[1] + 1)
    best = int(np.argmin(lengths))
    return (float(lengths[best]), tuple(inside[best].tolist())) if math.isfinite(lengths[best]) else None


def _with_blocks(
    shape: Shape,
    k: int,
    inside: tuple[float, ...],
    numbers: Sequence[int],
    kinds: Sequence[Sequence[int]],
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray,
) -> tuple[float, Node, float] | None:
    """A curve with the others that the rows ask for: its nats, its tree, and the nats that say which; None without any."""
    with np.errstate(all="ignore"):
        values = shape.parts(X[:, k], tuple(np.full((1, 1), each) for each in inside))[0].reshape(-1)
    if not np.isfinite(values).all():
        return None
    curve = Variable(X.shape[1])
    blocks = [Block((curve,), values[:, None])]
    for columns in [[j] for j in numbers] + [list(kind) for kind in kinds]:
        own = reference_of(X, columns) if len(columns) > 1 else None
        names, reference = tuple(Variable(j) for j in columns), None if own is None else (Variable(own), X[:, own])
        blocks.append(Block(names, X[:, columns], reference=reference))
        products = tuple(build("mul", name, curve) for name in names)
        scaled = None if reference is None else (build("mul", reference[0], curve), reference[1] * values)
        blocks.append(Block(products, X[:, columns] * values[:, None], reference=scaled))
    most = len(y) // TEXTBOOK.rows_per_constant - len(inside) - 2
    *_, chosen = [frozenset({0}), *stepwise(blocks, y, weights, most=most, first=frozenset({0}))]
    if len(chosen) == 1:
        return None
    merged = merged_kinds(blocks, chosen, y, weights)
    terms = merged[-1].terms if merged else terms_of(blocks, chosen)
    nats = stated(len(blocks) - 1, len(chosen) - 1) + (merged[-1].nats if merged else 0.0)

    def fitted(terms: Sequence[Term]) -> tuple[float, Node]:
        found = [_fitted(shape, k, inside, terms, curve, X, y, weights, with_level) for with_level in (True, False)]
        return min(found, key=lambda each: each[0])

    length, root = fitted(terms)
    # what stands inside was that of a grid: what made up for it goes, the least first
    for term in _by_size(terms, y, weights):
        fewer = [each for each in terms if each[0] != term]
        if not _has_scale_and_more(fewer, curve):
            continue
        shorter = fitted(fewer)
        if not shorter[0] < length:
            break
        terms, (length, root) = fewer, shorter
    return length, root, nats


def _by_size(terms: Sequence[Term], y: FloatArray, weights: FloatArray) -> list[Node]:
    """The terms of a sum, those first that least of the target hangs on."""
    root = np.sqrt(weights)
    table = np.column_stack([*(values for _, values in terms), np.ones(len(y))]) * root[:, None]
    sizes = np.abs(factors_of(table, y * root)[:-1]) * np.std(table[:, :-1], axis=0)
    return [terms[i][0] for i in np.argsort(sizes, kind="stable")]


def _has_scale_and_more(terms: Sequence[Term], curve: Variable) -> bool:
    """Whether terms are a curve, scaled or not, and something of another column."""
    of_curve = [term for term, _ in terms if term == curve or (isinstance(term, Call) and curve in term.args)]
    return bool(of_curve) and [term for term, _ in terms] != [curve]


def _fitted(
    shape: Shape,
    k: int,
    inside: tuple[float, ...],
    terms: Sequence[Term],
    curve: Variable,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    with_level: bool,
) -> tuple[float, Node]:
    """The nats and the tree of a curve whose scale and level are sums of terms, all constants fitted."""
    root = np.sqrt(weights)
    ones = [np.ones(len(y))] * with_level
    factors = factors_of(np.column_stack([*(values for _, values in terms), *ones]) * root[:, None], y * root)
    scale: list[Node] = []
    level: list[Node] = []
    for factor, (term, _) in zip(factors, terms, strict=False):
        of_curve = term == curve or (isinstance(term, Call) and curve in term.args)
        column = term.args[0] if isinstance(term, Call) else term
        written = Constant(float(factor)) if term == curve else build("mul", Constant(float(factor)), column)
        (scale if of_curve else level).append(written)
    level += [Constant(float(factors[-1]))] * with_level
    is_written = len(shape.parts(X[:1, k], tuple(np.full((1, 1), each) for each in inside))) > 1
    if is_written and not level:
        return math.inf, curve
    tree = shape.tree(Variable(k), [_SCALE, _LEVEL] if is_written else [_SCALE], inside)
    if level and not is_written:
        tree = build("add", tree, Constant(_LEVEL))
    places = {_SCALE: _sum(scale), _LEVEL: _sum(level)} if level else {_SCALE: _sum(scale)}
    tree = transform(tree, lambda leaf: places.get(leaf.value, leaf) if isinstance(leaf, Constant) else leaf)
    fitted, length = fitted_curve(tree, X, y, weights)
    return length, fitted


def _sum(terms: Sequence[Node]) -> Node:
    return build("add", *terms) if len(terms) > 1 else terms[0]
