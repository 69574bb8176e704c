"""What is known of each target, from the estimator's parameters; refusals name what is wrong."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gmeql.formula.parsing import parse_tree
from gmeql.knowledge.knowledge import SOFT_PRICE, Knowledge, read_knowledge

NAMES = ("m", "v")
UNITS = {"m": "kg", "v": "m/s"}


def test_nothing_known() -> None:
    assert read_knowledge(NAMES, n_targets=2) == [None, None]


def test_units_of_each_target() -> None:
    energy, momentum = read_knowledge(NAMES, n_targets=2, units=UNITS, target_units=["J", "kg*m/s"])
    assert energy is not None and momentum is not None
    square, product = parse_tree("0.5*m*v**2", NAMES), parse_tree("m*v", NAMES)
    assert energy.admits(square) and not energy.admits(product)
    assert momentum.admits(product) and not momentum.admits(square)
    assert energy == read_knowledge(NAMES, units=["kg", "m/s"], target_units="J")[0]


def test_soft_units_are_a_price() -> None:
    (soft,) = read_knowledge(NAMES, units=UNITS, target_units="J", unit_check="soft")
    assert soft is not None
    wrong = parse_tree("m*v", NAMES)
    assert soft.admits(wrong) and soft.price(wrong) == SOFT_PRICE and soft.price(parse_tree("m*v**2", NAMES)) == 1.0
    # what cannot be made of the columns is not refused: every formula pays
    assert read_knowledge(NAMES, units=UNITS, target_units="K", unit_check="soft")[0] is not None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"target_units": "J"}, "needs units="),
        ({"units": UNITS}, "without target_units="),
        ({"units": {"m": "kg"}, "target_units": "J"}, "no entry for column 'v'"),
        ({"units": UNITS | {"w": "m"}, "target_units": "J"}, "no column"),
        ({"units": ["kg"], "target_units": "J"}, "1 entries for 2 columns"),
        ({"units": UNITS | {"v": "m/q"}, "target_units": "J"}, "units of 'v'"),
        ({"units": UNITS, "target_units": "Jo"}, "target_units"),
        ({"units": UNITS, "target_units": ["J", "J"]}, "2 entries for 1 targets"),
        ({"units": UNITS, "target_units": "K"}, "for K: 0 = 1"),
        ({"units": UNITS, "target_units": "J", "constant_units": ["x y z"]}, "constant_units"),
    ],
)
def test_refusals(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_knowledge(NAMES, **given)
    assert says in str(caught.value)


@pytest.mark.parametrize("allowed", [None, "any", "m/s**2", ["m/s**2", "K"]])
def test_plain_data_and_back(allowed: Any) -> None:
    (known,) = read_knowledge(NAMES, units=UNITS, target_units="J", constant_units=allowed, unit_check="soft")
    assert known is not None and Knowledge.from_dict(known.to_dict()) == known


def test_a_constant_that_may_be_a_misspelt_column_gets_a_word() -> None:
    with pytest.warns(UserWarning, match="mas is no column, so it is a constant to fit; was the column mass meant"):
        read_knowledge(["mass", "speed"], template="k*mas*speed**2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_knowledge(["mass", "m"], template="a*m + c*mass")
        read_knowledge(["mass", "m"], template="mas*m", constants={"mas": (0, 1)})
