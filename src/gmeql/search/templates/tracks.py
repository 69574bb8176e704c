"""One attempt at a template: an island for each free function, and the solutions that they build upon.

A step draws candidates for one function by the sampler of all islands, over the function's own arguments, puts them into
the best solutions so far, and fits all constants together. What a function is worth is known only beside the others, so
they take turns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gmeql.fitters.programs import input_slots, to_node
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Variable
from gmeql.formula.parsing import FIRST_NAME
from gmeql.knowledge.templates import Template
from gmeql.network.families import FAMILIES, FunctionSet, draw_architecture
from gmeql.search.islands.candidates import Candidates
from gmeql.search.config import SearchConfig
from gmeql.search.direct.table import Effort
from gmeql.search.islands.island import Island
from gmeql.search.polish.scoring import JudgedRows
from gmeql.search.data.readings import PLAIN
from gmeql.search.templates.config import TEMPLATES
from gmeql.search.templates.solutions import (
    Fitted,
    OpenSolution,
    Solution,
    fit_parameters,
    plain_function,
    random_values,
    refit_solutions,
)
from gmeql.search.templates.seen import seen
from gmeql.search.islands.tried import IslandTried, TriedStructures

SMALL_FAMILIES = ("small", "sums", "middle", "general", "ratios", "complete")
"""Families that free functions are drawn from, in turn: what a template leaves open is rarely large."""


class Track:
    """The islands of the free functions and a pool of solutions, the best of each complexity."""

    def __init__(self, template: Template, config: SearchConfig, functions: FunctionSet, rng: np.random.Generator,
                 *, number: int, rows: JudgedRows) -> None:  # fmt: skip
        self.template, self.rng, self.rows = template, rng, rows
        self.max_complexity = config.max_complexity
        self.pool: dict[int, Solution] = {}
        self.no_tries = TriedStructures(4)
        self.numbers = replace(config.island, candidates_per_step=TEMPLATES.candidates_per_step)
        self.functions, self.opened = functions, number
        self.islands = [self._island(i) for i in range(len(template.functions))]

    def _island(self, i: int) -> Island:
        """A new island for function `i`; families take turns."""
        self.opened += 1
        arity = list(self.template.functions.values())[i]
        families = [name for name in SMALL_FAMILIES if name in FAMILIES]
        architecture = None
        for shift in range(len(families)):
            family = families[(self.opened + shift) % len(families)]
            architecture = draw_architecture(family, self.rng, arity, self.functions)
            if architecture is not None:
                break
        if architecture is None:
            raise ValueError("no function can be made of these functions; allow at least one of add, mul, div, sum")
        island = Island(
            architecture=architecture,
            reading=PLAIN,
            config=self.numbers,
            number=self.opened,
            random_state=np.array([self.rng.integers(1, 2**63, dtype=np.int64)], np.uint64),
        )
        island.inputs = self._inputs(i)
        return island

    def _inputs(self, i: int) -> np.ndarray:
        """Input slots of a function's arguments, all its places one below the other: only their signs are asked."""
        names = self.template.names
        tables = [
            np.column_stack([Expression(argument, names)(self.rows.X) for argument in place])
            for place in self.template.arguments_of(i)
        ]
        return input_slots(np.nan_to_num(np.concatenate(tables)))[0]

    @property
    def best(self) -> float:
        """The least loss so far."""
        return min((solution.loss for solution in self.pool.values()), default=math.inf)

    def start(self) -> int:
        """Solutions of the plainest functions from many starts. Returns how many were tried."""
        tries = [
            Solution(
                self.template,
                tuple(plain_function(arity, self.rng) for arity in self.template.functions.values()),
                tuple(random_values(self.template, self.rng)),
            )
            for _ in range(TEMPLATES.first_starts)
        ]
        found = refit_solutions(tries, self.rows, max_steps=2 * self._steps)
        self._keep(sorted(found, key=lambda s: s.loss)[: TEMPLATES.finished_per_step])
        return len(tries)

    @property
    def _steps(self) -> int:
        return self.islands[0].config.max_steps if self.islands else TEMPLATES.finish_steps

    def step(self, i: int) -> int:
        """Draw candidates for function `i` beside the others of a solution, fit and learn. Returns how many."""
        island = self.islands[i]
        drawn = island.draw(self.no_tries, self.max_complexity, table_key=0)
        if not len(drawn.losses):  # a small network whose every function is tried
            island = self.islands[i] = self._island(i)
            drawn = island.draw(self.no_tries, self.max_complexity, table_key=0)
        context = OpenSolution.of(self._context())
        base, first = context.root(without=i), len(context.starts)
        roots, starts = [], []
        for b in range(len(drawn.losses)):
            start, n = list(context.starts), int(drawn.n_constants[b])
            if self.rng.random() < TEMPLATES.restart_share:
                start[: len(self.template.constants)] = random_values(self.template, self.rng)
            names = [Variable(FIRST_NAME + first + p) for p in range(n)]
            tree = to_node(drawn.programs[b], int(drawn.lengths[b]), names, island.architecture.n_variables)
            roots.append(self.template.fill(base, i, tree))
            starts.append([*start, *drawn.constants[b, :n].tolist()])
        fitted = fit_parameters(
            self.template, roots, starts, self.rows, max_steps=self._steps, tolerance=island.config.tolerance
        )
        best = sorted(range(len(fitted)), key=lambda b: fitted[b].loss)[: TEMPLATES.finished_per_step]
        finished = fit_parameters(
            self.template, [roots[b] for b in best], [fitted[b].values for b in best], self.rows,
            max_steps=TEMPLATES.finish_steps,
        )  # fmt: skip
        for b, found in zip(best, finished, strict=True):
            fitted[b] = min(fitted[b], found, key=lambda f: f.loss)
        for b, found in enumerate(fitted):
            n = int(drawn.n_constants[b])
            drawn.losses[b], drawn.constants[b, :n] = found.loss, found.values[first : first + n]
        self._keep([self._solution(drawn, b, i, context, fitted[b]) for b in best if math.isfinite(fitted[b].loss)])
        island.absorb(drawn)
        return len(drawn.losses)

    def look(self, i: int, effort: Effort) -> int:
        """Let direct methods see what function `i` must be beside the best solution's others. Returns how many were tried."""
        tries = [] if not self.pool else list(seen(self._best_solution, i, self.rows, self.functions, effort, self.rng))
        found = refit_solutions(tries, self.rows, max_steps=TEMPLATES.finish_steps)
        self._keep([s for s in found if math.isfinite(s.loss) and s.complexity <= self.max_complexity])
        return len(tries)

    @property
    def _best_solution(self) -> Solution:
        return min(self.pool.values(), key=lambda solution: solution.loss)

    def _solution(self, drawn: Candidates, b: int, i: int, context: OpenSolution, found: Fitted) -> Solution:
        """What candidate `b` for function `i` makes of the solution that it was drawn for."""
        own = drawn.constants[b, : int(drawn.n_constants[b])]
        tree = to_node(drawn.programs[b], int(drawn.lengths[b]), own, self.islands[i].architecture.n_variables)
        solution = context.closed(found.values, found.loss)
        return replace(solution, inner=(*solution.inner[:i], tree, *solution.inner[i + 1 :]))

    def _context(self) -> Solution:
        """The solution that a step builds upon."""
        ranked = sorted(self.pool.values(), key=lambda solution: solution.loss)
        if not ranked:
            zero = tuple(plain_function(arity, self.rng) for arity in self.template.functions.values())
            return Solution(self.template, zero, tuple(random_values(self.template, self.rng)))
        if self.rng.random() < TEMPLATES.best_share:
            return ranked[0]
        return ranked[int(self.rng.integers(len(ranked)))]

    def _keep(self, found: Sequence[Solution]) -> None:
        """Add solutions to the pool: the best of each complexity, no more than it holds."""
        before = self.best
        for solution in found:
            same = self.pool.get(solution.complexity)
            if math.isfinite(solution.loss) and (same is None or solution.loss < same.loss):
                self.pool[solution.complexity] = solution
        if len(self.pool) > TEMPLATES.pool:
            kept = sorted(self.pool.values(), key=lambda solution: solution.loss)[: TEMPLATES.pool]
            self.pool = {solution.complexity: solution for solution in kept}
        if self.best < 0.5 * before:
            for island in self.islands:  # beside better functions, structures deserve another try
                island.tried = IslandTried()
