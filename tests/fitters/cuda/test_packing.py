"""What is sent is what was given, each array at a place of its own."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.fitters.cuda.packing import ALIGNED, Joined, packed
from gmeql.fitters.cuda.source import size_of


@pytest.mark.parametrize("n", [1, 3, 50])
def test_every_array_is_there_and_none_wider_than_needed(n: int) -> None:
    rng = np.random.default_rng(n)
    lengths, constants = rng.integers(1, 40, n), rng.integers(0, 12, n)
    given = Joined(
        rng.integers(0, 30, (n, 5, 96)).astype(np.int16), lengths, constants, constants + 1, rng.normal(size=(n, 40)),
        rng.integers(0, 4, n), rng.exponential(size=n),
    )  # fmt: skip
    sent = packed(given)
    np.testing.assert_array_equal(sent.array("codes"), given.codes[:, :, : lengths.max()])
    np.testing.assert_array_equal(sent.array("constants"), given.constants[:, : constants.max() + 1])
    for name in ("lengths", "n_free", "n_constants", "dataset", "hopeless"):
        np.testing.assert_array_equal(sent.array(name), getattr(given, name))
    assert sent.sizes.tolist() == size_of(lengths, constants + 1).tolist()
    starts = [place[0] for place in sent.places.values()]
    ends = [start + sent.array(name).nbytes for name, start in zip(sent.places, starts, strict=True)]
    assert not any(start % ALIGNED for start in starts)
    assert all(end <= start for end, start in zip(ends, [*starts[1:], len(sent.whole)], strict=True))


def test_what_comes_back_lies_behind_what_does_not() -> None:
    one = Joined(np.zeros((2, 5, 8), np.int16), *np.ones((3, 2), int), np.ones((2, 4)), np.zeros(2, int), np.ones(2))
    assert list(packed(one).places)[-4:] == ["constants", "losses", "ended", "steps"]


def test_candidates_without_constants_have_room_for_one() -> None:
    none = np.zeros(2, int)
    one = Joined(np.zeros((2, 5, 8), np.int16), none + 1, none, none, np.ones((2, 4)), none, np.ones(2))
    assert packed(one).array("constants").shape == (2, 1)
