"""Dimensions as vectors of rational exponents, and the exact linear algebra of dimensional analysis.

A dimension is a product of powers of base units, kg¹ m² s⁻² for an energy. Products of quantities add the vectors and
powers multiply them, so every question about units is a linear one over the fractions, which are computed exactly.

Legend: `B` base units, `V` columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Rational

Row = list[Fraction]
_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Dimension:
    """A product of powers of base units; `powers` is sorted by name and holds no exponent 0.

    >>> print(Dimension.of({"kg": 1, "m": 2, "s": -2}))
    kg*m**2/s**2
    """

    powers: tuple[tuple[str, Fraction], ...] = ()

    @classmethod
    def of(cls, powers: Mapping[str, Rational | float]) -> Dimension:
        exact = {name: Fraction(power).limit_denominator(LARGEST_DENOMINATOR) for name, power in powers.items()}
        return cls(tuple(sorted((name, power) for name, power in exact.items() if power)))

    @property
    def is_one(self) -> bool:
        """Whether it is the dimension of a pure number."""
        return not self.powers

    def __mul__(self, other: Dimension) -> Dimension:
        if not other.powers:
            return self
        powers = dict(self.powers)
        for name, power in other.powers:
            powers[name] = powers.get(name, _ZERO) + power
        return Dimension(tuple(sorted((name, power) for name, power in powers.items() if power)))

    def __pow__(self, exponent: Fraction | int) -> Dimension:
        return Dimension(tuple((name, power * exponent) for name, power in self.powers) if exponent else ())

    def __truediv__(self, other: Dimension) -> Dimension:
        return self * other**-1

    def __str__(self) -> str:
        above = [_power_text(name, power) for name, power in self.powers if power > 0]
        below = [_power_text(name, -power) for name, power in self.powers if power < 0]
        text = "*".join(above) or "1"
        return text if not below else f"{text}/{below[0]}" if len(below) == 1 else f"{text}/({'*'.join(below)})"


LARGEST_DENOMINATOR = 60
"""Exponents of units are fractions with denominators up to this; physics knows halves and thirds."""
NUMBER = Dimension()
"""The dimension of a pure number."""


def _power_text(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    return f"{name}**{power}" if power.denominator == 1 else f"{name}**({power})"


def bases_of(dimensions: Sequence[Dimension]) -> tuple[str, ...]:
    """The base units that some dimensions use, sorted."""
    return tuple(sorted({name for dimension in dimensions for name, _ in dimension.powers}))


def matrix(dimensions: Sequence[Dimension], bases: Sequence[str]) -> list[Row]:
    """Exponents [B, V]: a row for each base unit, a column for each dimension."""
    powers = [dict(dimension.powers) for dimension in dimensions]
    return [[own.get(base, _ZERO) for own in powers] for base in bases]


def reduced(rows: Sequence[Row], n_pivots: int | None = None) -> tuple[list[Row], list[int]]:
    """The reduced row echelon form of a matrix, without rows of zeros in the first `n_pivots` columns, and its pivots.

    Rows that are zero there stay, behind the others, where they hold anything further right: they are equations that
    cannot be met.
    """
    left = [list(row) for row in rows]
    width = len(left[0]) if left else 0
    pivots: list[int] = []
    done: list[Row] = []
    for column in range(width if n_pivots is None else n_pivots):
        place = next((i for i, row in enumerate(left) if row[column]), None)
        if place is None:
            continue
        pivot = left.pop(place)
        pivot = [value / pivot[column] for value in pivot]
        left = [_without(row, pivot, column) for row in left]
        done = [_without(row, pivot, column) for row in done] + [pivot]
        pivots.append(column)
    return done + [row for row in left if any(row)], pivots


def _without(row: Row, pivot: Row, column: int) -> Row:
    factor = row[column]
    return [value - factor * other for value, other in zip(row, pivot, strict=True)] if factor else row


@lru_cache(maxsize=4096)
def is_product(target: Dimension, dimensions: tuple[Dimension, ...]) -> bool:
    """Whether powers of the dimensions multiply to the target's."""
    if target.is_one:
        return True
    bases = bases_of([*dimensions, target])
    rows, pivots = reduced(matrix([*dimensions, target], bases), len(dimensions))
    return len(rows) == len(pivots)


def failing_equation(target: Dimension, dimensions: Mapping[str, Dimension]) -> str | None:
    """The equation between exponents that no powers of the named dimensions meet, as text; None where all can be met.

    With `e(v)` the exponent of column v, each base unit gives one equation Σ e(v) d(v) = d(target). Where they
    contradict each other, a combination of them reads 0 = something (Fredholm's alternative); it is found by carrying
    the identity along.

    >>> failing_equation(Dimension.of({"kg": 1, "m": 1}), {"v": Dimension.of({"m": 1, "s": -1})})
    'for kg: 0 = 1'
    """
    named = list(dimensions)
    bases = bases_of([*dimensions.values(), target])
    rows = matrix([*dimensions.values(), target], bases)
    marked = [row + [_ONE if i == j else _ZERO for j in range(len(rows))] for i, row in enumerate(rows)]
    n = len(named)
    for row in reduced(marked, n)[0]:
        if any(row[:n]) or not row[n]:
            continue
        used = [i for i in range(len(bases)) if row[n + 1 + i]]
        return " and ".join(f"for {bases[i]}: {_equation(rows[i], named)}" for i in used)
    return None


def _equation(row: Row, named: Sequence[str]) -> str:
    terms = [f"{'' if power == 1 else f'{power}*'}e({name})" for name, power in zip(named, row, strict=False) if power]
    return f"{' + '.join(terms) or '0'} = {row[len(named)]}"
