"""What may be said of two groups of runs."""

import math

import pytest

from gmeql.evaluation.paper.figures.statistics import (
    TOO_FEW,
    compare,
    counts,
    fisher,
    interval,
    mann_whitney,
    overall,
    summary,
)
from fake_records import group


def test_claims_are_judged_by_the_stated_tests():
    low, high = group([1.0, 1.1, 1.2, 1.3, 1.4]), group([2.0, 2.1, 2.2, 2.3, 2.4])
    verdict, sentence, p = compare(low, high, ("A", "B"))
    assert verdict == "agrees" and p == pytest.approx(2 / 252)  # exact: 2 of the C(10, 5) orders are as extreme
    assert "A (1.2) is below that of B (2.2)" in sentence
    assert compare(high, low, ("A", "B"))[0] == "differs"
    assert compare(low, low, ("A", "B"))[0] == "undecided"
    assert compare(low, low, ("A", "B"), "=")[0] == "agrees"
    assert compare(low, high, ("A", "B"), "=")[0] == "differs"
    assert compare([], high, ("A", "B"))[0] == "not measured"
    assert fisher(8, 20, 12, 20) == pytest.approx(0.3431, abs=1e-3)
    assert fisher(0, 20, 20, 20) < 1e-10


def test_an_expression_that_is_not_finite_is_the_worst():
    broken = [{**r, "test_mae": None} for r in group([1.0, 1.0, 1.0, 1.0, 1.0])]
    fine = group([5.0, 6.0, 7.0, 8.0, 9.0])
    assert compare(fine, broken, ("A", "B"))[0] == "agrees"
    assert summary(broken)["not_finite"] == 5 and summary(broken)["median_test_mae"] is None


def test_few_runs_are_described_and_not_judged():
    low, high = group([1.0, 1.1, 1.2, 1.3]), group([2.0, 2.1, 2.2, 2.3, 2.4, 2.5])
    for claim in "<=":
        verdict, sentence, p = compare(low, high, ("A", "B"), claim)
        assert verdict == TOO_FEW and math.isnan(p)
        assert sentence == "Median test MAE: A 1.15, B 2.25 (4 and 6 runs)."
    assert math.isnan(mann_whitney(low, high)) and math.isnan(fisher(0, 4, 20, 20))


def test_one_word_for_several_verdicts():
    assert overall(["not measured", TOO_FEW]) == TOO_FEW and overall([]) == overall(["not measured"]) == "not measured"
    assert overall([TOO_FEW, "agrees"]) == "agrees" and overall(["differs", "agrees"]) == "partly"
    assert overall(["differs", "undecided"]) == "differs"


def test_both_counts_and_the_exact_interval():
    runs = group([1.0] * 4)
    runs[0] |= {"solved": True, "structure": True}
    runs[1] |= {"structure": True, "structure_best": False, "structure_mode": True}
    found = counts(runs)
    assert (found["runs"], found["solved"], found["structure"]) == (4, 1, 2)
    assert (found["structure_best"], found["structure_mode"]) == (1, 1)
    assert interval(0, 20) == (0.0, pytest.approx(1 - 0.025 ** (1 / 20)))
    assert interval(0, 0) == (0.0, 1.0)
