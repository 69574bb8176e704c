"""The whole evaluation: stopped at any time and started again it gives the same tables."""

import csv
import dataclasses
import json
import math
import subprocess
import sys
import time

import pytest

from gmeql import cli
from gmeql.evaluation.paper import figures, plan, records, run, take_over, workers
from gmeql.evaluation.paper.cells import Cell
from gmeql.evaluation.paper.train import TrainedCell
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from fake_records import SMOKE, all_cells, fake_record


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are empty, as what is asked here stands in tables and on the page."""
    monkeypatch.setattr("gmeql.evaluation.paper.report._draw", lambda *given: b"<svg/>")


def test_of_two_runs_of_a_cell_the_longer_run_counts(tmp_path):
    cell = Cell("b6", "dsr", seed=3, budget="full")
    formula = Expression(Call("mul", (Constant(1.5), Variable(0))), ("x1", "x2"))
    lines = tmp_path / "lines.jsonl"
    for total, count in ((1000, 1), (500, 0), (2000, 1), (2000, 0)):
        lines.write_text(json.dumps(TrainedCell(cell, formula, (total,), (0.5,), total, 1.0, 4, {}).to_dict()) + "\n")
        assert take_over(lines, tmp_path / "run", where="test") == count
    (record,) = records.load(tmp_path / "run").values()
    assert record["candidates"] == 2000


def test_without_training_the_page_is_drawn_from_what_is_there(tmp_path, monkeypatch, undrawn):
    monkeypatch.setattr(workers, "train_and_judge", lambda cells: pytest.fail("trained"))
    records.append(tmp_path, [fake_record(c) for c in plan.cells_for(SMOKE, ["b1"], ["gmeql", "dsr"])])
    lines = []
    page = run("smoke", ["fig2a"], tmp_path, workers=0, train=False, say=lines.append)
    assert "4 are there, 4 left out" in lines[0]
    assert "GMEQL against EQL: not measured yet." in page.read_text()


def test_figures_only_draws_and_trains_nothing(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(workers, "train_and_judge", lambda cells: pytest.fail("trained"))
    with pytest.raises(SystemExit) as ended:
        cli.main(["paper", "--figures-only", "--only", "table1,fig2k", "--workers", "0", "--out", str(tmp_path)])
    assert ended.value.code == 0
    assert "not measured yet" in (tmp_path / "index.html").read_text()
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {"table1", "fig2k"}


def test_killed_half_way_and_started_again_gives_the_same_tables(tmp_path, monkeypatch, undrawn):
    trained = []

    def job(cells):
        if len(trained) >= limit:
            raise KeyboardInterrupt
        trained.extend(Cell(**c).key for c in cells)
        return [fake_record(Cell(**c)) for c in cells]

    monkeypatch.setattr(workers, "train_and_judge", job)
    limit = math.inf
    run("smoke", ["fig2a"], tmp_path / "whole", workers=0, say=lambda line: None)
    wanted, whole = len(trained), (tmp_path / "whole" / "table.csv").read_bytes()
    trained.clear()
    limit = wanted // 2
    with pytest.raises(KeyboardInterrupt):
        run("smoke", ["fig2a"], tmp_path / "halved", workers=0, say=lambda line: None)
    assert 0 < len(trained) < wanted
    limit = math.inf
    run("smoke", ["fig2a"], tmp_path / "halved", workers=0, say=lambda line: None)
    assert len(trained) == len(set(trained)) == wanted, "a finished cell was trained again"
    assert (tmp_path / "halved" / "table.csv").read_bytes() == whole


def test_only_the_methods_that_are_asked_for_are_trained(tmp_path, monkeypatch, undrawn):
    trained = []

    def job(cells):
        trained.extend(cell["method"] for cell in cells)
        return [fake_record(Cell(**cell)) for cell in cells]

    monkeypatch.setattr(workers, "train_and_judge", job)
    run("smoke", ["success"], tmp_path, methods=["gmeql", "gp"], workers=0, say=lambda line: None)
    assert set(trained) == {"gmeql", "gp"} and len(trained) == 32
    with pytest.raises(ValueError, match="methods must be among gmeql, eql, dsr, fitted, gp, got pysr"):
        run("smoke", methods=["pysr"], out=tmp_path)


def test_what_an_accelerator_trains_is_judged_on_the_cores(tmp_path, monkeypatch, undrawn):
    """The budget is full; the runs are GP's, tiny, as if the accelerator trained them."""
    pytest.importorskip("gplearn")
    tiny = dataclasses.replace(plan.BUDGETS["full"], gp_population=40, gp_generations=2, gp_seeds=1)
    monkeypatch.setitem(plan.BUDGETS, "full", tiny)
    (base,) = figures.chosen(["fig2l"])
    figure = dataclasses.replace(base, cells=lambda plan: [Cell("b6", "gp", budget="full")])
    monkeypatch.setattr(figures, "chosen", lambda only: [figure])
    monkeypatch.setattr(sys.modules[run.__module__], "_on_accelerator", lambda: ("gp",))
    run("full", None, tmp_path, workers=0, say=lambda line: None)
    (record,) = records.load(tmp_path).values()
    assert record["status"] == "done" and record["key"] == "full/b6/gp/standard/noise0/seed0"


