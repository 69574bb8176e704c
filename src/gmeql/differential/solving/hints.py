"""Columns that an equation suggests: functions that stand in it often stand in its solution.

A search on `log(x)` beside `x` finds `log(log(x))` at once, which on `x` alone is two functions deep. Sums below a fraction
or a root are columns, too: derivatives of `log(g)`, `atan(g)` and `sqrt(g)` have `g` there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.differential.solving.config import SOLVE
from gmeql.differential.solving.problem import FloatArray, Problem
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Leaf, Node, Variable, row_values, transform
from gmeql.formula.parsing import parse_tree

_COMPANIONS = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh"}
"""Functions whose derivatives are each other."""


@dataclass(frozen=True)
class Hints:
    """Further columns, as trees over variables and parameters."""

    names: tuple[str, ...]
    trees: tuple[Node, ...]

    @classmethod
    def of(cls, problem: Problem) -> Hints:
        """Functions of variables and parameters that stand in equations and conditions, and their companions."""
        import sympy

        symbols = (*problem.variables, *problem.parameters)
        names = tuple(s.name for s in symbols)
        found: dict[Any, None] = {}
        for residual in (*problem.residuals, *(c.residual for c in problem.conditions)):
            below = {p.base for p in residual.atoms(sympy.Pow) if p.base.is_Add and not p.exp.is_positive}
            for part in sorted(residual.atoms(sympy.Function) | below, key=sympy.default_sort_key):
                if part.free_symbols and part.free_symbols <= set(symbols):
                    found[part] = None
                    other = _COMPANIONS.get(type(part).__name__)
                    if other:
                        found[getattr(sympy, other)(*part.args)] = None
        trees = []
        for part in found:
            try:
                trees.append(parse_tree(str(part), names))
            except ValueError:  # a function that formulas do not have
                continue
        return cls(names, tuple(trees[: SOLVE.hints]))

    def columns(self, X: FloatArray) -> FloatArray:
        """The rows with the further columns [N, V + H]; those that are no finite numbers are left at 0."""
        more = [row_values(tree, self.names, X) for tree in self.trees]
        return np.hstack([X, *(np.where(np.isfinite(m), m, 0.0)[:, None] for m in more)])

    def restore(self, root: Node) -> Expression:
        """A formula over all columns as one over variables and parameters."""
        first = len(self.names)

        def leaf(node: Leaf) -> Node:
            if isinstance(node, Variable) and node.index >= first:
                return self.trees[node.index - first]
            return node

        return Expression(transform(root, leaf), self.names)
