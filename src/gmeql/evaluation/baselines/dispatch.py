"""One function for all opponents. Each is imported when it is asked for: EQL and DSR need JAX, GP needs gplearn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gmeql.evaluation.baselines.tasks import BaselineResult, Budget, Task

METHODS = ("eql", "dsr", "gp")
"""Names `fit` knows."""


def fit(method: str, tasks: Sequence[Task], budget: Budget, config: Any = None) -> list[BaselineResult]:
    """Train `method` on every task; `config` is that method's frozen config (its defaults are sourced there)."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if not tasks:
        return []
    if method == "eql":
        from gmeql.evaluation.baselines import eql

        return eql.fit(tasks, budget, config)
    if method == "dsr":
        from gmeql.evaluation.baselines import dsr

        return dsr.fit(tasks, budget, config)
    from gmeql.evaluation.baselines import gp

    return gp.fit(tasks, budget, config)
