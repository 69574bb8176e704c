"""Power laws of several columns: a factor times plain powers of them, as laws of nature often are.

A few noisy rows do not lead a search to `0.8*a*b*c`: sums and products of two columns come first, and so do forms that fit by
luck. There are few power laws, so saying which one it is takes few nats (`judging/structure.py`), and all that matter can be
tried. Factor by factor, the best few products are multiplied by every power of every other column, with the factor before them
in closed form. Then exponents are exchanged one at a time while that helps.

Legend: `N` rows, `V` columns, `P` products.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.limits import LAW_EXPONENTS
from gmeql.formula.nodes import Node, Variable
from gmeql.formula.products import Factors, write_product
from gmeql.network.families import FunctionSet
from gmeql.search.sums.textbook import TEXTBOOK, few_rows, with_many_values

FloatArray = NDArray[np.float64]
_Law = tuple[float, ...]
"""The exponent of each column, 0 where it is not in."""


@dataclass(frozen=True)
class PowerLawConfig:
    """Numbers of the method."""

    kept: int = 6
    """Products that go on to the next factor, the best of their length."""
    most_factors: int = 6
    most_columns: int = 20
    """Columns beyond which chance would choose among the products."""
    exchanges: int = 20
    """Exchanges of an exponent, at most: each takes a look at all others."""
    log_of_nothing: float = -1000.0
    """The logarithm of 0: powers above 0 of it are next to nothing, all others beyond what any target is."""


POWER_LAWS = PowerLawConfig()


def power_laws(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    functions: FunctionSet,
    *,
    most_factors: int = POWER_LAWS.most_factors,
) -> list[Node]:
    """The best product of powers of two columns, of three, ...; only of columns of at least 0 that take many values."""
    few = few_rows(len(y))
    X, y, weights = X[few], y[few], weights[few]
    columns = [k for k in with_many_values(X) if X[:, k].min() >= 0]
    if not functions.allows({"mul", "div", "pow"}) or not 2 <= len(columns) <= POWER_LAWS.most_columns:
        return []
    if not 2 * TEXTBOOK.rows_per_constant <= len(y):
        return []
    with np.errstate(divide="ignore"):
        logs = np.log(X[:, columns])
    middles = logs.mean(axis=0, where=X[:, columns] > 0)  # powers of what lies around them stay within the numbers
    table = _Table(np.maximum(logs - middles, POWER_LAWS.log_of_nothing), y, weights)
    found: list[Node] = []
    best: list[_Law] = [(0.0,) * len(columns)]
    for size in range(1, min(len(columns), most_factors) + 1):
        best = table.best({law for one in best for law in _with_one_more(one)}, POWER_LAWS.kept)
        if not best:
            break
        best = list(dict.fromkeys([table.exchanged(best[0]), *best]))
        if size > 1:
            powers: Factors = {Variable(columns[k]): p for k, p in enumerate(best[0]) if p}
            with np.errstate(all="ignore"):
                scale = table.scale(best[0]) * float(np.exp(-np.dot(best[0], middles)))
            found += [write_product(scale, powers)] if math.isfinite(scale) and scale else []
    return found


@dataclass(frozen=True, eq=False)
class _Table:
    """Logarithms of the columns [N, V], the target [N] and weights [N]."""

    logs: FloatArray
    y: FloatArray
    weights: FloatArray

    def best(self, laws: Iterable[_Law], most: int) -> list[_Law]:
        """Those that leave the least squares, the best first."""
        ordered = sorted(laws)
        explained, _ = self._fitted(np.array(ordered).reshape(len(ordered), self.logs.shape[1]))
        places = np.argsort(-explained, kind="stable")[:most]
        return [ordered[place] for place in places if explained[place] > -math.inf]

    def exchanged(self, law: _Law) -> _Law:
        """The product with exponents exchanged, one at a time, for as long as less is left."""
        for _ in range(POWER_LAWS.exchanges):
            near = self.best({law, *_with_one_other(law)}, 1)
            if not near or near[0] == law:
                break
            law = near[0]
        return law

    def scale(self, law: _Law) -> float:
        """The factor before it."""
        return float(self._fitted(np.array([law]))[1][0])

    def _fitted(self, laws: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Squares of the target that products with exponents [P, V] explain, and the factors before them [P]."""
        with np.errstate(all="ignore"):
            values = np.exp(laws @ self.logs.T)
            along, own = values @ (self.weights * self.y), values**2 @ self.weights
            explained, scale = along**2 / own, along / own
        return np.where(np.isfinite(explained), explained, -math.inf), scale


def _with_one_more(law: _Law) -> Iterable[_Law]:
    return ((*law[:k], power, *law[k + 1 :]) for k, own in enumerate(law) if not own for power in LAW_EXPONENTS)


def _with_one_other(law: _Law) -> Iterable[_Law]:
    """The same columns with one other exponent, or another column in the place of one."""
    for k, own in enumerate(law):
        if own:
            yield from ((*law[:k], power, *law[k + 1 :]) for power in LAW_EXPONENTS)
            yield from _with_one_more((*law[:k], 0.0, *law[k + 1 :]))
