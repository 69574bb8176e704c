"""Tables, pictures and page are made from records alone."""

import csv
import json

import pytest

from gmeql.evaluation.paper import figures, records, report
from gmeql.evaluation.paper.cells import Cell
from fake_records import SMOKE, all_cells, fake_record


@pytest.mark.parametrize(
    "names", [("table1", "success", "fig2a"), pytest.param(None, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_every_figure_and_table_is_drawn_from_records(tmp_path, names):
    pytest.importorskip("matplotlib")
    drawn = figures.chosen(names)
    records.append(tmp_path, [fake_record(c) for c in all_cells()])
    report.write(tmp_path, SMOKE, drawn, records.load(tmp_path))
    for figure in drawn:
        assert (tmp_path / "figures" / f"{figure.name}.png").stat().st_size > 1000
        assert b"<svg" in (tmp_path / "figures" / f"{figure.name}.svg").read_bytes()
    page = (tmp_path / "index.html").read_text()
    assert page.count("The paper says") == len(drawn)
    assert page.count("<img ") == len(drawn) - 1, "Table 1 is a table"
    assert "://" not in page and "<script" not in page, "the page must not need the network"
    table_json = json.loads((tmp_path / "table.json").read_text())
    assert {f["figure"] for f in table_json["figures"]} == {f.name for f in drawn}
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(table_json["rows"])
    success = [r for r in rows if r["figure"] == "success" and r["problem"] == "b1" and r["method"] == "gmeql"]
    assert float(success[0]["paper_share"]) == 0.61


def test_figures_say_when_nothing_was_measured_and_name_failures(tmp_path):
    pytest.importorskip("matplotlib")
    records.append(tmp_path, [records.failure_of(Cell("b1", "gmeql", "raced"), "it <died>", 2)])
    some = figures.chosen(["fig2a", "fig2i", "fig2l", "time", "noise"])
    report.write(tmp_path, SMOKE, some, records.load(tmp_path))
    page = (tmp_path / "index.html").read_text()
    assert "Not measured yet." in page and "it &lt;died&gt;" in page
    found = {f.name: f.measure(SMOKE, {}).agreement for f in figures.FIGURES}
    assert set(found.values()) - {"agrees"} == {"not measured"} and found.pop("table1") == "agrees"
