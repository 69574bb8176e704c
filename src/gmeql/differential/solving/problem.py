"""A differential equation with its conditions, in a form that every part of the solution reads.

Unknown functions and their derivatives are symbols ("jets") here, so that an equation is plain algebra: its values,
and its slopes by each jet, come from `formula/canonical.py` without generated code.

Legend: `F` unknown functions, `d` variables, `P` points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.canonical import evaluate

if TYPE_CHECKING:
    import sympy

Orders = tuple[int, ...]
FloatArray = NDArray[Any]
"""Arrays of float64."""


@dataclass(frozen=True)
class Jet:
    """A derivative of an unknown function: how often by each variable; at a point, where `place` holds coordinates.

    `place` has None for each variable that is free, as on a face of a box.
    """

    function: int
    orders: Orders
    place: tuple[Any, ...] | None = None

    @cached_property
    def symbol(self) -> sympy.Symbol:
        """What stands for it in equations; no person's symbol has such a name."""
        import sympy

        where = "" if self.place is None else f" at {self.place}"
        return sympy.Symbol(f"[{self.function} {self.orders}{where}]", real=True)


@dataclass(frozen=True)
class Condition:
    """`residual = 0` at one or several places; `given` is how it was written.

    The residual holds symbols of jets and of the variables that are free on its face. `measure` takes the place of
    values that only a function of NumPy arrays knows: it is subtracted from the residual.
    """

    residual: Any
    jets: tuple[Jet, ...]
    face: tuple[Any, ...]
    given: str
    measure: Callable[..., Any] | None = None
    rounded: bool = False
    """Whether a number in it was given with all digits of a float, so that it can be met to rounding only."""


@dataclass(frozen=True)
class Problem:
    """Residuals that vanish on a box, and conditions."""

    variables: tuple[sympy.Symbol, ...]
    names: tuple[str, ...]
    """Names of the unknown functions."""
    residuals: tuple[Any, ...]
    """Algebra over variables, parameters and jets."""
    jets: tuple[Jet, ...]
    conditions: tuple[Condition, ...]
    box: tuple[tuple[float, float], ...]
    parameters: tuple[sympy.Symbol, ...] = ()
    parameter_box: tuple[tuple[float, float], ...] = ()
    given_symbols: Mapping[Any, Any] = field(default_factory=dict)
    """The person's own symbols, for what is given back."""
    notes: tuple[str, ...] = ()

    @cached_property
    def slopes(self) -> tuple[dict[Jet, Any], ...]:
        """Derivative of each residual by each jet that it holds."""
        return tuple(
            {jet: r.diff(jet.symbol) for jet in self.jets if jet.symbol in r.free_symbols} for r in self.residuals
        )

    @cached_property
    def orders(self) -> tuple[int, ...]:
        """Highest order of each unknown function."""
        return tuple(
            max((sum(jet.orders) for jet in self.jets if jet.function == i), default=0) for i in range(len(self.names))
        )

    @property
    def is_ordinary(self) -> bool:
        """Whether there is one variable."""
        return len(self.variables) == 1

    def domain_text(self, box: tuple[tuple[float, float], ...]) -> str:
        """Where a solution was followed, for people."""
        sides = zip(self.variables, box, strict=True)
        return ", ".join(f"{low:.4g} <= {v.name} <= {high:.4g}" for v, (low, high) in sides)

    @cached_property
    def highest(self) -> tuple[Jet, ...]:
        """The highest derivative of each function of one variable."""
        return tuple(Jet(i, (order,)) for i, order in enumerate(self.orders))

    def with_numbers(self, values: Mapping[Any, Any]) -> Problem:
        """The problem with numbers for its parameters."""
        from dataclasses import replace

        conditions = tuple(
            replace(
                c,
                residual=c.residual.subs(values),
                jets=tuple(replace(j, place=_substituted(j.place, values)) for j in c.jets),
            )
            for c in self.conditions
        )
        renamed = tuple(
            replace(
                new,
                residual=new.residual.xreplace({a.symbol: b.symbol for a, b in zip(old.jets, new.jets, strict=True)}),
            )
            for old, new in zip(self.conditions, conditions, strict=True)
        )
        residuals = tuple(r.subs(values) for r in self.residuals)
        return replace(self, residuals=residuals, conditions=renamed, parameters=(), parameter_box=())


def _substituted(place: tuple[Any, ...] | None, values: Mapping[Any, Any]) -> tuple[Any, ...] | None:
    return None if place is None else tuple(p if p is None else p.subs(values) for p in place)


def numbers(expression: Any, columns: Mapping[str, Any], length: int) -> FloatArray:
    """Values of an expression, one for each point."""
    return np.broadcast_to(evaluate(expression, columns), (length,))


def point_columns(problem: Problem, points: FloatArray) -> dict[str, FloatArray]:
    """The coordinates of points [P, d] by the names of variables (and parameters, which follow them)."""
    symbols = (*problem.variables, *problem.parameters)
    return {symbol.name: points[:, k] for k, symbol in enumerate(symbols)}


def weigh(
    residual: Any, slopes: Mapping[Jet, Any], columns: Mapping[str, Any], length: int
) -> tuple[FloatArray, dict[Jet, FloatArray], FloatArray]:
    """Values of a residual [P], its slopes by its jets, and the size of the terms that it is made of [P]."""
    values = np.array(numbers(residual, columns, length))
    factors = {jet: numbers(slope, columns, length) for jet, slope in slopes.items()}
    terms = [factor * columns[jet.symbol.name] for jet, factor in factors.items()]
    rest = values - sum(terms, start=np.zeros(length))
    return values, factors, sum((np.abs(term) for term in terms), start=np.abs(rest))
