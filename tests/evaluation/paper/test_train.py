"""Training: batches of one kind, runs taken over as lines of JSON."""

import dataclasses
import json
import math

import pytest

from gmeql.evaluation.paper.cells import Cell
from gmeql.evaluation.paper.train import TrainedCell, _schedule, batches, train, trained_cell_of
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from fake_records import FULL, SMOKE, all_cells


def test_trained_cells_travel_as_json():
    cell = Cell("b6", "dsr", noise=0.1, seed=3, budget="full")
    formula = Expression(Call("mul", (Constant(1.5), Variable(0))), ("x1", "x2"))
    trained = TrainedCell(cell, formula, (1, 2), (math.inf, 0.5), 2, 1.0, 4, {"a": 1})
    assert trained_cell_of(json.loads(json.dumps(trained.to_dict()))) == trained
    both = dataclasses.replace(trained, mode=formula)
    assert trained_cell_of(json.loads(json.dumps(both.to_dict()))) == both
    old = {name: value for name, value in trained.to_dict().items() if name != "mode"}
    assert trained_cell_of(old) == trained
    assert trained_cell_of({"setting": "a sweep of another benchmark"}) is None


def test_batches_hold_every_cell_once_and_only_their_own_kind():
    cells = all_cells()
    found = batches(cells, {"gmeql": 8, "eql": 8, "dsr": 8})
    assert sorted(c.key for batch in found for c in batch) == sorted(c.key for c in cells)
    assert max(map(len, found)) <= 8
    assert all(len(batch) == 1 for batch in found if batch[0].method in ("gp", "fitted"))
    with pytest.raises(ValueError, match="one kind"):
        train([Cell("b1", "gmeql"), Cell("b5", "gmeql")], SMOKE)


def test_presets_keep_their_proportions_in_smaller_budgets():
    def schedule(setting, plan):
        found = _schedule(Cell("b1", "gmeql", setting, budget=plan.name), plan)
        return found["stage1_rounds"], found["stage1_steps"], found["stage2_steps"], found["update_order"]

    assert schedule("released", FULL) == (6, 8000, 50_000, "in_turn")
    assert schedule("standard", FULL) == (3, 2000, 48_000, "together")
    assert schedule("released", SMOKE) == (2, 400, 400, "in_turn")
