"""A whole benchmark: it goes on where it stopped, and what fails costs only itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gmeql.evaluation.bench import read_records, run_suite, summarise
from gmeql.evaluation.problems import paper_problem
from oracle import bench, oracle


def test_a_json_name_gets_an_array_that_resumes_too(tmp_path: Path) -> None:
    path, log = tmp_path / "records.json", tmp_path / "log"
    options = {"log": str(log)}
    first = bench(path=path, options=options, problems=["b1"])
    assert [line["seed"] for line in json.loads(path.read_text())] == [0, 1]
    assert bench(path=path, options=options)[:2] == first
    assert len(json.loads(path.read_text())) == 4 == len(log.read_text().split())
    path.write_text("{}")
    with pytest.raises(ValueError, match="no list of benchmark records"):
        bench(path=path)


def test_seeds_give_other_data_and_the_same_seed_the_same(tmp_path: Path) -> None:
    problem = paper_problem("b1")
    first, again, other = (problem.train(problem.generator(seed, "train"))[0] for seed in (0, 0, 1))
    assert (first == again).all() and not (first == other).any()


def test_finished_cells_are_not_run_again(tmp_path: Path) -> None:
    path, log = tmp_path / "records.jsonl", tmp_path / "log"
    options = {"log": str(log)}
    before = bench(path=path, options=options)
    assert len(log.read_text().split()) == 4
    assert bench(path=path, options=options) == before
    assert len(log.read_text().split()) == 4
    bench(path=path, options=options, seeds=3)  # two more
    assert len(log.read_text().split()) == 6
    bench(path=path, options=options, noise_std=0.1)  # another benchmark in the same file
    assert len(log.read_text().split()) == 10


def test_a_line_cut_off_by_a_crash_is_run_again(tmp_path: Path) -> None:
    path, log = tmp_path / "records.jsonl", tmp_path / "log"
    options = {"log": str(log)}
    bench(path=path, options=options)
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    records = bench(path=path, options=options)
    assert len(log.read_text().split()) == 5
    assert len(records) == len(read_records(path)) == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_cell_costs_only_itself_and_is_tried_again(tmp_path: Path, jobs: int) -> None:
    path = tmp_path / "records.jsonl"
    records = bench(path=path, options={"failure": "raise"}, problems=["b1"], seeds=3, jobs=jobs)
    assert [bool(r.error) for r in records] == [False, True, False]
    assert records[1].error == "RuntimeError: no luck" and records[1].solved is False
    assert summarise(records)[0].errors == 1 and summarise(records)[0].solved == 2
    before = len(path.read_text().splitlines())
    bench(path=path, options={"failure": "raise"}, problems=["b1"], seeds=3)
    assert len(path.read_text().splitlines()) == before + 1


@pytest.mark.slow  # two processes of Python; a cell that fails costs only itself above
def test_a_worker_that_dies_costs_only_its_cell() -> None:
    records = bench(options={"failure": "die"}, problems=["b1"], seeds=3, jobs=2)
    assert [r.seed for r in records] == [0, 1, 2]
    assert "died" in records[1].error
    assert [r.solved for r in records] == [True, False, True]


def test_rows_given_without_a_formula_are_neither_solved_nor_unsolved(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).uniform(0, 2, (40, 3))
    y = paper_problem("b1").evaluate(rows)
    case = {
        "name": "given",
        "n_train": 30,
        "n_test": 10,
        "variables": [{"name": f"x{i}", "low": 0, "high": 2, "dist": "data"} for i in (1, 2, 3)],
        "data": {"columns": ["x1", "x2", "x3", "y"], "rows": np.column_stack([rows, y]).tolist()},
    }
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([case]))
    records = run_suite(path, factory=oracle, path=tmp_path / "records.jsonl")
    assert records[0].solved is None and records[0].relative_rmse < 1e-12 and records[0].suite == "cases.json"
    assert summarise(records)[0].solved is None
