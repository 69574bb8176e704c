"""Columns that an equation suggests: functions that stand in it often stand in its solution.

A search on `log(x)` beside `x` finds `log(log(x))` at once, which on `x` alone is two functions deep. Sums below a fraction
or a root are columns, too: derivatives of `log(g)`, `atan(g)` and `sqrt(g)` have `g` there. A linear equation also suggests
the exponentials and waves that it has where its coefficients are largest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gmeql.differential.solving.config import SOLVE
from gmeql.differential.solving.problem import FloatArray, Problem
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Leaf, Node, Variable, row_values, transform
from gmeql.formula.parsing import parse_tree
from gmeql.search.events import Progress

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
        found: dict[Any, None] = dict.fromkeys(characteristic_functions(problem))
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

    def restore_progress(self, progress: Progress) -> Progress:
        """An event of the search over variables and parameters, to be shown."""
        front = tuple(replace(m, expression=self.restore(m.expression.root)) for m in progress.front)
        best = replace(progress.best, expression=self.restore(progress.best.expression.root))
        return replace(progress, front=front, best=best)


def characteristic_functions(problem: Problem) -> list[Any]:
    """exp(a*x), sin(b*x) and cos(b*x) for the roots a + ib of a linear equation's characteristic polynomial.

    Coefficients that are polynomials in x count by their highest power: x*y'' + 2*y' + x*y has the waves of y'' + y.
    """
    import sympy

    if not problem.is_ordinary or len(problem.names) != 1:
        return []
    x, r = problem.variables[0], sympy.Dummy("r")
    known = {x, *problem.parameters}
    slopes = {jet.orders[0]: slope for jet, slope in problem.slopes[0].items()}
    if any(not slope.free_symbols <= known or not slope.is_polynomial(x) for slope in slopes.values()):
        return []
    highest = max(sympy.degree(slope, x) for slope in slopes.values())
    leading = sum(sympy.Poly(slope, x).coeff_monomial(x**highest) * r**order for order, slope in slopes.items())
    found = []
    for root in sympy.roots(leading, r) if leading.has(r) else ():
        growth, wave = root.as_real_imag()
        found += [sympy.exp(growth * x)] if growth != 0 else []
        found += [sympy.sin(wave * x), sympy.cos(wave * x)] if wave.is_positive else []
    return [f for f in found if f.count_ops() <= SOLVE.hint_operations]
