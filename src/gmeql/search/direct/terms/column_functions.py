"""Functions of single columns that terms are made of: powers, plain functions, functions with a constant to fit.

*Plain* ones stand as people write them, without constants to fit: x**2, sqrt(x), exp(-abs(x)), cos(log(x + 1)). *Tuned* ones have
an inner constant, taken from a coarse grid: exp(-0.3 x), x**0.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, calls

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LibraryConfig:
    """Numbers of the library. Grids are relative to a column's size, so that they mean the same in every unit."""

    powers: tuple[float, ...] = (1, 2, 3, 4, 5, 6, -1, -2, -3, -4)
    roots: tuple[float, ...] = (1 / 2, 1 / 3, 3 / 2, 2 / 3, -1 / 2, 1 / 4)
    mixed: tuple[float, ...] = (1, 2, 3, -1, -2, 1 / 2, 1 / 3, -1 / 2)  # exponents inside products
    exponents: tuple[float, ...] = (0.2, 0.8, 1.4, 2.6, -0.4, -1.4, -2.6, -4.5)  # tuned ones
    rates: tuple[float, ...] = (0.1, 0.3, 1, 2, 4, 8)  # of exponentials, over a column's range
    offsets: tuple[float, ...] = (0.03, 0.1, 0.3, 1, 3)  # in log(x + a), sqrt(x + a), 1/(x + a), over its size
    turns: float = 10.0  # of the fastest wave over a column's range
    turns_step: float = 0.25  # between two frequencies: a fit converges from half of that
    slow: tuple[float, ...] = ()  # turns over a column's size of sin(a x) and cos(a x), which begin at zero
    bumps: int = 8  # places of exp(-(x - a)**2) over a column's range,
    steps: int = 0  # and of tanh(b*(x - a))
    most_terms: int = 16_000
    kinds: tuple[str, ...] = ()  # of plain functions; all where none are named


LIBRARY = LibraryConfig()
PLAIN_TERMS = LibraryConfig(exponents=(), rates=(), offsets=(), turns=0, bumps=0)
"""Without functions that have constants to fit."""
BRIEF_TERMS = LibraryConfig(
    powers=(1, -1, 2, 3, -2), roots=(1 / 2,), mixed=(1, -1, 2, 1 / 2, -2), exponents=(), rates=(), offsets=(), turns=0,
    bumps=0, kinds=("log", "sin x", "cos x", "exp x", "exp -x", "gauss"),
)  # fmt: skip
"""The plainest of those: of many columns they leave room for products."""


class ColumnFunction(NamedTuple):
    """A function of a column: the part it plays, its kind, its formula and the operators of that."""

    group: str
    kind: str
    node: Node
    operators: set[str]

    @classmethod
    def of(cls, group: str, kind: str, node: Node) -> ColumnFunction:
        return cls(group, kind, node, {call.operator for call in calls(node)})


def functions_of_column(column: int, x: FloatArray, numbers: LibraryConfig) -> Iterator[ColumnFunction]:
    """Functions of a column."""
    v = Variable(column)
    low, high = float(x.min()), float(x.max())
    if not high > low:
        return
    # a library is made many times of the same columns, for other rows or more terms
    yield from _without_constants(column, low > 0, bool((x != 0).all()), replace(numbers, most_terms=0))
    base: Node = v if low > 0 else build("abs", v)
    yield from (ColumnFunction.of("exponent", "pow", build("pow", base, Constant(p))) for p in numbers.exponents)
    yield from (ColumnFunction.of("tuned", kind, node) for kind, node in _tuned(v, base, low, high, numbers))
    yield from (ColumnFunction.of("wave", "wave", node) for node in _waves(v, high - low, numbers))


