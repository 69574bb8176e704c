"""Learning curves: what the paper claims on each problem, and what is measured against it."""

import pytest

from fake_records import FULL, fake_record
from gmeql.evaluation.paper import figures


def measured(name, errors):
    (figure,) = figures.chosen([name])
    found = {c.key: fake_record(c, mae=errors[c.method] + 0.01 * c.seed) for c in figure.cells(FULL)}
    return figure.measure(FULL, found)


@pytest.mark.parametrize(
    ("name", "dsr", "agreement"),
    [("fig2a", 2.0, "agrees"), ("fig2a", 1.0, "partly"), ("fig2f", 1.0, "agrees"), ("fig2f", 2.0, "partly")],
)
def test_dsr_must_be_worse_on_b1_and_alike_on_b6(name, dsr, agreement):
    finding = measured(name, {"gmeql": 1.0, "eql": 2.0, "dsr": dsr, "fitted": 0.1})
    assert finding.agreement == agreement
    verdicts = {row["method"]: row.get("verdict") for row in finding.rows}
    assert verdicts["eql"] == "agrees" and verdicts["fitted"] is None


def test_the_fitted_method_is_told_but_not_judged():
    finding = measured("fig2a", {"gmeql": 1.0, "eql": 2.0, "dsr": 2.0, "fitted": 5.0})
    assert finding.agreement == "agrees"
    assert (
        finding.words[-1]
        == "The fitted method of this library: median test MAE 5.09, true structure 20, strict 20 of 20 runs."
    )
