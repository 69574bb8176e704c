"""The smaller tables that symmetries allow, as formulas of the columns, and a surrogate over one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, fold, leaves, row_values
from gmeql.search.losses.magnitudes import magnitudes
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.surrogate import fit_surrogate, is_by_logarithm, is_one_sign

_ONE = Constant(1.0)


@dataclass(frozen=True)
class View:
    """A table made of another: each column a formula of the raw ones, the target divided by `factor`."""

    columns: tuple[Node, ...]
    factor: Node = _ONE
    units: tuple[int, ...] = ()
    """Raw columns that given units made the units of the others, which are the view's columns in their order."""

    @classmethod
    @lru_cache(maxsize=64)
    def raw(cls, n_variables: int) -> View:
        return cls(tuple(Variable(i) for i in range(n_variables)))

    def is_raw_of(self, n_variables: int) -> bool:
        """Whether it shows all of so many columns as they are; the first of them alone are a smaller table."""
        return self == View.raw(n_variables)

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left to explain: the target is a multiple of the factor."""
        return not any(isinstance(leaf, Variable) for column in self.columns for leaf in leaves(column))

    def table(self, X: np.ndarray) -> np.ndarray:
        """The view's columns [N, V] of raw rows."""
        return np.column_stack([_values(column, X) for column in self.columns])

    def factors(self, X: np.ndarray) -> np.ndarray:
        return _values(self.factor, X)

    def restore(self, root: Node) -> Node:
        """A formula over the view's columns for target/factor, as one over the raw columns for the target."""
        inner = fold(
            root,
            lambda leaf: self.columns[leaf.index] if isinstance(leaf, Variable) else leaf,
            lambda call, args: Call(call.operator, tuple(args), call.protected),
        )
        return build("mul", self.factor, inner)

    def inner(self, root: Node) -> Node:
        """The inverse of `restore` for a formula that keeps the given units: with every unit column 1, the factor is 1
        and each other column is its own quotient."""
        others = [j for j in range(len(self.columns) + len(self.units)) if j not in self.units]
        place = {j: Variable(i) for i, j in enumerate(others)}

        def leaf(node: Node) -> Node:
            return place.get(node.index, _ONE) if isinstance(node, Variable) else node

        return fold(root, leaf, lambda call, args: build(call.operator, *args))

    def operators(self) -> set[str]:
        """Names of the functions that the view's formulas use."""
        used: set[str] = set()

        def call(node: Call, _: list[Any]) -> None:
            used.add(node.operator)

        for node in (*self.columns, self.factor):
            fold(node, lambda leaf: None, call)
        return used

    def to_dict(self) -> dict[str, Any]:
        names = tuple(f"x{i}" for i in range(1 + max(_largest_index(node) for node in (*self.columns, self.factor))))
        return {
            "columns": [Expression(column, names).to_dict() for column in self.columns],
            "factor": Expression(self.factor, names).to_dict(),
            "units": list(self.units),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> View:
        columns = tuple(Expression.from_dict(column).root for column in data["columns"])
        return cls(columns, Expression.from_dict(data["factor"]).root, tuple(data.get("units", ())))


def _values(node: Node, X: np.ndarray) -> np.ndarray:
    """A formula's value on every row [N]; thousands are asked for, most of them columns as they are."""
    return X[:, node.index].copy() if isinstance(node, Variable) else row_values(node, [""] * X.shape[1], X)


def _largest_index(node: Node) -> int:
    return fold(node, lambda leaf: leaf.index if isinstance(leaf, Variable) else 0, lambda _, args: max(args))


@dataclass(frozen=True)
class FittedView:
    """A view of the data with its surrogate: table [N, V], target [N], slopes d target / d column [N, V]."""

    view: View
    table: np.ndarray
    target: np.ndarray
    error: float
    slopes: np.ndarray
    reading: tuple[int, bool] = (0, False)
    """How the surrogate reads table and target."""
    is_hopeless: bool = False
    """Whether the surrogate has understood nothing."""

    @property
    def is_relative(self) -> bool:
        """Whether every row's slopes count by the size of its target, which the surrogate read by its logarithm: else a few
        rows near zero would decide."""
        return is_by_logarithm(self.reading) and is_one_sign(self.target)

    @classmethod
    def of(
        cls,
        view: View,
        X: np.ndarray,
        y: np.ndarray,
        out_of_time: Callable[[], bool],
        reading: tuple[int, bool] | None = None,
    ) -> FittedView | None:
        """None where the view or the target's quotient is not finite on every row, or nothing can be fitted."""
        table, factors = view.table(X), view.factors(X)
        target, spread = y / factors, float(np.std(y))
        sizes = magnitudes(y, many=SYMMETRIES.many)
        # of a target over many magnitudes every row counts in its own size
        units, unit = (factors, spread) if sizes is None else (factors / (sizes * np.abs(y).max()), 1.0)
        if not np.isfinite(table).all() or not np.isfinite(target).all():
            return None
        if not (np.ptp(y) > 0 and spread > 0):  # the deviation of a constant may be above 0, that of tiny values 0
            return None
        found = fit_surrogate(table, target, units=units, spread=unit, out_of_time=out_of_time, reading=reading)
        if found is None:
            return None
        return cls(view, table, target, found.error, found.slopes, found.reading, found.is_hopeless)


def unitless(
    view: View,
    exponents: np.ndarray,
    degrees: np.ndarray,
    whole: np.ndarray,
    *,
    units: Iterable[int] | None = None,
    most: int = SYMMETRIES.max_views,
) -> list[View]:
    """The view with k columns taken as units, for the choices of units that give the plainest columns.

    Scaling s multiplies column j by the power `exponents[s, j]` of a factor and the target by `degrees[s]`; [k, V] and
    [k]. `whole` [V] are columns that only whole powers may be taken of, `units` those that may serve as units.
    """
    k, n = exponents.shape
    choices = []
    possible = range(n) if units is None else units
    for chosen in itertools.islice(itertools.combinations(possible, k), SYMMETRIES.unit_choices):
        square = exponents[:, chosen]
        if abs(np.linalg.det(square)) < SYMMETRIES.singular:
            continue
        others = [j for j in range(n) if j not in chosen]
        # each other column and the target, as powers of the units
        powers = np.linalg.solve(square, np.column_stack([exponents[:, others], degrees]))
        powers = np.round(powers * SYMMETRIES.unit_parts) / SYMMETRIES.unit_parts
        fractional = np.abs(powers - np.round(powers)) > 1e-9
        if fractional[whole[list(chosen)]].any():
            continue
        cost = float(np.abs(powers).sum() + SYMMETRIES.root_cost * fractional.sum())
        choices.append((cost, chosen, others, powers))
    views = []
    for _, chosen, others, powers in sorted(choices, key=lambda choice: choice[:2])[:most]:
        columns = [
            monomial([(view.columns[j], 1.0), *((view.columns[u], -powers[i, c]) for i, u in enumerate(chosen))])
            for c, j in enumerate(others)
        ]
        factor = monomial([(view.factor, 1.0), *((view.columns[u], powers[i, -1]) for i, u in enumerate(chosen))])
        views.append(View(tuple(columns) or (_ONE,), factor, tuple(map(int, chosen)) if units is not None else ()))
    return views


def monomial(parts: list[tuple[Node, float]]) -> Node:
    """A product of powers, negative ones below the line."""
    above = [power(node, e) for node, e in parts if e > 0]
    below = [power(node, -e) for node, e in parts if e < 0]
    numerator = build("mul", *above) if above else _ONE
    return build("div", numerator, build("mul", *below)) if below else numerator


def power(node: Node, exponent: float) -> Node:
    """A power of a formula."""
    if exponent == -1.0:
        return build("inv", node)
    return build("pow", node, Constant(exponent))
