"""What happens to a table before a search sees it: rows in an order of their own, duplicates merged, units scaled.

- Row order: rows are sorted by a hash of their content. The same table in any order gives the same formula, and every
  block of rows is a fair sample of it.
- Duplicates: equal rows become one row whose weight is their sum; rows of weight zero go. So a weight of 3 and a row
  given three times are the same thing to the last bit.
- Units: a column or target beyond 2±66 (about 1e±20) is divided by a power of two, which is exact, because sums of its
  squares would overflow or vanish. Formulas are turned back into the user's units at the end.
- Magnitudes: where a target runs over many of them, squared errors would see its largest rows and no others. There rows
  count by their relative error: their weights are divided by the square of the target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, transform
from gmeql.search.groups.table import Grouping
from gmeql.search.judging.deferred import Deferred, carried
from gmeql.search.judging.outlook import times_power
from gmeql.search.losses.effective import InputErrors
from gmeql.search.losses.magnitudes import ordinary_size, weights_by_size

if TYPE_CHECKING:
    from gmeql.search.events import Member, Progress

PLAIN_EXPONENT = 66
"""Values up to 2**66 are searched as they are: their tenth powers and the squares of those are finite."""
LARGEST_EXPONENT = 1000
"""Scales stay within 2±1000, so that the scale itself is a normal number."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PreparedData:
    """One target's table as the search gets it. `N` rows are left after merging, `V` columns."""

    X: FloatArray
    """[N, V], scaled."""
    y: FloatArray
    """[N], scaled."""
    weight: FloatArray | None
    """[N] with mean 1, or None when all are equal."""
    names: tuple[str, ...]
    column_exponents: tuple[int, ...]
    """Column j was divided by 2**column_exponents[j]."""
    target_exponent: int
    rows: float
    """Number of observations behind the rows: the sum of whole-number weights, else Kish's effective number."""
    target_spread: float
    """Weighted standard deviation of the target, in the user's units."""
    target_largest: float
    groups: Grouping | None = None
    """Which group each row belongs to, where groups have constants of their own."""
    errors: InputErrors | None = None
    """Errors of the columns, where they were measured with some, scaled as these."""

    @property
    def row_options(self) -> dict[str, Any]:
        """What a search is told of the rows beside their columns and target; groups and errors only where there are some."""
        known = {"groups": self.groups, "errors": self.errors}
        return {"sample_weight": self.weight} | {name: value for name, value in known.items() if value is not None}

    @property
    def is_scaled(self) -> bool:
        return self.target_exponent != 0 or any(self.column_exponents)

    @property
    def as_given(self) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Columns, target and weights in the user's units."""
        X = np.ldexp(self.X, np.array(self.column_exponents))
        return X, np.ldexp(self.y, self.target_exponent), self.weight

    def restore_expression(self, expression: Expression) -> Expression:
        """A formula of the scaled table, in the user's units."""
        if not self.is_scaled:
            return expression
        from gmeql.formula.products import with_gathered_factors
        from gmeql.formula.simplify import simplify

        def leaf(node: Node) -> Node:
            if isinstance(node, Variable) and node.index < len(self.names) and self.column_exponents[node.index]:
                return Call("mul", (Constant(math.ldexp(1.0, -self.column_exponents[node.index])), node))
            return node

        root = transform(expression.root, leaf)
        if self.target_exponent:
            root = Call("mul", (Constant(times_power(1.0, self.target_exponent)), root))
        restored = Expression(root, expression.names)
        if self.groups is not None:
            return restored  # its own constants are columns that are not in this table
        for shorten in (simplify, with_gathered_factors):
            try:
                shorter = Expression(shorten(root), expression.names)
            except (ValueError, ArithmeticError):  # a product of scales that no float holds
                continue
            if self._agree(shorter, restored):
                return shorter
        return restored

    def restore_member(self, member: Member) -> Member:
        """A member of the search's front with expression, loss and complexity in the user's units."""
        if not self.is_scaled:
            return member
        expression = self.restore_expression(member.expression)
        loss = times_power(member.loss, self.target_exponent)
        outlook = carried(member)
        if isinstance(outlook, Deferred):
            outlook = outlook.then(lambda known: known.scaled(self.target_exponent))
        elif outlook is not None:
            outlook = outlook.scaled(self.target_exponent)
        return replace(member, expression=expression, loss=loss, complexity=expression.complexity, outlook=outlook)

    def measured(self, member: Member) -> Member:
        """A member in the user's units with its root mean squared error on all rows; `inf` where it has no value."""
        X, y, _ = self.as_given
        with np.errstate(all="ignore"):
            scaled = np.ldexp(member.expression(X) - y, -self.target_exponent)
            loss = times_power(float(np.sqrt(np.average(scaled**2, weights=self.weight))), self.target_exponent)
        return replace(member, loss=loss if math.isfinite(loss) else math.inf)

    def restore_progress(self, progress: Progress) -> Progress:
        """A progress event in the user's units."""
        if not self.is_scaled:
            return progress
        front = tuple(self.restore_member(m) for m in progress.front)
        return replace(progress, front=front, best=self.restore_member(progress.best))

    def _agree(self, shorter: Expression, restored: Expression) -> bool:
        """Whether simplification kept the value in units where a product of scales can overflow or vanish."""
        X = np.ldexp(self.X, np.array(self.column_exponents))
        with np.errstate(all="ignore"):
            a, b = shorter(X), restored(X)
            return bool(np.all((a == b) | (np.abs(a - b) <= 1e-9 * np.abs(b))))


