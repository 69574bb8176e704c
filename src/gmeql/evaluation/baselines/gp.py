"""GP: standard genetic programming through gplearn (`pip install gmeql[experiments]`).

The GMEQL paper sets a population of 5,000 over 100 generations and leaves the rest at gplearn's defaults, which follow
Koza: crossover 0.9, tournaments of 20, parsimony 0.001, constants from (-1, 1), fitness MAE.

gplearn guards its functions: a root takes |x|, which the expression shows; a quotient is 1 where the denominator is
within 0.001 of zero, which the expression does not show (it divides), except where that is so on every row.

The evolution is gplearn's own. Some of its steps are replaced by faster ones with the same result (`_hurried`): the
evaluation of a program (compiled), the drawing of rows (all of them are used), the seeding of random numbers, and what
a crossover notes down for pictures of the family tree.
"""

from __future__ import annotations

import dataclasses
import functools
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gmeql.evaluation.baselines.tasks import BaselineResult, Budget, Curve, Task
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable

_GUARD = 1e-3  # gplearn's smallest denominator


@dataclass(frozen=True)
class GPConfig:
    """Numbers of the method; sources in brackets. What is not here keeps gplearn's default."""

    population: int = 5000  # [GMEQL paper, Experiment]
    functions: tuple[str, ...] = ("add", "sub", "mul", "div", "sin", "cos", "sqrt")  # [gplearn names]
    metric: str = "mean absolute error"  # [the paper's measure; gplearn's default]
    parsimony: float = 0.001  # [gplearn default]
    generations_between_checks: int = 5

    def __post_init__(self) -> None:
        if self.population < 2:
            raise ValueError(f"population must be at least 2, got {self.population}")


def fit(tasks: Sequence[Task], budget: Budget, config: GPConfig | None = None) -> list[BaselineResult]:
    """One evolution per task, one after the other; `budget.seconds` is shared out evenly."""
    config = config or GPConfig()
    return [_evolve(task, Budget(budget.candidates, budget.seconds / len(tasks)), config) for task in tasks]


