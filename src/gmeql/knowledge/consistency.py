"""Whether a formula keeps the units: exact dimensions of every part, and the units its constants carry.

Sums want terms of one dimension, functions want pure numbers, products add exponents and powers multiply them. With the
dimension of each constant as an unknown, every such want is a linear equation between exponents. Constants are pure
numbers unless the user allows them units; then the equations need only hold up to products of powers of those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gmeql.formula.nodes import Call, Constant, Leaf, Node, Variable, exponent_of, fold, leaves, used_columns
from gmeql.formula.simplify import simplify
from gmeql.knowledge.dimensions import (
    LARGEST_DENOMINATOR,
    NUMBER,
    Dimension,
    bases_of,
    failing_equation,
    is_product,
    matrix,
    reduced,
)

ANY_UNIT = "any"
"""Stands for constants that may carry whatever unit the formula needs."""
_NEAR = 1e-9
"""How near to a fraction an exponent must be to count as it; fitted exponents of several parts sum up to within this."""
_SAME = ("id", "neg", "abs")


@dataclass(frozen=True)
class _Form:
    """The dimension of a part: what its columns give, times powers of the dimensions of its constants (by number)."""

    dimension: Dimension = NUMBER
    unknowns: tuple[tuple[int, Fraction], ...] = ()

    def times(self, other: _Form, sign: int = 1) -> _Form:
        powers = dict(self.unknowns)
        for number, power in other.unknowns:
            powers[number] = powers.get(number, Fraction(0)) + sign * power
        return _Form(self.dimension * other.dimension**sign, tuple((n, p) for n, p in powers.items() if p))

    def power(self, exponent: Fraction) -> _Form:
        return _Form(self.dimension**exponent, tuple((n, p * exponent) for n, p in self.unknowns))


@dataclass(frozen=True)
class UnitRules:
    """The units of a table: those of its columns, of its target, and what constants may carry.

    `allowed` are units that constants may carry, with all products of their powers; None allows any.
    """

    columns: tuple[Dimension, ...]
    target: Dimension = NUMBER
    allowed: tuple[Dimension, ...] | None = ()

    def check_target(self, names: Sequence[str]) -> None:
        """Raise a ValueError with the equation that fails where the target's unit cannot be made of the columns'."""
        if self.allowed is None:
            return
        given = dict(zip(names, self.columns, strict=True))
        given |= {f"constant in {unit}": unit for unit in self.allowed}
        equation = failing_equation(self.target, given)
        if equation is not None:
            raise ValueError(
                f"target_units={str(self.target)!r} cannot be made of the columns "
                f"{', '.join(f'{name} [{unit}]' for name, unit in given.items())}: with e(...) the exponent of a column, "
                f"no exponents meet the equations {equation}. Mend the units, or let constants carry some with constant_units="
            )

    def keeps(self, root: Node) -> bool:
        """Whether the formula keeps the units, for some units of its constants among those that they may carry."""
        return self.allowed is None or all(self._is_allowed(form.dimension) for form in _equations(root, self))

    def is_number(self, root: Node) -> bool:
        """Whether a part of a formula is a pure number, up to units that constants may carry."""
        return UnitRules(self.columns, NUMBER, self.allowed).keeps(root)

    def unit_of(self, part: Node) -> Dimension:
        """The unit of a part of a formula, its constants pure numbers."""
        return _equations(part, UnitRules(self.columns))[-1].dimension

    def is_sound(self, part: Node) -> bool:
        """Whether a part of a formula breaks no units inside, whatever its own."""
        return self.allowed is None or all(self._is_allowed(form.dimension) for form in _equations(part, self)[:-1])

    def held_exponents(self, root: Node) -> frozenset[int]:
        """Numbers of the constants that must not be fitted: exponents of what carries a unit."""
        held: list[int] = []
        if self.allowed is not None:
            _equations(root, self, held)
        return frozenset(held)

    def units_of_constants(self, root: Node) -> tuple[Dimension | None, ...]:
        """The unit of each constant, from left to right as in `Expression.constants`; None where none fits.

        Of all units that make the equations hold, those that leave most constants pure numbers.
        """
        n = sum(isinstance(leaf, Constant) for leaf in leaves(root))
        if self.allowed == ():
            return (NUMBER,) * n if self.keeps(root) else (None,) * n
        equations = _equations(root, self)
        bases = bases_of([form.dimension for form in equations])
        given = matrix([form.dimension for form in equations], bases)
        rows = [
            [dict(form.unknowns).get(i, Fraction(0)) for i in range(n)] + [-given[b][e] for b in range(len(bases))]
            for e, form in enumerate(equations)
        ]
        done, pivots = reduced(rows, n)
        found: list[Dimension | None] = [NUMBER] * n  # what the equations leave open is a pure number
        for row, pivot in zip(done, pivots, strict=False):
            found[pivot] = Dimension.of(dict(zip(bases, row[n:], strict=True)))
        return tuple(found)

    def _is_allowed(self, dimension: Dimension) -> bool:
        if all(abs(power) <= _NEAR for _, power in dimension.powers) or not self.allowed:
            return all(abs(power) <= _NEAR for _, power in dimension.powers)
        return is_product(dimension, self.allowed)

    def to_dict(self) -> dict[str, object]:
        """Plain data: units as text."""
        return {
            "columns": [str(unit) for unit in self.columns],
            "target": str(self.target),
            "allowed": None if self.allowed is None else [str(unit) for unit in self.allowed],
        }


def _equations(root: Node, rules: UnitRules, held: list[int] | None = None) -> list[_Form]:
    """Forms that must be pure numbers: differences of terms, arguments of functions, last the formula over its target.

    `held` takes in the numbers of the exponents of what is no pure number.
    """
    wanted: list[_Form] = []
    counter = iter(range(root.size))

    def leaf(node: Leaf) -> _Form:
        if isinstance(node, Variable):
            return _Form(rules.columns[node.index])
        return _Form(NUMBER, ((next(counter), Fraction(1)),))

    def call(node: Call, args: list[_Form]) -> _Form:
        name = node.operator
        if name in _SAME:
            return args[0]
        if name in ("add", "sub"):
            wanted.extend(arg.times(args[0], -1) for arg in args[1:])
            return args[0]
        if name == "mul":
            product = args[0]
            for arg in args[1:]:
                product = product.times(arg)
            return product
        if name == "div":
            return args[0].times(args[1], -1)
        exponent = _exponent(node)
        if exponent is not None:
            exact = Fraction(exponent).limit_denominator(LARGEST_DENOMINATOR)
            if held is not None and name == "pow" and not args[0].dimension.is_one:
                held.extend(number for number, _ in args[1].unknowns)
            return args[0].power(exact if abs(float(exact) - exponent) <= _NEAR else Fraction(exponent))
        wanted.extend(args)
        return _Form()

    whole = fold(root, leaf, call)
    wanted.append(whole.times(_Form(rules.target), -1))
    return wanted


def _exponent(node: Call) -> float | None:
    """The exponent of a power, also where it is written as a fraction: x**(3/2); None for anything else."""
    found = exponent_of(node.operator, node.args)
    if found is not None or node.operator != "pow" or used_columns(node.args[1]):
        return found
    value = simplify(node.args[1])
    return value.value if isinstance(value, Constant) else None


def rules_from_dict(data: Mapping[str, object]) -> UnitRules:
    """What `UnitRules.to_dict` gave."""
    from gmeql.knowledge.units import read_unit

    columns, allowed = data["columns"], data["allowed"]
    assert isinstance(columns, list)
    return UnitRules(
        tuple(read_unit(unit) for unit in columns),
        read_unit(data["target"]),
        None if allowed is None else tuple(read_unit(unit) for unit in allowed),  # type: ignore[attr-defined]
    )
