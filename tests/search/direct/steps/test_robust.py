"""Terms beside something hidden are read off: true ones stand far from nothing, others do not."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.search.direct.steps.robust import ROBUST, Shown, robust_choice


def test_true_terms_stand_out_and_others_do_not() -> None:
    X = np.random.default_rng(0).uniform(-8, 8, (600, 4))
    a, b, c, d = X.T
    terms = np.stack([a * b, c, d**2, a, b, d, np.sin(a), np.cos(b), a * c, b * d, np.exp(-(c**2))])
    shown = robust_choice(terms, 2.31 * a * b - d**2 + np.log(np.abs(a + 2 * b * d) + 1))
    assert set(shown.numbers) >= {0, 2}
    seen = dict(zip(shown.numbers, shown.seen, strict=False))
    assert min(seen[0], seen[2]) > ROBUST.surely[-1] > max([s for m, s in seen.items() if m not in (0, 2)], default=0)
    assert {(2.31, 0), (-1.0, 2)} in [set(some) for some in shown.clear()]


def test_standard_errors_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(200):
        x = rng.normal(size=400)
        shown = robust_choice(x[None], 3 * x + 0.1 * rng.normal(size=400))
        drawn.append((shown.factors[0] - 3) * shown.seen[0] / shown.factors[0])
    assert np.std(drawn) == pytest.approx(1.0, abs=0.25)


def test_numbers_as_people_write_them() -> None:
    shown = Shown([4, 7, 9], [2.8101, -0.98, 0.2, 5.0], np.array([5000.0, 800.0, 40.0, 1e6]))
    assert list(shown.clear()) == [[(2.81, 4)], [(2.81, 4)], [(2.81, 4), (-1.0, 7)], [(2.81, 4), (-0.98, 7)]]
    assert shown.are_written([(2.81, 4), (-0.98, 7)]) and not shown.are_written([(2.81, 4), (-1.0, 7)])
    assert shown.others([(2.81, 4)]) == [7, 9]
    assert [(-1.0, 7)] in list(shown.near_whole())
