"""Comparisons over all problems."""

from gmeql.evaluation.paper import figures
from fake_records import SMOKE, fake_record


def test_times_on_different_hardware_are_not_compared():
    (time_,) = figures.chosen(["time"])
    found = {c.key: fake_record(c) for c in time_.cells(SMOKE)}
    assert time_.measure(SMOKE, found).agreement == "differs"
    for key, record in found.items():
        if record["cell"]["method"] == "gp":
            found[key] = {**record, "device": "one CPU core"}
    assert time_.measure(SMOKE, found).agreement == "not comparable"
