"""What every opponent is given and gives back: a table and a seed, a budget; curve, expression, cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql.formula.expression import Expression


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
class BaselineResult:
    """What a run gives back. `seconds` is the wall clock of its batch divided by the tasks in the batch."""

    method: str
    seed: int
    expression: Expression
    curve: Curve
    seconds: float
    candidates: int
    config: dict[str, Any] = field(default_factory=dict)
