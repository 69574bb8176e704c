"""What chance finds in a table: with the target shuffled its columns say nothing, and something fits all the same.

A search finds something in any table. The price of a formula tells how many formulas of its kind there are, but not how far the
luckiest of *all* kinds gets on few rows with many columns: one in six tables of pure noise ended with a formula. So the formula
that would be chosen is compared with what the same rows give when their targets are shuffled (Fisher 1935; for the luckiest of
many, Westfall and Young 1993). Tried are each column and each product of two, with a level and without, and sums of several
chosen step by step. If the formula is a power law of several columns, such laws are tried too. If it is a curve, steps of one
column are: a steep curve is one.

- If chance gets as far too often, the sum of all columns with factors drawn towards 0 is asked the same question
  (`search/sums/shrinking.py`). That sum names no single column.
- If chance gets as far as that sum too, the constant is chosen.
- If it does not, the columns say something, and the sum of all may stay if that is the better way to say it.

Asking twice makes a mistake more likely. So each level is set such that the luckier of the two stays within the usual one.

Legend: `N` rows, `V` columns, `M` columns and products of them, `S` shuffles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Node, Variable, build, evaluate
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import SELECTION, stating_nats
from gmeql.network.families import FunctionSet
from gmeql.search.config import SearchConfig
from gmeql.search.events import Member
from gmeql.search.judging.outlook import outlooks
from gmeql.search.judging.structure import linear_columns, power_columns
from gmeql.search.polish.printable import with_known_digits
from gmeql.search.polish.scoring import length_in_nats
from gmeql.search.sums.curves import SHAPES
from gmeql.search.sums.power_laws import power_laws
from gmeql.search.sums.shrinking import saved_by_all
from gmeql.search.sums.textbook import TEXTBOOK

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ChanceConfig:
    """How chance is asked, and how often it may do as well."""

    shuffles: int = 200
    sure: float = 15.0
    """Nats saved beside the constant that chance does not reach, ..."""
    rows_per_column: int = 5
    """... but for long sums on fewer rows than this for each column, which may meet any rows."""
    least_rows: int = 8
    """Fewer rows have too few orders."""
    most_rows: int = 5000
    """Beyond so many rows luck is small."""
    independent: float = 1e-9
    """A column of which less is left once others are known, in units of its largest value, follows from them."""
    step_constants: int = 4
    """What a curve from one level to another has: both levels, where it rises, and how steeply."""
    shuffles_of_laws: int = 60
    """Orders in which power laws of several columns are looked for, each of which takes a while."""
    seed: int = 0


CHANCE = ChanceConfig()


def with_chance(
    front: Front,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    *,
    config: SearchConfig,
    sums: Iterable[Member] = (),
) -> Front:
    """The front with another choice where chance does as well as the formula that would be chosen.

    That is the sum of all columns with factors drawn towards 0, of the front or among `sums`, where chance does not do as well as
    that one; else a constant. That sum itself stays where chance does not do as well as what would be chosen without it.
    """
    best = front.select("best")
    if not front.has_outlooks or best.is_settled or not best.expression.variables:
        return front
    is_exact = best.loss <= front.exact_level
    if is_exact and len(np.unique(y)) > 2:  # two values are met exactly by chance
        return front
    if not config.is_plain:
        return front
    if not CHANCE.least_rows <= len(y) <= CHANCE.most_rows or (weights is not None and np.ptp(weights) > 0):
        return front
    constant = front[0] if not front[0].expression.variables else _mean(front, X, y)
    asked = _Asked(front, constant, X, y)
    others = [m for m in _shrunk(front, sums) if _errs_less(m, constant)]
    if best.is_shrunk or (is_exact and front.briefest() is not best):
        others = [front.briefest()]
    others = [m for m in others if m.expression.variables]
    level = asked.level()
    share = asked.share(best)
    if share is None or share <= level:
        return front
    passing = [m for m in others if (found := asked.share(m)) is not None and found <= level]
    if passing and best.is_shrunk:
        return front
    chosen = next(iter(passing), constant)
    front = front if chosen in front.members else front.joined(chosen)
    return replace(front, members=tuple(_marked(m, share) if m.expression is chosen.expression else m for m in front))


def _shrunk(front: Front, sums: Iterable[Member]) -> list[FrontMember]:
    """The sum of all columns with factors drawn towards 0, if there is one."""
    figured = [FrontMember(m.expression, m.loss, m.expression.complexity, 0.0, -1, m.outlook) for m in sums]
    return [m for m in (*front, *figured) if m.is_shrunk][:1]


def _errs_less(member: FrontMember, constant: FrontMember) -> bool:
    assert member.outlook is not None and constant.outlook is not None
    return member.outlook.left_out < constant.outlook.left_out


@dataclass(frozen=True, eq=False)
class _Asked:
    """How often chance does as well as formulas of a front, with the same shuffles for all."""

    front: Front
    constant: FrontMember
    X: FloatArray
    y: FloatArray

    def share(self, member: FrontMember) -> float | None:
        """Share of shuffles in which it does as well as a formula; None where nobody asked."""
        if member.is_shrunk:
            return member.outlook.chance  # type: ignore[union-attr]
        return chance_of(self.front, member, self.constant, self.X, self.y)

    def level(self) -> float:
        """The share up to which a formula is no chance: the one that the lesser of two shares, of a formula and of the sum of
        all columns, reaches no more often than is usual (Westfall and Young 1993). Whichever of both is not asked here was passed
        over before, for what it says of the same rows."""
        targets = _shuffled(self.y / float(np.abs(self.y).max()))
        lengths = least_lengths(self.X, targets), -saved_by_all(self.X, targets)
        shares = [np.searchsorted(np.sort(each), each, side="right") / len(each) for each in lengths]
        return float(np.quantile(np.minimum(*shares), SELECTION.by_chance, method="lower"))


def _mean(front: Front, X: FloatArray, y: FloatArray) -> FrontMember:
    """The constant as a member of a front that holds none, since a column alone fits better and is as short."""
    root = Constant(float(y.mean()))
    expression = with_known_digits(front[0].expression.with_root(root), X, y, np.ones(len(y)))
    (outlook,) = outlooks([expression.root], X, y)
    return FrontMember(expression, float(y.std()), expression.complexity, 0.0, -1, outlook)


def _marked(member: FrontMember, share: float) -> FrontMember:
    assert member.outlook is not None
    return replace(member, outlook=replace(member.outlook, by_chance=share))


def passed_over(front: Front) -> FrontMember:
    """What would be chosen if chance were not asked."""
    plain = tuple(m if m.outlook is None else replace(m, outlook=replace(m.outlook, by_chance=0.0)) for m in front)
    return replace(front, members=plain).select("best")


def chance_of(front: Front, member: FrontMember, constant: FrontMember, X: FloatArray, y: FloatArray) -> float:
    """Share of shuffles in which a column, a product of two, a sum or power law of as many columns, or beside a curve a step,
    describes the rows as briefly."""
    largest = float(np.abs(y).max())  # in units of it all have squares
    length = front.description_length(member)
    columns = linear_columns(member.expression.root)
    powers = power_columns(member.expression.root)
    is_long = len(columns or powers or ()) > 1
    is_sure = front.description_length(constant) - length > CHANCE.sure
    if is_sure and member.loss > front.exact_level and not (is_long and len(y) < CHANCE.rows_per_column * X.shape[1]):
        return 0.0
    targets = _shuffled(y / largest)
    lengths = least_lengths(X, targets)
    if columns is not None and is_long:
        lengths = np.minimum(lengths, stepwise_lengths(X, targets, len(columns)))
    elif powers is not None and len(powers) > 1:
        some = targets[:, : CHANCE.shuffles_of_laws]
        lengths = np.minimum(lengths[: some.shape[1]], power_law_lengths(X, some, len(powers)))
    elif powers is None and columns is None:
        lengths = np.minimum(lengths, step_lengths(X, targets))
    return float(np.mean(lengths + len(y) * math.log(largest) <= length))


def _shuffled(y: FloatArray) -> FloatArray:
    """The target in other orders [N, S]."""
    rng = np.random.default_rng(CHANCE.seed)
    return np.stack([rng.permutation(y) for _ in range(CHANCE.shuffles)], axis=1)


def least_lengths(X: FloatArray, targets: FloatArray) -> FloatArray:
    """Description length of the briefest of all columns and products of two, for each of some targets [N, S]: [S]."""
    n_rows, n_columns = X.shape
    scaled = X / np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    first, second = np.triu_indices(n_columns if n_columns <= TEXTBOOK.most_columns else 0)
    terms = np.hstack([scaled, scaled[:, first] * scaled[:, second]])
    of_products = math.log(2 * len(first) + len(SHAPES) * n_columns + 1)
    least = np.full(targets.shape[1], math.inf)
    for level in (False, True):
        column = stating_nats(_sum((0,), level=level), n_columns)
        product = min(stating_nats(_sum((0, 1), level=level, product=True), n_columns), of_products)
        prices = np.repeat([column, product], [n_columns, len(first)])
        z, t = (terms - terms.mean(axis=0), targets - targets.mean(axis=0)) if level else (terms, targets)
        sizes = np.sum(z**2, axis=0)
        used = sizes > 0
        explained = (z[:, used].T @ t) ** 2 / sizes[used, None]
        squares = np.maximum(np.sum(t**2, axis=0) - explained, np.finfo(float).tiny)
        lengths = 0.5 * n_rows * np.log(squares / n_rows) + prices[used, None]
        constants = length_in_nats(0.0, 1 + level, 0, n_rows=n_rows)
        least = np.minimum(least, lengths.min(axis=0, initial=math.inf) + constants)
    return least


def stepwise_lengths(X: FloatArray, targets: FloatArray, most_columns: int) -> FloatArray:
    """Description length of the briefest sum of up to so many columns, each added where it explains most of what the others
    leave, for each of some targets [N, S]: [S]."""
    n_rows, n_columns = X.shape
    sizes = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    prices = [stating_nats(_sum(range(k), level=True), n_columns) for k in range(1, most_columns + 1)]
    least = np.full(targets.shape[1], math.inf)
    for number, target in enumerate(targets.T):
        left = target - target.mean()
        columns = X / sizes - (X / sizes).mean(axis=0)
        leverage = np.full(n_rows, 1.0 / n_rows)
        for k, price in enumerate(prices[: n_rows - 2], start=1):
            norms = np.sqrt(np.sum(columns**2, axis=0))
            units = columns / np.where(norms > CHANCE.independent, norms, math.inf)
            best = units[:, int(np.argmax(np.abs(units.T @ left)))]
            left, columns = left - best * (best @ left), columns - np.outer(best, best @ columns)
            leverage = leverage + best**2
            errors = left / np.maximum(1.0 - leverage, math.sqrt(np.finfo(float).eps))
            log_variance = math.log(max(float(np.mean(errors**2)), np.finfo(float).tiny)) - 2.0 * (k + 1) / n_rows
            least[number] = min(least[number], length_in_nats(log_variance, k + 1, 0, n_rows=n_rows) + price)
    return least


def step_lengths(X: FloatArray, targets: FloatArray) -> FloatArray:
    """Description length of the best step over a column from one level to another, one of which may be 0, for each of some
    targets [N, S]: [S]."""
    n_rows, n_columns = X.shape
    t = targets - targets.mean(axis=0)
    below = np.arange(1, n_rows)[:, None]
    with_level, from_zero = np.zeros((2, targets.shape[1]))
    for column in X.T:
        order = np.argsort(column, kind="stable")
        parts = np.diff(column[order]) > 0  # equal values lie on one side
        sums, size = np.cumsum(t[order], axis=0)[:-1][parts], below[parts]
        with_level = np.maximum(with_level, (sums**2 * n_rows / (size * (n_rows - size))).max(axis=0, initial=0.0))
        sums = np.cumsum(targets[order], axis=0)[:-1][parts]
        one_side = np.maximum(sums**2 / size, (targets.sum(axis=0) - sums) ** 2 / (n_rows - size))
        from_zero = np.maximum(from_zero, one_side.max(axis=0, initial=0.0))
    nats, lengths = math.log(len(SHAPES) * n_columns + 1), []
    for z, explained, constants in ((t, with_level, 0), (targets, from_zero, -1)):
        squares = np.maximum(np.sum(z**2, axis=0) - explained, np.finfo(float).tiny)
        price = nats + length_in_nats(0.0, CHANCE.step_constants + constants, 0, n_rows=n_rows)
        lengths.append(0.5 * n_rows * np.log(squares / n_rows) + price)
    return np.asarray(np.minimum(*lengths))


def power_law_lengths(X: FloatArray, targets: FloatArray, most_columns: int) -> FloatArray:
    """Description length of the briefest power law of up to so many columns, for each of some targets [N, S]: [S]."""
    n_rows, n_columns = X.shape
    ones, price = np.ones(n_rows), length_in_nats(0.0, 1, 0, n_rows=n_rows)
    least = np.full(targets.shape[1], math.inf)
    for number, target in enumerate(targets.T):
        for law in power_laws(X, target, ones, FunctionSet(SearchConfig().functions), most_factors=most_columns):
            with np.errstate(all="ignore"):
                square = float(np.mean((evaluate(law, lambda k: X[:, k], np.float64, np) - target) ** 2))
            log_variance = math.log(max(square, np.finfo(float).tiny))
            length = 0.5 * n_rows * log_variance + price + stating_nats(law, n_columns)
            least[number] = min(least[number], length if math.isfinite(length) else math.inf)
    return least


def _sum(columns: Sequence[int], *, level: bool, product: bool = False) -> Node:
    """A sum of columns, or one product of them, with factors that stand for any, and a level or none."""
    terms = [columns] if product else [(k,) for k in columns]
    parts = [build("mul", Constant(0.5), *map(Variable, each)) for each in terms]
    return build("add", *parts, Constant(0.5)) if level else build("add", *parts) if len(parts) > 1 else parts[0]
