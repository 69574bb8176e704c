"""The paper's opponents behind one small interface: EQL, DSR and GP.

A `Task` is a table and a seed; `fit(method, tasks, budget)` trains one model per task and returns, for each, the
learning curve, the final expression and what it cost. EQL and DSR train all tasks of one call side by side (one batch
axis on a CPU or an accelerator), GP one after the other.

The methods import lazily: EQL and DSR need JAX, GP needs gplearn (`pip install gmeql[experiments]`).

>>> import numpy as np
>>> X = np.linspace(-1, 1, 40)[:, None]
>>> result, = fit("eql", [Task(X, 2 * X[:, 0], seed=0)], Budget(candidates=600))
>>> result.method, len(result.curve.mae) > 1
('eql', True)
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import evaluate

METHODS = ("eql", "dsr", "gp")
"""Names `fit` knows."""


@dataclass(frozen=True)
class Task:
    """One run: a table, a seed, and column names."""

    X: np.ndarray
    y: np.ndarray
    seed: int = 0
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        X, y = np.asarray(self.X, float), np.asarray(self.y, float)
        if X.ndim != 2 or y.shape != X.shape[:1] or len(y) < 2:
            raise ValueError(f"a task needs X of shape [N, V] and y of shape [N] with N >= 2, got {X.shape}, {y.shape}")
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise ValueError("X and y of a task must be finite numbers; drop or fill the missing rows first")
        names = self.names or tuple(f"x{i + 1}" for i in range(X.shape[1]))
        if len(names) != X.shape[1]:
            raise ValueError(f"names must hold one name per column: got {len(names)} names for {X.shape[1]} columns")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "names", tuple(names))


@dataclass(frozen=True)
class Budget:
    """How long a run may be. `candidates`: expressions evaluated (DSR, GP) or training steps (EQL).

    `seconds` bounds the wall clock of the whole call; the candidates are the reproducible budget.
    """

    candidates: int
    seconds: float = float("inf")

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise ValueError(f"candidates must be at least 1, got {self.candidates}")
        if not self.seconds > 0:
            raise ValueError(f"seconds must be positive, got {self.seconds}")


@dataclass(frozen=True)
class Curve:
    """Training MAE, in units of y, after so many candidates and so many seconds of the run."""

    candidates: tuple[int, ...]
    seconds: tuple[float, ...]
    mae: tuple[float, ...]


@dataclass(frozen=True)
class Result:
    """What a run gives back. `seconds` is the wall clock of its batch divided by the tasks in the batch."""

    method: str
    seed: int
    expression: Expression
    curve: Curve
    seconds: float
    candidates: int
    config: dict[str, Any] = field(default_factory=dict)


def fit(method: str, tasks: Sequence[Task], budget: Budget, config: Any = None) -> list[Result]:
    """Train `method` on every task; `config` is that module's frozen config (its defaults are sourced there)."""
    if method not in METHODS:
        raise ValueError(f"unknown baseline {method!r}; known: {', '.join(METHODS)}")
    if not tasks:
        return []
    return importlib.import_module(f"gmeql.evaluation.baselines.{method}").fit(tasks, budget, config)


def mean_absolute_error(expression: Expression, X: np.ndarray, y: np.ndarray) -> float:
    """MAE of an expression; inf where it is not finite on some row."""
    with np.errstate(all="ignore"):
        error = float(np.mean(np.abs(expression(np.asarray(X, float)) - y)))
    return error if np.isfinite(error) else float("inf")


def refit(expression: Expression, X: np.ndarray, y: np.ndarray, max_evaluations: int = 200) -> Expression:
    """The same expression with its constants refitted in double precision; kept only where that helps.

    Networks trained in single precision end a few digits short. Every method's final expression passes through this
    before it is judged, so that `solved` asks about the formula, not about the last digits of an optimiser. Whole
    exponents of `pow` stay what they are.
    """
    from scipy.optimize import least_squares

    start = np.asarray(expression.constants, float)
    if start.size == 0 or start.size > len(y):
        return expression
    X, y = np.asarray(X, float), np.asarray(y, float)
    worst = 1e3 * (float(np.std(y)) or 1.0)

    def residuals(constants: np.ndarray) -> np.ndarray:
        """Errors [..., N] of the formula with constants [..., K]; what is not finite counts as very wrong."""
        supply = iter(np.moveaxis(constants, -1, 0)[..., None])  # evaluation meets them from left to right
        with np.errstate(all="ignore"):
            values = evaluate(expression.root, lambda index: X[:, index], lambda _: next(supply), np)
            error = np.broadcast_to(values, (*constants.shape[:-1], len(y))) - y
        return np.clip(np.nan_to_num(error, nan=worst, posinf=worst, neginf=-worst), -worst, worst)

    def slopes(constants: np.ndarray) -> np.ndarray:
        """Forward differences [N, K] with SciPy's steps, all columns in one evaluation."""
        steps = np.sqrt(np.finfo(float).eps) * np.where(constants < 0, -1.0, 1.0) * np.maximum(1.0, np.abs(constants))
        moved = constants + np.diag(steps)
        found = residuals(np.vstack([constants, moved]))
        return (found[1:] - found[0]).T / (np.diagonal(moved) - constants)

    before = residuals(start)
    solution = least_squares(
        residuals,
        start,
        slopes,
        method="trf",
        x_scale="jac",
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=max_evaluations,
    )
    if 2 * solution.cost >= float(before @ before):
        return expression
    return expression.with_constants(tuple(float(c) for c in solution.x))