def prepare(
    X: FloatArray,
    y: FloatArray,
    sample_weight: FloatArray | None = None,
    names: tuple[str, ...] = (),
    *,
    merge: bool = True,
    groups: Grouping | None = None,
    errors: InputErrors | None = None,
) -> PreparedData:
    """Bring a validated table (finite numbers, `X` [N, V], `y` [N], weights of at least 0) into the search's form.

    `merge=False` leaves duplicate rows alone, for searches that know no weights.
    """
    names = names or tuple(f"x{j + 1}" for j in range(X.shape[1]))
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    keep = weight > 0
    if not keep.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count")
    table = np.column_stack([X[keep], y[keep]]) + 0.0  # + 0.0: the two zeros are one number
    if groups is not None:
        groups = groups.take(np.flatnonzero(keep))
        table = np.column_stack([groups.codes.astype(float), table])  # equal rows of two groups are two
    V = X.shape[1]
    if errors is not None:
        errors = errors.take(np.flatnonzero(keep))
        table = np.column_stack([errors.x, errors.y, table])
    table, weight = _merge_rows(table, weight[keep], merge)
    if errors is not None:
        errors, table = InputErrors(table[:, :V], table[:, V]), table[:, V + 1 :]
    if groups is not None:
        groups, table = replace(groups, codes=table[:, 0].astype(np.int64)), table[:, 1:]
    rows = _effective_rows(weight)
    X, y = table[:, :-1], table[:, -1]
    weight = weight / weight.max()
    weight = weight / weight.mean()
    column_exponents = tuple(_exponent(X[:, j]) for j in range(X.shape[1]))
    weighed = errors is None and merge  # rows of a target of many magnitudes count by their own size
    target_exponent = _exponent(np.array([ordinary_size(y)]) if weighed else y)
    X = np.ldexp(X, -np.array(column_exponents, dtype=np.int64))
    y = np.ldexp(y, -target_exponent)
    largest = float(np.abs(y).max())
    by_size = weights_by_size(y, weight) if weighed else None
    if errors is not None:
        errors = InputErrors(
            np.ldexp(errors.x, -np.array(column_exponents, dtype=np.int64)), np.ldexp(errors.y, -target_exponent)
        )
    elif by_size is not None:
        weight = by_size
        largest = float((np.sqrt(weight) * np.abs(y)).max())
    centred = (y - np.average(y / max(largest, 1e-300), weights=weight) * largest) if largest > 0 else y
    spread = float(np.sqrt(np.average(centred**2, weights=weight)))
    return PreparedData(
        X=np.ascontiguousarray(X),
        y=np.ascontiguousarray(y),
        weight=None if np.all(weight == weight[0]) else weight,
        names=tuple(names),
        column_exponents=column_exponents,
        target_exponent=target_exponent,
        rows=rows,
        target_spread=times_power(spread, target_exponent),
        target_largest=times_power(largest, target_exponent),
        groups=groups,
        errors=errors,
    )


def _merge_rows(table: FloatArray, weight: FloatArray, merge: bool) -> tuple[FloatArray, FloatArray]:
    """Rows by ascending hash of their content; with `merge`, equal rows made one and their weights added."""
    key = np.zeros(len(table), dtype=np.uint64)
    for column in table.T:
        key = _mix(key ^ np.ascontiguousarray(column).view(np.uint64))
    order = np.argsort(key, kind="stable")
    table, weight, key = table[order], weight[order], key[order]
    first = np.ones(len(table), dtype=bool)
    first[1:] = (key[1:] != key[:-1]) | np.any(table[1:] != table[:-1], axis=1)
    if first.all() or not merge:
        return table, weight
    return table[first], np.add.reduceat(weight, np.flatnonzero(first))


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea and Flood, 2014): every input bit moves half of the output bits."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _effective_rows(weight: FloatArray) -> float:
    if np.all(weight == np.round(weight)) and weight.sum() < 1e15:
        return float(weight.sum())
    share = weight / weight.max()
    return float(share.sum() ** 2 / np.sum(share**2))


def _exponent(values: FloatArray) -> int:
    """Power of two to divide by: 0 for ordinary sizes."""
    largest = float(np.abs(values).max())
    exponent = math.frexp(largest)[1]
    if largest == 0 or abs(exponent) <= PLAIN_EXPONENT:
        return 0
    return max(-LARGEST_EXPONENT, min(LARGEST_EXPONENT, exponent))
