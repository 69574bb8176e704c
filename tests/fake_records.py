"""Records as if runs had ended, for tests that look at what is made of them."""

import dataclasses
import os

from gmeql.evaluation.paper import figures, plan
from gmeql.evaluation.paper.cells import Cell, setting_of

SMOKE = plan.budget_plan("smoke")
FULL = plan.budget_plan("full")


def fake_record(cell, *, mae=None, solved=None, structure=None):
    """A record as if its run had ended: the error depends on method, setting, noise and seed alone."""
    level = {"gmeql": 0.1, "eql": 1.0, "dsr": 0.5, "gp": 2.0, "fitted": 1e-9}[cell.method]
    level *= 1.0 if cell.setting == setting_of(cell.method) else 3.0
    mae = level * (1 + 0.01 * cell.seed) + cell.noise if mae is None else mae
    solved = cell.method == "fitted" if solved is None else solved
    structure = solved if structure is None else structure
    return {
        "key": cell.key,
        "cell": dataclasses.asdict(cell),
        "status": "done",
        "reason": "",
        "relative_rmse": mae,
        "solved": solved,
        "structure": structure,
        "structure_best": structure,
        "structure_mode": False if cell.method == "gmeql" else None,
        "train_mae": mae,
        "test_mae": mae,
        "curve": {"unit": "steps", "candidates": [10, 100, 1000], "mae": [9 * mae, None, mae]},
        "candidates": 1000,
        "seconds": 2.0,
        "batch": 4,
        "text": "x1",
        "judged": "x1",
        "expression": {},
        "complexity": 1,
        "config": {},
        "versions": {},
        "device": "test",
        "written": "2026-01-01T00:00:00+00:00",
    }


def all_cells(budget=SMOKE):
    return list(dict.fromkeys(cell for figure in figures.FIGURES for cell in figure.cells(budget)))


def group(values):
    return [fake_record(Cell("b1", "gmeql", seed=s), mae=v) for s, v in enumerate(values)]


def fake_job(cells):
    """Stands in for training in a worker process: one cell kills it, one problem's cells fail."""
    found = []
    for cell in cells:
        if cell["problem"] == "b3" and cell["seed"] == 1:
            os._exit(9)
        if cell["problem"] == "b4":
            raise RuntimeError("no luck")
        found.append(fake_record(Cell(**cell)))
    return found
