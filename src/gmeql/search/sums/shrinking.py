"""The sum of many columns with factors drawn towards 0: what they say together when the rows know none of them well.

Least squares over many columns and few rows follows the noise, and over columns that resemble each other its factors run
away in opposite directions. Ridge regression (Hoerl and Kennard 1970) holds them back: with columns in units of their spread
it minimises `Σ wᵢ rᵢ² + λ Σ bⱼ²`. With the singular values `d` of the columns it has `1 + Σ d²/(d² + λ)` constants' worth of
freedom, and the error of a row left out is `rᵢ / (1 - hᵢᵢ)` here too.

- The penalty λ is the one with the least errors of rows left out, or the one under which the rows are most likely whatever the
  factors are (empirical Bayes: MacKay 1992), whichever draws more: on few rows some errors are least by luck. If shrinking
  gains next to nothing, least squares stays.
- By that likelihood the sum lies `(N-1)/2 log Σ(y-ȳ)² / min(Σ wᵢ rᵢ² + λ Σ bⱼ²) - 1/2 Σ log(1 + d²/λ)` nats above the mean
  alone. By these it is compared with other formulas and with chance: no column has to be named and no factor stated.
- Under a likelihood whose formula is not itself a prediction, such as the logit of a chance, the same penalty is added to the
  mean loss and Newton's steps minimise both. λ is the one whose loss is least on rows of folds that the others' fit has not
  seen. Least squares is no fallback there: if a plane separates two classes, no rows say how far apart they are.

Legend: `N` rows, `V` columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.search.sums.independent import independent_columns
from gmeql.search.losses.losses import Loss

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ShrinkingConfig:
    """Numbers of the method."""

    weakest: float = 1e-5
    strongest: float = 1e2
    """λ/N from the weakest to the strongest: from factors of least squares to nearly none."""
    tried: int = 29
    """Four for each power of ten: errors on rows left out change by little from one to the next."""
    least_gain: float = 0.01
    """Share of the squared error on rows left out that shrinking must save: less is no reason to leave least squares."""
    independent: float = 1e-6
    """Singular values below this share of the largest are none: the columns follow from each other."""
    least_freedom: float = 1.5
    """A sum worth fewer constants than this is the mean and little else."""
    shuffles: int = 200
    """Orders of the target in which chance is asked, ..."""
    shuffles_of_some: int = 60
    """... and where only the columns that count most are kept, which are others in each."""
    folds: int = 5
    seed: int = 0
    most_rows: int = 3000
    most_columns: int = 300
    """Rows and columns beyond which folds of a likelihood would take long."""
    likelihood_tried: int = 15
    """Penalties under a likelihood: two for each power of ten or so."""
    prior_rows: float = 0.1
    """The weakest of them, in rows: that of factors of a standard deviation of about 3 before any row is seen. With less, no
    chance were too small to be believed where a plane parts the classes."""
    steps: int = 50
    tolerance: float = 1e-7
    """Newton's steps under a likelihood, and the relative gain of one below which they end."""
    halvings: int = 30
    told: float = 0.5
    """Standard errors of the paired difference from which one penalty is told from another: of those that are not, the
    strongest risks least on rows unlike those of the table."""


SHRINKING = ShrinkingConfig()


@dataclass(frozen=True, eq=False)
class ShrunkSum:
    """A sum of columns, what each row costs [N] that is left out (its squared error, or the loss), how many freely fitted
    constants the sum is worth (None where least squares stayed), the nats that stating its columns takes, all of which
    are one choice, and the nats that all columns save beside the mean (None under a likelihood of something else)."""

    root: Node
    costs: FloatArray
    freedom: float | None
    nats: float
    saved: float | None = None


def shrunk_sum(X: FloatArray, y: FloatArray, weights: FloatArray, *, most_columns: int) -> ShrunkSum | None:
    """The sum of all columns that do not follow from others, or of the `most_columns` that count most; None where that is
    the mean and little else."""
    columns = np.array(independent_columns(X, weights), dtype=np.int64)
    if most_columns < 1 or not len(columns) or len(y) < 3:
        return None
    varying = len(columns)
    found = _Ridge.of(X[:, columns], y, weights)
    if varying > most_columns:
        columns = columns[_counting_most(found, most_columns)]
        found = _Ridge.of(X[:, columns], y, weights)
    penalty = found.best()
    freedom = None if penalty == 0.0 else found.freedom(penalty)
    if freedom is not None and freedom < SHRINKING.least_freedom:
        return None
    slopes = found.factors(penalty) / found.spreads
    root = _sum(found.mean - float(slopes @ found.centre), slopes, columns)
    errors = found.left_out(penalty) / np.sqrt(np.where(weights > 0, weights, 1.0))
    nats = math.log(varying + 1) + math.log(math.comb(varying, len(columns)))
    return ShrunkSum(root, errors**2, freedom, nats, None if freedom is None else float(found.saved()))


