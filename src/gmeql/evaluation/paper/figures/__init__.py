"""The paper's tables and figures. Every `Figure` is a pure function of records."""

from __future__ import annotations

from collections.abc import Sequence

from gmeql.evaluation.paper.figures.ablations import ablation
from gmeql.evaluation.paper.figures.comparisons import genetic_programming, running_time, table1
from gmeql.evaluation.paper.figures.curves import learning_curve
from gmeql.evaluation.paper.figures.figure import Figure, Finding, Records
from gmeql.evaluation.paper.figures.noise import noise
from gmeql.evaluation.paper.figures.success import success
from gmeql.evaluation.paper.plan import PROBLEMS

__all__ = ["FIGURES", "Figure", "Finding", "Records", "chosen"]

FIGURES: tuple[Figure, ...] = (
    table1(),
    *(learning_curve(problem, letter) for problem, letter in zip(PROBLEMS, "abcdefgh", strict=True)),
    ablation(
        "fig2i",
        "Figure 2i: effect of stage 1",
        "Without stage 1 training progresses fast at first, then converges to poor local optima.",
        "b4",
        "raced_no_stage1",
        "<",
    ),
    ablation(
        "fig2j",
        "Figure 2j: effect of the elite repository",
        "Without the elite repository performance is clearly inferior.",
        "b4",
        "raced_no_elites",
        "<",
    ),
    ablation(
        "fig2k",
        "Figure 2k: effect of offline training",
        "Offline training improves accuracy and sample efficiency.",
        "b7",
        "raced_no_offline",
        "<",
    ),
    genetic_programming(),
    success(),
    running_time(),
    ablation(
        "offline",
        "Appendix C: the two offline rules",
        "The rule of appendix B trains as well; the differences are not statistically significant.",
        "b2",
        "raced_squared_difference",
        "=",
    ),
    noise(),
)


def chosen(only: Sequence[str] | None) -> list[Figure]:
    """The figures of those names; all without names. "fig2" stands for all of figure 2."""
    if not only:
        return list(FIGURES)
    known = {name for figure in FIGURES for name in (figure.name, *figure.also)} | {"fig2"}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ValueError(f"--only: unknown {unknown[0]!r}; one or more of fig2, {', '.join(f.name for f in FIGURES)}")
    return [
        figure
        for figure in FIGURES
        if {figure.name, *figure.also} & set(only) or ("fig2" in only and figure.name.startswith("fig2"))
    ]
