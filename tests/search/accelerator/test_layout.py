"""Many arrays as one piece of memory."""

from __future__ import annotations

import numpy as np
from host_cuda import HostDriver

from gmeql.network.architecture import Architecture
from gmeql.search.accelerator.layout import Arena, flat_wiring
from gmeql.search.sampling.arrays import wiring_of


def test_an_arena_is_sent_at_once_and_fetched_in_parts() -> None:
    driver, arena = HostDriver(), Arena()
    first, second = np.arange(3, dtype=np.int16), np.linspace(0, 1, 5)
    offsets = [arena.add(first), arena.add(second), arena.reserve(5), arena.reserve(1)]
    arena.place(driver)
    arena.send(driver)
    assert offsets == [0, 16, 64, 80] and arena.n_bytes == 96 and arena.base == arena.there.ctypes.data
    there = arena.there[16 : 16 + second.nbytes].view(float)
    assert there.tolist() == second.tolist()
    there[2] = 7.0
    assert arena.fetch(driver).array(0, np.int16, (3,)).tolist() == [0, 1, 2]
    part = arena.fetch(driver, 16, 64)
    assert part.array(16, float, (5,)).tolist() == [0.0, 0.25, 7.0, 0.75, 1.0] and len(part.buffer) == 48
    assert part.array(32, float, (1, 2)).tolist() == [[7.0, 0.75]]
    assert second[2] == 0.5  # what was sent is the host's own


def test_an_arena_of_which_nothing_is_sent_is_zero() -> None:
    driver, arena = HostDriver(), Arena()
    place = arena.reserve(40)
    arena.place(driver)
    arena.send(driver)
    assert arena.fetch(driver).array(place, float, (5,)).tolist() == [0.0] * 5


def test_a_wiring_keeps_every_number() -> None:
    wiring = wiring_of(Architecture(2, (("id", "sum", "sin"), ("add", "prod"))))
    nodes, connections = flat_wiring(wiring)
    assert nodes["first"].tolist() == wiring.nodes["first"].tolist()
    assert nodes["dense_high"].tolist() == wiring.nodes["dense_high"].tolist() and nodes["dense_high"].any()
    assert connections["low"].tolist() == wiring.connections["low"].tolist()
