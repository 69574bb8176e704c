"""Formulas on rows: constants refitted, then judged by loss and description length.

`length_in_nats` is the one description length: half the rows times the log of the residuals' variance, plus what the
constants and the nodes cost. On noise-free data the loss counts only down to rounding level; on noisy data a constant
must earn its keep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gmeql.fitters import fit
from gmeql.fitters.grouped import fit_groups, split_rows
from gmeql.fitters.kernel.arrays import FitData
from gmeql.fitters.programs import Program, ProgramTooLong, from_expression, input_slots, replace_constants, stack
from gmeql.formula.constants import free_constants, round_exponents
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, transform, tree_complexity, used_columns
from gmeql.formula.simplify import simplify
from gmeql.knowledge.knowledge import Knowledge
from gmeql.search.polish.config import POLISH
from gmeql.search.polish.observed import observed, two_valued
from gmeql.search.polish.recognition import is_recognised, n_loose_constants, plain_nats
from gmeql.search.judging.structure import structure_nats


@dataclass(frozen=True)
class JudgedRows:
    """Data that formulas are judged on: input slots, target [N], weights [N] (mean 1), target's spread."""

    X: np.ndarray
    inputs: np.ndarray
    target: np.ndarray
    weights: np.ndarray
    names: tuple[str, ...]
    n_threads: int = 1
    knowledge: Knowledge | None = None
    """What the user knows: formulas that it does not admit are not fitted."""
    pure_numbers: bool = False
    """Whether known units leave only pure numbers as constants: digits cost then, of exponents and of exact fits too."""
    groups: np.ndarray | None = None
    """Group number of each row [N], where every group has constants of its own."""
    first_own: int | None = None
    """Where groups' own constants stand as columns, the first of them,"""
    n_groups: int = 0
    """and how many groups there are, each of which had such a constant fitted."""

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        names: Iterable[str],
        n_threads: int = 1,
        knowledge: Knowledge | None = None,
        **groups: Any,
    ) -> JudgedRows:
        weights = np.ones(len(y)) if weights is None else weights / weights.mean()
        groups.setdefault("pure_numbers", knowledge is not None and knowledge.has_pure_constants)
        return cls(X, input_slots(X)[0], y, weights, tuple(names), n_threads, knowledge, **groups)

    def admits(self, root: Node) -> bool:
        """Whether what the user knows lets a formula be tried."""
        return self.knowledge is None or self.knowledge.admits(root)

    @property
    def n_variables(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def by_group(self) -> tuple[FitData, ...]:
        """The rows of each group."""
        assert self.groups is not None
        return split_rows(FitData(self.inputs, self.target, self.weights), self.groups)

    def only(self, rows: np.ndarray) -> JudgedRows:
        """Some of the rows by their numbers, without groups."""
        parts = self.X[rows], self.target[rows], self.weights[rows]
        return JudgedRows.of(*parts, self.names, self.n_threads, self.knowledge)

    def n_own(self, root: Node) -> int:
        """How many constants of groups' own a formula has, all groups together."""
        if self.first_own is None:
            return 0
        return self.n_groups * sum(column >= self.first_own for column in used_columns(root))

    def plain_nats(self, expression: Expression, held: Iterable[int], loss: float) -> float:
        """Nats to state those constants of a formula, by their place, that are numbers people write down.

        A number of three digits is as good as a fitted one and costs nearly as much; 1 costs nothing, 2 and 0.5 little.
        Exponents such as 2 are structure. Where the fit is exact such numbers are no luck: only pure numbers pay there.
        """
        if not self.pure_numbers and self.is_exact(loss):
            return 0.0
        places = list(held)
        if not places:
            return 0.0
        most = max(0.5 * math.log(max(len(self.target), 2)) - POLISH.rounding_nats, 0.0)
        constants, free = expression.constants, free_constants(expression)
        return sum(min(plain_nats(constants[i]), most) for i in places if self.pure_numbers or free[i])

    def recognised_nats(self, root: Node, loss: float) -> float:
        """The same of all constants of a formula that are recognised, which may have more own constants than these rows."""
        expression = Expression(root)
        held = (i for i, value in enumerate(expression.constants) if is_recognised(value))
        return self.plain_nats(expression, held, loss)

    def n_fitted(self, root: Node) -> int:
        """How many constants of a formula were fitted: loose ones, and those of groups."""
        return n_loose_constants(root) + self.n_own(root)

    @cached_property
    def is_positive(self) -> Callable[[Node], bool]:
        """A predicate: whether a part of a formula is positive on every row (of a sample of them)."""
        known: dict[Node, bool] = {}
        sample = self.X[: POLISH.sign_rows]

        def positive(node: Node) -> bool:
            if node not in known:
                known[node] = bool((Expression(node, self.names)(sample) > 0).all())
            return known[node]

        return positive

    @cached_property
    def two_valued(self) -> dict[int, tuple[float, float]]:
        """Columns that hold only 0 and 1, or only -1 and 1, with these values."""
        return two_valued(self.X)

    @cached_property
    def spread(self) -> float:
        """Weighted standard deviation of the target; its magnitude where it is constant."""
        mean = np.average(self.target, weights=self.weights)
        spread = math.sqrt(np.average((self.target - mean) ** 2, weights=self.weights))
        return spread or float(np.abs(self.target).max()) or 1.0

    @cached_property
    def floor(self) -> float:
        """Loss at rounding level, of rows as much as they count."""
        largest = float((np.sqrt(self.weights) * np.abs(self.target)).max())
        return max(
            (POLISH.relative_rounding * self.spread) ** 2,
            (POLISH.target_rounding * largest) ** 2,
            POLISH.least_floor,
        )

    def is_exact(self, loss: float) -> bool:
        """Whether a loss is rounding and nothing else."""
        return loss <= POLISH.exact_factor * self.floor


class Scored:
    """A formula with its loss (weighted mean squared error) and description length on some rows.

    `unseen` is the loss to expect on other rows: that of the rows where nothing more is known. The tree with the fitted
    constants is built when it is first asked for: most formulas are only compared.
    """

    def __init__(
        self,
        root: Node,
        loss: float,
        length: float,
        complexity: int | None = None,
        rebuild: Callable[[], Node] | None = None,
        unseen: float | None = None,
    ) -> None:
        self._root = root
        self._rebuild = rebuild
        self.loss = loss
        self.unseen = loss if unseen is None else unseen
        self.length = length
        self.own: np.ndarray | None = None
        """[G, K] where columns of the formula behind those of the table are groups' own constants,"""
        self.source: Node | None = None
        """and the formula that every group was fitted to by itself."""
        self.complexity = tree_complexity(root) if complexity is None else complexity
        self.held_on: tuple[JudgedRows, bool] | None = None
        """Rows on which it was asked whether it holds on every one of them, and whether it does."""

    @property
    def form(self) -> Node:
        """The same tree, with other constants for as long as nobody asked for the fitted ones."""
        return self._root

    @property
    def root(self) -> Node:
        if self._rebuild is not None:
            self._root, self._rebuild = self._rebuild(), None
        return self._root


def description_length(root: Node, loss: float, rows: JudgedRows) -> float:
    """Nats to state the residuals, the constants and the shape of a formula on some rows."""
    return length_on(rows, loss, rows.n_fitted(root), tree_complexity(root)) + rows.recognised_nats(root, loss)


def length_on(rows: JudgedRows, loss: float, n_constants: int, complexity: int) -> float:
    """The same for a formula of which only these figures are known."""
    n = len(rows.target)
    if not math.isfinite(loss) or n_constants >= n - 1:
        return math.inf
    log_variance = math.log(max(loss, rows.floor) * n / (n - n_constants))
    return length_in_nats(log_variance, n_constants, complexity, n_rows=n)


def unseen_length(root: Node, unseen: float, rows: JudgedRows, *, node_cost: float = POLISH.node_cost) -> float:
    """Description length with the loss to expect on other rows in place of the loss over the rows left free; a sum of
    columns pays for saying which (`judging/structure.py`)."""
    n, n_constants = len(rows.target), rows.n_fitted(root)
    if not math.isfinite(unseen) or n_constants >= n - 1:
        return math.inf
    # a row left out costs the fit twice what the degrees of freedom account for
    log_variance = math.log(max(unseen, rows.floor)) - n_constants / n
    structure = structure_nats(root, rows.n_variables, node_cost=node_cost)
    return length_in_nats(log_variance, n_constants, 0, n_rows=n) + structure + rows.recognised_nats(root, unseen)


def length_in_nats(
    log_variance: float, n_constants: float, complexity: int, *, n_rows: float, node_cost: float = POLISH.node_cost
) -> float:
    """Description length N/2 log σ² + K/2 log N + c·complexity, up to a constant of the data (Rissanen 1978).

    `N` rows whose residuals have the variance σ² = loss · N/(N - K), `K` fitted constants, `c` = `node_cost`. The
    variance comes as its logarithm: on tiny targets it would underflow.
    """
    return 0.5 * n_rows * log_variance + 0.5 * n_constants * math.log(max(n_rows, 2.0)) + node_cost * complexity


def refit(
    roots: Iterable[Node], rows: JudgedRows, *, keep_recognised: bool = True, max_steps: int = POLISH.refit_steps
) -> list[Scored]:
    """Refit the constants of several formulas; those not admitted, that cannot be a program or do not fit are left out.

    `keep_recognised` holds constants that are already short numbers. Exponents such as 1.5 are held in any case: they
    are part of the structure that complexity counts, and whoever rounded one wants to know what that costs.
    """
    expressions, programs, kept = [], [], []
    for root in roots:
        if not rows.admits(root):
            continue
        expression = Expression(root, rows.names)
        fixed = round_exponents(expression)
        fixed |= {i for i, v in enumerate(expression.constants) if keep_recognised and is_recognised(v)}
        if rows.knowledge is not None:
            fixed |= rows.knowledge.held_constants(root)
        try:
            programs.append(from_expression(root, rows.n_variables, fixed))
        except ProgramTooLong:
            continue
        expressions.append(expression)
        kept.append(fixed)
    if not programs:
        return []
    fits, n_groups = (_fit_once, 1) if rows.groups is None else (_fit_each_group, len(rows.by_group))
    scored = []
    fitted = fits(programs, rows, max_steps)
    for expression, program, held, constants, loss in zip(expressions, programs, kept, *fitted, strict=True):
        if not math.isfinite(loss) or not np.isfinite(constants[: len(program.start)]).all():
            continue
        complexity = expression.complexity
        length = length_on(rows, float(loss), program.n_free * n_groups, complexity)
        length += rows.plain_nats(expression, held, float(loss))
        refitted = partial(_refitted, expression, program, constants)
        scored.append(Scored(expression.root, float(loss), length, complexity, refitted))
    return scored


def _fit_once(programs: list[Program], rows: JudgedRows, max_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Constants [B, P] and losses [B] of programs on all rows."""
    result = fit(
        programs,
        None,
        rows.inputs,
        rows.target,
        rows.weights,
        max_steps=max_steps,
        tolerance=POLISH.refit_tolerance,
        n_threads=rows.n_threads,
    )
    return result.constants, result.losses


def _fit_each_group(programs: list[Program], rows: JudgedRows, max_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Constants [B, P] of the group that each program meets best, and losses [B] over all groups."""
    codes, lengths, n_free, start = stack(programs)
    batch = SimpleNamespace(programs=codes, lengths=lengths, n_constants=n_free, constants=start)
    fitted = fit_groups(
        batch, rows.by_group, max_steps=max_steps, tolerance=POLISH.refit_tolerance, n_threads=rows.n_threads
    )
    masses = np.array([data.weights.sum() for data in rows.by_group])
    return fitted.leading_constants, masses @ fitted.losses / masses.sum()


def _refitted(expression: Expression, program: Program, constants: np.ndarray) -> Node:
    return replace_constants(expression, program, constants).root


def clean(root: Node, rows: JudgedRows) -> Node | None:
    """Normal form of a formula as the rows see it, or None where its constants overflow.

    Constants lose the sixteenth digit, so that 0.9 times 1.2 over 1.2 is 0.9 again.
    """
    try:
        normal = simplify(root, rows.is_positive)
        seen = observed(normal, rows.X, rows.two_valued)
        if seen != normal:
            normal = simplify(seen, rows.is_positive)
        return transform(normal, _without_last_digit)
    except (ArithmeticError, ValueError):
        return None


def _without_last_digit(leaf: Node) -> Node:
    return Constant(float(f"{leaf.value:.15g}")) if isinstance(leaf, Constant) else leaf
