"""Short forms, all of them: products of powers times one function of a product of powers, each fitted before any is chosen.

Under noise many short formulas fit nearly alike: 1/sqrt(1 - u**2), 1/cos(u) and fractions of u differ by less than the
noise on most rows. Which of them an island meets, and how well converged, is chance; which of them is right is not. Here
all forms q, q f(a u), q f(a u) + c and q (f(a u) + c) of a small table are screened in closed form over a grid of a, and
those that come near the best are fitted to convergence and compared by their description length.

Legend: `N` rows, `Q` products q, `A` functions f(a u) with their a.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, calls, row_values, tree_complexity
from gmeql.network.families import FunctionSet
from gmeql.search.direct.comparing import COMPARING, briefest
from gmeql.search.direct.least_squares import Solved, with_second
from gmeql.search.direct.table import DirectTable, Effort
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.recognition import is_recognised
from gmeql.search.polish.scoring import JudgedRows, refit

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FormsConfig:
    """Numbers of the method."""

    screened: int = 150  # rows that forms are screened on
    rows: int = 500  # and fitted on
    few_rows: int = 20
    inner: tuple[tuple[float, ...], ...] = (
        (0, 1, 2, 3, -1, -2, 0.5, -0.5),
        (0, 1, 2, -1, -2, 0.5),
        (0, 1, -1, 2),
    )  # exponents of columns inside a function, for tables of one, two and three columns
    outer: tuple[tuple[float, ...], ...] = (
        (0, 1, 2, 3, 4, -1, -2, -3, -4, 0.5, -0.5, 1.5, -1.5),
        (0, 1, 2, 3, -1, -2, -3, 0.5, -0.5),
        (0, 1, -1, 2, -2),
    )  # and before it
    sizes: tuple[float, ...] = (0.1, 0.3, 0.6, 0.95, 1.6, 3, 6)  # of a times the largest u,
    steep: tuple[float, ...] = (2.2, 4.2, 8, 11, 15, 20, 28)  # and of exponentials, which may end long before that
    fitted: int = 120  # forms fitted to convergence,
    plain: float = 0.5  # of which at most this share are functions of one column: no grid of a is too coarse for those
    steps: int = 40
    flops: float = 4e9  # multiplications a second of one core (measured)
    seconds_per_value: float = 2e-5  # of one function on the screened rows (measured)
    seconds_per_fit: float = 1e-3  # of one form (measured)


FORMS = FormsConfig()


def _shapes(v: Node) -> list[tuple[bool, Node]]:
    """Functions of v = a u, and whether a negative a gives another one."""
    one_plus = build("add", Constant(1.0), v)
    exponential = build("exp", v)
    return [
        (True, build("inv", one_plus)),
        (True, build("sqrt", one_plus)),
        (True, build("inv", build("sqrt", one_plus))),
        (True, build("square", one_plus)),
        (True, build("inv", build("square", one_plus))),
        (True, build("pow", one_plus, Constant(1.5))),
        (True, build("pow", one_plus, Constant(-1.5))),
        (True, build("log", one_plus)),
        (True, exponential),
        (True, build("inv", build("sub", exponential, Constant(1.0)))),
        (True, build("inv", build("add", exponential, Constant(1.0)))),
        (False, build("sin", v)),
        (False, build("cos", v)),
        (False, build("square", build("sin", v))),
        (False, build("inv", build("cos", v))),
        (False, build("tanh", v)),
        (False, build("log", v)),
    ]


_SHAPES = _shapes(Variable(0))


class _Function(NamedTuple):
    """One f(a u): shape, a and u, the number of shape and u, its values [N], its complexity."""

    shape: Node
    factor: float
    argument: Node
    number: int
    values: FloatArray
    complexity: int

    @property
    def node(self) -> Node:
        """The formula."""
        return _put(self.shape, build("mul", Constant(self.factor), self.argument))

    @property
    def is_plain(self) -> bool:
        """Whether u is a column."""
        return isinstance(self.argument, Variable)

    @property
    def n_tuned(self) -> int:
        """Whether a is not a plain number."""
        return int(not is_recognised(self.factor))


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """The short forms of least description length that fit better than anything so far. Draws nothing at random."""
    n = min(len(table.y), FORMS.rows)
    if not 1 <= table.n_columns <= len(FORMS.inner) or n < FORMS.few_rows or not functions.allows({"mul"}):
        return
    names = [f"x{i}" for i in range(table.n_columns)]
    rows = JudgedRows.of(table.X[:n], table.y[:n], table.weights[:n], names)
    m = min(n, FORMS.screened)
    few = JudgedRows.of(table.X[:m], table.y[:m], table.weights[:m], names)
    products = _products(few, FORMS.outer[table.n_columns - 1], functions)
    arguments = _products(few, FORMS.inner[table.n_columns - 1], functions)[1:]
    # few shapes take steep factors too, and some only positive ones
    n_functions = 2 * len(_SHAPES) * len(arguments) * (1 + len(FORMS.sizes))
    cost = n_functions * (FORMS.seconds_per_value + 6 * len(products) * len(few.target) / FORMS.flops)
    cost += COMPARING.rounded * COMPARING.seconds_per_rounding
    n_fitted = min(FORMS.fitted, int((effort.seconds - cost) / FORMS.seconds_per_fit))
    if n_fitted < COMPARING.rounded or effort.out_of_time():
        return
    with np.errstate(all="ignore"):
        nearest = _nearest(few, products, _functions(few, arguments, functions), n_fitted, functions)
    fitted = refit(nearest, rows, max_steps=FORMS.steps)
    yield from briefest(fitted, table, rows, effort.out_of_time, n_tried=n_functions * len(products))


def _products(rows: JudgedRows, exponents: Sequence[float], functions: FunctionSet) -> list[tuple[Node, FloatArray]]:
    """Products of powers of the columns with finite values that are not all 0, as of two kinds of a category; the constant 1
    first."""
    found = []
    for powers in itertools.product(exponents, repeat=rows.n_variables):
        factors = [build("pow", Variable(j), Constant(float(p))) for j, p in enumerate(powers) if p]
        node = build("mul", Constant(1.0), *factors)
        values = row_values(node, rows.names, rows.X)
        if np.isfinite(values).all() and values.any() and functions.allows({call.operator for call in calls(node)}):
            found.append((node, values))
    return sorted(found, key=lambda one: tree_complexity(one[0]))


def _functions(
    rows: JudgedRows, arguments: Sequence[tuple[Node, FloatArray]], functions: FunctionSet
) -> list[_Function]:
    """All functions of all arguments with all constants that are finite on the rows."""
    one = Constant(1.0)
    found: list[_Function] = [_Function(one, 1.0, one, 0, np.ones(len(rows.target)), tree_complexity(one))]
    v = Variable(0)
    for (both, shape), (node, values) in itertools.product(_SHAPES, arguments):
        if not functions.allows({call.operator for call in calls(shape)}):
            continue
        number = len(found)
        largest = float(np.abs(values).max())
        # a logarithm has no use for a
        sizes = (largest,) if shape == build("log", v) else (largest, *FORMS.sizes)
        sizes += FORMS.steep if any(call.operator == "exp" for call in calls(shape)) else ()
        factors = [sign * (size / largest) for size in sizes for sign in ((1.0, -1.0) if both else (1.0,))]
        own = row_values(shape, ("v",), np.outer(factors, values).reshape(-1, 1)).reshape(len(factors), -1)
        usable = np.isfinite(own).all(axis=1) & (np.ptp(own, axis=1) > 0)
        complexities = {is_one: tree_complexity(_put(shape, build("mul", Constant(a), node)))
                        for is_one, a in ((True, 1.0), (False, 2.5))}  # fmt: skip
        found += [
            _Function(shape, factor, node, number, own[i], complexities[factor == 1.0])
            for i, factor in enumerate(factors)
            if usable[i]
        ]
    return found


def _put(shape: Node, argument: Node) -> Node:
    """A shape with an argument in place of its variable."""
    if isinstance(shape, Call):
        return Call(shape.operator, tuple(_put(arg, argument) for arg in shape.args), shape.protected)
    return argument if isinstance(shape, Variable) else shape


def _nearest(
    rows: JudgedRows,
    products: Sequence[tuple[Node, FloatArray]],
    found: Sequence[_Function],
    n: int,
    functions: FunctionSet,
) -> list[Node]:
    """The `n` forms of least description length with factor and offset solved for, one for each shape and argument."""
    w, y = rows.weights, rows.target
    Q, F = np.stack([values for _, values in products]), np.stack([one.values for one in found])
    total, y1, yy = float(np.sum(w)), float(np.sum(w * y)), float(np.sum(w * y * y))
    yf, ff, f1 = (w * y * Q) @ F.T, (w * Q * Q) @ (F * F).T, (w * Q) @ F.T
    yq, qq, qf = ((w * y) @ Q.T)[:, None], np.sum(w * Q * Q, axis=1)[:, None], (w * Q * Q) @ F.T
    kinds = [
        Solved(yf / ff, np.zeros_like(yf), yy - yf**2 / ff),
        with_second(yy, yf, ff, np.full_like(yq, y1), np.full_like(qq, total), f1),  # s q f + c
        with_second(yy, yf, ff, yq, qq, qf),  # q (s f + c)
    ]
    if not functions.allows({"add"}):
        kinds = kinds[:1]
    inner = np.array([one.n_tuned for one in found])
    symbols = np.array([tree_complexity(node) for node, _ in products])[:, None] + np.array(
        [one.complexity for one in found]
    )
    lengths = []
    for kind, solved in enumerate(kinds):
        loss = np.where(np.isfinite(solved.squares), np.maximum(solved.squares / total, rows.floor), math.inf)
        constants = 1 + inner + (kind > 0)
        nats = 0.5 * len(y) * np.log(loss) + 0.5 * math.log(len(y)) * constants
        lengths.append(nats + POLISH.node_cost * (symbols + 2 * (1 + (kind > 0))))
    by_length = np.stack(lengths)
    order = np.argsort(by_length, axis=None, kind="stable")
    alone = order[order < len(found)]  # s f: the first kind, without a product before the function
    plain = alone[[found[f].is_plain for f in alone]]
    chosen = _one_of_each([(plain, int(FORMS.plain * n)), (order, n)], by_length, kinds, products, found)
    return list(chosen.values())


def _one_of_each(
    orders: Sequence[tuple[NDArray[np.int64], int]],
    lengths: FloatArray,
    kinds: Sequence[Solved],
    products: Sequence[tuple[Node, FloatArray]],
    found: Sequence[_Function],
) -> dict[tuple[int, int, int, int], Node]:
    """The first forms of each order (places in `lengths` [kinds, Q, A]) until there are so many, each shape and argument
    with its best constant only."""
    chosen: dict[tuple[int, int, int, int], Node] = {}
    for order, n in orders:
        for place in order:
            kind, q, f = (int(i) for i in np.unravel_index(place, lengths.shape))
            if len(chosen) >= n:
                break
            key = kind, q, found[f].number, found[f].n_tuned
            if key in chosen or (kind == 2 and f == 0) or not math.isfinite(float(lengths[kind, q, f])):
                continue
            factor, offset = (Constant(float(part[q, f])) for part in kinds[kind][:2])
            product, function = products[q][0], found[f].node
            if kind == 2:
                chosen[key] = build("mul", product, build("add", build("mul", factor, function), offset))
            else:
                chosen[key] = build("add", build("mul", factor, product, function), offset)
    return chosen
