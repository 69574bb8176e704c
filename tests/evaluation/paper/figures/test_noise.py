"""The noise figure."""

from gmeql.evaluation.paper import figures
from fake_records import FULL, fake_record


def test_noise_that_seems_to_help_is_not_what_the_paper_says():
    (noise,) = figures.chosen(["noise"])
    cells = [c for c in noise.cells(FULL) if (c.problem, c.method) == ("b2", "gmeql")]
    worse = {c.key: fake_record(c, mae=(3 if c.noise == 0.5 else 1) + 0.01 * c.seed) for c in cells}
    better = {c.key: fake_record(c, mae=(0.3 if c.noise == 0.5 else 1) + 0.01 * c.seed) for c in cells}
    assert noise.measure(FULL, worse).agreement == "agrees"
    assert noise.measure(FULL, better).agreement == "partly"
    assert not any("b1" in sentence for sentence in noise.measure(FULL, worse).words)
