"""Which terms a law has."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.differential.fields.selection import best_sums, fit_sum

RNG = np.random.default_rng(0)
A = RNG.standard_normal((200, 8)) * 10.0 ** np.arange(-3, 5)
FOLD = np.arange(200) // 40


def test_coefficients_and_misfit_of_certain_terms() -> None:
    b = 3 * A[:, 1] - 2 * A[:, 4]
    found = fit_sum(A, b, FOLD, [1, 4])
    assert found.coefficients == pytest.approx([3.0, -2.0]) and found.residual < 1e-12 and found.judged < 1e-12
    half = fit_sum(A, b, FOLD, [4])
    assert half.judged > half.residual * 0.99 > 1e-4
    assert found.nats(50) < half.nats(50)


def test_the_true_terms_are_the_cheapest_with_and_without_noise() -> None:
    for noise in (0.0, 0.01):
        b = A[:, 0] * 1e3 + A[:, 3] - 0.01 * A[:, 5]
        b = b + noise * b.std() * RNG.standard_normal(200)
        best = min(best_sums(A, b, FOLD), key=lambda s: s.nats(100))
        assert set(best.terms) == {0, 3, 5}


def test_terms_of_use_only_together_are_found_from_above() -> None:
    common = RNG.standard_normal(200)
    columns = np.stack([common + 1e-3 * RNG.standard_normal(200) for _ in range(3)] + [A[:, 3], A[:, 4]], axis=1)
    b = columns[:, 0] - columns[:, 1]
    best = min(best_sums(columns, b, FOLD), key=lambda s: s.nats(100))
    assert set(best.terms) == {0, 1}


def test_columns_that_are_sums_of_others_do_no_harm() -> None:
    columns = np.column_stack([A[:, 3], A[:, 4], A[:, 3] + A[:, 4], np.zeros(200)])
    best = min(best_sums(columns, A[:, 3] + A[:, 4], FOLD), key=lambda s: s.nats(100))
    assert best.terms == (2,)
