"""Formulas put into equation and conditions: values, slopes by their constants, constants polished on the equation.

Derivatives are exact: those of the formula's own tree. A constant that may move stands in the tree as a further column.

Legend: `P` points, `C` free constants of all formulas together, `R` rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from gmeql.differential.solving.collocation import gauss_points
from gmeql.differential.solving.config import NUMERICAL, PROOF
from gmeql.differential.solving.problem import FloatArray, Jet, Problem, numbers, weigh
from gmeql.formula.calculus import differentiate
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Leaf, Node, Variable, fold, is_plain_exponent, row_values

LIMIT_NODES = np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0])
LIMIT_WEIGHTS = np.linalg.solve(np.vander(LIMIT_NODES, increasing=True).T, np.eye(8)[0])
"""Of values at the nodes, for that at 0: exact for polynomials up to the seventh degree."""


@dataclass(frozen=True)
class OpenFormula:
    """Formulas of all unknown functions whose free constants are columns behind variables and parameters."""

    roots: tuple[Node, ...]
    names: tuple[str, ...]
    constants: tuple[float, ...]
    _trees: dict[Any, Node] = field(default_factory=dict, repr=False, compare=False)  # derivatives, each made once

    @classmethod
    def of(cls, expressions: Sequence[Expression]) -> OpenFormula:
        """Free every constant but plain exponents, which are structure."""
        names = list(expressions[0].names)
        values: list[float] = []

        def call(node: Call, args: list[Node]) -> Node:
            freed = []
            for k, arg in enumerate(args):
                is_exponent = node.operator == "pow" and k == 1 and is_plain_exponent(arg)
                if isinstance(arg, Constant) and not is_exponent and arg.value != -1.0:
                    values.append(arg.value)
                    arg = Variable(len(names) + len(values) - 1)
                freed.append(arg)
            return Call(node.operator, tuple(freed))

        roots = []
        for expression in expressions:
            root = fold(expression.root, lambda leaf: leaf, call)
            if isinstance(root, Constant):
                values.append(root.value)
                root = Variable(len(names) + len(values) - 1)
            roots.append(root)
        return cls(tuple(roots), tuple(names), tuple(values))

    @property
    def all_names(self) -> tuple[str, ...]:
        """Columns and free constants; no person's column has such a name."""
        return (*self.names, *(f"constant [{k}]" for k in range(len(self.constants))))

    def closed(self, constants: Sequence[float] | FloatArray) -> tuple[Expression, ...]:
        """The formulas with numbers for their free constants."""
        columns = len(self.names)

        def leaf(node: Leaf) -> Node:
            if isinstance(node, Variable) and node.index >= columns:
                return Constant(constants[node.index - columns])
            return node

        def call(node: Call, args: list[Node]) -> Node:
            return Call(node.operator, tuple(args))

        return tuple(Expression(fold(root, leaf, call), self.names) for root in self.roots)

    def derivative(self, function: int, orders: tuple[int, ...], constant: int | None = None) -> Node:
        """The tree of a derivative by variables, and by one of the free constants."""
        key = (function, orders, constant)
        if key not in self._trees:
            if constant is not None:
                root = differentiate(self.derivative(function, orders), len(self.names) + constant)
            elif any(orders):
                k = next(k for k, order in enumerate(orders) if order)
                lower = (*orders[:k], orders[k] - 1, *orders[k + 1 :])
                root = differentiate(self.derivative(function, lower), k)
            else:
                root = self.roots[function]
            self._trees[key] = root
        return self._trees[key]

    def values(self, root: Node, X: FloatArray, constants: FloatArray, step: FloatArray | None = None) -> FloatArray:
        """Values of such a tree at points with parameters [P, V].

        Where it has none, as sin(x)/x at 0, its limit from both sides along `step` [V]; nan where there is no limit.
        """
        found = self._plain_values(root, X, constants)
        missing = ~np.isfinite(found)
        if step is not None and missing.any():
            far, near = (
                np.stack([self._plain_values(root, X[missing] + n * h, constants) for n in LIMIT_NODES])
                for h in (step, step / 2)
            )
            found[missing] = _limits(far, near)
        return found

    def _plain_values(self, root: Node, X: FloatArray, constants: FloatArray) -> FloatArray:
        table = np.hstack([X, np.broadcast_to(constants, (len(X), len(constants)))])
        return row_values(root, self.all_names, table)

    def slopes(self, jet: Jet, X: FloatArray, constants: FloatArray, step: FloatArray | None = None) -> FloatArray:
        """Slopes of a jet by the free constants: [P, C]."""
        trees = [self.derivative(jet.function, jet.orders, k) for k in range(len(constants))]
        found = [self.values(tree, X, constants, step) for tree in trees]
        return np.stack(found, axis=1) if found else np.empty((len(X), 0))

    def sympy(self, symbols: Sequence[Any], constants: Sequence[Any]) -> tuple[Any, ...]:
        """SymPy forms over the given symbols, with exact numbers for the free constants."""
        import sympy

        from gmeql.formula.printing.notation import symbol_names

        places = [sympy.Symbol(name) for name in symbol_names(self.all_names)]
        values = dict(zip(places, (*symbols, *constants), strict=True))
        forms = [Expression(root, self.all_names).sympy() for root in self.roots]
        return tuple(sympy.sympify(form).subs(values, simultaneous=True) for form in forms)