def shrunk_values(
    X: FloatArray, y: FloatArray, weights: FloatArray, others: FloatArray, *, most_columns: int
) -> FloatArray:
    """What the sum of columns that do not follow from each other, or of the `most_columns` that count most, says of other rows
    [R, V]."""
    columns, found = np.arange(X.shape[1]), _Ridge.of(X, y, weights)
    if len(columns) > most_columns:
        columns = _counting_most(found, most_columns)
        found = _Ridge.of(X[:, columns], y, weights)
    penalty = found.best()
    if penalty > 0.0 and found.freedom(penalty) < SHRINKING.least_freedom:
        return np.full(len(others), found.mean)
    return np.asarray(found.mean + (others[:, columns] - found.centre) @ (found.factors(penalty) / found.spreads))


def saved_by_all(X: FloatArray, targets: FloatArray) -> FloatArray:
    """Nats [S] that the sum of all columns saves beside the mean, for each of some targets [N, S]."""
    weights = np.ones(len(X))
    columns = independent_columns(X, weights)
    if not columns:
        return np.zeros(targets.shape[1])
    found = _Ridge.of(X[:, columns], targets[:, 0], weights)
    return np.asarray(replace(found, target=targets - targets.mean(axis=0)).saved())


def chance_of_shrunk(X: FloatArray, y: FloatArray, weights: FloatArray, saved: float, *, most_columns: int) -> float:
    """The share of shuffles of the target in which `shrunk_sum`, whatever it is worth, saves as many nats beside the mean.

    What is shuffled are the deviations from the mean in units that the weights give them, so that all are alike.
    """
    columns = independent_columns(X, weights)
    if not columns or most_columns < 1:
        return 1.0
    rng = np.random.default_rng(SHRINKING.seed)
    found = _Ridge.of(X[:, columns], y, weights)
    root = np.sqrt(weights)
    shuffles = SHRINKING.shuffles if len(columns) <= most_columns else SHRINKING.shuffles_of_some
    deviations = np.stack([rng.permutation(found.target) for _ in range(shuffles)], axis=1)
    deviations -= np.outer(root, root @ deviations / weights.sum())
    if len(columns) <= most_columns:
        return float(np.mean(replace(found, target=deviations).saved() >= saved))
    as_many = 0
    for target in deviations.T:
        kept = _counting_most(replace(found, target=target), most_columns)
        few = replace(_Ridge.of(X[:, np.array(columns)[kept]], y, weights), target=target)
        as_many += bool(few.saved() >= saved)
    return as_many / shuffles


def _counting_most(found: _Ridge, most_columns: int) -> NDArray[np.intp]:
    """The places of the columns that count most, in their order."""
    return np.sort(np.argsort(-np.abs(found.factors(found.best())), kind="stable")[:most_columns])


def shrunk_likelihood_sum(
    X: FloatArray, y: FloatArray, weights: FloatArray, loss: Loss, *, most_columns: int
) -> ShrunkSum | None:
    """The same under a likelihood; None where rows or columns are too many or too few for folds too."""
    columns = np.array(independent_columns(X, weights), dtype=np.int64)
    varying, weights = len(columns), weights / weights.sum()
    if most_columns < 1 or not 0 < varying <= SHRINKING.most_columns:
        return None
    if not 2 * SHRINKING.folds <= np.count_nonzero(weights) or len(y) > SHRINKING.most_rows:
        return None
    found = _Likelihood(X[:, columns], y, weights, loss)
    if varying > most_columns:
        factors = found.path(np.ones(len(y), dtype=bool))[found.best()][1:]
        columns = columns[np.sort(np.argsort(-np.abs(factors), kind="stable")[:most_columns])]
        found = _Likelihood(X[:, columns], y, weights, loss)
    best = found.best()
    factors = found.path(np.ones(len(y), dtype=bool))[best]
    freedom = found.freedom(factors, found.penalties[best])
    if not np.isfinite(factors).all() or freedom < SHRINKING.least_freedom:
        return None
    slopes = factors[1:] / found.spreads
    root = _sum(float(factors[0] - slopes @ found.centre), slopes, columns)
    # folds judged all of it: only which columns were left out, if any, is a choice that the rows took part in
    return ShrunkSum(root, found.costs[best], freedom, math.log(math.comb(varying, len(columns))))


