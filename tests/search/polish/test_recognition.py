"""Numbers that people write down."""

from __future__ import annotations

import math

import pytest

from gmeql.search.polish.recognition import (
    all_recognised,
    is_recognised,
    n_loose_constants,
    plain_nats,
    recognised,
    short_decimals,
)
from judged_rows import x, y
from random_trees import call


@pytest.mark.parametrize("value", [3.0, 0.25, 1 / 3, -2.5, 0.07, 1200.0, math.pi, math.sqrt(2)])
def test_recognised_numbers_stay_and_their_neighbours_find_them(value: float) -> None:
    assert value in recognised(value)
    assert any(abs(candidate - value) < 1e-14 * abs(value) for candidate in recognised(value * (1 + 1e-6)))


def test_recognised_handles_what_is_no_number_to_round() -> None:
    assert recognised(0.0) == (0.0,) and recognised(math.inf) == (0.0,)
    assert all(math.copysign(1, c) == -1 for c in recognised(-1.7))


def test_short_decimals_come_shortest_first() -> None:
    assert short_decimals(1.4142) == [1.4, 1.41]
    assert short_decimals(0.0) == [0.0] and short_decimals(math.nan) == [0.0]
    assert short_decimals(2.5e7 + 1.0) == [2.5e7]


def test_loose_constants_are_counted() -> None:
    root = call("add", call("mul", 1.2345678, x), call("mul", math.pi, y), 0.5)
    assert n_loose_constants(root) == 1 and not all_recognised(root)
    assert is_recognised(2 / 3) and not is_recognised(0.6667891)


def test_the_plainer_a_number_the_fewer_nats_it_takes() -> None:
    """1, 2, a half, a third, decimals of more and more digits; the sign and the place of the point say nothing."""
    nats = [plain_nats(value) for value in (1.0, 2.0, 2 / 3, 1.4, 1.41, 1.414)]
    assert nats == sorted(nats) and nats[0] == 0.0 and plain_nats(-0.5) == plain_nats(2.0) == math.log(2.0)
    assert plain_nats(0.1) == plain_nats(100.0) == 0.0 and plain_nats(math.pi) == pytest.approx(math.log(5.0))
