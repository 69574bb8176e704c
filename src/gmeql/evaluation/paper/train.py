"""From cells to trained cells: runs of one kind as one batch, or taken over from another machine's lines.

`train(cells, plan)` returns what each run gave: curve, final expression and cost. It judges nothing (`judging` does), so
that an accelerator is not kept waiting for SymPy.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gmeql.evaluation.baselines import Budget, Task, fit, mean_absolute_error
from gmeql.evaluation.paper.cells import SETTINGS, Cell, table
from gmeql.evaluation.paper.methods import METHODS
from gmeql.evaluation.paper.plan import BudgetPlan, budget_plan
from gmeql.evaluation.problems import paper_problem
from gmeql.formula.expression import Expression

CURVE_POINTS = 100


@dataclass(frozen=True)
class TrainedCell:
    """What a run gave. `mae` is the training MAE along the run; `seconds` its share of its batch's wall clock.

    Of GMEQL `expression` is that of T*, `mode` the one that the final logits make likeliest, with the final weights.
    """

    cell: Cell
    expression: Expression
    candidates: tuple[int, ...]
    mae: tuple[float, ...]
    total: int
    seconds: float
    batch: int
    config: dict[str, Any]
    mode: Expression | None = None

    def to_dict(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        data["cell"] = dataclasses.asdict(self.cell)
        data["expression"] = self.expression.to_dict()
        data["mode"] = None if self.mode is None else self.mode.to_dict()
        data["mae"] = [m if math.isfinite(m) else None for m in self.mae]
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrainedCell:
        known: dict[str, Any] = {f.name: data.get(f.name) for f in dataclasses.fields(cls)}
        known["cell"] = Cell(**data["cell"])
        known["expression"] = Expression.from_dict(data["expression"])
        known["mode"] = None if data.get("mode") is None else Expression.from_dict(data["mode"])
        known["candidates"] = tuple(data["candidates"])
        known["mae"] = tuple(math.inf if m is None else m for m in data["mae"])
        return cls(**known)


def trained_cell_of(data: dict[str, Any]) -> TrainedCell | None:
    """The run that a line of a training benchmark holds; None where it is no cell of ours."""
    if "expression" in data:
        return TrainedCell.from_dict(data)
    return _raced_cell(data) if data.get("setting") in SETTINGS and "choices" in data else None


def _raced_cell(data: dict[str, Any]) -> TrainedCell:
    """A line of `benchmarks/paper_race/race.py` whose setting is one of ours, at the paper's budget."""
    from gmeql.fitters import programs
    from gmeql.network.architecture import Architecture

    names = paper_problem(data["problem"]).names
    architecture = Architecture(len(names), tuple(tuple(layer) for layer in data["layers"]))
    found, mode = (
        programs.expression_from_structure(architecture, data[choices], data[weights], names, protected=True)[0]
        for choices, weights in (("choices", "weights"), ("mode", "mode_weights"))
    )
    per_step = data["samples_per_step"]
    return TrainedCell(
        Cell(data["problem"], "gmeql", data["setting"], data["noise"], data["seed"], "full"),
        found,
        tuple(step * per_step for step in data["curve_steps"]),
        tuple(data["curve"]),
        data["steps"] * per_step,
        data["seconds"],
        data["batch"],
        {**data["changes"], "layers": data["layers"]},
        mode,
    )


def batches(cells: Iterable[Cell], largest: Mapping[str, int]) -> list[list[Cell]]:
    """Cells that can train side by side, at most `largest[method]` together; GP and fitted runs stand alone."""
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_kind(cell), []).append(cell)
    found = []
    for kind, members in groups.items():
        size = largest[kind[0]] if METHODS[kind[0]].side_by_side else 1
        found += [members[i : i + size] for i in range(0, len(members), size)]
    return found


def _kind(cell: Cell) -> tuple[Any, ...]:
    if cell.method == "gmeql":  # one compiled program: same layers, same columns, same stages
        width = len(paper_problem(cell.problem).names)
        layers = SETTINGS[cell.setting].preset_of(cell.problem)
        return ("gmeql", cell.budget, width, layers, *_schedule(cell, budget_plan(cell.budget)).items())
    return (cell.method, cell.budget)