def _sum(offset: float, slopes: FloatArray, columns: NDArray[np.int64]) -> Node:
    terms = [build("mul", Constant(float(b)), Variable(int(c))) for b, c in zip(slopes, columns, strict=True)]
    return build("add", *terms, Constant(offset))


@dataclass(frozen=True, eq=False)
class _Ridge:
    """Columns in units of their spread, taken apart: one decomposition serves every penalty."""

    centre: FloatArray
    spreads: FloatArray
    mean: float
    left: FloatArray
    singular: FloatArray
    right: FloatArray
    target: FloatArray
    """[N], or several [N, S]."""
    leverage: FloatArray
    """Of the rows [N] on the mean alone."""

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, weights: FloatArray) -> _Ridge:
        root = np.sqrt(weights)
        centre, mean = np.average(X, axis=0, weights=weights), float(np.average(y, weights=weights))
        spreads = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weights))
        spreads = np.where(spreads > 0, spreads, 1.0)
        parts = np.linalg.svd((X - centre) / spreads * root[:, None], full_matrices=False)
        return cls(centre, spreads, mean, *parts, (y - mean) * root, weights / weights.sum())

    @property
    def penalties(self) -> FloatArray:
        """Those that are tried."""
        return len(self.target) * np.geomspace(SHRINKING.weakest, SHRINKING.strongest, SHRINKING.tried)

    def best(self) -> float:
        """The penalty with least error on rows left out, or the likeliest if that is stronger; 0, least squares, where that is
        nearly as good."""
        penalties = self.penalties
        squares = [float(np.sum(self.left_out(float(penalty)) ** 2)) for penalty in penalties]
        best = int(np.argmin(squares))
        determined = self.singular[-1] > SHRINKING.independent * self.singular[0]
        if determined and len(self.singular) + 2 < len(self.target):
            plain = float(np.sum(self.left_out(0.0) ** 2))
            if plain * (1.0 - SHRINKING.least_gain) <= squares[best]:
                return 0.0
        return float(penalties[max(best, int(np.argmax(self._saved_with_each())))])

    def saved(self) -> FloatArray:
        """Nats that the columns save beside the mean, whatever their factors are, with the likeliest penalty; of each target [S]
        where they are several."""
        return np.asarray(np.maximum(np.max(self._saved_with_each(), axis=0), 0.0))

    def _saved_with_each(self) -> FloatArray:
        """The same with each penalty that is tried."""
        tiny = np.finfo(float).tiny
        shares = np.stack([self._shares(float(penalty)) for penalty in self.penalties])
        all_squares = np.maximum(np.sum(self.target**2, axis=0), tiny)
        met = shares @ (self.left.T @ self.target) ** 2 / all_squares
        stated = 0.5 * np.sum(np.log(np.maximum(1.0 - shares, tiny)), axis=1)
        nats = -0.5 * (len(self.target) - 1) * np.log(np.maximum(1.0 - met, np.finfo(float).eps))
        return np.asarray((nats.T + stated).T)

    def factors(self, penalty: float) -> FloatArray:
        """Of the columns in units of their spread [V]."""
        return np.asarray(self.right.T @ (self._shares(penalty) / self._divisors * (self.left.T @ self.target)))

    def left_out(self, penalty: float) -> FloatArray:
        """Errors of the rows [N] with each left out, times the roots of their weights."""
        shares = self._shares(penalty)
        along = self.left.T @ self.target
        residual = self.target - self.left @ (shares * along.T).T
        leverage = self.leverage + self.left**2 @ shares
        return np.asarray((residual.T / np.maximum(1.0 - leverage, math.sqrt(np.finfo(float).eps))).T)

    def freedom(self, penalty: float) -> float:
        """How many freely fitted constants the sum is worth, the one that stands alone among them."""
        return 1.0 + float(self._shares(penalty).sum())

    def _shares(self, penalty: float) -> FloatArray:
        """How much of each direction is left by a penalty, 0 to 1."""
        squares = self.singular**2
        return np.asarray(squares / np.maximum(squares + penalty, np.finfo(float).tiny))

    @property
    def _divisors(self) -> FloatArray:
        return np.maximum(self.singular, np.finfo(float).tiny)


