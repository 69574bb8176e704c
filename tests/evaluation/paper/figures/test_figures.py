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
    assert figures.FIGURES[1].measure(SMOKE, few).agreement == "undecided"


def test_only_names_are_checked():
    assert [f.name for f in figures.chosen(["success", "fig2a"])] == ["fig2a", "success"]
    assert len(figures.chosen(["fig2"])) == 12
    with pytest.raises(ValueError, match="unknown 'fig9'"):
        figures.chosen(["fig9"])
