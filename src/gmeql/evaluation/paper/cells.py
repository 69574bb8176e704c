"""A cell is one run: problem, method, setting, noise, seed, budget; and the table that its run learns from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gmeql.evaluation.paper.methods import METHODS
from gmeql.evaluation.problems import paper_problem
from gmeql.network.architecture import HAND_CHOSEN, PUBLISHED


@dataclass(frozen=True)
class GMEQLSetting:
    """How GMEQL is run: a preset of `TwoStageConfig`, changes to it, and whose networks.

    `networks` is "hand", those selected by hand for each problem, or "published", in which b1-b4 have the layers of the
    released code; nobody knows those of b5-b8.
    """

    label: str
    preset: str = "raced"
    changes: Mapping[str, Any] = field(default_factory=dict)
    networks: str = "hand"

    def preset_of(self, problem: str) -> str:
        """The network of a problem."""
        return (HAND_CHOSEN if self.networks == "hand" else PUBLISHED)[problem]


SETTINGS = {
    "standard": GMEQLSetting("the text's numbers", "paper", networks="published"),
    "released": GMEQLSetting("the released code", "released", networks="published"),
    "raced": GMEQLSetting("the best setting found"),
    "raced_no_stage1": GMEQLSetting("without stage 1", changes={"use_stage1": False}),  # figure 2i
    "raced_no_elites": GMEQLSetting("without the elite repository", changes={"use_elites": False}),  # figure 2j
    "raced_no_offline": GMEQLSetting("without offline training", changes={"use_offline": False}),  # figure 2k
    "raced_squared_difference": GMEQLSetting(  # appendix C, figure 3
        "with the rule of appendix B", changes={"offline_rule": "squared_difference"}
    ),
}
"""Settings of GMEQL by name; every other method has "standard" alone."""
MAIN_SETTING = "raced"
"""The setting of GMEQL that figures show where they do not say another."""


def setting_of(method: str) -> str:
    """The setting that stands for a method where none is said."""
    return MAIN_SETTING if method == "gmeql" else "standard"


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