class Substituted:
    """Equation and conditions as functions of a formula's free constants, on points of the domain."""

    def __init__(self, problem: Problem, points: FloatArray) -> None:
        self.problem = problem
        d = len(problem.variables)
        parameters = {s.name: points[:, d + k] for k, s in enumerate(problem.parameters)}
        inside = {v.name: points[:, k] for k, v in enumerate(problem.variables)} | parameters
        self.blocks = [
            (residual, slopes, inside, dict.fromkeys(slopes, points), np.zeros(len(points)))
            for residual, slopes in zip(problem.residuals, problem.slopes, strict=True)
        ]
        self.n_equations = len(self.blocks)
        for condition in problem.conditions:
            columns = self._face(condition.face, points)
            length = len(next(iter(columns.values()), np.zeros(1)))
            places = {jet: self._place(jet, columns, length) for jet in condition.jets}
            slopes = {jet: condition.residual.diff(jet.symbol) for jet in condition.jets}
            measured = np.zeros(length)
            if condition.measure is not None:
                free = [columns[v.name] for v, p in zip(problem.variables, condition.face, strict=True) if p is None]
                measured = np.broadcast_to(np.asarray(condition.measure(*free), dtype=float), (length,))
            self.blocks.append((condition.residual, slopes, columns, places, measured))

    def _face(self, face: tuple[Any, ...], points: FloatArray) -> dict[str, FloatArray]:
        """Points of a condition's face, with the parameters' values."""
        problem, d = self.problem, len(self.problem.variables)
        free = [k for k, place in enumerate(face) if place is None]
        lines = [gauss_points(8, *problem.box[k]) for k in free]
        lines += [np.unique(points[:, d + k])[:8] for k in range(len(problem.parameters))]
        grid = np.array(list(product(*lines))) if lines else np.zeros((1, 0))
        names = [problem.variables[k].name for k in free] + [s.name for s in problem.parameters]
        return {name: grid[:, k] for k, name in enumerate(names)}

    def _place(self, jet: Jet, columns: dict[str, FloatArray], length: int) -> FloatArray:
        assert jet.place is not None
        symbols = self.problem.variables
        parts = [
            columns[v.name] if p is None else numbers(p, columns, length)
            for v, p in zip(symbols, jet.place, strict=True)
        ]
        parts += [columns[s.name] for s in self.problem.parameters]
        return np.stack([np.broadcast_to(part, (length,)) for part in parts], axis=1)

    def rows(self, formula: OpenFormula, constants: Any, *, slopes: bool = True) -> Any:
        """Residuals [R], their slopes by the constants [R, C], the size of their terms [R], and rows of equations."""
        constants = np.asarray(constants, dtype=float)
        values, jacobian, scales, of_equation = [], [], [], []
        for number, (residual, by_jet, columns, places, measured) in enumerate(self.blocks):
            length = len(measured)
            at = dict(columns)
            for jet, X in places.items():
                tree = formula.derivative(jet.function, jet.orders)
                at[jet.symbol.name] = formula.values(tree, X, constants, self._step(jet))
            with np.errstate(all="ignore"):
                block, factors, scale = weigh(residual, by_jet, at, length)
                values.append(block - measured)
                scales.append(scale + np.abs(measured))
                of_equation.append(np.full(length, number < self.n_equations))
                if slopes:
                    terms = [
                        f[:, None] * formula.slopes(jet, places[jet], constants, self._step(jet))
                        for jet, f in factors.items()
                    ]
                    jacobian.append(sum(terms, start=np.zeros((length, len(constants)))))
        joined = np.concatenate(jacobian) if slopes else np.empty((0, len(constants)))
        return np.concatenate(values), joined, np.concatenate(scales), np.concatenate(of_equation)

    def _step(self, jet: Jet) -> FloatArray | None:
        """[V] from a condition's place to where its limit is looked for; None for equations, which are met inside."""
        if jet.place is None:
            return None
        step = np.zeros(len(self.problem.variables) + len(self.problem.parameters))
        for k, place in enumerate(jet.place):
            low, high = self.problem.box[k]
            step[k] = 0.0 if place is None else NUMERICAL.limit_step * (high - low)
        return step

    def polish(self, formula: OpenFormula) -> tuple[FloatArray, float]:
        """Constants that make residuals and misfits as small as can be, and the largest that is left, relative.

        Of constants that say the same together, as in a*log(x**b), one after the other is set to 1 or -1.
        """
        free = np.ones(len(formula.constants), dtype=bool)
        constants, best, slopes = self._newton(formula, np.array(formula.constants, dtype=float), free)
        while best <= PROOF.met and (loose := _loose_constant(slopes, constants, free)) is not None:
            free[loose] = False
            trial = constants.copy()
            trial[loose] = math.copysign(1.0, constants[loose])
            constants_of_it, left, slopes_of_it = self._newton(formula, trial, free)
            if left <= PROOF.met:
                constants, best, slopes = constants_of_it, left, slopes_of_it
        return constants, best

    def _newton(
        self, formula: OpenFormula, constants: FloatArray, free: FloatArray
    ) -> tuple[FloatArray, float, FloatArray]:
        """Steps of Gauss and Newton in the free constants; weighted slopes at the end."""
        values, slopes, scale, _ = self.rows(formula, constants)
        weight = _weights(scale)
        best = _largest(values, weight)
        for _ in range(PROOF.polish_steps if free.any() else 0):
            if not (np.isfinite(values) & np.isfinite(slopes).all(axis=1)).all():
                break
            step = np.zeros(len(constants))
            step[free] = np.linalg.lstsq(slopes[:, free] * weight[:, None], -values * weight, rcond=PROOF.loose)[0]
            share = 1.0
            for _ in range(PROOF.halvings):
                trial = self.rows(formula, constants + share * step)
                new = _largest(trial[0], weight)
                if new < best:
                    break
                share /= 2
            else:
                break
            constants, best = constants + share * step, new
            values, slopes, *_ = trial
            if best < PROOF.rounding:
                break
        return constants, best, slopes * weight[:, None]


