"""A cell is one run: problem, method, setting, noise, seed, budget; and the table that its run learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gmeql.evaluation.paper.methods import METHODS
from gmeql.evaluation.problems import paper_problem

SETTINGS: dict[str, dict[str, Any]] = {
    "standard": {},
    "no_stage1": {"use_stage1": False},  # figure 2i
    "no_elites": {"use_elites": False},  # figure 2j
    "no_offline": {"use_offline": False},  # figure 2k
    "squared_difference": {"offline_rule": "squared_difference"},  # appendix C, figure 3
    "resample_all": {"resample_fraction": 1.0},  # as the authors' released code runs
    "refresh_elites": {"refresh_elites": True},  # ours: losses of drawn elites are brought up to date
}
"""Changes to `TwoStageConfig` by the name of a setting; only GMEQL has settings other than "standard"."""


@dataclass(frozen=True)
class Cell:
    """One run of one method on one problem."""

    problem: str
    method: str
    setting: str = "standard"
    noise: float = 0.0
    seed: int = 0
    budget: str = "smoke"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        if self.setting not in SETTINGS:
            raise ValueError(f"setting must be one of {', '.join(SETTINGS)}, got {self.setting!r}")

    @property
    def key(self) -> str:
        """The name under which its record is kept."""
        return f"{self.budget}/{self.problem}/{self.method}/{self.setting}/noise{self.noise:g}/seed{self.seed}"


def table(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Training rows of a cell: 300 points of its own seed; the noise falls on y alone (appendix C)."""
    problem = paper_problem(cell.problem)
    return problem.train(problem.generator(cell.seed, "train"), noise_std=cell.noise)


def test_table(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Noise-free test rows of a cell."""
    problem = paper_problem(cell.problem)
    return problem.test(problem.generator(cell.seed, "test"))


test_table.__test__ = False  # type: ignore[attr-defined]  # not a test, whatever pytest thinks of its name
