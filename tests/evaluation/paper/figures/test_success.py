"""Success rates: both counts beside the paper's, judged only where runs suffice."""

import pytest

from fake_records import FULL, SMOKE, fake_record
from gmeql.evaluation.paper import figures
from gmeql.evaluation.paper.figures.success import markdown, paper_interval

(SUCCESS,) = figures.chosen(["success"])


def measured(plan, **changes):
    return SUCCESS.measure(plan, {c.key: fake_record(c, **changes) for c in SUCCESS.cells(plan)})


def test_success_rates_of_few_runs_are_counted_but_not_judged():
    finding = measured(SMOKE, solved=False, structure=True)
    assert finding.agreement == "too few runs"
    assert finding.words[0] == (
        "b1: the paper 61 %, here true structure 2 of 2 (T* 2, mode of the logits 0), strict 0; EQL 2 and 0 of 2, "
        "DSR 2 and 0 of 2, fitted (ours) 2 and 0 of 2, GP 2 and 0 of 2."
    )


def test_twenty_runs_are_judged_by_the_true_structures_and_the_papers_interval():
    assert measured(FULL, solved=False, structure=True).agreement == "agrees"
    nothing = measured(FULL, solved=False)
    assert nothing.agreement == "differs" and "95 % interval 0 to 17 %" in nothing.words[0]
    half = SUCCESS.measure(
        FULL, {c.key: fake_record(c, solved=False, structure=c.seed < 8) for c in SUCCESS.cells(FULL)}
    )
    verdicts = {row["problem"]: row["verdict"] for row in half.rows if "verdict" in row}
    assert [p for p, verdict in verdicts.items() if verdict == "differs"] == ["b2", "b6", "b8"]
    settings = {row.get("setting") for row in half.rows if row["method"] == "gmeql"}
    assert settings == {"standard", "released", "raced"}


def test_the_papers_intervals_are_those_of_twenty_runs():
    assert paper_interval("b6") == (pytest.approx(0.8316, abs=1e-4), 1.0)
    low, high = paper_interval("b4")  # 8 of 20
    assert (low, high) == (pytest.approx(0.1912, abs=1e-4), pytest.approx(0.6395, abs=1e-4))


def test_the_one_table_names_both_counts_and_what_is_missing():
    found = {
        c.key: fake_record(c, solved=c.seed < 3, structure=c.seed < 8)
        for c in SUCCESS.cells(FULL)
        if c.setting != "released"
    }
    lines = markdown(FULL, found).splitlines()
    assert len(lines) == 10 and len({line.count("|") for line in lines}) == 1
    assert lines[0].startswith(
        "|  | the paper, 95 % of 20 runs | the best setting found: structure | 95 % | T* / mode | strict"
    )
    assert lines[2].startswith(
        "| b1 | 61 % (36 to 81) | **8** of 20 | 19 to 64 % | 8 / 0 | 3 | **8** of 20 | 8 / 0 | 3 |"
    )
    assert lines[2].endswith("| not measured | not measured | not measured |")
