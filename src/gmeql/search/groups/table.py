"""What comes with a front of formulas with groups: the own constants of all its formulas, by group.

An own constant is a column after those of the user's table whose value is that of the row's group. So every form of a formula
(printed, exported, differentiated) is what it is without groups, and this table gives the numbers.

Legend: `N` rows, `V` columns of the user's table, `G` groups, `K` own constants of all formulas of a front.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.expression import Expression
from gmeql.formula.messages import listing, short
from gmeql.formula.nodes import (
    N_ARY,
    Call,
    Constant,
    Leaf,
    Node,
    Variable,
    build,
    evaluate,
    fold,
    leaves,
    transform,
    used_columns,
)
from gmeql.formula.operators import DERIVATIVE
from gmeql.search.groups.config import GROUPS

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which group each row belongs to."""

    column: str
    """What tells the groups apart: the name of a column, or "group"."""
    labels: tuple[str, ...]
    """Of the groups, [G]."""
    codes: NDArray[np.int64]
    """Number of each row's group [N]; every group has rows."""

    @classmethod
    def of(cls, labels: Sequence[Any], column: str = "group") -> Grouping:
        """Groups of rows by their labels [N], sorted."""
        texts = group_labels(labels)
        known = tuple(sorted(set(texts)))
        sizes = Counter(texts)
        if len(known) > GROUPS.most_groups:
            raise ValueError(f"groups has {len(known)} different labels, at most {GROUPS.most_groups} are allowed")
        if max(sizes.values(), default=0) < GROUPS.least_rows:
            raise ValueError(
                f"groups: no group has {GROUPS.least_rows} rows, so none can have constants of its own; "
                "give labels that more rows share, or leave groups out"
            )
        place = {label: g for g, label in enumerate(known)}
        return cls(column, known, np.array([place[text] for text in texts], dtype=np.int64))

    def take(self, rows: NDArray[np.intp]) -> Grouping:
        """The groups of some of the rows; groups that lose all theirs go."""
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        return Grouping(self.column, tuple(self.labels[g] for g in kept), codes.astype(np.int64))


