"""The library of terms: values are those of the formulas, operators are those allowed, grids mean the same in all units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.nodes import calls, row_values
from gmeql.network.families import FunctionSet
from gmeql.search.direct.terms.column_functions import PLAIN_TERMS, LibraryConfig
from gmeql.search.direct.terms.library import library, vocabulary

RNG = np.random.default_rng(0)
SIGNED = RNG.uniform(-2, 2, (40, 1))
POSITIVE = RNG.uniform(0.5, 3, (40, 1))
TABLE = np.hstack([SIGNED, POSITIVE])
DEFAULT = FunctionSet().allows


def operators(m: int, terms) -> set[str]:
    return {call.operator for call in calls(terms.node(m))}


def test_values_are_those_of_the_formulas() -> None:
    terms = library(TABLE, DEFAULT)
    for m in range(0, len(terms), 97):
        expected = row_values(terms.node(m), ("a", "b"), TABLE)
        np.testing.assert_allclose(terms.values[m], expected, rtol=1e-12)
    assert np.isfinite(terms.values).all()
    assert (np.ptp(terms.values, axis=1) > 0).all()


def test_only_allowed_operators() -> None:
    allowed = FunctionSet(["add", "mul", "square", "sin"])
    terms = library(TABLE, allowed.allows)
    assert len(terms) > 0
    for m in range(len(terms)):
        assert allowed.allows(operators(m, terms))


def test_magnitudes_of_signed_columns_only_where_the_user_names_no_functions() -> None:
    terms = library(SIGNED, DEFAULT)
    assert any("abs" in operators(m, terms) for m in range(len(terms)))
    named = library(SIGNED, FunctionSet(["add", "mul", "prod", "exp", "log", "sqrt"]).allows)
    assert not any("abs" in operators(m, named) for m in range(len(named)))
    positive = library(POSITIVE, DEFAULT)
    assert not any("abs" in operators(m, positive) for m in range(len(positive)))


def test_tuned_plain_and_power_terms_are_told_apart() -> None:
    terms = library(POSITIVE, DEFAULT)
    powers = ~terms.plain & ~terms.tuned
    assert terms.plain.any() and terms.tuned.any() and powers.any()
    for m in np.flatnonzero(powers):
        assert operators(m, terms) <= {"mul", "pow", "square", "cube", "pow4", "pow5", "pow6", "sqrt", "inv", "div"}


def test_terms_that_differ_in_inner_constants_are_of_one_kind() -> None:
    terms = library(POSITIVE, DEFAULT)
    waves = [
        m
        for m in np.flatnonzero(terms.tuned)
        if terms.parts[m, 1] == 0 and operators(m, terms) == {"sin", "add", "mul"}
    ]
    assert len(waves) > 10 and len({int(terms.kinds[m]) for m in waves}) == 1


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_grids_follow_the_unit_of_a_column(unit: float) -> None:
    """Tuned factors of a rescaled column take the same values."""
    only = LibraryConfig(powers=(1,), roots=(), mixed=())
    one, other = library(POSITIVE, DEFAULT, numbers=only), library(POSITIVE * unit, DEFAULT, numbers=only)
    rates = [[f.values for f in t.factors if f.kind in ("0 exp", "0 tanh", "0 wave", "0 bump")] for t in (one, other)]
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-9)


def test_a_wide_table_keeps_the_library_small() -> None:
    X = RNG.uniform(1, 2, (30, 9))
    few = LibraryConfig(most_terms=500)
    assert 0 < len(library(X, DEFAULT, numbers=few)) <= 500


def test_a_constant_column_has_no_terms() -> None:
    assert len(library(np.ones((20, 1)), DEFAULT)) == 0


def test_a_rate_of_one_is_no_constant() -> None:
    """A column of 1 and 2 has exp(x) on its grid, which is written without its rate."""
    X = np.column_stack([np.resize([1.0, 2.0], 60), np.linspace(0, 1, 60)])
    terms = library(X, FunctionSet().allows)
    bare = [i for i, factor in enumerate(terms.factors) if str(factor.node) == "Call('exp', (Variable(index=0),))"]
    assert bare and all(not terms.factors[i].slope.any() for i in bare)


def test_a_vocabulary_has_one_and_plain_terms_in_order() -> None:
    terms = vocabulary(TABLE, DEFAULT)
    assert not terms.tuned.any()
    np.testing.assert_array_equal(terms.values[0], 1.0)
    assert np.sum(np.ptp(terms.values, axis=1) == 0) == 1
    for m in range(0, len(terms), 41):
        np.testing.assert_allclose(terms.values[m], row_values(terms.node(m), ("a", "b"), TABLE), rtol=1e-12)
    shorter = vocabulary(TABLE, DEFAULT, numbers=replace(PLAIN_TERMS, most_terms=50))
    assert [shorter.node(m) for m in range(len(shorter))] == [terms.node(m) for m in range(len(shorter))]


def test_the_same_terms_with_other_values() -> None:
    terms = library(TABLE, DEFAULT)
    before = terms.values.copy()
    other = terms.of_values(2 * terms.values)
    np.testing.assert_array_equal(other.values, 2 * before)
    np.testing.assert_array_equal(terms.values, before)
    assert other.node(7) == terms.node(7)
