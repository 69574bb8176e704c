"""Arrays of candidates: room for all, and parts of them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from gmeql.search.islands.candidates import Candidates


def test_nothing_is_fitted_at_first() -> None:
    made = Candidates.allocate(7, 3)
    assert made.choices.shape == (7, 3) and np.isinf(made.losses).all()
    assert all(len(getattr(made, one.name)) == 7 for one in fields(made))


def test_a_slice_is_a_view_and_an_index_a_copy() -> None:
    made = Candidates.allocate(7, 3)
    made.take(slice(0, 2)).losses[:] = 1.0
    made.take(np.array([5, 6])).losses[:] = 2.0
    assert made.losses.tolist() == [1.0, 1.0] + [np.inf] * 5
    made.hashes[:] = np.arange(7)
    assert made.take(np.array([5, 1])).hashes.tolist() == [5, 1]
