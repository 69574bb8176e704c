"""Tables that stated constraints allow: what is even in x is a function of x², what vanishes with x is x times another.

As with units every formula over such a table keeps the constraint, and nothing that keeps it is lost: an even function
reads x², an odd one is x times an even one, one that two columns may be exchanged in reads their sum and product, and one
that is zero where a column is has that column as a factor.
"""

from __future__ import annotations

import numpy as np

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.knowledge.constraints import Constraint, Exchangeable, Mirrored, Point
from gmeql.search.symmetries.views import View


def stated_view(
    constraints: tuple[Constraint, ...], names: tuple[str, ...], X: np.ndarray, y: np.ndarray
) -> View | None:
    """The one table that all hard constraints of these kinds allow together; None where there is none.

    X [N, V], y [N]. A factor that is zero on a row is left out: nothing can be divided by it.
    """
    columns: list[Node] = [Variable(i) for i in range(len(names))]
    factor: Node = Constant(1.0)
    changed: set[int] = set()
    for constraint in constraints:
        if constraint.soft:
            continue
        if isinstance(constraint, Mirrored):
            i = names.index(constraint.column)
            if i in changed:
                continue
            if constraint.odd:
                if not (X[:, i] != 0).all():
                    continue
                factor = build("mul", factor, Variable(i))
            columns[i] = build("square", Variable(i))
            changed.add(i)
        elif isinstance(constraint, Exchangeable):
            i, j = names.index(constraint.first), names.index(constraint.second)
            if not changed & {i, j}:
                columns[i] = build("add", Variable(i), Variable(j))
                columns[j] = build("mul", Variable(i), Variable(j))
                changed |= {i, j}
        elif isinstance(constraint, Point) and constraint.value == 0.0 and len(constraint.at) == 1:
            name, value = constraint.at[0]
            shifted = build("sub", Variable(names.index(name)), Constant(value))
            if (X[:, names.index(name)] != value).all():
                factor = build("mul", factor, shifted)
    view = View(tuple(columns), factor)
    if view.is_raw_of(X.shape[1]):
        return None
    with np.errstate(all="ignore"):
        finite = np.isfinite(view.table(X)).all() and np.isfinite(y / view.factors(X)).all()
    return view if finite else None
