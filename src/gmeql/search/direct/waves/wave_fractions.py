"""Fractions with waves or exponentials above and below the line: (1 + v cos a)/(1 - u cos b), slits, Doppler shifts.

y = S/D with sums S and D of plain terms is S = y D, linear in all factors (`vocabulary.py`). There D is of powers alone. Here it
has sine and cosine of one column, or falling exponentials of all, and S is of a small vocabulary of its own: products of
columns times waves and exponentials of one column or of a product of two.

Legend: `N` rows, `M` terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.network.families import FunctionSet
from gmeql.search.data.readings import PLAIN
from gmeql.search.direct.readings import DIRECT_READINGS, direct_readings
from gmeql.search.direct.sums.vocabulary import Span, fraction_in
from gmeql.search.direct.table import DirectTable, Effort, FloatArray
from gmeql.search.direct.terms.denominators import small_terms


@dataclass(frozen=True)
class WaveFractionsConfig:
    """Numbers of the method."""

    max_columns: int = 5
    few_columns: int = 3  # up to which products of two columns stand before waves
    rows_per_term: float = 1.5
    spare_rows: int = 60
    readings: tuple[str, ...] = (PLAIN, "square")
    verified: float = 1e-8  # error of the formula on all rows, relative to the target's spread
    seconds_per_look: float = 0.01  # of one core, for each denominator (measured)


WAVE_FRACTIONS = WaveFractionsConfig()
_Terms = list[tuple[Node, FloatArray]]
"""Terms with their values [N]."""
_Denominators = Callable[[FloatArray, FunctionSet], Iterator[_Terms]]
"""What may stand below the line over some rows of the columns."""


def propose(table: DirectTable, *, functions: FunctionSet, effort: Effort, rng: np.random.Generator) -> Iterator[Node]:
    """The fraction that is the target, where there is one. Draws nothing at random."""
    numbers = WAVE_FRACTIONS
    if not 1 <= table.n_columns <= numbers.max_columns or not functions.allows({"add", "mul", "div"}):
        return
    if not table.has_values:
        return
    if effort.seconds < numbers.seconds_per_look * (1 + table.n_columns) or effort.out_of_time():
        return
    sign = 1.0 if table.y.mean() >= 0 else -1.0
    with np.errstate(all="ignore"):
        looks = [*_narrow_looks(table.X, functions), (_above(table.X, functions), _denominators)]
        for terms, denominators in looks:
            n = min(len(table.y), int(numbers.rows_per_term * len(terms)) + numbers.spare_rows)
            if n < len(terms) + numbers.spare_rows:
                return
            span = Span(np.stack([values[:n] for _, values in terms]), [node for node, _ in terms].__getitem__)
            readings = {
                name: y[:n] for name, y in direct_readings(table.y, functions).items() if name in numbers.readings
            }
            for below, name in product(denominators(table.X[:n], functions), readings):
                if effort.out_of_time():
                    return
                fraction = fraction_in(span, readings[name], below)
                root = None if fraction is None else DIRECT_READINGS[name].invert(fraction, sign)
                if root is not None and table.error(root) < numbers.verified:
                    yield root
                    return


def _narrow_looks(X: FloatArray, functions: FunctionSet) -> Iterator[tuple[_Terms, _Denominators]]:
    """Above and below the line the waves of one column, alone and times another: over a narrow range of angles more
    functions are one another's sums, and tell nothing."""
    for j in range(X.shape[1] if functions.allows({"sin"}) else 0):
        yield _waves_of(X, j), _denominator_of(j)


def _waves_of(X: FloatArray, j: int) -> _Terms:
    """1 and the other columns, alone and times the waves of one."""
    others: _Terms = [(Variable(i), x) for i, x in enumerate(X.T) if i != j]
    plain: _Terms = [(Constant(1.0), np.ones(len(X))), *others]
    return [*plain, *_times(plain, _waves(Variable(j), X[:, j]))]


def _denominator_of(j: int) -> _Denominators:
    def denominators(X: FloatArray, functions: FunctionSet) -> Iterator[_Terms]:
        yield _waves_of(X, j)

    return denominators


def _waves(angle: Node, values: FloatArray) -> _Terms:
    return [(build("cos", angle), np.cos(values)), (build("sin", angle), np.sin(values))]


def _times(terms: _Terms, others: _Terms) -> _Terms:
    return [(build("mul", a, b), x * z) for (a, x), (b, z) in product(terms, others)]


def _above(X: FloatArray, functions: FunctionSet) -> _Terms:
    """Products of columns, each as it is and times waves and exponentials, with their values [N]."""
    columns: _Terms = [(Variable(j), x) for j, x in enumerate(X.T)]
    plain = small_terms(X) if len(columns) <= WAVE_FRACTIONS.few_columns else small_terms(X)[: 1 + len(columns)]
    strange: _Terms = []
    if functions.allows({"sin"}):
        angles = [*columns, *((build("mul", a, b), x * z) for (a, x), (b, z) in combinations(columns, 2))]
        strange += [wave for angle, values in angles for wave in _waves(angle, values)]
        strange += [wave for a, x in columns for wave in _waves(build("mul", Constant(2.0), a), 2.0 * x)]
    if functions.allows({"exp"}):
        strange += _falling(columns)
    return [*small_terms(X), *_times(plain, strange)]


def _falling(columns: _Terms) -> _Terms:
    return [(build("exp", build("neg", a)), np.exp(-x)) for a, x in columns]


def _denominators(X: FloatArray, functions: FunctionSet) -> Iterator[_Terms]:
    """Terms of which what stands below the line may be a sum, few of them first: of many, several such sums may hold."""
    one: _Terms = [(Constant(1.0), np.ones(len(X)))]
    columns: _Terms = [(Variable(j), x) for j, x in enumerate(X.T)]
    if functions.allows({"exp"}):
        yield [*one, *_falling(columns)]
        yield [*one, *columns, *_falling(columns)]
    for size, j in product(range(3), range(len(columns) if functions.allows({"sin"}) else 0)):
        others = [term for i, term in enumerate(columns) if i != j]
        squares: _Terms = [(build("square", a), x**2) for a, x in others]
        plain = [one, [*one, *others], [*one, *others, *squares]][size]
        waves = _waves(*columns[j])
        twice = [(build("square", a), x**2) for a, x in _times(others, waves[:1])] if size == 2 else []
        yield [*plain, *_times(plain, waves), *twice]
