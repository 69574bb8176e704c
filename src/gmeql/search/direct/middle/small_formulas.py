"""All small formulas of a table: one for each vector of values, by rising cost.

Leaves are the columns, 1 and 2; every other formula applies an operator to earlier ones. They are told apart on a few rows
by hash, so a million take about a second. The last ones, which no other is built on, are kept by their form alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.formula.operators import get_operator, operator_of_opcode
from gmeql.network.families import FunctionSet
from gmeql.search.direct.middle.kernels import enumerate_formulas
from gmeql.search.direct.table import FloatArray

LEAF = -1
"""Operator of a leaf; its left is the number of the column, or beyond the columns that of a constant."""
CONSTANTS = (1.0, 2.0)
BINARY = ("add", "sub", "mul", "div")
UNARY_COSTS = {
    "sqrt": 1, "square": 1, "sin": 1, "cos": 1, "exp": 1, "log": 1,
    "tanh": 2, "abs": 2, "cube": 2, "asin": 2, "acos": 2, "atan": 2,
}  # fmt: skip
"""Cost of functions beside the 1 of a column, a constant and of + - * /: the rarer ones come later."""
MAX_COST = 12
TRIES_PER_FORMULA = 8
"""Formulas tried for each that there is room for: most of them are old."""


@dataclass(frozen=True, eq=False)
class SmallFormulas:
    """`formulas` [M, 3] (operator, left, right) with their costs [M]; the first K have values [K, R].

    `forms` and `places` are a hash table from forms to formulas, `signs` [R] the direction that decides their sign.
    """

    n_columns: int
    formulas: NDArray[np.int32]
    costs: NDArray[np.int8]
    values: FloatArray
    forms: NDArray[np.uint64]
    places: NDArray[np.int32]
    signs: FloatArray

    @classmethod
    def of(cls, X: FloatArray, functions: FunctionSet, *, max_kept: int, max_formulas: int) -> SmallFormulas:
        """Formulas over the rows X [R, V]: `max_kept` to build on, `max_formulas` in all."""
        n_rows, n_columns = X.shape
        slots = 1 << (2 * max_formulas - 1).bit_length()
        formulas, costs = np.empty((max_formulas, 3), np.int32), np.empty(max_formulas, np.int8)
        value_keys, value_places = np.zeros(slots, np.uint64), np.empty(slots, np.int32)
        forms, places = np.zeros(slots, np.uint64), np.empty(slots, np.int32)
        values, counts = np.empty((max_kept, n_rows)), np.zeros(3, np.int64)
        signs = np.array(np.random.default_rng(0).normal(size=n_rows))
        unary = [name for name in UNARY_COSTS if functions.allows({name})]
        enumerate_formulas(
            np.array([*X.T, *(np.full(n_rows, constant) for constant in CONSTANTS)]),
            _opcodes(unary),
            np.array([UNARY_COSTS[name] for name in unary], np.int64),
            _opcodes([name for name in BINARY if functions.allows({name})]),
            (formulas, costs, value_keys, value_places, forms, places),
            values,
            counts,
            signs,
            MAX_COST,
            TRIES_PER_FORMULA * max_formulas,
        )
        kept, n = int(counts[0]), int(counts[1])
        return cls(n_columns, formulas[:n], costs[:n], values[:kept], forms, places, signs)

    def __len__(self) -> int:
        return len(self.formulas)

    def leaf_values(self, number: int, X: FloatArray) -> FloatArray:
        """A leaf's values on rows X [N, V]: a column, or beyond them a constant."""
        if number < self.n_columns:
            return np.asarray(X[:, number])
        return np.full(len(X), CONSTANTS[number - self.n_columns])

    def values_on(self, X: FloatArray, most: int | None = None) -> FloatArray:
        """Values [K, N] of the formulas that others are built on, or of so many of them at `most`, on other rows X [N, V];
        nan or inf outside a domain."""
        found = np.empty((len(self.values[:most]), len(X)))
        operators = {code: operator_of_opcode(code) for code in set(self.formulas[: len(found), 0].tolist()) - {LEAF}}
        with np.errstate(all="ignore"):
            for number, (code, left, right) in enumerate(self.formulas[: len(found)].tolist()):
                if code == LEAF:
                    found[number] = self.leaf_values(left, X)
                else:
                    parts = [found[part] for part in (left, right) if part >= 0]
                    found[number] = operators[code].natural(np, *parts)
        return found

    def tree(self, number: int) -> Node:
        """A formula over the table's columns."""
        operator, left, right = (int(part) for part in self.formulas[number])
        if operator == LEAF:
            return Variable(left) if left < self.n_columns else Constant(CONSTANTS[left - self.n_columns])
        parts = [self.tree(part) for part in (left, right) if part >= 0]
        return build(operator_of_opcode(operator).name, *parts)


def _opcodes(names: list[str]) -> NDArray[np.int64]:
    return np.array([get_operator(name).opcode for name in names], np.int64)
