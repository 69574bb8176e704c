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


def test_success_rates_of_few_runs_are_counted_but_not_judged():
    (success,) = figures.chosen(["success"])
    finding = success.measure(SMOKE, {c.key: fake_record(c, solved=c.method == "gmeql") for c in success.cells(SMOKE)})
    assert finding.agreement == "too few runs"
    assert finding.words[0] == (
        "b1: the paper 61 %, here 2 of 2; EQL 0 of 2, DSR 0 of 2, fitted (ours) 0 of 2, GP 0 of 2."
    )
    assert all(row.get("p_value_solved") is None for row in finding.rows)
    many = success.measure(FULL, {c.key: fake_record(c, solved=c.method == "gmeql") for c in success.cells(FULL)})
    assert many.agreement == "partly" and "(100 %), p = " in many.words[0] and many.rows[0]["p_value_solved"] < 0.05
