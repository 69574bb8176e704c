"""Polynomials of several columns: which monomials, their values, and polynomials written short.

A monomial is a tuple of whole exponents, one for each column; a polynomial maps monomials to coefficients.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gmeql.formula.nodes import Constant, Node, Variable, build, tree_complexity
from gmeql.search.direct.table import FloatArray

Monomial = tuple[int, ...]
Polynomial = dict[Monomial, float]

LARGEST_DENOMINATOR = 1000
"""Coefficients within rounding of a fraction with at most this denominator are taken for it when factors are sought."""
NEAR_FRACTION = 1e-10
"""Relative distance that counts as rounding there: one number in ten thousand is so near to a fraction by chance."""
LARGEST_FACTORED = 60
"""Terms of a polynomial up to which factors are sought."""


def monomials(n_columns: int, degree: int, *, box: bool = False) -> list[Monomial]:
    """Monomials of at most this degree, of all columns together or (`box`) of each; the plainest first."""
    return list(_monomials(n_columns, degree, box))


@lru_cache(maxsize=256)
def _monomials(n_columns: int, degree: int, box: bool) -> tuple[Monomial, ...]:
    found = itertools.product(range(degree + 1), repeat=n_columns)
    return tuple(sorted((m for m in found if box or sum(m) <= degree), key=lambda m: (sum(m), [-e for e in m])))


def values(terms: list[Monomial], X: FloatArray) -> FloatArray:
    """Monomials on rows X [N, V] -> [N, M]."""
    highest = max(max(term, default=0) for term in terms)
    powers = [np.ones_like(X)]
    for _ in range(highest):
        powers.append(powers[-1] * X)
    result = np.ones((len(X), len(terms)))
    for m, term in enumerate(terms):
        for j, exponent in enumerate(term):
            if exponent:
                result[:, m] *= powers[exponent][:, j]
    return result


class MonomialTable:
    """Values of monomials on rows X [N, V], each a product of one before it and a column, worked out once."""

    def __init__(self, X: FloatArray) -> None:
        self._columns = np.ascontiguousarray(X.T)
        self._known: dict[Monomial, FloatArray] = {(0,) * X.shape[1]: np.ones(len(X))}

    def of(self, term: Monomial) -> FloatArray:
        """One monomial [N]."""
        found = self._known.get(term)
        if found is None:
            last = max(j for j, exponent in enumerate(term) if exponent)
            lower = (*term[:last], term[last] - 1, *term[last + 1 :])
            found = self._known[term] = self.of(lower) * self._columns[last]
        return found

    def write(self, terms: Sequence[Monomial], rows: FloatArray) -> None:
        """Several of them into `rows` [M, n], as many of each as there is room for."""
        n = rows.shape[1]
        for row, term in zip(rows, terms, strict=True):
            row[:] = self.of(term)[:n]


def written(polynomial: Polynomial) -> Node:
    """The polynomial in the shortest of three forms: term by term, in factors, around a shifted column."""
    forms = [term_by_term(polynomial)]
    if 1 < len(polynomial) <= LARGEST_FACTORED:
        factored = _in_factors(polynomial)
        forms += [] if factored is None else [factored]
        forms += _shifted(polynomial)
    return min(forms, key=tree_complexity)


def term_by_term(polynomial: Polynomial) -> Node:
    """The polynomial as a plain sum."""
    if not polynomial:
        return Constant(0.0)
    return build("add", *(build("mul", Constant(c), power_product(m)) for m, c in polynomial.items()))


def power_product(term: Monomial) -> Node:
    """A monomial as a formula."""
    return build(
        "mul", *(build("pow", Variable(j), Constant(float(e))) for j, e in enumerate(term) if e), Constant(1.0)
    )


def _in_factors(polynomial: Polynomial) -> Node | None:
    """The product of factors with rational coefficients, or None where there is one factor only."""
    import sympy

    fractions = _as_fractions(polynomial)
    if fractions is None:
        return None
    size, exact = fractions
    columns = sympy.symbols(f"x:{len(next(iter(polynomial)))}")
    terms = {m: sympy.Rational(f.numerator, f.denominator) for m, f in exact.items()}
    lead, factors = sympy.Poly.from_dict(terms, *columns).factor_list()
    if len(factors) == 1 and factors[0][1] == 1:
        return None
    product: list[Node] = [Constant(size * float(lead))]
    for factor, exponent in factors:
        inner = {tuple(map(int, m)): float(c) for m, c in factor.terms()}
        product.append(build("pow", written(inner) if exponent > 1 else term_by_term(inner), Constant(float(exponent))))
    return build("mul", *product)


def _as_fractions(polynomial: Polynomial) -> tuple[float, dict[Monomial, Fraction]] | None:
    """A factor, and the coefficients over it as small fractions; None where they are none."""
    for size in (1.0, *polynomial.values()):
        found = {m: Fraction(c / size).limit_denominator(LARGEST_DENOMINATOR) for m, c in polynomial.items()}
        near = all(
            abs(float(f) - polynomial[m] / size) <= NEAR_FRACTION * abs(polynomial[m] / size) for m, f in found.items()
        )
        if near:
            return size, found
    return None


def _shifted(polynomial: Polynomial) -> list[Node]:
    """Forms in x - s for a column x, where that takes terms away: x**2 - 2*x + 3 is (x - 1)**2 + 2."""
    forms = []
    for j in range(len(next(iter(polynomial)))):
        degree = max(m[j] for m in polynomial)
        lead = {m: c for m, c in polynomial.items() if m[j] == degree}
        if degree < 2 or len(lead) != 1:
            continue
        ((top, coefficient),) = lead.items()
        below = polynomial.get((*top[:j], degree - 1, *top[j + 1 :]), 0.0)
        if below == 0.0:
            continue
        shift = -below / (degree * coefficient)
        around = _substituted(polynomial, j, shift)
        if len(around) < len(polynomial):
            shifted = build("sub", Variable(j), Constant(shift))
            columns = [shifted if i == j else Variable(i) for i in range(len(top))]
            forms.append(
                build(
                    "add",
                    *(
                        build(
                            "mul",
                            Constant(c),
                            *(build("pow", columns[i], Constant(float(e))) for i, e in enumerate(m) if e),
                            Constant(1.0),
                        )
                        for m, c in around.items()
                    ),
                )
            )
    return forms


def divided(above: Polynomial, below: Polynomial) -> list[tuple[Polynomial, Polynomial]]:
    """Quotients q and remainders r with above = q * below + r, by the orders of terms that lead to different ones.

    Terms are ordered by degree, and by the degree of each column first; coefficients that cancel to rounding are dropped.
    """
    found = []
    for first in (None, *range(len(next(iter(below))))):

        def rank(m: Monomial, first: int | None = first) -> tuple[int, int, Monomial]:
            return 0 if first is None else m[first], sum(m), m

        lead = max(below, key=rank)
        rest, sizes, quotient = dict(above), {m: abs(c) for m, c in above.items()}, Polynomial()
        while divisible := [m for m in rest if all(e >= d for e, d in zip(m, lead, strict=True))]:
            top = max(divisible, key=rank)
            shift = tuple(e - d for e, d in zip(top, lead, strict=True))
            quotient[shift] = factor = rest[top] / below[lead]
            for m, c in below.items():
                place = tuple(e + d for e, d in zip(m, shift, strict=True))
                rest[place] = rest.get(place, 0.0) - factor * c
                sizes[place] = max(sizes.get(place, 0.0), abs(factor * c))
            rest = {m: c for m, c in rest.items() if m != top and abs(c) > NEAR_FRACTION * sizes[m]}
        if quotient and rest and (quotient, rest) not in found:
            found.append((quotient, rest))
    return found


def _substituted(polynomial: Polynomial, j: int, shift: float) -> Polynomial:
    """Coefficients in t = x_j - shift; what is left of cancelled terms is dropped."""
    found: dict[Monomial, list[float]] = {}
    for m, c in polynomial.items():
        for k in range(m[j] + 1):
            part = c * math.comb(m[j], k) * shift ** (m[j] - k)
            found.setdefault((*m[:j], k, *m[j + 1 :]), []).append(part)
    sums = {m: (math.fsum(parts), max(map(abs, parts))) for m, parts in found.items()}
    return {m: total for m, (total, largest) in sums.items() if abs(total) > NEAR_FRACTION * largest}
