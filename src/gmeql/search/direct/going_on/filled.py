"""Formulas that are right but for one part: that part is read off, and looked up.

Of every formula found so far each place has a target of its own (`holes.py`). Three quick questions are asked of all of them
at once: is it a product of powers, is it (or a reading of it) a sum of plain terms, is it two small formulas that meet in the
middle. So g*w*cos(p) is seen in what m*B*sin(t) leaves, and the g*w in the 6.21 of m*B*sin(t) - 6.21*cos(p).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

import numpy as np

from gmeql.formula.nodes import Constant, Leaf, Node, Variable, build, fold, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.going_on.holes import holes
from gmeql.search.direct.middle.meeting import Target, met_in_one_step, small_formulas
from gmeql.search.direct.middle.small_formulas import SmallFormulas
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.sums.vocabulary import VOCABULARY, Span, sum_of
from gmeql.search.direct.table import DirectTable, Effort, FloatArray
from gmeql.search.direct.terms.column_functions import PLAIN_TERMS
from gmeql.search.direct.terms.library import vocabulary


@dataclass(frozen=True)
class FilledConfig:
    """Numbers of the method; speeds are those of one core (measured)."""

    rows: int = 500
    """Rows that places are read off on; what is found is verified on all."""
    max_columns: int = 10
    holes_per_second: float = 2_500.0
    most_holes: int = 1_000
    read_share: float = 0.3
    """Of the places, those of the best formulas, that are read in every way; the others are asked for products of powers."""
    plain_numbers: tuple[float, ...] = (0.25, 1 / 3, 0.5, 2 / 3, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0)
    near: float = 0.05
    """Constants this near to a plain number, relative to it, may be that number."""
    terms: int = 350
    """Terms that a part may be a sum of, ..."""
    plain: float = 0.45
    """... the share of them that are plain terms of the library; the others are the smallest formulas."""
    exact: float = 1e-9
    """Error, relative to the size of the place's target, up to which a part is taken for found."""
    whole: float = 1e-7
    """Exponents of a product of powers are taken for multiples of a half this near to one."""
    verified: float = 1e-8
    """Error of the whole formula on all rows, relative to the target's spread."""
    found: int = 6
    """Parts that are tried, ..."""
    proposed: int = 3
    """... and whole formulas proposed, the shortest."""


FILLED = FilledConfig()


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """Formulas found so far with one part exchanged that makes them exact, the simplest first. Draws nothing."""
    if not table.found or not 1 <= table.n_columns <= FILLED.max_columns or not functions.allows({"add", "mul", "div"}):
        return
    seen = replace(table, X=table.X[: FILLED.rows], y=table.y[: FILLED.rows], weights=table.weights[: FILLED.rows])
    most = min(int(effort.seconds * FILLED.holes_per_second), FILLED.most_holes)
    places: list[Target] = []
    forms = dict.fromkeys(form for root in table.found for form in (plainer(root), root))
    for form in forms:
        places += holes(form, seen)
        if len(places) >= most or effort.out_of_time():
            break
    places = places[:most]
    for found in (_powers(places, seen), _more(places, seen, functions, effort)):
        exact = [root for root in islice(found, FILLED.found) if table.error(root) < FILLED.verified]
        if exact or effort.out_of_time():
            yield from sorted(exact, key=tree_complexity)[: FILLED.proposed]
            return


def plainer(root: Node) -> Node:
    """A formula with constants that are nearly plain numbers as these: what is missing elsewhere has bent them.

    >>> from gmeql.formula.nodes import Constant, Variable, build
    >>> plainer(build("mul", Constant(1.0033), build("sqrt", Variable(0))))
    Call('sqrt', (Variable(index=0),))
    """

    def leaf(node: Leaf) -> Node:
        if not isinstance(node, Constant) or node.value == 0.0:
            return node
        near = min(FILLED.plain_numbers, key=lambda number: abs(number - abs(node.value)))
        is_near = abs(near - abs(node.value)) < FILLED.near * near
        return Constant(math.copysign(near, node.value)) if is_near else node

    return fold(root, leaf, lambda call, args: build(call.operator, *args))


def _more(places: Sequence[Target], table: DirectTable, functions: FunctionSet, effort: Effort) -> Iterator[Node]:
    """Places that small formulas make, as a sum of many or as two that meet."""
    places = places[: max(1, int(FILLED.read_share * len(places)))]
    small = small_formulas(table, functions, effort)
    if small is not None and places:
        yield from _sums(places, table, small, functions, effort)
        if not effort.out_of_time():
            yield from met_in_one_step(table, places, small, functions=functions, effort=effort)


