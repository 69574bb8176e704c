"""Terms of a law: products of fields and derivatives, each with its integral form where it has one.

Legend: columns are coordinates, fields and derivatives, as `Jets` names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from gmeql.differential.fields.config import FIELDS
from gmeql.differential.fields.derivatives import Jets, Orders, all_orders
from gmeql.differential.fields.grid import FloatArray, Grid
from gmeql.differential.fields.weak import Bumps
from gmeql.formula.calculus import differentiate
from gmeql.formula.nodes import Constant, Node, Variable, build, row_values, used_columns
from gmeql.formula.products import as_product, new_terms, write_product
from gmeql.formula.simplify import simplify

ONE = Constant(1.0)


@dataclass(frozen=True)
class Term:
    """A term as a formula over columns; `factor * D^orders(inner)` is the same where `inner` is given."""

    root: Node
    factor: Node = ONE
    orders: Orders = ()
    inner: Node | None = None
    """Fields only, no derivatives."""


def total_derivative(root: Node, axis: int, jets: Jets) -> Node:
    """Derivative along an axis of a formula over columns: the chain rule with the next derivatives."""
    parts = []
    for column in used_columns(root):
        jet = jets.jets[column]
        if jet is None:
            inner: Node = ONE if column == axis else Constant(0.0)
        else:
            field, orders = jet
            inner = Variable(jets.index(field, (*orders[:axis], orders[axis] + 1, *orders[axis + 1 :])))
        parts.append(build("mul", differentiate(root, column), inner))
    return build("add", *parts) if len(parts) > 1 else parts[0] if parts else Constant(0.0)


def library(jets: Jets, grid: Grid, order: int, coordinates: Sequence[int] = ()) -> list[Term]:
    """Derivatives of products of fields, products of derivatives, and 1: what a law is a sum of most often.

    Along axes in `coordinates` the law may change: derivatives times powers of the coordinate are on offer, too, as in
    the radial part of a Laplacian.
    """
    S, F = grid.dimensions, len(grid.names)
    terms = [Term(ONE)]
    for degree in range(1, FIELDS.degree + 1):
        highest = order if degree == 1 else min(order, 2)
        for chosen in combinations_with_replacement(range(F), degree):
            columns = [S + f for f in chosen]
            inner = write_product(1.0, {Variable(c): float(columns.count(c)) for c in columns})
            for orders in all_orders(S, highest):
                if degree > 1 and sum(o > 0 for o in orders) > 1:
                    continue  # mixed derivatives of products are rare, and many
                root = inner
                for axis, k in enumerate(orders):
                    for _ in range(k):
                        root = total_derivative(root, axis, jets)
                terms.append(Term(simplify(root), ONE, orders, inner))
    first = [c for c, jet in enumerate(jets.jets) if jet is not None and sum(jet[1]) == 1]
    second = [c for c, jet in enumerate(jets.jets) if jet is not None and sum(jet[1]) == 2 and max(jet[1]) == 2]
    pairs = list(combinations_with_replacement(first, 2))
    pairs += [(S + f, c) for f in range(F) for c in second]
    pairs += [(a, b) for a in first for b in second] if S == 1 else []
    terms += [
        with_integral_form(write_product(1.0, {Variable(axis): float(power), Variable(column): 1.0}), jets)
        for axis in coordinates
        for power in FIELDS.coordinate_powers
        if power > 0 or grid.axes[axis][0] > 0 or grid.axes[axis][-1] < 0
        for column in (*range(S, S + F), *first, *second)
    ]
    known = {term.root for term in terms}
    products = [write_product(1.0, {Variable(c): float(pair.count(c)) for c in pair}) for pair in pairs]
    return terms + [Term(root) for root in dict.fromkeys(products) if root not in known]


def found_terms(roots: Iterable[Node], known: Sequence[Term], jets: Jets) -> list[Term]:
    """Terms of formulas that are not on offer yet, with an integral form where one is seen."""
    new = new_terms(roots, (term.root for term in known), most=FIELDS.found_terms)
    return [with_integral_form(term, jets) for term in new]


def with_integral_form(root: Node, jets: Jets) -> Term:
    """`g(x) * u**p * u_x` as g * D(u**(p+1)/(p+1)), and `g(x) * u_xx...` as g * D²...(u)."""
    _, powers = as_product(root)
    factor: dict[Node, float] = {}
    fields: dict[Node, float] = {}
    derivative: tuple[int, Orders] | None = None
    for base, exponent in powers.items():
        kinds = {None if jets.jets[c] is None else sum(jets.jets[c][1]) for c in used_columns(base)}  # type: ignore[index]
        if kinds <= {None}:
            factor[base] = exponent
        elif kinds == {0}:
            fields[base] = exponent
        elif isinstance(base, Variable) and exponent == 1.0 and derivative is None:
            derivative = jets.jets[base.index]
        else:
            return Term(root)
    if derivative is None:  # no derivative to move
        return Term(root)
    field, orders = derivative
    own = Variable(jets.index(field, (0,) * len(orders)))
    power = fields.pop(own, 0.0)
    if fields or power < 0 or (power > 0 and sum(orders) > 1):
        return Term(root)
    inner = write_product(1.0 / (power + 1.0), {own: power + 1.0})
    return Term(root, write_product(1.0, factor) if factor else ONE, orders, inner)


def noise_gain(term: Term, bumps: Bumps, jets: Jets, grid: Grid) -> FloatArray:
    """What noise of size 1 in each field makes of a term's rows, root mean square [F]; 0 where it is not known."""
    if term.inner is None:
        return np.zeros(len(grid.names))
    S = grid.dimensions
    table = np.stack([column.reshape(-1) for column in (*jets.columns[:S], *jets.smooth)], axis=1)
    names = jets.names[: table.shape[1]]
    slopes = [build("mul", term.factor, differentiate(term.inner, S + f)) for f in range(len(grid.names))]
    sizes = [float(np.sqrt(np.mean(row_values(slope, names, table) ** 2))) for slope in slopes]
    return np.array(sizes) * bumps.length((*term.orders, 0))


def term_rows(term: Term, bumps: Bumps, jets: Jets, grid: Grid) -> FloatArray:
    """The right side that a term makes for every bump [R]."""
    S, shape = grid.dimensions, grid.values.shape[1:]

    def values(root: Node, columns: Sequence[FloatArray]) -> FloatArray:
        table = np.stack([column.reshape(-1) for column in columns], axis=1)
        return row_values(root, jets.names[: len(columns)], table).reshape(shape)

    if term.inner is None:
        return bumps.plain(values(term.root, jets.columns))
    measured = [*jets.columns[:S], *grid.values]

    def factor(orders: Orders) -> FloatArray | float:
        root = term.factor
        for axis, k in enumerate(orders):
            for _ in range(k):
                root = differentiate(root, axis)
        return root.value if isinstance(root, Constant) else values(root, measured)

    return bumps.by_parts(factor, term.orders, values(term.inner, measured))