def _limits(far: FloatArray, near: FloatArray) -> FloatArray:
    """[P] the values in the middle of those at `LIMIT_NODES` [8, P], a step apart and half a step; nan for poles and jumps.

    Where there is a limit, both sides come closer to each other with half the step, and no value grows.
    """
    with np.errstate(all="ignore"):
        size = np.abs(far).max(axis=0)
        apart = [np.abs(values[3] - values[4]) for values in (far, near)]
        settles = (np.abs(near).max(axis=0) <= 1.5 * size) & (apart[1] <= 0.75 * apart[0] + 1e-9 * size)
        return np.where(settles, LIMIT_WEIGHTS @ far, np.nan)


def _loose_constant(slopes: FloatArray, constants: FloatArray, free: FloatArray) -> int | None:
    """The free constant that moves most along a direction which changes nothing; None where every direction counts."""
    places = np.flatnonzero(free & (constants != 0.0))
    if len(places) < 2 or not np.isfinite(slopes).all():
        return None
    _, sizes, directions = np.linalg.svd(slopes[:, places] * constants[places], full_matrices=False)
    if sizes[-1] > PROOF.loose * sizes[0]:
        return None
    return int(places[np.argmax(np.abs(directions[-1]))])


def _weights(scale: FloatArray) -> FloatArray:
    finite = scale[np.isfinite(scale)]
    typical = float(np.median(finite)) if len(finite) else 1.0
    return np.asarray(
        1.0 / np.maximum(np.where(np.isfinite(scale), scale, np.inf), typical * NUMERICAL.small_scale + 1e-300)
    )


def relative_size(values: FloatArray, scale: FloatArray) -> float:
    """The largest value, relative to the terms that it is made of; inf where one is no number."""
    return _largest(values, _weights(scale))


def _largest(values: FloatArray, weight: FloatArray) -> float:
    with np.errstate(all="ignore"):
        relative = np.abs(values * weight)
    return float(np.max(relative)) if np.isfinite(relative).all() else np.inf
