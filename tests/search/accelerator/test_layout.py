"""Many arrays as one piece of memory."""

from __future__ import annotations

import numpy as np
from host_cuda import HostDriver

from gmeql.network.architecture import Architecture
from gmeql.search.accelerator.layout import Arena, flat_wiring
from gmeql.search.sampling.arrays import wiring_of


def test_an_arena_is_sent_and_fetched_at_once() -> None:
    driver, arena = HostDriver(), Arena()
    first, second = np.arange(3, dtype=np.int16), np.linspace(0, 1, 5)
    offsets = [arena.add(first), arena.add(second), arena.reserve(5), arena.reserve(1)]
    arena.place(driver)
    arena.send(driver)
    assert offsets == [0, 16, 64, 80] and arena.n_bytes == 96 and arena.base == arena.there.ctypes.data
    there = arena.there[16 : 16 + second.nbytes].view(float)
    assert there.tolist() == second.tolist()
    there[2] = 7.0
    arena.fetch(driver, [0])
    assert second[2] == 0.5
    arena.fetch(driver)
    assert second[2] == 7.0 and first.tolist() == [0, 1, 2]


def test_a_wiring_keeps_every_number() -> None:
    wiring = wiring_of(Architecture(2, (("id", "sum", "sin"), ("add", "prod"))))
    nodes, connections = flat_wiring(wiring)
    assert nodes["first"].tolist() == wiring.nodes["first"].tolist()
    assert nodes["dense_high"].tolist() == wiring.nodes["dense_high"].tolist() and nodes["dense_high"].any()
    assert connections["low"].tolist() == wiring.connections["low"].tolist()
