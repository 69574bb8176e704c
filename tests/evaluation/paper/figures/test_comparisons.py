"""Comparisons over all problems."""

from fake_records import FULL, SMOKE, fake_record
from gmeql.evaluation.paper import figures


def test_times_on_different_hardware_are_not_compared():
    (time,) = figures.chosen(["time"])
    found = {c.key: fake_record(c) for c in time.cells(FULL)}
    assert time.measure(FULL, found).agreement == "differs"
    for key, record in found.items():
        if record["cell"]["method"] == "gp":
            found[key] = {**record, "device": "one CPU core"}
    assert time.measure(FULL, found).agreement == "not comparable"


def test_times_of_a_smaller_budget_are_not_compared():
    (time,) = figures.chosen(["time"])
    finding = time.measure(SMOKE, {c.key: fake_record(c) for c in time.cells(SMOKE)})
    assert finding.agreement == "not comparable" and "not the paper's" in finding.words[-1]
