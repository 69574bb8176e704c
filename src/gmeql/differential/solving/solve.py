"""`gmeql.solve`: closed forms of differential equations.

1. read: equations, conditions and domain are checked and made exact (`reading.py`);
2. solve in numbers: to rounding, every branch (`numerical.py`), as tables (`sampled.py`);
3. search: formulas for those values, by the same search that `GMEQLRegressor` runs;
4. polish, recognise, prove: constants are fitted to the equation itself, become exact numbers, and the formula is put
   into equation and conditions (`proof.py`);
5. where nothing is proven, more candidates with another seed, until the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gmeql.differential.solving.config import PROOF, SOLVE
from gmeql.differential.solving.hints import Hints
from gmeql.differential.solving.problem import Problem
from gmeql.differential.solving.proof import Judged
from gmeql.differential.solving.reading import read_problem
from gmeql.differential.solving.sampled import SolutionTable, solution_tables
from gmeql.differential.solving.solutions import Solution, Solutions
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant
from gmeql.model.fit.kernels import keep_kernels, load_kernels
from gmeql.model.fit.preparation import prepare
from gmeql.model.fit.progress import ProgressDisplay
from gmeql.search.config import SearchConfig
from gmeql.search.search import Search


def solve(
    equation: Any,
    function: Any = None,
    *,
    ics: Any = None,
    domain: Any = None,
    parameters: Any = None,
    functions: Sequence[str] | None = None,
    max_time: float | None = 60.0,
    max_candidates: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Solutions:
    """Closed forms that solve a differential equation, with a proof where there is one.

    Parameters
    ----------
    equation : sympy.Eq, expression, list of them, or callable
        As for SymPy's `dsolve`; an expression is to vanish; a list is a system. A callable is given the variables and the
        unknown functions, after them derivatives where it takes more, and returns one of these; it may use NumPy's
        functions: `lambda x, y, dy: dy + np.sin(y)`. Functions of several variables make a partial differential equation.
    function : applied function, or list of them
        The unknowns, such as `y(x)`; None takes those that occur in the equation.
    ics : dict or list of sympy.Eq
        Initial or boundary values, as for `dsolve`: `{y(0): 0, y(x).diff(x).subs(x, 0): 1}`. On faces of a box
        `{u(0, y): sin(y)}`, where the value may also be a number or a function of NumPy arrays. Conditions that are missing
        are filled with simple numbers, and a note says so.
    domain : pair, list of pairs, or dict
        Where the solution is wanted. By default between the points of the conditions, or from the one point on.
    parameters : list of symbols, or dict
        Symbols that stay symbols in the solution; a dictionary gives the values between which each is looked at.
    functions : list of str
        Operators that the solution may use; None takes the standard set and the arc tangent.
    max_time : float or None
        Seconds, all together. It ends sooner when a solution is proven.
    max_candidates : int or None
        Formulas to try; the reproducible budget.
    n_jobs, random_state, verbose
        As for `GMEQLRegressor`.

    Returns
    -------
    Solutions
        A front of closed forms; `.best`, `.proven`, `.sympy()`. Ctrl-C ends the search and keeps what was found.

    Examples
    --------
    >>> import sympy
    >>> x, y = sympy.Symbol("x"), sympy.Function("y")
    >>> found = solve(sympy.Eq(y(x).diff(x), 1 / (2 * y(x))), y(x), ics={y(1): 1}, random_state=0)
    >>> print(found)
    y = sqrt(x)
      proven: equation and conditions vanish identically
    """
    for name, value in (("max_time", max_time), ("max_candidates", max_candidates)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive or None, got {value!r}")
    if max_time is None and max_candidates is None:
        raise ValueError("max_time and max_candidates are both None, so it could go on forever; give one of them")
    problem = read_problem(equation, function, ics=ics, domain=domain, parameters=parameters)
    config = SearchConfig(functions=tuple(functions or SOLVE.functions), n_jobs=n_jobs)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    keep_kernels()
    load_kernels()  # before the clock starts
    return _Run(problem, config, seed, _Budget(max_time, max_candidates), verbose).solutions()


@dataclass
class _Budget:
    """What is left of time and candidates."""

    max_time: float | None
    max_candidates: int | None
    begun: float = field(default_factory=time.monotonic)
    candidates: int = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    @property
    def seconds_left(self) -> float | None:
        return None if self.max_time is None else self.max_time - self.seconds

    def is_over(self) -> str:
        """Why nothing more is tried; empty while something is left."""
        if self.seconds_left is not None and self.seconds_left <= 0:
            return "time is over"
        if self.max_candidates is not None and self.candidates >= self.max_candidates:
            return "the number of candidates is reached"
        return ""


class _Found:
    """What the search for one function has shown so far: its front, and all formulas that were near."""

    def __init__(self, table: SolutionTable, column: int) -> None:
        self.column = column
        self.front = [Expression(Constant(float(np.mean(table.Y[:, column]))), table.names)]
        self.near: list[Expression] = []

    def take(self, formulas: Sequence[Expression]) -> list[Expression]:
        """Those of the formulas that were not seen before."""
        fresh = [f for f in formulas if f not in self.near and len(f.constants) <= PROOF.max_constants]
        self.near += fresh
        return fresh


class _Run:
    """One call of `solve`."""

    def __init__(self, problem: Problem, config: SearchConfig, seed: int, budget: _Budget, verbose: int) -> None:
        self.problem, self.config, self.seed, self.budget, self.verbose = problem, config, seed, budget, verbose
        self.judged: dict[Any, Judged] = {}
        self.found: dict[Any, tuple[Judged, SolutionTable]] = {}
        self.reason = ""

    def solutions(self) -> Solutions:
        tables: list[SolutionTable] = []
        stream = solution_tables(self.problem)
        try:
            while not self.reason:
                for round_number, table in self._rounds(tables, stream):
                    if self._try(table, round_number, several=len(tables) > 1):
                        self.reason = "a closed form is proven"
                    self.reason = self.reason or self.budget.is_over()
                    if self.reason:
                        break
        except KeyboardInterrupt:
            if not self.found:
                raise
            self.reason = "interrupted"
        return self._result()

    def _rounds(
        self, tables: list[SolutionTable], stream: Iterator[SolutionTable]
    ) -> Iterator[tuple[int, SolutionTable]]:
        """Every numerical solution with few candidates, then all of them again with more."""
        for table in stream:
            tables.append(table)
            yield 0, table
        for number in range(1, 1000):
            for table in tables:
                yield number, table

    # --- one search --------------------------------------------------------------------------------------------------

    def _try(self, table: SolutionTable, round_number: int, *, several: bool) -> bool:
        """Search on one numerical solution; whether something was proven."""
        many = several or table.solution.filled
        plain = Hints(table.names, ())
        first = SOLVE.quick_candidates if many else SOLVE.first_candidates
        turns = [(plain, int(first * SOLVE.growth**round_number))]
        if table.hints.trees:
            turns.insert(0, (table.hints, int(SOLVE.hinted_candidates * SOLVE.growth**round_number)))
        for hints, count in turns:
            if self._search_all(table, hints, count, round_number):
                return True
            self.reason = self.reason or self.budget.is_over()
            if self.reason:
                return False
        return False

    def _search_all(self, table: SolutionTable, hints: Hints, count: int, round_number: int) -> bool:
        """Search for every unknown function; whether all together were proven."""
        near: list[list[Expression]] = []
        fronts: list[list[Expression]] = []
        for column in range(table.Y.shape[1]):
            found = _Found(table, column)
            fronts.append(found.front)
            near.append(found.near)
            if not self.reason and not (column and self.budget.is_over()):
                self._search(table, hints, found, count, round_number)
        if self._prove(table, near):
            return True
        self._keep_approximations(table, fronts)
        return False

    def _search(self, table: SolutionTable, hints: Hints, found: _Found, count: int, round_number: int) -> None:
        """Search for one function until it is exact or `count` candidates were tried; of one alone, until it is proven."""
        y = table.Y[:, found.column]
        spread = float(np.std(y))
        if spread <= SOLVE.constant * max(1.0, float(np.abs(y).max())):
            found.near.append(found.front[0])
            return
        data = prepare(hints.columns(table.X), y)
        seed = (self.seed + 7919 * round_number + found.column) % (2**31 - 1)
        search = Search(data.X, data.y, names=data.names, config=self.config, seed=seed)
        events: Any = search.run()
        tried = 0
        try:
            with self._display() as display:
                for event in events:
                    progress = data.restore_progress(event)
                    if display is not None:
                        display.update(hints.restore_progress(progress))
                    self.budget.candidates += search.candidates - tried
                    tried = search.candidates
                    found.front[:] = [hints.restore(m.expression.root) for m in progress.front]
                    good = [m.expression.root for m in progress.front if m.loss <= PROOF.near * spread]
                    fresh = found.take([hints.restore(root) for root in good])
                    if len(table.Y[0]) == 1 and self._prove(table, [fresh]):
                        break
                    exact = any(m.loss <= SOLVE.exact * spread for m in progress.front)
                    if exact and len(table.Y[0]) > 1:
                        break  # what is still open about it, the other functions decide
                    if tried >= count or self.budget.is_over():
                        break
        except KeyboardInterrupt:
            if not self.found and len(found.front) < 2:
                raise
            self.reason = "interrupted"
        finally:
            events.close()

    def _display(self) -> AbstractContextManager[ProgressDisplay | None]:
        if not self.verbose:
            return nullcontext()
        return ProgressDisplay("lines" if self.verbose >= 2 else "auto", title="closed form", budget="")

    def _prove(self, table: SolutionTable, near: Sequence[Sequence[Expression]]) -> bool:
        """Try formulas that are near, jointly for all functions, the simplest first; whether one was proven."""
        choices = sorted(product(*near), key=lambda c: sum(e.complexity for e in c))
        for expressions in choices[: SOLVE.judged]:
            key = (id(table), *(e.root for e in expressions))
            if key not in self.judged:
                self.judged[key] = table.judge.judge(expressions, polish=True)
                self._keep(self.judged[key], table)
            if self.judged[key].proven:
                return True
            if self.budget.is_over():
                break
        return False

    def _keep_approximations(self, table: SolutionTable, fronts: Sequence[Sequence[Expression]]) -> None:
        """Members of like rank of every function's front, as approximations."""
        for rank in range(longest := max(map(len, fronts))):
            expressions = [front[min(rank * len(front) // longest, len(front) - 1)] for front in fronts]
            self._keep(table.judge.judge(expressions, polish=False), table)

    def _keep(self, judged: Judged, table: SolutionTable) -> None:
        key = tuple(e.root for e in judged.expressions)
        if np.isfinite(judged.relative) and key not in self.found:
            self.found[key] = (judged, table)

    # --- what is given back ------------------------------------------------------------------------------------------

    def _result(self) -> Solutions:
        ranked = sorted(self.found.values(), key=lambda f: (f[0].complexity, -f[0].proven, f[0].relative))
        front: list[tuple[Judged, SolutionTable]] = []
        for judged, table in ranked:
            if judged.proven or not front or judged.relative < min(f[0].relative for f in front):
                front.append((judged, table))
            if judged.proven:
                break
        if not front:
            raise ArithmeticError("nothing was found before the search ended; give it more time (max_time)")
        back = self.problem.given_symbols
        members = tuple(
            Solution(
                names=self.problem.names,
                expressions=judged.expressions,
                forms=tuple(form.xreplace(back) for form in judged.forms),
                complexity=judged.complexity,
                residual=judged.residual,
                misfit=judged.misfit,
                proven=judged.proven,
                verdict=judged.verdict,
            )
            for judged, _ in front
        )
        chosen = next((table for judged, table in front if judged.proven), front[-1][1])
        box = chosen.solution.problem.box
        return Solutions(
            members,
            equation=", ".join(
                f"{name}({', '.join(v.name for v in self.problem.variables)})" for name in self.problem.names
            ),
            domain=self.problem.domain_text(box),
            candidates=self.budget.candidates,
            seconds=self.budget.seconds,
            reason=self.reason,
            notes=self._notes(chosen),
            names=chosen.names,
            rows=chosen.X,
            values=chosen.Y,
        )

    def _notes(self, table: SolutionTable) -> tuple[str, ...]:
        notes = list(self.problem.notes)
        if table.solution.filled:
            notes.append(f"the conditions leave the solution open; this one has {table.solution.filled}")
        if table.solution.problem.box != self.problem.box:
            notes.append(f"the solution was followed on {self.problem.domain_text(table.solution.problem.box)} only")
        return tuple(notes)
