"""The comparison of laws of motion: what methods see, and how their equations are judged."""

from __future__ import annotations

import json
from argparse import Namespace

import numpy as np
import pytest
from programs import program

CASE = {
    "name": "pair", "states": ["x_0", "x_1"], "formulas": ["x_0*(1 - x_1)", "-0.8*x_1 + x_0*x_1"],
    "init": [[1.5, 1.0], [0.7, 1.2]], "t_span": [0, 5], "n_times": 60,
}  # fmt: skip


@pytest.fixture(scope="module")
def dynamics():
    return program("benchmarks/dynamics/run.py")


def test_noise_and_dropped_points(dynamics):
    exact_t, exact = dynamics.training(CASE, 0.0, 0.0, 0)
    t, noisy = dynamics.training(CASE, 0.05, 0.5, 0)
    assert len(exact_t) == 60 and len(t) == 30 and set(t) <= set(exact_t)
    ratio = noisy / exact[np.isin(exact_t, t)] - 1
    assert 0.03 < ratio.std() < 0.07


def test_the_truth_is_judged_right_and_another_law_wrong(dynamics):
    right = dynamics.judged(CASE, ["1.01*x_0 - 1.01*x_0*x_1", "-0.8*x_1 + x_0*x_1"])
    assert right["structure"] == [True, True] and right["generalisation"] > 0.99
    wrong = dynamics.judged(CASE, ["x_0 - x_1", "-0.8*x_1 + x_0*x_1"])
    assert wrong["structure"] == [False, True] and wrong["generalisation"] < 0.9
    assert dynamics.judged(CASE, [])["reconstruction"] == -1e9


def test_the_table_counts_systems(dynamics, tmp_path, capsys):
    cell = {"noise": 0.0, "dropped": 0.0, "method": "gmeql", "reconstruction": 0.95, "generalisation": 0.2}
    records = [cell | {"structure": [True, True]}, cell | {"structure": [True, False]}]
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    dynamics.report(Namespace(records=path))
    assert "| 0 | 0 | gmeql | 2 | 1 | 2 | 0 |" in capsys.readouterr().out