class _Likelihood:
    """Columns in units of their spread under a likelihood, with the costs of rows [penalties, N] in folds left out."""

    def __init__(self, X: FloatArray, y: FloatArray, weights: FloatArray, loss: Loss) -> None:
        self.centre = np.average(X, axis=0, weights=weights)
        spreads = np.sqrt(np.average((X - self.centre) ** 2, axis=0, weights=weights))
        self.spreads = np.where(spreads > 0, spreads, 1.0)
        self.table = np.column_stack([np.ones(len(y)), (X - self.centre) / self.spreads])
        self.y, self.weights, self.loss = y, weights, loss
        weakest = SHRINKING.prior_rows / len(y)
        self.penalties = np.geomspace(SHRINKING.strongest, weakest, SHRINKING.likelihood_tried)
        fold = np.random.default_rng(SHRINKING.seed).permutation(len(y)) % SHRINKING.folds
        self.costs = np.full((len(self.penalties), len(y)), math.inf)
        for number in range(SHRINKING.folds):
            judged = fold == number
            for place, factors in enumerate(self.path(~judged)):
                self.costs[place, judged] = self._values(factors, judged)

    def best(self) -> int:
        """The place of the strongest penalty whose loss on rows left out is not told from the least, row by row."""
        least = int(np.argmin(self.costs @ self.weights))
        if not np.isfinite(self.costs[least]).all():
            return least
        for place in range(least):
            more = self.costs[place] - self.costs[least]
            mean = float(more @ self.weights)
            error = math.sqrt(float(self.weights**2 @ (more - mean) ** 2))
            if mean < SHRINKING.told * error:
                return place
        return least

    def path(self, rows: NDArray[np.bool_]) -> list[FloatArray]:
        """Offset and factors of the columns [1 + V] by penalty, fitted to some rows: each from the one before."""
        found, factors = [], np.zeros(self.table.shape[1])
        for penalty in self.penalties:
            factors = self._least(factors, float(penalty), rows)
            found.append(factors)
        return found

    def freedom(self, factors: FloatArray, penalty: float) -> float:
        """How many freely fitted constants the sum is worth, the one that stands alone among them."""
        hessian = self._hessian(factors, np.ones(len(self.y), dtype=bool))
        drawn = hessian + penalty * self._is_drawn
        return float(np.trace(np.linalg.lstsq(drawn, hessian, rcond=None)[0]))

    @property
    def _is_drawn(self) -> FloatArray:
        """The identity, without the offset, which no penalty draws towards 0."""
        return np.diag(np.r_[0.0, np.ones(self.table.shape[1] - 1)])

    def _values(self, factors: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        assert self.loss.value is not None
        with np.errstate(all="ignore"):
            costs = self.loss.value(self.table[rows] @ factors, self.y[rows])
        return np.where(np.isfinite(costs), costs, math.inf)

    def _objective(self, factors: FloatArray, penalty: float, rows: NDArray[np.bool_]) -> float:
        mean = float(np.average(self._values(factors, rows), weights=self.weights[rows]))
        return mean + 0.5 * penalty * float(factors[1:] @ factors[1:])

    def _hessian(self, factors: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        assert self.loss.curvature is not None
        table, weights = self.table[rows], self.weights[rows] / self.weights[rows].sum()
        curved = self.loss.curvature(table @ factors, self.y[rows])
        return np.asarray((table * (weights * curved)[:, None]).T @ table)

    def _least(self, factors: FloatArray, penalty: float, rows: NDArray[np.bool_]) -> FloatArray:
        """Newton's steps, each halved until the mean loss and the penalty together fall."""
        assert self.loss.slope is not None
        table, weights = self.table[rows], self.weights[rows] / max(float(self.weights[rows].sum()), 1e-300)
        drawn = penalty * self._is_drawn
        least = self._objective(factors, penalty, rows)
        for _ in range(SHRINKING.steps):
            gradient = table.T @ (weights * self.loss.slope(table @ factors, self.y[rows])) + drawn @ factors
            try:
                step = np.linalg.solve(self._hessian(factors, rows) + drawn, gradient)
            except np.linalg.LinAlgError:  # no row has a curvature left: every chance is certain
                break
            share, lower = 1.0, math.inf
            for _ in range(SHRINKING.halvings):
                lower = self._objective(factors - share * step, penalty, rows)
                if lower < least:
                    break
                share *= 0.5
            if not lower < least:
                break
            factors, gain, least = factors - share * step, least - lower, lower
            if gain < SHRINKING.tolerance * abs(least):
                break
        return factors
