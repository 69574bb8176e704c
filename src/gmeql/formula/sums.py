"""Sums of products: the one normal form in which formulas are simplified, made one fraction, and compared.

A product is its bases with their exponents, a sum its products with their coefficients:

    sum = Σ coefficient · Π base ** exponent

What a base is, is the caller's matter: a tree, or the key of a part. Each caller says what counts as rounding: algebra
on exact constants keeps fifteen digits, the comparison of fitted formulas six.

>>> x, y = (("x", 1.0),), (("y", 1.0),)
>>> multiply({x: 1.0, y: 1.0}, {x: 1.0, y: -1.0}, Rounding(exponents=1e-14, terms=1e-12), max_terms=9)
{(('x', 2.0),): 1.0, (('y', 2.0),): -1.0}
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Base = TypeVar("Base", bound=Hashable)
Key = TypeVar("Key", bound=Hashable)

Powers = dict[Base, float]
"""A product: exponent of each base."""
Monomial = tuple[tuple[Base, float], ...]
"""The same as a key: pairs of base and exponent, in the order of the bases' texts."""
Polynomial = dict[Monomial[Base], float]
"""A sum: coefficient of each product; () is the constant."""


class TooManyTerms(ArithmeticError):
    """A sum outgrew the number of terms its caller allows."""


@dataclass(frozen=True)
class Rounding:
    """What counts as nothing.

    Attributes:
        exponents: an exponent up to this is 0.
        terms: coefficients that add up to at most this share of their sizes cancel.
    """

    exponents: float
    terms: float


# --- products -----------------------------------------------------------------------------------------------------


def merge_powers(powers: Powers[Base], more: Mapping[Base, float], rounding: Rounding) -> None:
    """Multiply a product, in place, by another one."""
    for base, exponent in more.items():
        powers[base] = powers.get(base, 0.0) + exponent
        if abs(powers[base]) <= rounding.exponents:
            del powers[base]


def monomial(powers: Mapping[Base, float]) -> Monomial[Base]:
    """The key of a product."""
    return tuple(sorted(powers.items(), key=lambda item: repr(item[0])))


def join(left: Monomial[Base], right: Monomial[Base], rounding: Rounding) -> Monomial[Base]:
    """The key of a product of two products."""
    powers = dict(left)
    merge_powers(powers, dict(right), rounding)
    return monomial({base: exponent for base, exponent in powers.items() if abs(exponent) > rounding.exponents})


def shared_powers(products: Sequence[Mapping[Base, float]]) -> Powers[Base]:
    """What can be taken out of all products: bases that all multiply by, or all divide by, as often as all do."""
    shared: Powers[Base] = {}
    for base in products[0]:
        exponents = [powers.get(base, 0.0) for powers in products]
        if min(exponents) > 0:
            shared[base] = min(exponents)
        elif max(exponents) < 0:
            shared[base] = max(exponents)
    return shared


# --- sums ---------------------------------------------------------------------------------------------------------


def add(
    parts: Iterable[Mapping[Key, float]], rounding: float = 0.0, *, max_terms: int | None = None
) -> dict[Key, float]:
    """The sum of several sums, in the order in which their terms appear; what cancels up to `rounding` is gone.

    Coefficients that overflowed stay, for the caller to see.
    """
    total: dict[Key, float] = {}
    size: dict[Key, float] = {}
    for part in parts:
        for key, coefficient in part.items():
            total[key] = total.get(key, 0.0) + coefficient
            size[key] = size.get(key, 0.0) + abs(coefficient)
        if max_terms is not None and len(total) > max_terms:
            raise TooManyTerms(f"more than {max_terms} terms")
    return {key: c for key, c in total.items() if abs(c) > rounding * size[key] or not math.isfinite(c)}


def scale(terms: Mapping[Key, float], factor: float) -> dict[Key, float]:
    """A sum times a number."""
    return {key: factor * coefficient for key, coefficient in terms.items()}


def multiply(
    left: Polynomial[Base], right: Polynomial[Base], rounding: Rounding, *, max_terms: int
) -> Polynomial[Base]:
    """The product of two sums, multiplied out; `TooManyTerms` where that grows past `max_terms`."""
    products = ({join(first, second, rounding): a * b} for first, a in left.items() for second, b in right.items())
    return add(products, rounding.terms, max_terms=max_terms)


def divide(polynomial: Polynomial[Base], powers: Mapping[Base, float], rounding: Rounding) -> Polynomial[Base]:
    """Every term of a sum divided by one product."""
    inverse = tuple((base, -exponent) for base, exponent in powers.items())
    return {join(key, inverse, rounding): coefficient for key, coefficient in polynomial.items()}


def quotient(
    above: Polynomial[Base], below: Polynomial[Base], rounding: Rounding, *, max_terms: int
) -> Polynomial[Base] | None:
    """What a sum is times `below`, by long division; None where it is no such product. No exponent is below 0.

    >>> x, y, r = (("x", 1.0),), (("y", 1.0),), Rounding(exponents=0.0, terms=1e-12)
    >>> quotient({(("x", 2.0),): 1.0, (("y", 2.0),): -1.0}, {x: 1.0, y: 1.0}, r, max_terms=9)
    {(('x', 1.0),): 1.0, (('y', 1.0),): -1.0}
    """
    if not below or not all(map(math.isfinite, (*above.values(), *below.values()))):
        return None
    bases = sorted({base for part in (above, below) for product in part for base, _ in product}, key=repr)

    def rank(product: Monomial[Base]) -> list[float]:
        powers = dict(product)
        return [powers.get(base, 0.0) for base in bases]

    leading = max(below, key=rank)
    inverse = tuple((base, -exponent) for base, exponent in leading)
    found: Polynomial[Base] = {}
    rest = above
    while rest:
        if len(found) == max_terms or len(rest) > max_terms:
            return None
        highest = max(rest, key=rank)
        term = join(highest, inverse, rounding)
        if term in found or any(exponent < 0 for _, exponent in term):
            return None
        found[term] = rest[highest] / below[leading]
        product = multiply(below, {term: -found[term]}, rounding, max_terms=max_terms)
        product[highest] = -rest[highest]  # up to rounding
        rest = add([rest, product], rounding.terms)
    return found
