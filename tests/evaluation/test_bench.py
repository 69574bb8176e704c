"""The benchmark runner: records, resuming, worker processes. A stand-in for the regressor keeps it quick."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from rich.console import Console

from gmeql.evaluation.bench import BenchConfig, Record, RecordFile, read_records, run_cell, run_suite, summarise, table
from gmeql.evaluation.problems import PAPER, paper_problem
from gmeql.formula.parsing import evaluate, parse_formula

REQUIRED = "problem seed method solved relative_rmse seconds candidates expression truth complexity".split()


class KnownFormula:
    """An expression that is simply given."""

    complexity = 7

    def __init__(self, text: str, names: list[str]) -> None:
        self.formula, self.names = parse_formula(text, names), names

    def sympy(self) -> sympy.Expr:
        return self.formula

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.broadcast_to(evaluate(self.formula, dict(zip(self.names, X.T))), len(X))

    def __str__(self) -> str:
        return str(self.formula)


class Oracle:
    """A regressor that knows b1-b8 by the number of columns and the first target; on seed 1 it fails as told."""

    def __init__(self, config: BenchConfig, seed: int) -> None:
        self.config, self.seed = config, seed

    def fit(self, X: Any, y: np.ndarray) -> Oracle:
        if isinstance(X, np.ndarray):  # the warm-up
            return self
        mark = self.config.options.get("log")
        if mark:
            with open(mark, "a") as file:
                file.write(f"{self.seed}\n")
        columns = {name: X[name].to_numpy() for name in X.columns}
        fitting = [
            text
            for text, width, _, _ in PAPER.values()
            if width == len(columns) and np.allclose(evaluate(parse_formula(text, columns), columns), y, atol=1)
        ]
        failure = self.config.options.get("failure") if self.seed == 1 else None
        if failure == "raise":
            raise RuntimeError("no luck")
        if failure == "die":
            os._exit(9)
        self.candidates_ = 100 + self.seed
        self.expression_ = KnownFormula("x1" if failure == "wrong" else fitting[0], X.columns)
        return self


def oracle(config: BenchConfig, seed: int, threads: int | None) -> Oracle:
    return Oracle(config, seed)


def bench(**settings: Any) -> list[Record]:
    return run_suite("paper", **{"seeds": 2, "factory": oracle, "problems": ["b1", "b5"]} | settings)


def test_records_hold_what_is_promised(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "records.jsonl"
    records = bench(path=path)
    assert [(r.problem, r.seed) for r in records] == [("b1", 0), ("b1", 1), ("b5", 0), ("b5", 1)]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        assert set(REQUIRED) <= set(line)
        assert line["solved"] is True and line["relative_rmse"] < 1e-12 and line["method"] == "fitted"
        assert line["truth"] == PAPER[line["problem"]][0] and line["complexity"] == 7
    assert read_records(path) == records


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


def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("milk\neggs\n")
    with pytest.raises(ValueError, match=r"notes.txt:1 is not a benchmark record"):
        bench(path=path)
    assert path.read_text() == "milk\neggs\n"
    with pytest.raises(ValueError, match="is a folder"):
        bench(path=tmp_path)


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


def test_a_worker_that_dies_costs_only_its_cell() -> None:
    records = bench(options={"failure": "die"}, problems=["b1"], seeds=4, jobs=2)
    assert [r.seed for r in records] == [0, 1, 2, 3]
    assert "died" in records[1].error
    assert [r.solved for r in records] == [True, False, True, True]


def test_a_wrong_formula_is_not_solved() -> None:
    wrong = bench(options={"failure": "wrong"}, problems=["b1"])[1]
    assert wrong.solved is False and wrong.reason.startswith("error") and wrong.relative_rmse > 0.1


def test_noise_is_passed_to_the_judge() -> None:
    config = BenchConfig(noise=0.01)
    record = run_cell(paper_problem("b2"), 0, config, factory=oracle)
    assert record.solved and record.reason == "the truth's structure" and record.noise == 0.01


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


def test_the_table_and_the_plain_lines() -> None:
    lines = io.StringIO()
    records = bench(show=Console(file=lines, width=160), options={"failure": "raise"}, problems=["b1", "b6"])
    assert "b1 seed 0: solved" in lines.getvalue() and "b1 seed 1: FAILED" in lines.getvalue()
    assert "RuntimeError: no luck" in lines.getvalue()
    wide = printed(table(records), 160)
    assert "2 of 4 runs solved" in wide and "1/2 (1 failed)" in wide and "1.2*sin(1.1*x1)*cos(0.9*x2)" in wide
    narrow = printed(table(bench(problems=["b4"]), width=84), 84).splitlines()[-2]
    assert "2/2" in narrow and "…" in narrow
    live = io.StringIO()
    bench(show=Console(file=live, width=160, force_terminal=True), problems=["b1"])
    assert "b1" in live.getvalue() and "solved" in live.getvalue()


def printed(view: Any, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(view)
    return stream.getvalue()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"jobs": 0}, "jobs=0"),
        ({"max_time": 0}, "max_time=0"),
        ({"max_time": None}, "give a budget"),
        ({"noise": 0.1, "noise_std": 0.1}, "give one"),
        ({"rows": -5}, "rows=-5"),
        ({"problems": ["b99"]}, "no problem 'b99'"),
    ],
)
def test_bad_settings_are_named(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bench(**settings)


def test_an_infinite_error_is_written_as_null(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    with pytest.raises(ValueError):
        file.append(Record("b1", 0, "fitted", False, float("inf"), 1.0, 1, "x", "x", 1))
    record = run_cell(paper_problem("b1"), 1, BenchConfig(options={"failure": "nowhere"}), factory=nowhere_finite)
    assert record.relative_rmse is None and record.solved is False and not record.error
    file.append(record)
    assert file.read() == [record]


def nowhere_finite(config: BenchConfig, seed: int, threads: int | None) -> Any:
    class Model(Oracle):
        def fit(self, X: Any, y: np.ndarray) -> Oracle:
            self.expression_ = KnownFormula("log(-1 - x1)", X.columns)
            return self

    return Model(config, seed)
