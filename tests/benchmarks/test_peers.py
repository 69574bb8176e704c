"""The comparison with peers: metrics, records that resume, peers that crash or hang."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "peers"
sys.path.insert(0, str(FOLDER))

import by_table  # noqa: E402
import cells  # noqa: E402
import execute  # noqa: E402
import metrics  # noqa: E402
from systems import SYSTEMS, Interpreter  # noqa: E402

import report  # noqa: E402
from gmeql.evaluation.problems import paper_problem, problem_from_case  # noqa: E402

BOX = [[1.0, 3.0], [1.0, 3.0]]


@pytest.mark.parametrize(
    ("formula", "truth", "solved"),
    [
        ("0.8*x1**2 + x2", "0.8*x1**2 + x2", True),
        ("x2 + 0.80004*x1*x1 + 0.00001", "0.8*x1**2 + x2", True),
        ("3*(0.8*x1**2 + x2)", "0.8*x1**2 + x2", True),  # a constant ratio
        ("0.8*x1**2 + x2 - 7.5", "0.8*x1**2 + x2", True),  # a constant difference
        ("3*(0.8*x1**2 + x2) - 7.5", "0.8*x1**2 + x2", False),
        ("0.81*x1**2 + x2", "0.8*x1**2 + x2", False),
        ("0.8*x1**2 + x2 + 0.002*x1", "0.8*x1**2 + x2", False),
        ("exp(log(x1) + log(x2))", "x1*x2", True),
        ("sqrt(abs(x1))*x2**0.49999999", "sqrt(x1*x2)", True),
        ("sin(x1)**2 + cos(x1)**2 + x2", "x2 + 1", True),  # left to SymPy
        # what single precision leaves behind
        ("(0.29127755*x1 + 0.00000004)*(3.43315148*x2 - 0.00000002*x1) + sin(0.0000019*x2)", "x1*x2", True),
        ("cos((0.29127755*x1 + 0.00000004)*(3.43315148*x2 - 0.00000002*x1))", "cos(x1*x2)", True),
        ("0.0795774715*x1/x2", "x1/(4*pi*x2)", True),
        ("0.08*x1/x2", "x1/(4*pi*x2)", True),  # a ratio of 1.005 is a constant too
        ("0.08*x1/x2 + x1", "x1/(4*pi*x2) + x1", False),
        ("x1", "x2", False),
    ],
)
def test_a_symbolic_solution_differs_by_a_constant_or_a_factor(formula, truth, solved):
    assert metrics.symbolic_solution(formula, truth, BOX)[0] is solved


def test_terms_that_rounding_removes_count_where_they_matter():
    """SRBench drops constants below 1e-4; times large columns they are not negligible."""
    assert not metrics.symbolic_solution("x1 + 0.00009*x2**2", "x1", [[0.0, 1.0], [0.0, 1000.0]])[0]


def test_size_counts_nodes_of_the_simplified_tree():
    assert metrics.size("x1 + sin(3*x2)", 2) == 6  # SRBench's own example
    assert metrics.size("x1 + x1 + x1", 1) == 3
    assert metrics.size("x1 + 0.00000001*x2", 2) == 1


def test_accuracy_is_that_of_the_text():
    X = np.random.default_rng(0).uniform(1, 2, (50, 2))
    exact = metrics.accuracy("x1*x2", X, X[:, 0] * X[:, 1])
    assert exact["r2"] == 1 and exact["max_error"] == 0
    assert metrics.accuracy("1.5", X, X[:, 0])["r2"] < 0.2
    assert metrics.accuracy("log(-x1)", X, X[:, 0])["r2"] is None
    with pytest.raises(ValueError, match="__import__"):
        metrics.accuracy("__import__('os')", X, X[:, 0])


def test_a_comparison_that_takes_too_long_is_no_solution():
    assert metrics.within(0.2, math.factorial, 10**9, default="late") == "late"
    assert metrics.within(20.0, int, "7", default=None) == 7
    assert metrics.within(20.0, int, "seven", default="failed") == "failed"


def test_scores_of_records():
    record = {"formula": "x1*x2", "truth": "x1*x2", "ranges": BOX, "r2": 1.0, "error": ""}
    assert metrics.score(record) == {"accurate": True, "size": 3, "symbolic": True, "reason": "canonical forms"}
    assert metrics.score({**record, "truth": None})["symbolic"] is None
    crashed = metrics.score({**record, "formula": "", "r2": None, "error": "RuntimeError: exit status 1"})
    assert crashed["symbolic"] is False and crashed["accurate"] is False and crashed["size"] is None


def test_rows_are_the_same_for_every_system_and_noise_falls_on_training_targets():
    problem = paper_problem("b1")
    cell = cells.Cell("paper", "b1", 0.1, 3, "gmeql", 1.0)
    X, y, Xt, yt = cells.table(problem, cell)
    other = cells.table(problem, cells.Cell("paper", "b1", 0.1, 3, "operon", 1.0))
    assert all(np.array_equal(a, b) for a, b in zip((X, y, Xt, yt), other))
    truth = problem.evaluate(X)
    assert np.std(y - truth) == pytest.approx(0.1 * np.sqrt(np.mean(truth**2)), rel=0.2)
    assert np.array_equal(yt, problem.evaluate(Xt))


def test_given_rows_are_split_three_to_one():
    rows = [[float(i), float(i * i)] for i in range(40)]
    case = {"name": "squares", "variables": [{"name": "t", "low": 0, "high": 39, "dist": "data"}], "n_train": 40}
    problem = problem_from_case({**case, "data": {"columns": ["t", "y"], "rows": rows}, "target": "y"})
    X, y, Xt, yt = cells.table(problem, cells.Cell("real", "squares", 0.0, 0, "gmeql", 1.0))
    assert len(y) == 30 and len(yt) == 10
    assert sorted([*X[:, 0], *Xt[:, 0]]) == [row[0] for row in rows]


def test_a_truth_is_told_in_plain_names():
    case = {"name": "c", "formula": "E*gamma/2", "n_train": 5}
    columns = [{"name": name, "low": 1, "high": 2} for name in ("gamma", "E")]
    assert metrics.symbolic_solution(
        cells.plain_truth(problem_from_case({**case, "variables": columns})), "x1*x2", BOX
    )[0]


# ------------------------------------------------------------------------------------------------------------ execution

PEERS = {
    "good": "formula = '0.8*x1**3 + 0.9*x2**2 + 1.2*x3'",
    "crash": "raise RuntimeError('out of luck')",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "hostile": "formula = '__import__(\"os\")'",
    "hang": "while True: pass",
}
RUNNER = """
import sys
sys.path.insert(0, {folder!r})
import job
def ready(settings):
    def fit(X, y):
        open({count!r}, "a").write("run\\n")
        {body}
        return formula, None
    return fit
