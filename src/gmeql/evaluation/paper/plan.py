"""Which cells an experiment needs and how large they are: the three budgets.

`full` is the paper's: 20 seeds and its numbers of steps, samples and generations. `quick` and `smoke` are smaller
in seeds and length and say so on every figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gmeql.evaluation.paper.cells import MAIN_SETTING, Cell, setting_of
from gmeql.evaluation.paper.methods import CURVE_METHODS

PROBLEMS = ("b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8")
NOISE_LEVELS = (0.0, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class BudgetPlan:
    """Sizes of one budget. Attributes name the method they belong to; GMEQL's are those of the text's preset.

    `largest_batch` says how many runs of a method train side by side on a CPU core. `fitted_seconds` is a second bound
    beside `fitted_candidates`; where it decides, other machines give other runs.
    """

    name: str
    seeds: int
    gp_seeds: int
    gmeql_settings: tuple[str, ...]
    gmeql_rounds: int
    gmeql_stage1: int
    gmeql_stage2: int
    eql_steps: int
    dsr_samples: int
    gp_population: int
    gp_generations: int
    fitted_candidates: int
    fitted_seconds: float
    noise_problems: tuple[str, ...]
    noise_methods: tuple[str, ...]
    largest_batch: Mapping[str, int]
    note: str

    @property
    def is_full(self) -> bool:
        return self.name == "full"

    @property
    def uses_accelerators(self) -> bool:
        """Whether an accelerator trains what it can; the smallest budget is over before its programs are compiled."""
        return self.name != "smoke"


BUDGETS = {
    "smoke": BudgetPlan(
        name="smoke",
        seeds=2,
        gp_seeds=2,
        gmeql_settings=(MAIN_SETTING,),
        gmeql_rounds=1,
        gmeql_stage1=100,
        gmeql_stage2=400,
        eql_steps=550,
        dsr_samples=2_000,
        gp_population=200,
        gp_generations=10,
        fitted_candidates=1_000,
        fitted_seconds=120.0,
        noise_problems=("b2",),
        noise_methods=("gmeql",),
        largest_batch={"gmeql": 24, "eql": 16, "dsr": 8},  # few compilations count for more than even shares
        note="smoke budget: 2 seeds and about a hundredth of the paper's steps; it shows that everything runs, "
        "not who is better",
    ),
    "quick": BudgetPlan(
        name="quick",
        seeds=5,
        gp_seeds=3,
        gmeql_settings=("standard", MAIN_SETTING),
        gmeql_rounds=3,
        gmeql_stage1=500,
        gmeql_stage2=8_000,
        eql_steps=22_000,
        dsr_samples=50_000,
        gp_population=1_000,
        gp_generations=20,
        fitted_candidates=10_000,
        fitted_seconds=60.0,
        noise_problems=("b2", "b6"),
        noise_methods=CURVE_METHODS,
        largest_batch={"gmeql": 10, "eql": 20, "dsr": 10},
        note="quick budget: 5 seeds; GMEQL a sixth of the paper's steps, DSR 50,000 samples, GP 1,000 x 20",
    ),
    "full": BudgetPlan(
        name="full",
        seeds=20,
        gp_seeds=20,
        gmeql_settings=("standard", "released", MAIN_SETTING),
        gmeql_rounds=3,
        gmeql_stage1=2_000,
        gmeql_stage2=48_000,
        eql_steps=22_000,
        dsr_samples=2_000_000,
        gp_population=5_000,
        gp_generations=100,
        fitted_candidates=20_000,
        fitted_seconds=120.0,
        noise_problems=PROBLEMS,
        noise_methods=CURVE_METHODS,
        largest_batch={"gmeql": 20, "eql": 20, "dsr": 20},
        note="the paper's budget: 20 seeds, its steps, samples and generations",
    ),
}


def budget_plan(budget: str) -> BudgetPlan:
    """The plan of that name."""
    if budget not in BUDGETS:
        raise ValueError(f"budget must be one of {', '.join(BUDGETS)}, got {budget!r}")
    return BUDGETS[budget]


def noise_levels(problem: str) -> tuple[float, ...]:
    """Noise that a problem is tried under: the paper's four levels on b2, of which it draws its figure, one elsewhere."""
    return NOISE_LEVELS if problem == "b2" else NOISE_LEVELS[:2]


def seeds_of(plan: BudgetPlan, method: str) -> range:
    return range(plan.gp_seeds if method == "gp" else plan.seeds)


def cells_for(
    plan: BudgetPlan, problems: Iterable[str], methods: Iterable[str], *, setting: str | None = None, noise: float = 0.0
) -> list[Cell]:
    """One cell per problem, method and seed; without a setting the one that stands for the method."""
    return [
        Cell(problem, method, setting or setting_of(method), noise, seed, plan.name)
        for problem in problems
        for method in methods
        for seed in seeds_of(plan, method)
    ]
