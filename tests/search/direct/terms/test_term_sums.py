"""Sums of terms: their formula, their factors against plain least squares, inner constants fitted and read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.calculus import constants_of, with_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.network.families import FunctionSet
from gmeql.search.direct.terms.library import library
from gmeql.search.direct.terms.term_sums import SumFits, Term, TermSum, beside, orthonormal
from gmeql.search.polish.scoring import JudgedRows

RNG = np.random.default_rng(5)
X = RNG.uniform(0.5, 3.0, (80, 2))
TERMS = library(X, FunctionSet().allows)
DECAY = Call("exp", (Call("mul", (Constant(-0.9), Variable(1))),))


def fits(y: np.ndarray, weights: np.ndarray | None = None) -> SumFits:
    return SumFits(TERMS, JudgedRows.of(X, y, weights, ("x", "t")), tolerance=1e-6, spanned=1e-9)


def plain(number: int) -> Term:
    return Term(TERMS.node(number), number, False)


def tuned_sum() -> TermSum:
    """One plain term, and a decay whose rate is fitted."""
    return TermSum((plain(0), Term(DECAY, -1, True)), (1.0, 1.0, 0.0), np.inf)


def test_the_formula_has_a_factor_for_each_term_and_an_offset() -> None:
    each = TermSum((plain(0), plain(1)), (2.0, -3.0, 0.5), np.inf)
    expected = 2.0 * TERMS.values[0] - 3.0 * TERMS.values[1] + 0.5
    np.testing.assert_allclose(Expression(each.root, ("x", "t"))(X), expected)
    assert each.without(0) == TermSum((plain(1),), (-3.0, 0.5), np.inf)


def test_terms_have_their_values_from_the_library_until_their_constants_are_fitted() -> None:
    tuned = int(np.flatnonzero(TERMS.tuned)[5])
    assert TERMS.node(tuned) is TERMS.node(tuned)
    own = Term(with_constants(TERMS.node(tuned), [0.123 + c for c in constants_of(TERMS.node(tuned))]), tuned, True)
    each = TermSum((Term(TERMS.node(tuned), tuned, True), own), (1.0, 1.0, 0.0), np.inf)
    columns = fits(X[:, 0]).columns(each)
    np.testing.assert_array_equal(columns[:, 0], TERMS.values[tuned])
    for column, term in zip(columns.T, each.terms, strict=False):
        np.testing.assert_allclose(column, Expression(term.node, ("x", "t"))(X), rtol=1e-14)
    assert not np.allclose(columns[:, 0], columns[:, 1])


def test_factors_are_those_of_weighted_least_squares() -> None:
    y, weights = RNG.normal(size=80), RNG.uniform(0.5, 2.0, 80)
    fit = fits(y, weights)
    each = TermSum((plain(0), plain(1)), (1.0, 1.0, 0.0), np.inf)
    solved = fit.solved(each)
    assert solved is not None
    table = np.column_stack([TERMS.values[0], TERMS.values[1], np.ones(80)])
    roots = np.sqrt(weights)
    expected = np.linalg.lstsq(roots[:, None] * table, roots * y, rcond=None)[0]
    np.testing.assert_allclose(solved.factors, expected, rtol=1e-9)
    assert solved.loss == pytest.approx(np.average((y - table @ expected) ** 2, weights=weights))


def test_constants_of_plain_terms_stay_and_those_of_tuned_ones_follow() -> None:
    y = 0.4 * TERMS.values[0] + 2.0 * np.exp(-0.7 * X[:, 1]) + 1.0
    fit = fits(y)
    (found,) = fit.fitted([tuned_sum()], 40)
    assert found.terms[0] == plain(0)
    np.testing.assert_allclose(Expression(found.terms[1].node, ("x", "t"))(X), np.exp(-0.7 * X[:, 1]), rtol=1e-6)
    np.testing.assert_allclose(found.factors, (0.4, 2.0, 1.0), rtol=1e-6)
    assert found.loss < 1e-16


def test_what_is_left_lies_beside_all_slopes() -> None:
    fit = fits(RNG.normal(size=80))
    each = tuned_sum()
    basis, left = fit.beside(replace(each, factors=(0.3, 1.2, 0.1)))
    slope = X[:, 1] * np.exp(-0.9 * X[:, 1])  # of the decay, by its rate
    for column in (TERMS.values[0], np.exp(-0.9 * X[:, 1]), slope, np.ones(80)):
        assert abs(left @ (fit.roots * column)) < 1e-9 * np.linalg.norm(left) * np.linalg.norm(column)
    assert basis.shape[1] == 4


def test_a_term_that_is_not_finite_has_no_sum() -> None:
    pole = Call("div", (Constant(1.0), Call("sub", (Variable(0), Variable(0)))))
    assert fits(X[:, 0]).solved(TermSum((Term(pole, -1, True),), (1.0, 0.0), np.inf)) is None


def test_a_basis_spans_its_columns_once() -> None:
    columns = np.column_stack([X[:, 0], 2.0 * X[:, 0], X[:, 1], np.zeros(80)])
    basis = orthonormal(columns, 1e-9)
    assert basis.shape == (80, 2)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(basis @ (basis.T @ columns), columns, atol=1e-12)


def test_columns_without_a_value_span_nothing() -> None:
    columns = np.array([[0.0, np.inf, 1.0], [0.0, 1.0, 2.0]])
    assert orthonormal(columns[:, :2], 1e-9).shape == (2, 0)
    np.testing.assert_allclose(np.abs(orthonormal(columns, 1e-9)), [[0.2**0.5], [0.8**0.5]])


def test_what_is_left_is_orthogonal() -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(200, 5)))[0]
    assert np.abs(basis.T @ beside(basis, 1e8 * rng.normal(size=(200, 3)))).max() < 1e-7