job.main(ready)
"""


@pytest.fixture
def fakes(tmp_path):
    paths = {}
    for name, body in PEERS.items():
        paths[name] = tmp_path / f"{name}.py"
        count = str(tmp_path / f"{name}.count")
        paths[name].write_text(RUNNER.format(folder=str(FOLDER / "runners"), count=count, body=body))
    return paths


def run(fakes, path, names, **options):
    problem = paper_problem("b1")
    work = [(cells.Cell("paper", "b1", 0.0, 0, name, 0.5), problem) for name in names]
    interpreters = {name: Interpreter(sys.executable) for name in names}
    return execute.run(work, interpreters, path, runners=fakes, cores=[()], show=lambda _: None, **options)


@pytest.mark.slow  # a process for each of them
def test_a_peer_that_crashes_hangs_or_lies_is_a_record(fakes, tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "START", 3.0)
    records = {r["system"]: r for r in run(fakes, tmp_path / "records.jsonl", list(PEERS))}
    assert records["good"]["error"] == "" and records["good"]["r2"] == pytest.approx(1)
    assert "out of luck" in records["crash"]["error"]
    assert "-11" in records["dies"]["error"]
    assert "__import__" in records["hostile"]["error"]
    assert records["hang"]["error"].startswith("TimeoutError")
    assert len(execute.read(tmp_path / "records.jsonl")) == len(PEERS)


def test_a_run_goes_on_where_it_ended(fakes, tmp_path):
    path = tmp_path / "records.jsonl"
    run(fakes, path, ["good", "crash"])
    with open(path, "a") as file:
        file.write('{"suite": "paper", "prob')  # a crash while writing
    assert len(execute.read(path)) == 2
    run(fakes, path, ["good", "crash"])
    assert (tmp_path / "good.count").read_text() == (tmp_path / "crash.count").read_text() == "run\n"
    run(fakes, path, ["good", "crash"], retry=True)
    assert (tmp_path / "good.count").read_text() == "run\n"
    assert (tmp_path / "crash.count").read_text() == "run\nrun\n"
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_no_cell_starts_that_might_not_end_in_time(fakes, tmp_path):
    assert run(fakes, tmp_path / "records.jsonl", ["good"], deadline=0.0) == []


def test_table_and_figures_are_functions_of_records(tmp_path):
    records = []
    for system, solved, seconds in (("gmeql", True, 0.1), ("gmeql", True, 0.3), ("gplearn", False, 20.0)):
        cell = dict(suite="paper", problem="b1", noise=0.0, seed=len(records), system=system, max_time=20.0, threads=1)
        outcome = dict(rows=1000, seconds=seconds, found=None, error="", r2=1.0, symbolic=solved, accurate=True, size=9)
        records.append({**cell, **outcome, "machine": "a machine, 2 cores", "formula": "x1"})
    text = report.markdown(records)
    assert "| gmeql | 2/2, 0.2 | 2/2, 0.2 |" in text and "| gplearn | 0/1 | 0/1 |" in text
    assert "published, not run here" in text
    pytest.importorskip("matplotlib")
    assert [path.name for path in report.figures(records, tmp_path)] == ["peers-solved.png", "peers-size.png"]


def test_every_system_has_a_runner():
    assert all(system.runner.is_file() for system in SYSTEMS.values())


def test_tables_hold_the_splits_that_every_system_finished(monkeypatch):
    """Medians over splits and tables, with ridge regression and a forest on the same rows."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 1, (60, 2))
    case = {
        "name": "line",
        "variables": [{"name": n, "low": 0.0, "high": 1.0, "dist": "data"} for n in ("a", "b")],
        "data": {"columns": ["a", "b", "y"], "rows": np.column_stack([rows, rows @ [2.0, 1.0]]).tolist()},
        "target": "y",
        "n_train": 60,
    }
    problem = problem_from_case(case)
    monkeypatch.setattr(cells, "load", lambda suite: [problem])
    records = [
        {"problem": "line", "seed": seed, "system": system, "r2": r2, "size": 5, "error": None}
        for system, values in (("gmeql", (1.0, 0.8, 0.6)), ("operon", (0.9, None)))
        for seed, r2 in enumerate(values)
    ]
    found = by_table.by_table(records, "blackbox")["line"]
    assert found["gmeql"] == (0.9, 5) and found["operon"][0] == -math.inf  # the third split is gmeql's alone
    assert found["ridge"][0] > 0.999 and 0.5 < found["forest"][0] < 0.999
    lines = by_table.markdown({"line": found}).splitlines()
    assert lines[0].startswith("| table | gmeql | Operon") and lines[-1].startswith("| **median** | 0.900, 5 |")
