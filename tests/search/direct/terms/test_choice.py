"""Sums of terms: gains against plain least squares, sums recovered, tuned terms fitted, the same sums every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.network.families import FunctionSet
from gmeql.search.direct.table import DirectTable
from gmeql.search.direct.terms.choice import TermChoice, best_inexact, best_of
from gmeql.search.direct.terms.library import library
from gmeql.search.direct.terms.term_sums import SumFits, TermSum
from gmeql.search.polish.scoring import JudgedRows

RNG = np.random.default_rng(1)
X = np.column_stack([RNG.uniform(-2, 2, 150), RNG.uniform(0.1, 20, 150)])
TERMS = library(X, FunctionSet().allows)
POWERS = ~TERMS.plain & ~TERMS.tuned
x, t = X.T


def choice(y, used=POWERS, beams=(10,), weights=None) -> TermChoice:
    return TermChoice(TERMS, used, JudgedRows.of(X, y, weights, ("x", "t")), beams=beams)


def found(y, used=POWERS, beams=(10,)) -> list[TermSum]:
    return list(choice(y, used, beams).run(lambda: False))


def test_gains_are_those_of_least_squares() -> None:
    """Adding a column to a weighted least squares fit lowers the sum of squares by the gain."""
    y, weights = RNG.normal(size=150), RNG.uniform(0.5, 2, 150)
    weights /= weights.mean()
    chosen = choice(y, weights=weights)
    basis = np.linalg.qr(chosen.roots[:, None] * np.column_stack([np.ones(150), x]))[0]
    target = chosen.roots * y
    residual = target - basis @ (basis.T @ target)
    gains = chosen._gains([basis], [residual])[0]
    for m in range(0, len(gains), 11):
        table = np.column_stack([basis, chosen.columns[m]])
        after = target - table @ np.linalg.lstsq(table, target, rcond=None)[0]
        assert gains[m] == pytest.approx(residual @ residual - after @ after, rel=1e-5, abs=1e-7 * (target @ target))


def test_five_products_of_powers() -> None:
    y = -1.5 * x**3 + 0.4 * x**2 * t - 0.7 * t + 0.05 * x * t - 2 * x
    last = found(y, beams=(30,))[-1]
    assert last.loss < 1e-20 * np.var(y)
    np.testing.assert_allclose(Expression(last.root, ("x", "t"))(X), y, rtol=1e-8, atol=1e-8)


def test_two_tuned_terms_that_hide_each_other() -> None:
    """Neither the wave in x nor the decay in t is the best single term: products of both are."""
    positive = np.column_stack([np.abs(x) + 0.05, t])
    terms = library(positive, FunctionSet().allows)
    y = 0.47 * np.sin(0.87 * positive[:, 0]) - 0.31 * positive[:, 0] * np.exp(-0.08 * t)
    rows = JudgedRows.of(positive, y, None, ("x", "t"))
    last = list(TermChoice(terms, ~terms.plain, rows, beams=(12, 12, 6)).run(lambda: False))[-1]
    assert rows.is_exact(last.loss)
    assert len(last.terms) <= 3


def test_constants_of_plain_terms_stay() -> None:
    y = 2.0 * np.exp(-np.abs(x)) + 0.3 * np.sin(0.63 * t + 0.4)
    last = found(y, np.ones(len(TERMS), bool), (20, 12))[-1]
    assert last.loss < 1e-20
    text = str(Expression(last.root, ("x", "t")))
    assert "exp(-abs(x))" in text and "0.63" in text


def test_offset_and_factors_are_of_least_squares() -> None:
    y = RNG.normal(size=150) + x
    for each in found(y, beams=(3,))[:2]:
        table = np.column_stack([*(Expression(t.node, ("x", "t"))(X) for t in each.terms), np.ones(150)])
        expected = np.linalg.lstsq(table, y, rcond=None)[0]
        np.testing.assert_allclose(each.factors, expected, rtol=1e-6, atol=1e-9)


def test_the_same_sums_every_time_and_none_when_late() -> None:
    y = np.tanh(x) * t + 0.1 * RNG.normal(size=150)
    assert found(y) == found(y)
    assert len(list(choice(y).run(lambda: True))) <= 1


def test_a_constant_target_needs_no_term() -> None:
    assert all(np.isfinite(each.loss) for each in found(np.full(150, 3.0)))


def test_rows_without_weight_say_nothing() -> None:
    rows = replace(JudgedRows.of(X, x + t, None, ("x", "t")), weights=np.zeros(150))
    assert list(TermChoice(TERMS, POWERS, rows, beams=(3,)).run(lambda: False)) == []


def test_two_terms_that_show_only_together_are_found_by_pairs() -> None:
    """Of a difference of much alike terms neither is the best alone, and a greedy choice takes others first."""
    y = t - 0.9 * t**1.5 / 4
    rows = JudgedRows.of(X, y, None, ("x", "t"))

    def terms_needed(by_pairs: bool) -> float:
        sums = TermChoice(TERMS, POWERS, rows, beams=(1,), by_pairs=by_pairs).run(lambda: False)
        return min((len(each.terms) for each in sums if rows.is_exact(each.loss)), default=np.inf)

    assert terms_needed(True) == 2 < terms_needed(False)


def test_gains_of_tuned_terms_let_their_constants_move() -> None:
    tuned = TERMS.tuned
    y = np.exp(-0.234 * t)
    chosen = choice(y, tuned, beams=(0, 4))
    ones = np.full((150, 1), 150**-0.5)
    residual = y - ones @ (ones.T @ y)
    gains = chosen._gains([ones], [residual])[0]
    left = 1 - gains.max() / float(residual @ residual)
    alone = chosen.columns - (chosen.columns @ ones) @ ones.T
    shares = (alone @ residual) ** 2 / np.einsum("mn,mn->m", alone, alone) / float(residual @ residual)
    assert left < 0.1 * (1 - shares.max())


@pytest.mark.parametrize("looks", [1, 3, 6, 12])
def test_nothing_is_fitted_once_the_time_is_over(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No stage of a choice is finished because it was begun."""
    y = np.tanh(x) * t + 0.1 * RNG.normal(size=150)
    left, late, fitted = looks, 0, SumFits.fitted

    def out_of_time() -> bool:
        nonlocal left
        left -= 1
        return left <= 0

    def counted(self: SumFits, sums: Sequence[TermSum], steps: int) -> list[TermSum]:
        nonlocal late
        late += len(sums) * (left <= 0)
        return fitted(self, sums, steps)

    monkeypatch.setattr(SumFits, "fitted", counted)
    list(choice(y, np.ones(len(TERMS), bool), (20, 12)).run(out_of_time))
    assert left <= 0 and late == 0


def test_a_noisy_sum_is_worth_naming_its_terms_and_noise_is_not() -> None:
    noise = 0.05 * RNG.normal(size=150)
    for y, is_law in ((2 * x + 0.1 * x * t + noise, True), (noise, False)):
        rows = JudgedRows.of(X, y, None, ("x", "t"))
        table, sums = DirectTable(X, y, np.ones(150)), found(y, beams=(5,))
        roots = best_inexact(sums, table, rows, len(TERMS))
        assert (len(roots) > 0) == (best_of(sums, rows, len(TERMS)) is not None) == is_law
        assert all(table.error(root) < 1.1 * 0.05 / table.spread for root in roots[:1])
        known = DirectTable(X, y, np.ones(150), unexplained=0.05 / table.spread)
        assert best_inexact(sums, known, rows, len(TERMS)) == []
