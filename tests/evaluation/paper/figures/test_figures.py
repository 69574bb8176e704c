"""All figures together: their names, and what many runs decide that few cannot."""

import pytest

from gmeql.evaluation.paper import figures
from fake_records import FULL, SMOKE, all_cells, fake_record


def test_twenty_seeds_decide_what_two_cannot():
    cells = all_cells(FULL)
    found = {c.key: fake_record(c) for c in cells}
    verdicts = {f.name: f.measure(FULL, found).agreement for f in figures.FIGURES}
    assert verdicts["fig2a"] == verdicts["fig2i"] == verdicts["fig2l"] == "agrees"
    assert verdicts["offline"] == "differs", "the fake records make every setting three times worse"
    assert verdicts["success"] == "differs", "no fake GMEQL run is solved"
    few = {c.key: fake_record(c) for c in all_cells()}
    said = {f.name: f.measure(SMOKE, few) for f in figures.FIGURES}
    assert said.pop("table1").agreement == "agrees" and said.pop("time").agreement == "not comparable"
    assert {finding.agreement for finding in said.values()} == {"too few runs"}
    for name, finding in said.items():
        text = " ".join(finding.words)
        assert "p = " not in text and "significant" not in text, f"{name} judges two runs: {text}"
        assert all(row.get("p_value") is None and row.get("p_value_training") is None for row in finding.rows)


def test_only_names_are_checked():
    assert [f.name for f in figures.chosen(["success", "fig2a"])] == ["fig2a", "success"]
    assert len(figures.chosen(["fig2"])) == 12
    with pytest.raises(ValueError, match="unknown 'fig9'"):
        figures.chosen(["fig9"])
