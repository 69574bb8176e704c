"""EQL's numbers."""

import pytest

from gmeql.evaluation.baselines.eql import PAPER_STEPS, EQLConfig


def test_the_phases_are_those_of_kim_et_al():
    config = EQLConfig()
    assert (round(config.warmup_share * PAPER_STEPS), round(config.main_share * PAPER_STEPS)) == (2000, 10_000)
    assert EQLConfig(units=(("id", 2), ("mul", 1))).flat_units == ("id", "id", "mul")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"units": (("nand", 1),)}, "units must name some of"),
        ({"units": ()}, "units"),
        ({"hidden_layers": 0}, "hidden_layers must be at least 1"),
        ({"warmup_share": 0.8}, "add up to at most 1"),
    ],
)
def test_bad_numbers_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        EQLConfig(**changes)