@dataclass(frozen=True, eq=False)
class OwnConstants:
    """Own constants by group: what each row of the user's table is extended by before a formula sees it."""

    column: str
    """What tells the groups apart: the name of a column, or "group"."""
    labels: tuple[str, ...]
    """Of the groups, [G]."""
    values: FloatArray
    """[G, K]; formulas of one front have columns of their own."""
    places: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", {label: g for g, label in enumerate(self.labels)})

    def codes(self, labels: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
        """Numbers of the groups of some rows [N]; an unknown one is a ValueError that says what to do."""
        texts = group_labels(labels)
        unknown = [text for text in dict.fromkeys(texts) if text not in self.places]
        if unknown:
            raise ValueError(
                f"unknown {self.column} {short(unknown[0])}; the model knows {listing(self.labels)}. "
                "Fit the constants of a new group from a few of its rows: refit_group(X, y, label)"
            )
        return np.array([self.places[text] for text in texts], dtype=np.int64)

    def extended(self, X: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """X [N, V] with the own constants of each row's group behind, [N, V + K]."""
        return np.hstack([X, self.values[codes]])

    def with_group(self, label: str, values: FloatArray) -> OwnConstants:
        """The same with one group more, or with other values of one that is there."""
        row = values[None]
        if label in self.places:
            changed = self.values.copy()
            changed[self.places[label]] = row[0]
            return OwnConstants(self.column, self.labels, changed)
        return OwnConstants(self.column, (*self.labels, label), np.vstack([self.values, row]))

    def names(self, root: Node, columns: Sequence[str]) -> tuple[str, ...]:
        """Names of all columns of a formula [V + K]: those of the table, k1[group], k2[group], ... of its own constants."""
        used = own_columns(root, len(columns))
        own = [f"own constant {k + 1} of another formula" for k in range(self.values.shape[1])]
        for number, k in enumerate(used):
            own[k] = f"k{number + 1}[{self.column}]"
        return (*columns, *own)

    def of_formula(self, root: Node, n_variables: int) -> dict[str, list[float]]:
        """The own constants of one formula by name, each with its value in every group [G]."""
        used = own_columns(root, n_variables)
        return {f"k{number + 1}[{self.column}]": self.values[:, k].tolist() for number, k in enumerate(used)}

    def compact(self, expression: Expression, n_variables: int) -> Expression:
        """The formula over the table's columns and its own constants alone, without those of the front's others."""
        used = own_columns(expression.root, n_variables)
        root = with_own_columns(expression.root, n_variables, range(len(used)))
        names = [expression.names[n_variables + k] for k in used]
        return Expression(root, (*expression.names[:n_variables], *names))

    def indicators(self, X: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """X [N, V] with a column for each group behind, 1 in its rows and else 0, [N, V + G]."""
        return np.hstack([X, (codes[:, None] == np.arange(len(self.labels))).astype(float)])

    def written_out(self, expression: Expression, n_variables: int) -> Expression:
        """The formula over the columns of `indicators`: every own constant is a sum over the groups of its values."""
        n_groups = len(self.labels)

        def leaf(node: Leaf) -> Node:
            if not isinstance(node, Variable) or node.index < n_variables:
                return node
            values = self.values[:, node.index - n_variables]
            terms = [Call("mul", (Constant(v), Variable(n_variables + g))) for g, v in enumerate(values)]
            return Call("add", tuple(terms)) if n_groups > 1 else terms[0]

        names = (*expression.names[:n_variables], *(f"{self.column} is {label}" for label in self.labels))
        return Expression(transform(expression.root, leaf), names)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "column": self.column,
            "labels": list(self.labels),
            "values": self.values.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Any) -> OwnConstants:
        """What `to_dict` gave, trusting nothing: `ValueError` for the first field that is wrong."""
        if not isinstance(data, dict) or set(data) != {"column", "labels", "values"}:
            raise ValueError("groups must be an object with the fields column, labels and values")
        column, labels, values = (data[name] for name in ("column", "labels", "values"))
        if not isinstance(labels, list) or not all(isinstance(text, str) for text in labels):
            raise ValueError("groups.labels must be a list of texts")
        if not isinstance(column, str) or not labels or len(set(labels)) < len(labels):
            raise ValueError("groups.column must be a text, and groups.labels different from each other")
        numbers = isinstance(values, list) and all(
            isinstance(row, list)
            and len(row) == len(values[0])
            and all(type(value) in (int, float) and math.isfinite(value) for value in row)
            for row in values
        )
        if not numbers or len(values) != len(labels):
            raise ValueError(f"groups.values must be {len(labels)} lists of finite numbers, all of one length")
        return cls(column, tuple(labels), np.array(values, dtype=float).reshape(len(labels), -1))


def group_labels(labels: Sequence[Any] | NDArray[Any]) -> list[str]:
    """Labels of groups as text: 3 and 3.0 are the same group."""
    return [_text(label) for label in np.asarray(labels, dtype=object).ravel()]


def _text(label: Any) -> str:
    if label is None or (isinstance(label, float | np.floating) and math.isnan(label)):
        raise ValueError("groups must have a label in every row; fill or drop rows without one")
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)


def own_columns(root: Node, n_variables: int) -> tuple[int, ...]:
    """Which of a formula's columns are own constants, counted from the first that is behind the table's."""
    return tuple(column - n_variables for column in used_columns(root) if column >= n_variables)


def with_own_columns(root: Node, n_variables: int, places: Sequence[int]) -> Node:
    """The formula with its own constants (in the order of `own_columns`) at other columns behind the table's."""
    move = dict(zip(own_columns(root, n_variables), places, strict=True))

    def leaf(node: Leaf) -> Node:
        if isinstance(node, Variable) and node.index >= n_variables:
            return Variable(n_variables + move[node.index - n_variables])
        return node

    return transform(root, leaf)


def with_few_own(root: Node, own: FloatArray, n_variables: int) -> tuple[Node, FloatArray]:
    """The formula and its own constants [G, K], whatever is made of own constants and numbers alone being one such constant.

    >>> shifted = build("add", Variable(0), build("mul", Constant(2.0), Variable(1)))
    >>> with_few_own(shifted, np.array([[1.5]]), 1)[1].item()
    3.0
    """
    times = Counter(leaf.index for leaf in leaves(root) if isinstance(leaf, Variable))
    values = own.copy()

    def is_own(node: Node) -> bool:
        return isinstance(node, Variable) and node.index >= n_variables and times[node.index] == 1

    def made(operator: str, parts: list[Node], protected: bool) -> FloatArray:
        part = Call(operator, tuple(parts), protected)
        with np.errstate(all="ignore"):
            value = evaluate(part, lambda index: values[:, index - n_variables], np.float64, np)
        return np.asarray(value, dtype=float)

    def call(node: Call, args: list[Node]) -> Node:
        parts = [arg for arg in args if is_own(arg) or isinstance(arg, Constant)]
        others = [arg for arg in args if arg not in parts]
        first = next((arg for arg in parts if isinstance(arg, Variable)), None)
        is_one = not others or (node.operator in N_ARY and len(parts) > 1)
        if first is not None and is_one and node.operator != DERIVATIVE.name:
            new = made(node.operator, parts, node.protected)
            if np.isfinite(new).all() and new.any():
                values[:, first.index - n_variables] = new
                return (
                    build(node.operator, *(arg for arg in args if arg is first or arg in others)) if others else first
                )
        return node if all(map(is_, args, node.args)) else Call(node.operator, tuple(args), node.protected)

    return fold(root, lambda leaf: leaf, call), values


def front_table(
    formulas: Sequence[tuple[Node, FloatArray | None]], n_variables: int, groups: Grouping
) -> tuple[tuple[Node, ...], OwnConstants]:
    """Formulas, each with own constants [G, K] of its own, as formulas over one table of all own constants.

    Own constants stand in the order of their columns in each formula, formula behind formula.
    """
    roots: list[Node] = []
    parts, offset = [np.empty((len(groups.labels), 0))], 0
    for root, own in formulas:
        used = own_columns(root, n_variables)
        roots.append(with_own_columns(root, n_variables, range(offset, offset + len(used))))
        if own is not None:
            parts.append(own[:, list(used)])
        offset += len(used)
    return tuple(roots), OwnConstants(groups.column, groups.labels, np.hstack(parts))