def _powers(places: Sequence[Target], table: DirectTable) -> Iterator[Node]:
    """Places that are a product of powers of the columns: linear in the columns' logarithms."""
    usable = np.flatnonzero((table.X != 0).all(axis=0))
    signed = [hole for hole in places if (hole.values > 0).all() or (hole.values < 0).all()]
    if not len(usable) or not signed:
        return
    A = np.column_stack([np.ones(len(table.y)), np.log(np.abs(table.X[:, usable]))])
    logs = np.log(np.abs(np.column_stack([hole.values for hole in signed])))
    solved = np.linalg.lstsq(A, logs, rcond=None)[0]
    errors = np.sqrt(np.mean((A @ solved - logs) ** 2, axis=0))
    for k in np.flatnonzero(errors < FILLED.exact):
        powers = {int(j): _rounded(float(p)) for j, p in zip(usable, solved[1:, k], strict=True)}
        product = build("mul", *(_power(table, j, p) for j, p in powers.items() if p))
        values = table.values(product)
        factor = float(signed[k].values @ values / (values @ values)) if np.isfinite(values).all() else math.nan
        if math.isfinite(factor):
            yield signed[k].restore(build("mul", Constant(factor), product))


def _power(table: DirectTable, column: int, power: float) -> Node:
    """A power of a column, of its size where a broken power of its negative values is none."""
    is_real = power % 1 == 0 or bool((table.X[:, column] > 0).all())
    base = Variable(column) if is_real else build("abs", Variable(column))
    return build("pow", base, Constant(power))


def _rounded(power: float) -> float:
    """The multiple of a half that an exponent is, or the exponent."""
    near = round(2 * power) / 2
    return near if abs(near - power) < FILLED.whole else power


@dataclass(frozen=True)
class _Asked:
    """Plain terms and the smallest formulas, so many together, on rows X; told from others by what decides their values."""

    told_by: tuple[object, ...]
    X: FloatArray = field(compare=False)
    functions: FunctionSet = field(compare=False)
    small: SmallFormulas = field(compare=False)
    most: int = field(compare=False)

    @classmethod
    def of(cls, X: FloatArray, functions: FunctionSet, small: SmallFormulas, most: int) -> _Asked:
        told_by = (functions, X.shape, X.tobytes(), most, small.formulas[: min(most, len(small.values))].tobytes())
        return cls(told_by, X, functions, small, most)


@lru_cache(maxsize=1)
def _span(asked: _Asked) -> Span:
    """What they span: the same each time that the method goes on from other formulas."""
    numbers = replace(PLAIN_TERMS, most_terms=int(FILLED.plain * asked.most))
    plain, small = vocabulary(asked.X, asked.functions.allows, numbers=numbers), asked.small
    n_small = max(min(asked.most, len(small.values)) - len(plain.values), 0)

    def node(k: int) -> Node:
        return plain.node(k) if k < len(plain.values) else small.tree(k - len(plain.values))

    return Span(np.concatenate([plain.values, small.values_on(asked.X, n_small)]), node)


def _sums(
    places: Sequence[Target], table: DirectTable, small: SmallFormulas, functions: FunctionSet, effort: Effort
) -> Iterator[Node]:
    """Places that are a sum of plain terms and small formulas, or of which a reading is one."""
    most = min(FILLED.terms, int((len(table.y) - VOCABULARY.spare_rows) / VOCABULARY.rows_per_term))
    if most <= table.n_columns or not (np.abs(table.X).max(axis=0) > 0).all():
        return
    span = copy.copy(_span(_Asked.of(table.X, functions, small, most)))  # it counts what was looked for in vain
    read = [(hole, name, target) for hole in places for name, target in direct_readings(hole.values, functions).items()]
    if not read:
        return
    targets = np.column_stack([target for *_, target in read])
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.sqrt(np.mean(targets**2, axis=0))
        left = np.sqrt(np.mean(span.left(targets) ** 2, axis=0))
    for k in np.flatnonzero(left < FILLED.exact * sizes):
        hole, name, target = read[k]
        found = None if effort.out_of_time() else span.sparse(target)
        if found is not None:
            yield hole.restore(DIRECT_READINGS[name].invert(sum_of(found), 1.0 if hole.values.mean() >= 0 else -1.0))