def _evolve(task: Task, budget: Budget, config: GPConfig) -> BaselineResult:
    try:
        from gplearn.genetic import SymbolicRegressor
    except ImportError as error:
        raise ImportError(f"method 'gp' needs gplearn ({error}); try: pip install 'gmeql[experiments]'") from error

    started = time.perf_counter()
    generations = max(1, budget.candidates // config.population)
    model = SymbolicRegressor(
        population_size=config.population,
        function_set=config.functions,
        metric=config.metric,
        parsimony_coefficient=config.parsimony,
        stopping_criteria=0.0,
        low_memory=True,
        warm_start=True,
        random_state=task.seed,
    )
    done = 0
    with np.errstate(all="ignore"), warnings.catch_warnings(), _hurried():
        warnings.simplefilter("ignore")
        while done < generations and (done == 0 or time.perf_counter() - started < budget.seconds):
            done = min(generations, done + config.generations_between_checks)
            model.set_params(generations=done)
            model.fit(task.X, task.y)
            if len(model._programs) < done:  # gplearn ended early: an exact program
                break
    details = model.run_details_
    numbers = tuple((int(g) + 1) * config.population for g in details["generation"])
    curve = Curve(
        numbers,
        tuple(float(s) for s in np.cumsum(details["generation_time"])),
        tuple(float(f) for f in np.minimum.accumulate(details["best_fitness"])),
    )
    expression = expression_of(model._program.program, task.X, task.names or ())
    seconds = time.perf_counter() - started
    return BaselineResult("gp", task.seed, expression, curve, seconds, numbers[-1], dataclasses.asdict(config))


def expression_of(program: Sequence[Any], X: np.ndarray, names: tuple[str, ...]) -> Expression:
    """The expression of a gplearn program: a prefix list of functions, column numbers and constants."""
    stack: list[Any] = []
    for item in reversed(program):
        if isinstance(item, int | np.integer) and not isinstance(item, bool):
            stack.append(Variable(int(item)))
        elif isinstance(item, float | np.floating):
            stack.append(Constant(float(item)))
        else:
            args = tuple(stack.pop() for _ in range(item.arity))
            stack.append(_call(item.name, args, X, names))
    return Expression(stack.pop(), names)


def _call(name: str, args: tuple[Any, ...], X: np.ndarray, names: tuple[str, ...]) -> Any:
    if name == "sqrt":
        return Call("sqrt", (Call("abs", args),))
    if name == "div" and np.all(np.abs(Expression(args[1], names)(X)) <= _GUARD):
        return Constant(1.0)
    return Call(name, args)


# --- the same evolution, faster -----------------------------------------------------------------------------------

_CODES = {"add": 0, "sub": 1, "mul": 2, "div": 3, "sin": 4, "cos": 5, "sqrt": 6}
_COLUMN, _NUMBER = -1, -2


@functools.cache
def _kernel() -> Any:
    """Compiled: mean absolute error of a prefix program with gplearn's guards; `stack` is room to work in."""
    import math

    import numba

    @numba.njit(error_model="numpy", nogil=True, cache=True)
    def error(codes: Any, numbers: Any, columns: Any, y: Any, stack: Any) -> float:
        top = -1
        for i in range(len(codes) - 1, -1, -1):
            code = codes[i]
            if code < 0:
                top += 1
                if code == _COLUMN:
                    stack[top, :] = columns[int(numbers[i])]
                else:
                    stack[top, :] = numbers[i]
                continue
            if code < 4:  # the first argument was read last and lies on top
                a, out = stack[top], stack[top - 1]
                top -= 1
            else:
                a, out = stack[top], stack[top]
            for n in range(len(y)):
                if code == 0:
                    out[n] = a[n] + out[n]
                elif code == 1:
                    out[n] = a[n] - out[n]
                elif code == 2:
                    out[n] = a[n] * out[n]
                elif code == 3:
                    out[n] = a[n] / out[n] if abs(out[n]) > _GUARD else 1.0
                elif code == 4:
                    out[n] = math.sin(a[n])
                elif code == 5:
                    out[n] = math.cos(a[n])
                else:
                    out[n] = math.sqrt(abs(a[n]))
        total = 0.0
        for n in range(len(y)):
            total += abs(stack[0, n] - y[n])
        return total / len(y)

    return error


@functools.cache
def _program_class() -> Any:
    """gplearn's program with a compiled error and without what a fit on all rows does not need."""
    from gplearn import genetic
    from gplearn.fitness import mean_absolute_error as mae

    class Program(genetic._Program):
        chances: ClassVar[
            dict[int, tuple[list[Any], np.ndarray]]
        ] = {}  # of the nodes to be chosen, by the identity of a program

        def validate_program(self) -> bool:
            return True  # every operation keeps programs whole

        def get_all_indices(self, n_samples: Any = None, max_samples: Any = None, random_state: Any = None) -> Any:
            if n_samples is None or n_samples != max_samples:
                return super().get_all_indices(n_samples, max_samples, random_state)
            return np.arange(n_samples), np.arange(0)

        def get_subtree(self, random_state: Any, program: Any = None) -> tuple[int, int]:
            program = self.program if program is None else program
            known = self.chances.get(id(program))
            if known is not None and known[0] is program:  # parents are chosen again and again
                chances = known[1]
            else:
                weights = np.array([0.1 if isinstance(node, int | float) else 0.9 for node in program])
                chances = np.cumsum(weights / weights.sum())
                if len(self.chances) > 20_000:
                    self.chances.clear()
                self.chances[id(program)] = program, chances
            start = end = int(np.searchsorted(chances, random_state.uniform()))
            wanted = 1
            while wanted > end - start:
                node = program[end]
                if not isinstance(node, int | float):
                    wanted += node.arity
                end += 1
            return start, end

        def crossover(self, donor: Any, random_state: Any) -> Any:
            start, end = self.get_subtree(random_state)
            first, last = self.get_subtree(random_state, donor)
            return self.program[:start] + donor[first:last] + self.program[end:], (), ()

        def raw_fitness(self, X: Any, y: Any, sample_weight: Any) -> float:
            codes, numbers = [], []
            for node in self.program:
                is_leaf = isinstance(node, int | float)
                codes.append(_CODES.get(node.name) if not is_leaf else _COLUMN if isinstance(node, int) else _NUMBER)
                numbers.append(node if is_leaf else 0.0)
            if self.metric is not mae or self.transformer or None in codes:
                return super().raw_fitness(X, y, sample_weight)
            stack = np.empty((len(codes) // 2 + 2, len(y)))
            columns = np.ascontiguousarray(X.T)
            return float(_kernel()(np.array(codes), np.array(numbers, float), columns, y, stack))

    return Program


@contextmanager
def _hurried() -> Iterator[None]:
    """Inside, gplearn evolves with `_program_class` and seeds one random state again instead of making new ones."""
    from unittest.mock import patch

    from gplearn import genetic

    state, usual = np.random.RandomState(0), genetic.check_random_state

    def check(seed: Any) -> Any:
        if not isinstance(seed, np.integer):
            return usual(seed)
        state.seed(int(seed))  # a program's random numbers are used up before the next program's are seeded
        return state

    with patch.multiple(genetic, _Program=_program_class(), check_random_state=check):
        yield
