"""GP: standard genetic programming through gplearn (``pip install gmeql[experiments]``).

The GMEQL paper sets a population of 5,000 over 100 generations and leaves the rest at gplearn's defaults, which follow
Koza: crossover 0.9, tournaments of 20, parsimony 0.001, constants from (-1, 1), fitness MAE.

gplearn guards its functions: a root takes |x|, which the expression shows; a quotient is 1 where the denominator is
within 0.001 of zero, which the expression does not show (it divides), except where that is so on every row.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.baselines import Budget, Curve, Result, Task
from gmeql.expression import Call, Constant, Expression, Variable

PAPER_CANDIDATES = 5000 * 100
"""Expressions of one run in the GMEQL paper: population times generations."""
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


def fit(tasks: Sequence[Task], budget: Budget, config: GPConfig | None = None) -> list[Result]:
    """One evolution per task, one after the other; ``budget.seconds`` is shared out evenly."""
    config = config or GPConfig()
    return [_evolve(task, Budget(budget.candidates, budget.seconds / len(tasks)), config) for task in tasks]


def _evolve(task: Task, budget: Budget, config: GPConfig) -> Result:
    try:
        from gplearn.genetic import SymbolicRegressor
    except ImportError as error:
        raise ImportError(f"method 'gp' needs gplearn ({error}); try: pip install 'gmeql[experiments]'") from error

    started = time.perf_counter()
    generations = max(1, budget.candidates // config.population)
    model = SymbolicRegressor(
        population_size=config.population, function_set=config.functions, metric=config.metric,
        parsimony_coefficient=config.parsimony, stopping_criteria=0.0, low_memory=True, warm_start=True,
        random_state=task.seed,
    )
    done = 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
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
    return Result("gp", task.seed, expression, curve, seconds, numbers[-1], dataclasses.asdict(config))


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
