"""Ablations state a direction, and three p-values."""

from gmeql.evaluation.paper import figures
from fake_records import FULL, fake_record


def test_an_ablation_states_its_direction_and_three_p_values():
    (ablation,) = figures.chosen(["fig2i"])
    found = {
        c.key: fake_record(c, mae=1.0 + 0.01 * c.seed + (2.0 if c.setting == "raced_no_stage1" else 0.0))
        for c in ablation.cells(FULL)
    }
    finding = ablation.measure(FULL, found)
    assert finding.agreement == "agrees"
    assert "without stage 1: the training error of the best instance is larger (p = " in finding.words[0]
    assert "the test error of the formula is larger" in finding.words[0]
    assert "Strictly solved: 0 of 20 and 0 of 20, p = 1 (Fisher's exact test)." in finding.words
    assert "True structure: 0 of 20 and 0 of 20, p = 1 (Fisher's exact test)." in finding.words
    assert "Of T* and of the mode: 0 and 0 of 20, 0 and 0 of 20." in finding.words
    row = finding.rows[1]
    assert row["p_value"] < 1e-6 and row["p_value_training"] < 1e-6 and row["p_value_solved"] == 1.0
    for key, record in found.items():  # relaxed instances alike, formulas still worse: half of the claim is left
        found[key] = {**record, "curve": {**record["curve"], "mae": [9.0, None, 1.0 + 0.01 * record["cell"]["seed"]]}}
    half = ablation.measure(FULL, found)
    assert half.agreement == "partly" and "not significantly different (p = 1)" in half.words[0]
