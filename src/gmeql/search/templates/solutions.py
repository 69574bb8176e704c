"""Solutions of a template: a tree for each free function and a value for each named constant, fitted together.

For a fit all constants become parameters of one program, so that those of a function in several places are shared.
Legend: `K` named constants, `F` free functions, `V` columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gmeql.fitters import fit
from gmeql.fitters.programs import ProgramTooLong, from_expression
from gmeql.formula.nodes import Constant, Leaf, Node, Variable, build, transform, tree_complexity
from gmeql.formula.parsing import FIRST_NAME
from gmeql.knowledge.templates import Template, close_constants, open_constants
from gmeql.search.losses.effective import InputErrors, least_effective_values
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.templates.config import TEMPLATES

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """A template filled in: `inner` are the free functions, over their own arguments, `values` the named constants."""

    template: Template
    inner: tuple[Node, ...]
    values: tuple[float, ...]
    loss: float = math.inf

    @cached_property
    def root(self) -> Node:
        """The whole formula."""
        return self.template.compose(self.inner, [Constant(value) for value in self.values])

    @cached_property
    def complexity(self) -> int:
        return tree_complexity(self.root)


@dataclass(frozen=True)
class OpenSolution:
    """A solution with its constants as parameters: first the K named ones, then those of each function in turn.

    `root` holds parameter p as the variable `FIRST_NAME` + p.
    """

    solution: Solution
    inner: tuple[Node, ...]
    starts: tuple[float, ...]

    @classmethod
    def of(cls, solution: Solution) -> OpenSolution:
        starts, opened = list(solution.values), []
        for tree in solution.inner:
            parts, values = open_constants(tree, FIRST_NAME + len(starts))
            opened.append(parts)
            starts += values
        return cls(solution, tuple(opened), tuple(starts))

    def root(self, *, without: int | None = None) -> Node:
        """The formula with parameters; function `without` left open."""
        inner: list[Node | None] = [None if i == without else tree for i, tree in enumerate(self.inner)]
        names = [Variable(FIRST_NAME + k) for k in range(len(self.solution.values))]
        return self.solution.template.compose(inner, names)

    def closed(self, values: Sequence[float], loss: float) -> Solution:
        """The solution with fitted parameters."""
        inner = tuple(close_constants(tree, FIRST_NAME, values) for tree in self.inner)
        return Solution(self.solution.template, inner, tuple(values[: len(self.solution.values)]), loss)


@dataclass(frozen=True)
class Fitted:
    """Parameters and loss of one fit; a loss of inf where there is none."""

    values: tuple[float, ...]
    loss: float


def fit_parameters(
    template: Template,
    roots: Sequence[Node],
    starts: Sequence[Sequence[float]],
    rows: JudgedRows,
    *,
    max_steps: int,
    tolerance: float = 1e-9,
    fixed: Sequence[Sequence[int]] | None = None,
) -> list[Fitted]:
    """Fit the parameters of formulas, named constants within their bounds; `fixed` are parameters that stay."""
    held = [set(given) for given in fixed] if fixed is not None else [set() for _ in roots]
    now = [_clipped(template, start) for start in starts]
    losses = [math.inf] * len(roots)
    waiting = list(range(len(roots)))
    for _ in range(TEMPLATES.bound_rounds):
        found = _fit(roots, now, held, waiting, rows, max_steps=max_steps, tolerance=tolerance)
        again = []
        for b, (values, loss) in found.items():
            beyond = [k for k, c in enumerate(template.constants) if not c.low <= values[k] <= c.high]
            now[b], losses[b] = values, loss if not beyond else math.inf
            if beyond and math.isfinite(loss):
                held[b] |= set(beyond)
                now[b] = _clipped(template, values)
                again.append(b)
        waiting = again
        if not waiting:
            break
    return [Fitted(tuple(values), loss) for values, loss in zip(now, losses, strict=True)]


def _clipped(template: Template, values: Sequence[float]) -> list[float]:
    bounded = [c.clip(value) for c, value in zip(template.constants, values, strict=False)]
    return [*bounded, *values[len(bounded) :]]


def _fit(
    roots: Sequence[Node],
    starts: Sequence[Sequence[float]],
    held: Sequence[set[int]],
    wanted: Sequence[int],
    rows: JudgedRows,
    *,
    max_steps: int,
    tolerance: float,
) -> dict[int, tuple[list[float], float]]:
    programs, places = [], []
    for b in wanted:
        fixed = {-1 - p for p in held[b]} | set(range(roots[b].size))  # numbers of the template's own text stay
        try:
            programs.append(from_expression(_numbered(roots[b], rows.n_variables), rows.n_variables, fixed, starts[b]))
        except ProgramTooLong:
            continue
        places.append(b)
    if not programs:
        return {}
    result = fit(programs, None, rows.inputs, rows.target, rows.weights, max_steps=max_steps, tolerance=tolerance,
                 n_threads=rows.n_threads)  # fmt: skip
    found = {}
    for b, program, constants, loss in zip(places, programs, result.constants, result.losses, strict=True):
        values = list(starts[b])
        for place, number in enumerate(program.leaves):
            if number < 0:
                values[-1 - number] = float(constants[place])
        finite = math.isfinite(loss) and all(map(math.isfinite, values))
        found[b] = (values, float(loss)) if finite else (list(starts[b]), math.inf)
    return found


def _numbered(root: Node, n_variables: int) -> Node:
    """Parameters as variables behind the columns."""

    def leaf(node: Leaf) -> Node:
        if isinstance(node, Variable) and node.index >= FIRST_NAME:
            return Variable(n_variables + node.index - FIRST_NAME)
        return node

    return transform(root, leaf)


def refit_solutions(
    solutions: Sequence[Solution], rows: JudgedRows, *, max_steps: int, fixed: Sequence[Sequence[int]] | None = None
) -> list[Solution]:
    """Solutions with all their constants fitted anew, in their order; a loss of inf where that fails."""
    if not solutions:
        return []
    opened = [OpenSolution.of(solution) for solution in solutions]
    template = solutions[0].template
    fitted = fit_parameters(
        template, [o.root() for o in opened], [o.starts for o in opened], rows, max_steps=max_steps, fixed=fixed
    )
    return [
        o.closed(f.values, f.loss) if math.isfinite(f.loss) else replace(o.solution, loss=math.inf)
        for o, f in zip(opened, fitted, strict=True)
    ]


def least_effective_solution(
    solution: Solution, X: FloatArray, y: FloatArray, weights: FloatArray, errors: InputErrors
) -> Solution:
    """A solution with the constants, named ones within their bounds, at which the effective variance of rows is least.

    A factor of 1 stays: it was made so where another one does its work.
    """
    opened = OpenSolution.of(solution)
    starts = np.array(opened.starts)
    free = np.flatnonzero(np.abs(starts) != 1.0)
    unbounded = [(-math.inf, math.inf)] * (len(starts) - len(solution.values))
    bounds = np.array([*((c.low, c.high) for c in solution.template.constants), *unbounded]).reshape(-1, 2)[free]

    def moved(values: FloatArray) -> Solution:
        full = starts.copy()
        full[free] = values
        return opened.closed(full.tolist(), solution.loss)

    return moved(
        least_effective_values(
            lambda values: moved(values).root,
            starts[free],
            X,
            y,
            weights,
            errors,
            bounds=(bounds[:, 0], bounds[:, 1]) if np.isfinite(bounds).any() else None,
        )
    )


def random_values(template: Template, rng: np.random.Generator) -> list[float]:
    """Starts of the named constants: even between their bounds, or of a random size and sign where they have none."""
    values = []
    for constant in template.constants:
        if math.isfinite(constant.low) and math.isfinite(constant.high):
            values.append(float(rng.uniform(constant.low, constant.high)))
            continue
        size = float(np.exp(rng.uniform(math.log(TEMPLATES.least_size), math.log(TEMPLATES.largest_size))))
        values.append(constant.clip(size if rng.random() < 0.5 or constant.low >= 0 else -size))
    return values


def plain_function(arity: int, rng: np.random.Generator) -> Node:
    """A sum of a function's arguments with random factors: what a search inside a template begins with."""
    terms = [build("mul", Constant(float(rng.normal())), Variable(j)) for j in range(arity)]
    return build("add", *terms, Constant(float(rng.normal())))
