"""Budgets: the full one is the paper's."""

import pytest

from gmeql.evaluation.paper import plan
from fake_records import FULL, all_cells


def test_full_plan_is_the_papers():
    assert (FULL.seeds, FULL.gmeql_rounds, FULL.gmeql_stage1, FULL.gmeql_stage2) == (20, 3, 2000, 48_000)
    assert (FULL.gp_population, FULL.gp_generations) == (5000, 100)
    noise = [c for c in all_cells(FULL) if c.problem == "b2" and c.method == "gmeql" and c.setting == "raced"]
    assert {c.noise for c in noise} == {0.0, 0.1, 0.2, 0.5} and len(noise) == 80
    elsewhere = {(c.method, c.noise) for c in all_cells(FULL) if c.problem == "b7" and c.noise}
    assert elsewhere == {(m, 0.1) for m in ("gmeql", "eql", "dsr", "fitted")}
    assert [plan.budget_plan(name).uses_accelerators for name in ("smoke", "quick", "full")] == [False, True, True]
    with pytest.raises(ValueError, match="smoke, quick, full"):
        plan.budget_plan("huge")
