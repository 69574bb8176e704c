"""Sums of products: added, multiplied and divided as polynomials are, within the caller's rounding and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.sums import (
    Monomial,
    Polynomial,
    Rounding,
    TooManyTerms,
    add,
    divide,
    join,
    merge_powers,
    monomial,
    multiply,
    quotient,
    scale,
    shared_powers,
)

ROUNDING = Rounding(exponents=1e-9, terms=1e-12)

products: st.SearchStrategy[Monomial[str]] = st.dictionaries(
    st.sampled_from("xyz"), st.sampled_from([-2.0, -1.0, 0.5, 1.0, 2.0, 3.0]), max_size=3
).map(monomial)
polynomials: st.SearchStrategy[Polynomial[str]] = st.dictionaries(products, st.floats(0.1, 5.0), min_size=1, max_size=4)


def value(polynomial: Polynomial[str], x: float = 1.3, y: float = 0.7, z: float = 2.1) -> float:
    at = {"x": x, "y": y, "z": z}
    return sum(c * math.prod(at[base] ** power for base, power in product) for product, c in polynomial.items())


@given(polynomials, polynomials)
def test_values_add_and_multiply(left: Polynomial[str], right: Polynomial[str]) -> None:
    assert value(add([left, right], ROUNDING.terms)) == pytest.approx(value(left) + value(right))
    assert value(multiply(left, right, ROUNDING, max_terms=99)) == pytest.approx(value(left) * value(right))
    assert value(scale(left, -2.5)) == pytest.approx(-2.5 * value(left))


@given(polynomials, products)
def test_division_undoes_multiplication(polynomial: Polynomial[str], product: Monomial[str]) -> None:
    multiplied = multiply(polynomial, {product: 1.0}, ROUNDING, max_terms=99)
    again = divide(multiplied, dict(product), ROUNDING)
    assert again.keys() == polynomial.keys()
    np.testing.assert_allclose([again[key] for key in polynomial], list(polynomial.values()))


def test_what_cancels_is_gone_and_what_overflows_stays() -> None:
    assert add([{"u": 0.1}, {"u": 0.2, "v": 1.0}, {"u": -0.3}], 1e-12) == {"v": 1.0}
    assert "u" in add([{"u": 0.1}, {"u": 0.2}, {"u": -0.3}])  # a last digit is left where nothing is rounded
    assert add([{"u": 1.0}, {"u": -1.0}]) == {}
    assert add([{"u": 1e308}, {"u": 1e308}], 1e-12) == {"u": math.inf}


def test_small_remains_of_large_terms_cancel_whatever_their_order() -> None:
    for coefficients in ((1.0, -1.0, 1e-7), (1e-7, 1.0, -1.0)):
        assert add(({"u": c} for c in coefficients), 1e-6) == {}


def test_exponents_that_cancel_leave_the_product() -> None:
    powers = {"x": 2.0, "y": 1.0}
    merge_powers(powers, {"x": -2.0, "z": 1.0}, ROUNDING)
    assert powers == {"y": 1.0, "z": 1.0}
    assert join((("x", 0.5),), (("x", -0.5 + 1e-12),), ROUNDING) == ()
    assert monomial({"z": 1.0, "x": 2.0}) == (("x", 2.0), ("z", 1.0))


def test_shared_powers_are_those_of_one_sign() -> None:
    assert shared_powers([{"x": 2.0, "y": -1.0, "z": 1.0}, {"x": 1.0, "y": -3.0, "z": -1.0}]) == {"x": 1.0, "y": -1.0}
    assert shared_powers([{"x": 1.0}, {}]) == {}


def test_growth_is_refused() -> None:
    total = {monomial({name: 1.0}): 1.0 for name in "abcdef"}
    assert len(multiply(total, total, ROUNDING, max_terms=21)) == 21
    with pytest.raises(TooManyTerms, match="more than 20 terms"):
        multiply(total, total, ROUNDING, max_terms=20)


whole = st.dictionaries(
    st.dictionaries(st.sampled_from("xyz"), st.sampled_from([1.0, 2.0]), max_size=2).map(monomial),
    st.sampled_from([-3.0, -1.0, 0.5, 2.0]),
    min_size=1,
    max_size=3,
)


@given(whole, whole)
def test_a_product_divided_by_one_of_its_sums_is_the_other(left: Polynomial[str], right: Polynomial[str]) -> None:
    product = multiply(left, right, ROUNDING, max_terms=99)
    if product:
        found = quotient(product, right, ROUNDING, max_terms=99)
        assert found is not None and found.keys() == left.keys()
        assert all(math.isclose(found[key], left[key], rel_tol=1e-9) for key in left)


@given(whole, whole)
def test_what_is_no_product_has_no_quotient(left: Polynomial[str], right: Polynomial[str]) -> None:
    found = quotient(left, right, ROUNDING, max_terms=9)
    if found is not None:
        assert math.isclose(
            value(multiply(found, right, ROUNDING, max_terms=99)), value(left), rel_tol=1e-9, abs_tol=1e-9
        )


def test_sums_without_a_quotient_end() -> None:
    x, y = (("x", 1.0),), (("y", 1.0),)
    assert quotient({x: 1.0}, {x: 1.0, y: 1.0}, ROUNDING, max_terms=9) is None
    assert quotient({x: math.inf}, {x: 1.0, y: 1.0}, ROUNDING, max_terms=9) is None
    assert quotient({x: 1.0}, {}, ROUNDING, max_terms=9) is None