@lru_cache(maxsize=256)
def _without_constants(
    column: int, is_positive: bool, has_no_zero: bool, numbers: LibraryConfig
) -> list[ColumnFunction]:
    """Powers and plain functions of a column."""
    v = Variable(column)
    base: Node = v if is_positive else build("abs", v)
    found = []
    for exponents, root in ((numbers.powers, v), (numbers.roots, base)):
        for p in exponents:
            if p > 0 or has_no_zero:
                group = "mixed" if p in numbers.mixed else "power"
                found.append(ColumnFunction.of(group, f"x**{p:g}", build("pow", root, Constant(float(p)))))
    named = ((kind, node) for kind, node in _plain(v, base) if not numbers.kinds or kind in numbers.kinds)
    return found + [ColumnFunction.of("plain", kind, node) for kind, node in named]


def _plain(v: Node, base: Node) -> Iterator[tuple[str, Node]]:
    """Functions without constants of their own, as people write them."""
    shifted = build("add", base, Constant(1.0))
    if base != v:
        yield "abs", base
        yield "x*abs", build("mul", v, base)
    else:
        yield "log", build("log", v)
    for name, node in (
        ("x", v),
        ("log(x + 1)", build("log", shifted)),
        ("x**2", build("square", v)),
        ("2x", build("mul", Constant(2.0), v)),
        ("sqrt x", build("sqrt", base)),
    ):
        for outer in ("sin", "cos"):
            yield f"{outer} {name}", build(outer, node)
    yield "log+1", build("log", shifted)
    yield "exp -", build("exp", build("neg", base))
    yield "exp x", build("exp", v)
    yield "exp -x", build("exp", build("neg", v))
    yield "gauss", build("exp", build("neg", build("square", v)))
    yield "tanh x", build("tanh", v)
    yield "inv+1", build("inv", shifted)
    yield "lorentz", build("inv", build("add", build("square", v), Constant(1.0)))
    yield "sqrt+1", build("sqrt", build("add", build("square", v), Constant(1.0)))


def _tuned(v: Node, base: Node, low: float, high: float, numbers: LibraryConfig) -> Iterator[tuple[str, Node]]:
    """Functions with an inner constant on a grid."""
    span, size = high - low, max(abs(low), abs(high))

    def times(a: float, node: Node) -> Node:
        return build("mul", Constant(a), node)

    def plus(node: Node, a: float) -> Node:
        return build("add", node, Constant(a))

    for rate in numbers.rates:
        for sign in (-1.0, 1.0):
            yield "exp", build("exp", times(sign * rate / span, v))
        if base != v:
            yield "exp abs", build("exp", times(-rate / size, base))
        else:
            yield "exp inv", build("exp", build("div", Constant(-rate * low), v))
        yield "exp square", build("exp", times(-((rate / size) ** 2), build("square", v)))
        yield "tanh", build("tanh", times(rate / size, v))
    for offset in numbers.offsets:
        a = offset * size
        yield "log+", build("log", plus(base, a))
        yield "inv+", build("inv", plus(base, a))
        yield "hill2", build("inv", plus(build("square", v), a**2))
        yield "sqrt+", build("sqrt", plus(v, a - min(low, 0.0)))
        for finer in (1.0, 3.0**0.5):  # a fourth power falls off fast
            yield "hill4", build("inv", plus(build("pow4", v), (finer * a) ** 4))
    for turns in numbers.slow:
        for name in ("sin", "cos"):
            yield name, build(name, times(2 * np.pi * turns / size, v))
    for place in np.linspace(low, high, numbers.steps):
        for rate in (2.0, 5.0, 12.0):
            yield "step bump", build("tanh", times(rate / span, plus(v, -float(place))))
    for place in np.linspace(low, high, numbers.bumps):
        yield "bump", build("exp", times(-((numbers.bumps / span) ** 2), build("square", plus(v, -float(place)))))


def _waves(v: Node, span: float, numbers: LibraryConfig) -> Iterator[Node]:
    """Sines and cosines of evenly spaced frequencies."""
    step = 2 * np.pi * numbers.turns_step / span
    for i in range(1, round(numbers.turns / numbers.turns_step) + 1):
        for phase in (0.0, np.pi / 2):
            # not built: a phase of zero stays, as a constant to fit
            yield Call("sin", (Call("add", (build("mul", Constant(i * step), v), Constant(phase))),))
