"""How much a formula's structure takes to state, in nats: the price of the luckiest of many.

A search tries thousands of formulas, and each symbol multiplies how many there are, so each is paid for. A sum of columns
is not one of thousands: with `k` of `V` columns there are C(V, k) of them, and stating how many and which takes
`log(V + 1) + log C(V, k)`; past half of the columns it stays there, so that a longer sum never costs less. That is why
many weak columns together can be worth their place.
"""

from __future__ import annotations

import math
from functools import lru_cache

from gmeql.formula.nodes import Call, Constant, Node, Variable, leaves, tree_complexity


def structure_nats(root: Node, n_columns: int, *, node_cost: float) -> float:
    """Nats to state the structure of a formula over a table of `n_columns`; `node_cost` for a unit of complexity.

    >>> from gmeql.formula.nodes import build
    >>> line = build("add", Constant(1.5), *(build("mul", Constant(2.5), Variable(i)) for i in range(6)))
    >>> structure_nats(line, 10, node_cost=1.0) < tree_complexity(line) == 25
    True
    """
    symbols = node_cost * tree_complexity(root)
    columns = linear_columns(root)
    if columns is None:
        return symbols
    n_columns = max(n_columns, len(columns))
    chosen = math.comb(n_columns, min(len(columns), n_columns // 2))
    return min(symbols, math.log(n_columns + 1) + math.log(chosen))


@lru_cache(maxsize=10_000)
def linear_columns(root: Node) -> frozenset[int] | None:
    """The columns that a formula is a sum of multiples of, with or without a constant; None where it is no such sum.

    >>> from gmeql.formula.nodes import build
    >>> sorted(linear_columns(build("sub", build("mul", Constant(2.0), Variable(3)), Variable(0))))
    [0, 3]
    >>> linear_columns(build("mul", Variable(0), Variable(1))) is None
    True
    """
    if isinstance(root, Constant):
        return frozenset()
    if isinstance(root, Variable):
        return frozenset({root.index})
    assert isinstance(root, Call)
    parts = [linear_columns(arg) for arg in root.args]
    if root.protected or any(part is None for part in parts):
        return None
    varying = [bool(part) for part in parts]
    linear = (
        root.operator in ("add", "sub", "neg")
        or (root.operator == "mul" and sum(varying) <= 1)
        or (root.operator == "div" and not varying[1])
    )
    return frozenset().union(*(part for part in parts if part)) if linear else None


def unwritten_factors(root: Node) -> int:
    """Factors of 1 that are not written but were chosen all the same: under noise they cost what fitted ones do.

    Of a sum of columns those of columns that stand alone; of any other formula one, where it has no constant at all.

    >>> from gmeql.formula.nodes import build
    >>> unwritten_factors(build("add", Variable(0), Constant(1.85))), unwritten_factors(build("sin", Variable(0)))
    (1, 1)
    >>> unwritten_factors(build("mul", Constant(1.85), Variable(0))), unwritten_factors(Constant(1.85))
    (0, 0)
    """
    if linear_columns(root) is None:
        return int(not any(isinstance(leaf, Constant) for leaf in leaves(root)))
    parts = root.args if isinstance(root, Call) and root.operator in ("add", "sub") else (root,)
    inner = (part.args[0] if isinstance(part, Call) and part.operator == "neg" else part for part in parts)
    return sum(isinstance(part, Variable) for part in inner)
