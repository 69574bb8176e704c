"""Polynomials of several columns: their monomials, values and short forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.search.direct.fractions.polynomials import MonomialTable, divided, monomials, term_by_term, values, written

NAMES = ("x", "y")


def text(polynomial: dict[tuple[int, ...], float]) -> str:
    return str(Expression(written(polynomial), NAMES[: len(next(iter(polynomial)))]))


@pytest.mark.parametrize(("n_columns", "degree"), [(1, 6), (2, 4), (5, 2)])
def test_number_of_monomials(n_columns: int, degree: int) -> None:
    found = monomials(n_columns, degree)
    assert len(found) == len(set(found)) == math.comb(n_columns + degree, degree)
    assert len(monomials(n_columns, degree, box=True)) == (degree + 1) ** n_columns
    assert found[0] == (0,) * n_columns


def test_values_are_products_of_powers() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    terms = monomials(3, 4)
    slow = np.array([[math.prod(x**e for x, e in zip(row, term, strict=True)) for term in terms] for row in X])
    assert np.allclose(values(terms, X), slow, rtol=1e-13)


def test_factors_are_found() -> None:
    assert text({(3,): 1.0, (2,): 3.0, (1,): 3.0, (0,): 1.0}) == "(x + 1)**3"
    assert text({(4, 4): 2.5, (4, 0): 2.5, (0, 4): 2.5, (0, 0): 2.5}) in (
        "2.5*(x**4 + 1)*(y**4 + 1)",
        "2.5*(y**4 + 1)*(x**4 + 1)",
    )


def test_a_shift_takes_terms_away() -> None:
    assert text({(4,): 1.0, (3,): -4.0, (2,): 6.0, (1,): -4.0, (0,): 3.5}) == "2.5 + (x - 1)**4"


def test_what_has_no_shorter_form_stays() -> None:
    assert text({(2,): 1.0, (0,): math.e}) == "x**2 + 2.7183"


@pytest.mark.parametrize("seed", range(10))
def test_every_form_has_the_same_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    terms = monomials(2, 3)
    chosen = [terms[i] for i in rng.choice(len(terms), 4, replace=False)]
    polynomial = {m: float(c) for m, c in zip(chosen, rng.integers(1, 5, 4), strict=True)}
    X = rng.uniform(-2, 2, (30, 2))
    slow = sum(c * X[:, 0] ** m[0] * X[:, 1] ** m[1] for m, c in polynomial.items())
    for form in (written, term_by_term):
        assert np.allclose(Expression(form(polynomial), NAMES)(X), slow, rtol=1e-9, atol=1e-9)


def test_division_gives_the_whole_part_and_the_rest() -> None:
    x, y, one = (1, 0), (0, 1), (0, 0)
    below = {(1, 1): 1.0, x: 1.0, one: 2.08}  # (x + 3 y + 0.5) times this, and 1.7
    above = {(2, 1): 1.0, (1, 2): 3.0, (1, 1): 3.5, (2, 0): 1.0, x: 2.58, y: 6.24, one: 2.74}
    quotients = [q for q, rest in divided(above, below) if len(rest) == 1 and rest[one] == pytest.approx(1.7)]
    assert any(q == pytest.approx({x: 1.0, y: 3.0, one: 0.5}) for q in quotients)


def test_division_without_a_whole_part_has_none() -> None:
    assert divided({(1,): 1.0}, {(2,): 1.0, (0,): 1.0}) == []
    assert divided({(2,): 2.0, (1,): 2.0}, {(1,): 1.0, (0,): 1.0}) == []  # nothing is left: one polynomial


def test_a_table_of_monomials_has_their_values(rng: np.random.Generator) -> None:
    X = rng.uniform(-2, 2, (30, 3))
    terms = monomials(3, 4)
    rows = np.empty((len(terms), 20))
    MonomialTable(X).write(terms, rows)
    np.testing.assert_allclose(rows.T, values(terms, X[:20]), rtol=1e-14)