def _schedule(cell: Cell, plan: BudgetPlan) -> dict[str, Any]:
    """What cells of one batch share: lengths of the stages (the plan's in the proportions of the preset), order of updates."""
    from gmeql.paper.two_stage import PRESETS, TwoStageConfig

    setting = SETTINGS[cell.setting]
    text, own = TwoStageConfig.paper(), replace(PRESETS[setting.preset](), **setting.changes)

    def scaled(steps: int, own_steps: int, text_steps: int) -> int:
        return max(1, round(steps * own_steps / text_steps))

    chunk = plan.gmeql_stage1  # one program for both stages
    stage2 = scaled(plan.gmeql_stage2, own.stage2_steps, text.stage2_steps)
    return {
        "stage1_rounds": scaled(plan.gmeql_rounds, own.stage1_rounds, text.stage1_rounds),
        "stage1_steps": scaled(plan.gmeql_stage1, own.stage1_steps, text.stage1_steps),
        "stage2_steps": max(chunk, round(stage2 / chunk) * chunk),
        "use_stage1": own.use_stage1,
        "update_order": own.update_order,
        "samples_per_step": own.samples_per_step,
        "offline_batch": own.offline_batch,
        "chunk_steps": chunk,
        "curve_every": max(1, chunk // 20),
    }


def train(cells: Sequence[Cell], plan: BudgetPlan, seconds: float = math.inf) -> list[TrainedCell]:
    """Run cells of one kind (see `batches`) side by side."""
    kinds = {_kind(cell) for cell in cells}
    if len(kinds) != 1:
        raise ValueError(f"cells of one batch must be of one kind, got {len(kinds)}; group them with batches(...)")
    runners: dict[str, Callable[..., list[TrainedCell]]] = {"gmeql": _train_gmeql, "fitted": _train_fitted}
    return runners.get(cells[0].method, _train_baseline)(cells, plan, seconds)


def _thin(candidates: Any, mae: Any) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """At most CURVE_POINTS points of a curve, the last among them."""
    count = len(candidates)
    keep = np.unique(np.linspace(0, count - 1, min(count, CURVE_POINTS)).round().astype(int)) if count else np.arange(0)
    return tuple(int(candidates[i]) for i in keep), tuple(float(mae[i]) for i in keep)


def _train_baseline(cells: Sequence[Cell], plan: BudgetPlan, seconds: float) -> list[TrainedCell]:
    method = cells[0].method
    tasks = [Task(*table(cell), seed=cell.seed, names=paper_problem(cell.problem).names) for cell in cells]
    config = None
    if method == "gp":
        from gmeql.evaluation.baselines.gp import GPConfig

        config = GPConfig(population=plan.gp_population)
    size = {"eql": plan.eql_steps, "dsr": plan.dsr_samples, "gp": plan.gp_population * plan.gp_generations}[method]
    results = fit(method, tasks, Budget(size, seconds), config)
    return [
        TrainedCell(
            cell,
            r.expression,
            *_thin(r.curve.candidates, r.curve.mae),
            r.candidates,
            r.seconds,
            len(cells),
            {**r.config, "budget": size},
        )
        for cell, r in zip(cells, results, strict=True)
    ]


def _train_gmeql(cells: Sequence[Cell], plan: BudgetPlan, seconds: float) -> list[TrainedCell]:
    from gmeql.fitters import programs
    from gmeql.paper import two_stage

    started = time.perf_counter()
    configs = [
        dataclasses.replace(
            two_stage.PRESETS[SETTINGS[cell.setting].preset](),
            **{**SETTINGS[cell.setting].changes, **_schedule(cell, plan)},
        )
        for cell in cells
    ]
    data = [table(cell) for cell in cells]
    X, y = np.stack([X for X, _ in data]), np.stack([y for _, y in data])
    architecture = SETTINGS[cells[0].setting].preset_of(cells[0].problem)
    run = two_stage.run(architecture, X, y, seeds=[cell.seed for cell in cells], config=configs)
    begun: tuple[float, int] | None = None  # when the first chunk, which holds the compilation, had ended
    for progress in run:
        now = time.perf_counter()
        begun = begun or (now, progress.step)
        per_step = (now - begun[0]) / max(progress.step - begun[1], 1)
        needed = now - started + per_step * (progress.total_steps - progress.step)
        if not progress.done and needed > seconds:
            raise TimeoutError(f"{len(cells)} GMEQL runs need {needed:.0f} s, not {seconds:.0f} s; nothing was kept")
    result = progress.result
    share = (time.perf_counter() - started) / len(cells)
    outcomes = []
    for s, cell in enumerate(cells):
        names = paper_problem(cell.problem).names
        found, mode = (
            programs.expression_from_structure(result.architecture, choices, weights, names, protected=True)[0]
            for choices, weights in ((result.choices[s], result.weights[s]), (result.mode[s], result.mode_weights[s]))
        )
        per_step = configs[s].samples_per_step
        curve = _thin(result.curves.steps * per_step, result.curves.best[:, s])
        outcomes.append(
            TrainedCell(
                cell,
                found,
                *curve,
                progress.step * per_step,
                share,
                len(cells),
                {**dataclasses.asdict(configs[s]), "layers": result.architecture.layers},
                mode,
            )
        )
    return outcomes


def _train_fitted(cells: Sequence[Cell], plan: BudgetPlan, seconds: float) -> list[TrainedCell]:
    from gmeql.search.config import SearchConfig
    from gmeql.search.search import Search

    outcomes = []
    for cell in cells:
        started = time.perf_counter()
        X, y = table(cell)
        limit = min(plan.fitted_seconds, seconds / len(cells))
        config = SearchConfig(max_candidates=plan.fitted_candidates, max_time=limit)
        search = Search(X, y, names=paper_problem(cell.problem).names, config=config, seed=cell.seed)
        counts: list[int] = []
        mae: list[float] = []
        best = None
        for progress in search.run():
            if progress.best is not None and progress.best is not best:
                best = progress.best
                mae.append(min(mean_absolute_error(best.expression, X, y), mae[-1] if mae else math.inf))
                counts.append(progress.candidates)
        if best is None:
            raise RuntimeError(f"the fitted search found no expression for {cell.key}")
        outcomes.append(
            TrainedCell(
                cell,
                best.expression,
                *_thin(counts, mae),
                progress.candidates,
                time.perf_counter() - started,
                1,
                dataclasses.asdict(config),
            )
        )
    return outcomes
