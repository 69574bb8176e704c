"""The paper's opponents behind one small interface: EQL, DSR and GP.

A `Task` is a table and a seed; `fit(method, tasks, budget)` trains one model per task and returns, for each, the
learning curve, the final expression and what it cost. EQL and DSR train all tasks of one call side by side (one batch
axis on a CPU or an accelerator), GP one after the other.

The methods import lazily: EQL and DSR need JAX, GP needs gplearn (`pip install gmeql[experiments]`).

>>> import numpy as np
>>> X = np.linspace(-1, 1, 40)[:, None]
>>> result, = fit("gp", [Task(X, 2 * X[:, 0], seed=0)], Budget(candidates=500))
>>> result.method, result.expression(X)[-1].round(6).item()
('gp', 2.0)
"""

from __future__ import annotations

from gmeql.evaluation.baselines.dispatch import METHODS, fit
from gmeql.evaluation.baselines.refitting import mean_absolute_error, refit
from gmeql.evaluation.baselines.tasks import BaselineResult, Budget, Curve, Task

__all__ = ["METHODS", "BaselineResult", "Budget", "Curve", "Task", "fit", "mean_absolute_error", "refit"]
