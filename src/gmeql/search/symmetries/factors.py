"""Factors of one column: y = g(x) times a function of the other columns, read off the slopes of a surrogate.

Then ∂y/∂x / y = g'/g is a function of x alone. With g = φ₁^e₁ φ₂^e₂ of plain functions φ that is linear in the exponents:

    ∂y/∂x φ₁ φ₂ = y (e₁ φ₁' φ₂ + e₂ φ₁ φ₂')

which has no poles, so that every pair of functions is tried by one small fit and its exponents are read as whole numbers
(halves where a function is positive). Legend: `N` rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Call, Constant, Node, Variable, build, transform
from gmeql.search.symmetries.config import SYMMETRIES
from gmeql.search.symmetries.surrogate import typical

FloatArray = NDArray[np.float64]
_X = Variable(0)
_Applies = Callable[[FloatArray], bool]


@dataclass(frozen=True)
class _Part:
    """A plain function of a column with its derivative, and of which columns it may be one."""

    node: Node
    function: Callable[[FloatArray], FloatArray]
    derivative: Callable[[FloatArray], FloatArray]
    applies: _Applies


def _wave(x: FloatArray) -> bool:
    return bool(np.ptp(x) > SYMMETRIES.least_angle_range)


def _wave_of(name: str, rate: float) -> _Part:
    node = build(name, _X if rate == 1.0 else build("mul", Constant(rate), _X))
    if name == "sin":
        return _Part(node, lambda x: np.sin(rate * x), lambda x: rate * np.cos(rate * x), _wave)
    return _Part(node, lambda x: np.cos(rate * x), lambda x: -rate * np.sin(rate * x), _wave)


_PARTS: tuple[_Part, ...] = (
    _Part(_X, lambda x: x, np.ones_like, lambda x: bool((x != 0).all())),
    _Part(build("exp", _X), np.exp, np.exp, lambda x: bool(np.abs(x).max() < SYMMETRIES.largest_exponential)),
    _Part(
        build("exp", build("pow", _X, Constant(2.0))),
        lambda x: np.exp(x**2),
        lambda x: 2 * x * np.exp(x**2),
        lambda x: bool((x**2).max() < SYMMETRIES.largest_exponential),
    ),
    _Part(build("log", _X), np.log, lambda x: 1 / x, lambda x: bool((x > 0).all())),
    *(_wave_of(name, rate) for rate in (1.0, 0.5, 2.0) for name in ("cos", "sin")),
    *(
        _Part(
            build("add", Constant(1.0), build("mul", Constant(sign), build("pow", _X, Constant(power)))),
            lambda x, sign=sign, power=power: 1 + sign * x**power,  # type: ignore[misc]
            lambda x, sign=sign, power=power: sign * power * x ** (power - 1),  # type: ignore[misc]
            lambda x: bool(np.ptp(x) > 0),
        )
        for power in (1.0, 2.0)
        for sign in (1.0, -1.0)
    ),
)
"""Functions φ whose powers may stand before the rest, the plainest first."""
_PLAINEST = {build(name, _X) for name in ("cos", "sin", "exp", "log")}


def factors_of_column(x: FloatArray, slope: FloatArray, target: FloatArray) -> Iterator[tuple[float, Node]]:
    """Functions g of a column `Variable(0)`, each with how far the slopes [N] are from those of g times something else.

    Powers of the column and the plainest functions first. Others, and pairs, bend to much: only those that are far better.
    """
    with np.errstate(all="ignore"):
        parts = [(part, part.function(x), part.derivative(x)) for part in _PARTS if part.applies(x)]
        parts = [(part, f, d) for part, f, d in parts if np.isfinite(f).all() and np.isfinite(d).all()]
        best = math.inf
        others: list[tuple[float, Node]] = []
        for part, f, d in parts:
            for away, (exponent,) in _fitted([f], slope * f, [target * d]):
                found = away, _power(part.node, exponent)
                if part.node == _X or (part.node in _PLAINEST and exponent == 1.0):
                    best = min(best, away)
                    yield found
                else:
                    others.append(found)
        if not best > SYMMETRIES.pair_misfit:
            return
        pairs = list(itertools.combinations(range(len(parts)), 2))
        for (i, j), away, exponents in zip(pairs, *_fitted_pairs(parts, pairs, slope, target), strict=True):
            if math.isfinite(away):
                powers = (_power(parts[k][0].node, float(e)) for k, e in zip((i, j), exponents, strict=True))
                others.append((float(away), build("mul", *powers)))
    allowed = min(SYMMETRIES.pair_misfit, SYMMETRIES.pair_gain * best)
    yield from (found for found in others if found[0] < allowed)


def _fitted(
    functions: list[FloatArray], rise: FloatArray, columns: list[FloatArray]
) -> Iterator[tuple[float, list[float]]]:
    """The exponents with which columns [N] add up to a rise [N], read as whole or half numbers, and the misfit then."""
    matrix = np.column_stack(columns)
    sizes = np.sqrt(np.mean(matrix**2, axis=0))
    if not (np.isfinite(rise).all() and np.isfinite(sizes).all() and (sizes > 0).all()):
        return
    solved = np.linalg.lstsq(matrix / sizes, rise, rcond=None)[0] / sizes
    exponents = [
        float(np.round(e * parts) / parts)
        for e, parts in zip(solved, (2 if (f > 0).all() else 1 for f in functions), strict=True)
    ]
    if all(0 < abs(e) <= SYMMETRIES.largest_power for e in exponents):
        yield misfit(rise, matrix @ np.array(exponents)), exponents


def _fitted_pairs(
    parts: list[tuple[_Part, FloatArray, FloatArray]],
    pairs: list[tuple[int, int]],
    slope: FloatArray,
    target: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The same of two functions, for many pairs at once: misfits [P], infinite where there is none, and exponents [P, 2]."""
    functions, derivatives = (np.array([part[k] for part in parts]) for k in (1, 2))
    one, other = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    rises = slope * functions[one] * functions[other]
    columns = target * np.stack([derivatives[one] * functions[other], functions[one] * derivatives[other]])
    sizes = np.sqrt(np.mean(columns**2, axis=2))
    known = np.isfinite(rises).all(axis=1) & (np.isfinite(sizes) & (sizes > 0)).all(axis=0)
    first, second = columns / sizes[..., None]
    across, count = np.einsum("pn,pn->p", first, second), float(len(slope))
    along = [np.einsum("pn,pn->p", column, rises) for column in (first, second)]
    apart = count**2 - across**2  # columns that are one leave exponents open: anything divided by nothing is none
    solved = np.stack([count * along[0] - across * along[1], count * along[1] - across * along[0]]) / apart / sizes
    fineness = np.where((functions > 0).all(axis=1), 2.0, 1.0)[np.stack([one, other])]
    exponents = np.round(solved * fineness) / fineness
    known &= ((exponents != 0) & (np.abs(exponents) <= SYMMETRIES.largest_power)).all(axis=0)
    away = np.full(len(pairs), math.inf)
    for p in np.flatnonzero(known):
        away[p] = misfit(rises[p], exponents[:, p] @ columns[:, p])
    return away, exponents.T


def misfit(left: FloatArray, right: FloatArray) -> float:
    """How far two fields are apart, as a share of their size."""
    return typical(left - right) / max(typical(left), typical(right), 1e-300)


def _power(node: Node, exponent: float) -> Node:
    if exponent == -1.0:
        return build("inv", node)
    return build("pow", node, Constant(exponent))


def parts_of(x: FloatArray, nodes: Sequence[str]) -> list[tuple[Node, FloatArray, FloatArray]]:
    """The plain functions of these kinds that a column [N] may have, each with its values and slopes: finite, and no zeros."""
    found = []
    for part in _PARTS:
        kind = part.node.operator if isinstance(part.node, Call) else "column"
        if kind in nodes and part.applies(x):
            f, d = part.function(x), part.derivative(x)
            if np.isfinite(f).all() and np.isfinite(d).all() and (f != 0).all():
                found.append((part.node, f, d))
    return found


def put(factor: Node, column: Node) -> Node:
    """A factor of a column with a formula in the column's place."""
    return transform(factor, lambda leaf: column if isinstance(leaf, Variable) else leaf)
