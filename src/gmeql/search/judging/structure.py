"""How much it takes to state a formula's structure, in nats: the price of the luckiest of many.

A search tries thousands of formulas. Each symbol multiplies how many there are, so each symbol has a price. Two kinds of
formulas are not one of thousands and are priced by their number:

- A sum of columns. With `k` of `V` columns there are C(V, k) of them, so stating how many columns and which takes
  `log(V + 1) + log C(V, k)`. Past half of the columns the price stays there, so a longer sum never costs less. That is why many
  weak columns together can be worth their place.
- A product of powers of columns, as laws of nature often are. It takes saying which columns, and which of a few exponents each
  has. Priced by its symbols, `0.048*q**2/(epsilon*d)` would cost as much as odd forms of which there are thousands, and the
  luckiest of those would come first.
"""

from __future__ import annotations

import math
from functools import lru_cache

from gmeql.formula.limits import LAW_EXPONENTS
from gmeql.formula.nodes import Call, Constant, Node, Variable, leaves, tree_complexity
from gmeql.formula.products import as_product
from gmeql.search.losses.losses import LOSSES, Loss

LARGEST_LUCK = 5.0
"""Nats at one row beyond which nothing is known anyway."""
POWER_LAW_NATS = 1.0
"""What it takes to say that a formula is a power law and no sum of columns."""


def structure_nats(root: Node, n_columns: int, *, node_cost: float) -> float:
    """Nats to state the structure of a formula over a table of `n_columns`; `node_cost` for a unit of complexity.

    >>> from gmeql.formula.nodes import build
    >>> line = build("add", Constant(1.5), *(build("mul", Constant(2.5), Variable(i)) for i in range(6)))
    >>> structure_nats(line, 10, node_cost=1.0) < tree_complexity(line) == 25
    True
    """
    symbols = node_cost * tree_complexity(root)
    columns, powers = linear_columns(root), power_columns(root)
    if columns is not None:
        return min(symbols, _choice_nats(len(columns), n_columns))
    if powers is not None:
        exponents = len(powers) * math.log(len(LAW_EXPONENTS))
        return min(symbols, _choice_nats(len(powers), n_columns) + exponents + POWER_LAW_NATS)
    return symbols


def _choice_nats(chosen: int, n_columns: int) -> float:
    """Nats to say how many of the columns are in, and which."""
    n_columns = max(n_columns, chosen)
    return math.log(n_columns + 1) + math.log(math.comb(n_columns, min(chosen, n_columns // 2)))


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


@lru_cache(maxsize=10_000)
def power_columns(root: Node) -> frozenset[int] | None:
    """The columns that a formula is a product of plain powers of, times a constant; None where it is no such product.

    >>> from gmeql.formula.nodes import build
    >>> fall = build("div", build("mul", Constant(0.5), build("square", Variable(2))), Variable(0))
    >>> sorted(power_columns(fall)), power_columns(build("add", fall, Constant(1.0))) is None
    ([0, 2], True)
    """
    powers = _powers(root, 1.0)
    if not powers or not set(powers.values()) <= set(LAW_EXPONENTS):
        return None
    return frozenset(powers)


def _powers(root: Node, exponent: float) -> dict[int, float] | None:
    """Columns with their exponents of a product to the power of `exponent`; None where there is anything else."""
    found: dict[int, float] = {}
    for base, power in as_product(root)[1].items():
        single = isinstance(base, Variable) or base == root
        parts = {base.index: power * exponent} if isinstance(base, Variable) else None
        parts = parts if single else _powers(base, power * exponent)
        if parts is None:
            return None
        for column, each in parts.items():
            found[column] = found.get(column, 0.0) + each
    return found


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


def luck_factor(nats: float, n_rows: int, error: float, loss: Loss = LOSSES["squared"]) -> float:
    """How much more error is to be expected of a formula that a search chose than of one given beforehand.

    Stating which formula it is takes some `nats` (`structure_nats`). The luckiest of exp(nats) formulas that are all alike
    gains as many nats on the rows, and loses them on others: exp(nats/N) in the scale of the errors (docs/trust.md).

    >>> round(luck_factor(10.0, 100, 0.5), 3)
    1.105
    """
    each = nats / n_rows
    if not (0 < error < math.inf):
        return 1.0
    if loss.mean_is_nats:
        return 1.0 + each / error
    return math.exp(min((2.0 if loss.is_square else 1.0) * each, LARGEST_LUCK))