def results(folder):
    """Tables without what a clock decides."""
    with (folder / "table.csv").open() as file:
        return [{key: value for key, value in row.items() if key != "seconds_per_run"} for row in csv.DictReader(file)]


def test_real_cells_stopped_half_way_give_the_same_results(tmp_path, monkeypatch, undrawn):
    """The same with real training: GP on b5 and b6, small."""
    pytest.importorskip("gplearn")
    tiny = dataclasses.replace(SMOKE, gp_population=60, gp_generations=4)
    monkeypatch.setitem(plan.BUDGETS, "smoke", tiny)
    cells = plan.cells_for(tiny, ["b5", "b6"], ["gp"])
    (base,) = figures.chosen(["fig2l"])
    figure = dataclasses.replace(base, cells=lambda plan: cells)
    monkeypatch.setattr(figures, "chosen", lambda only: [figure])
    real, left = workers.train_and_judge, [99]

    def job(batch):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(batch)

    monkeypatch.setattr(workers, "train_and_judge", job)
    run("smoke", None, tmp_path / "whole", workers=0, say=lambda line: None)
    left[0] = 2
    with pytest.raises(KeyboardInterrupt):
        run("smoke", None, tmp_path / "halved", workers=0, say=lambda line: None)
    assert len(records.load(tmp_path / "halved")) == 2
    left[0] = 99
    run("smoke", None, tmp_path / "halved", workers=0, say=lambda line: None)
    assert left[0] == 99 - 2, "only the missing cells are trained"
    assert results(tmp_path / "whole") == results(tmp_path / "halved")


@pytest.mark.slow
def test_smoke_budget_killed_half_way_goes_on_and_gives_the_same_tables(tmp_path):
    """`gmeql paper --budget smoke`, some five minutes, and once more killed in the middle: the same tables."""
    pytest.importorskip("gplearn")
    command = [sys.executable, "-m", "gmeql", "paper", "--budget", "smoke", "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, timeout=1200)
    found = records.load(tmp_path / "whole")
    assert len(found) == len(all_cells()) and {r["status"] for r in found.values()} == {"done"}
    assert "Not measured yet." not in (tmp_path / "whole" / "index.html").read_text()
    for figure in figures.FIGURES:
        assert (tmp_path / "whole" / "figures" / f"{figure.name}.png").exists()
    process = subprocess.Popen([*command, tmp_path / "halved"])
    while len(records.load(tmp_path / "halved")) < len(found) // 2 and process.poll() is None:
        time.sleep(1)
    process.kill()
    process.wait()
    halved = len(records.load(tmp_path / "halved"))
    assert 0 < halved < len(found) and not (tmp_path / "halved" / "index.html").exists()
    again = subprocess.run([*command, tmp_path / "halved"], check=True, timeout=1200, capture_output=True, text=True)
    assert f"{halved} are there" in again.stderr
    assert results(tmp_path / "whole") == results(tmp_path / "halved")
