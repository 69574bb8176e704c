"""Dimensions: products and powers of vectors, and the exact linear algebra behind dimensional analysis."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.knowledge.dimensions import NUMBER, Dimension, bases_of, failing_equation, is_product, matrix, reduced

small = st.integers(-3, 3)
dimensions = st.dictionaries(st.sampled_from(["kg", "m", "s"]), small, max_size=3).map(Dimension.of)


@given(dimensions, dimensions, small)
def test_products_add_and_powers_multiply_exponents(a: Dimension, b: Dimension, n: int) -> None:
    product = dict((a * b).powers)
    for base in ("kg", "m", "s"):
        assert product.get(base, 0) == dict(a.powers).get(base, 0) + dict(b.powers).get(base, 0)
    assert (a * b) ** n == a**n * b**n
    assert a / a == NUMBER and a**0 == NUMBER


@pytest.mark.parametrize(
    ("powers", "text"),
    [
        ({}, "1"),
        ({"s": -1}, "1/s"),
        ({"kg": 1, "m": 2, "s": -2}, "kg*m**2/s**2"),
        ({"m": Fraction(1, 2)}, "m**(1/2)"),
        ({"K": -1, "s": -2, "m": 1}, "m/(K*s**2)"),
        ({"m": 0}, "1"),
    ],
)
def test_text(powers: dict[str, int], text: str) -> None:
    assert str(Dimension.of(powers)) == text


@given(st.lists(dimensions, min_size=1, max_size=4), st.lists(small, min_size=4, max_size=4))
def test_a_product_of_powers_is_found_to_be_one(given_: list[Dimension], exponents: list[int]) -> None:
    target = NUMBER
    for dimension, exponent in zip(given_, exponents, strict=False):
        target = target * dimension**exponent
    assert is_product(target, tuple(given_))
    assert failing_equation(target, {str(i): d for i, d in enumerate(given_)}) is None


@given(st.lists(dimensions, min_size=1, max_size=4), dimensions)
def test_the_rank_decides(given_: list[Dimension], target: Dimension) -> None:
    bases = bases_of([*given_, target])
    without = np.array(matrix(given_, bases), float).reshape(len(bases), len(given_))
    with_target = np.array(matrix([*given_, target], bases), float).reshape(len(bases), len(given_) + 1)
    expected = not bases or np.linalg.matrix_rank(without) == np.linalg.matrix_rank(with_target)
    assert is_product(target, tuple(given_)) == expected
    assert (failing_equation(target, {str(i): d for i, d in enumerate(given_)}) is None) == expected


def test_the_failing_equations_are_named() -> None:
    columns = {"m": Dimension.of({"kg": 1}), "v": Dimension.of({"m": 1, "s": -1})}
    force = Dimension.of({"kg": 1, "m": 1, "s": -2})
    assert failing_equation(force, columns) == "for m: e(v) = 1 and for s: -1*e(v) = -2"


def test_reduced_form_of_a_matrix() -> None:
    rows, pivots = reduced([[Fraction(2), Fraction(4)], [Fraction(1), Fraction(3)]])
    assert rows == [[1, 0], [0, 1]] and pivots == [0, 1]
    contradiction, pivots = reduced([[Fraction(1), Fraction(1)], [Fraction(1), Fraction(2)]], 1)
    assert len(contradiction) == 2 and pivots == [0] and not contradiction[1][0]
