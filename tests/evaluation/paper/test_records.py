"""Records: they survive a kill, and their checksum tells results from dates."""

import dataclasses

import numpy as np
import pytest

from gmeql.evaluation.paper import records
from gmeql.evaluation.paper.cells import Cell
from gmeql.evaluation.paper.train import train
from fake_records import SMOKE, fake_record
from thinned import thinned


def test_records_survive_a_torn_line_and_keep_the_finished_one(tmp_path):
    cells = [Cell("b1", "eql", seed=s) for s in range(3)]
    records.append(tmp_path, [fake_record(cells[0]), records.failure_of(cells[1], "boom", 2)])
    with (tmp_path / records.FILE).open("a") as file:
        file.write('{"key": "smoke/b1/eql/standard/noise0/seed2", "stat')  # killed in mid-line
    assert {r["status"] for r in records.load(tmp_path).values()} == {"done", "failed"}
    records.append(tmp_path, [fake_record(cells[1]), fake_record(cells[2])])
    found = records.load(tmp_path)
    assert [found[c.key]["status"] for c in cells] == ["done"] * 3
    records.append(tmp_path, [records.failure_of(cells[0], "late", 2)])
    assert records.load(tmp_path)[cells[0].key]["status"] == "done"


def test_checksum_tells_results_from_dates_and_order(tmp_path):
    cells = [Cell("b1", "eql", seed=s) for s in range(2)]
    for folder, order in ((tmp_path / "a", cells), (tmp_path / "b", cells[::-1])):
        records.append(folder, [{**fake_record(c), "written": str(folder), "seconds": len(str(folder))} for c in order])
    assert records.checksum(tmp_path / "a") == records.checksum(tmp_path / "b")
    records.append(tmp_path / "b", [fake_record(cells[0], mae=7.0)])
    assert records.checksum(tmp_path / "a") != records.checksum(tmp_path / "b")


@pytest.mark.parametrize("method", thinned(["fitted", "eql", "gmeql"], 1))
def test_a_small_cell_of_each_method_becomes_a_record(method, tmp_path):
    pytest.importorskip("jax")
    tiny = dataclasses.replace(SMOKE, gmeql_stage1=10, gmeql_stage2=40, eql_steps=40, fitted_candidates=512)
    (trained,) = train([Cell("b6", method)], tiny)
    records.append(tmp_path, [records.record_of(trained)])
    (record,) = records.load(tmp_path).values()
    assert record["test_mae"] is None or record["test_mae"] >= 0
    assert record["curve"]["candidates"] and len(record["curve"]["mae"]) == len(record["curve"]["candidates"])
    assert record["versions"]["numpy"] == np.__version__
    assert record["solved"] in (True, False) and record["seconds"] > 0
    assert record["structure"] in (True, False) and (record["structure"] or not record["solved"])
    assert (record["structure_mode"] is None) == (method != "gmeql")
