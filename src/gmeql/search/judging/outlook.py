"""What the formulas of a front are likely to do on rows they have not seen, and how well the rows support each.

The training error of the luckiest of thousands of formulas says little. So each member of a front is judged by its errors with
every row left out in turn, by its values between the rows (`soundness.py`), and by comparison with every simpler member: a gain
that rests on few rows does not count.

Legend: `M` members, `N` rows, `K` free constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.bounds import Bounds, bounds
from gmeql.formula.nodes import Constant, Node, evaluate, tree_complexity
from gmeql.search.config import FrontConfig
from gmeql.search.judging.between import points_between
from gmeql.search.judging.soundness import (
    SQUARED,
    excursion,
    has_pole,
    left_out_losses,
    left_out_squares,
    runs_to_pole,
    squares_at_poles,
)
from gmeql.search.judging.structure import luck_factor, structure_nats
from gmeql.search.losses.losses import Loss
from gmeql.search.sums.shrinking import ShrunkSum

FloatArray = NDArray[np.float64]

POINTS = 10_000
"""Points between the rows of each kind: a spike that one unseen row in a thousand meets must show."""
MOST_ROWS = 2_000
"""Rows between which such points are drawn."""
MOST_GAINS = 10_000
"""Members that one can be compared with: as many as a front may have."""
_FLAGS = ("levelled", "searched_without", "by_steps", "rounded")
_MARKS = {*_FLAGS, "outliers", "rest_loss", "step_loss", "by_chance", "chance", "chosen_anew"}
OPTIONAL = {"luck", "nats", "freedom", "saved", "pole_seen", "gains"} | _MARKS
"""Fields of an outlook's plain form that stand there only where they say something."""
MOST_GAINING = 0.01
"""Share of the rows, at least one, without which a gain must show where few rows outweigh all others, ..."""
LEAST_REST = 20
"""... and how many others there must be to show it."""


@dataclass(frozen=True)
class Outlook:
    """What one formula is likely to do on unseen rows, in the target's units."""

    error: float
    """Root mean squared error with each row left out of the fit in turn, excursions between the rows included, times
    `luck`; under a loss with a value of its own (`losses/losses.py`), its mean."""
    standard_error: float
    """Standard error of `error`: what another sample of as many rows could give instead."""
    pole: bool
    """Whether a denominator passes through zero among the rows."""
    support: float
    """How far its squared errors lie below those of every member that takes less to state (`search/judging/structure.py`), in
    standard errors of the paired difference: the least of them; `inf` where there is none. A gain that few rows pay for
    has little support."""
    bounds: Bounds
    """Between which values it is certain to stay while every column stays within its range."""
    luck: float = 1.0
    """How much more than with rows left out is to be expected of the luckiest of as many formulas: bounded
    (`luck_factor`), or measured (`front/choosing.py`)."""
    nats: float | None = None
    """Nats that stating its structure takes where there are fewer formulas than its symbols could spell: where units leave
    fewer, and of all columns together; else None."""
    freedom: float | None = None
    """How many freely fitted constants it is worth where its own are drawn towards 0 (`sums/shrinking.py`); else None."""
    saved: float | None = None
    """Of factors drawn towards 0: nats that they save beside the mean, whatever they are; else None."""
    pole_seen: bool = False
    """Whether the rows nearest to its poles, or to one at the end of the rows, follow them (`soundness.squares_at_poles`): a
    pole of the target's own, which has no price and makes no excursions."""

    gains: tuple[tuple[int, float], ...] = ()
    """That of `support` beside each of those members by itself, with their complexity."""
    outliers: int = 0
    """Rows far from all others that its constants do not follow (`model/choice/unmoved.py`); 0 where they follow all rows."""
    levelled: bool = False
    """Whether, of such constants, the level is that of all rows, since outliers lie to one side."""
    searched_without: bool = False
    """Whether a part of the search left such rows out."""
    rest_loss: float | None = None
    """Beside such a formula: root mean squared error over the rows that are no outliers; else None."""
    by_steps: bool = False
    """Whether it is chosen by what it says from one row to the next, since the rows are a series (`model/choice/series.py`)."""
    step_loss: float | None = None
    """Beside such a formula: root mean squared error of what errors do not follow from those of the row before; else None."""
    rounded: bool = False
    """Whether it is chosen since the rows do not refute its round exponents (`model/choice/exponents.py`)."""
    by_chance: float = 0.0
    """Share of tables with the target shuffled in which chance does as well as the formula that would be chosen in its place,
    where that is why it is chosen (`model/choice/chance.py`); else 0."""
    chance: float | None = None
    """Of factors drawn towards 0: the share of such tables in which they err as little on rows left out, where it was asked."""
    chosen_anew: tuple[float, ...] = ()
    """Of factors drawn towards 0: errors of sums of 1, 2, ... columns that are chosen and fitted without the rows that judge, in
    units of its own on the same rows (`front/choosing.py`); nothing where that was not asked."""

    @property
    def doubtful_pole(self) -> bool:
        """Whether it has a pole that no rows speak for."""
        return self.pole and not self.pole_seen

    @property
    def left_out(self) -> float:
        """The error with each row left out, as if the formula had been chosen beforehand."""
        return self.error / self.luck

    def gain_over(self, complexity: int) -> float | None:
        """Of `gains` the one beside the member of a complexity; beside one that came later, such as a sum of columns, the one
        over the next simpler member. None where there is none."""
        simpler = [(c, place) for place, (c, _) in enumerate(self.gains) if c <= complexity]
        return self.gains[max(simpler)[1]][1] if simpler else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; what is not finite becomes None."""
        numbers = (self.error, self.standard_error, self.support, self.bounds.low, self.bounds.high)
        error, spread, support, low, high = (x if math.isfinite(x) else None for x in numbers)
        return {
            "error": error,
            "standard_error": spread,
            "pole": self.pole,
            "support": support,
            "supported": self.support > 0,
            "low": low,
            "high": high,
            "defined": self.bounds.defined,
            **({} if self.luck == 1.0 else {"luck": self.luck}),
            **({} if self.nats is None else {"nats": self.nats}),
            **({} if self.freedom is None else {"freedom": self.freedom}),
            **({} if self.saved is None else {"saved": self.saved}),
            **({"pole_seen": True} if self.pole_seen else {}),
            **({"outliers": self.outliers} if self.outliers else {}),
            **({} if self.rest_loss is None else {"rest_loss": self.rest_loss}),
            **({} if self.step_loss is None else {"step_loss": self.step_loss}),
            **{name: True for name in _FLAGS if getattr(self, name)},
            **({"by_chance": self.by_chance} if self.by_chance else {}),
            **({} if self.chance is None else {"chance": self.chance}),
            **({"chosen_anew": list(self.chosen_anew)} if self.chosen_anew else {}),
            **({"gains": [[c, z if math.isfinite(z) else None] for c, z in self.gains]} if self.gains else {}),
        }

    @classmethod
    def from_dict(cls, data: Any, where: str = "outlook") -> Outlook:
        """Read `to_dict`'s output, trusting nothing: `ValueError` for the first field that is wrong."""
        names = {"error", "standard_error", "pole", "support", "supported", "low", "high", "defined"}
        if not isinstance(data, dict) or set(data) - OPTIONAL != names:
            raise ValueError(f"{where} must be an object with exactly the fields {sorted(names)}")
        luck = data.get("luck", 1.0)
        if type(luck) not in (int, float) or not 1.0 <= luck < math.inf:
            raise ValueError(f"{where}.luck must be a finite number of at least 1")
        names_given = ("nats", "freedom", "saved", "rest_loss", "step_loss")
        nats, freedom, saved, rest, steps = (data.get(name) for name in names_given)
        for name, given in zip(names_given, (nats, freedom, saved, rest, steps), strict=True):
            if given is not None and (type(given) not in (int, float) or not 0.0 <= given < math.inf):
                raise ValueError(f"{where}.{name} must be a finite number of at least 0")
        for name in ("by_chance", "chance"):
            if type(share := data.get(name, 0.0)) not in (int, float) or not 0.0 <= share <= 1.0:
                raise ValueError(f"{where}.{name} must be a number from 0 to 1")
        outliers = data.get("outliers", 0)
        if type(outliers) is not int or outliers < 0:
            raise ValueError(f"{where}.outliers must be a whole number of at least 0")
        for name in ("pole", "supported", "defined", "pole_seen", *_FLAGS):
            if type(data.get(name, False)) is not bool:
                raise ValueError(f"{where}.{name} must be true or false")
        anew = data.get("chosen_anew", [])
        if not isinstance(anew, list) or not all(type(x) in (int, float) and 0 < x < math.inf for x in anew):
            raise ValueError(f"{where}.chosen_anew must be a list of finite numbers above 0")
        for name in ("error", "standard_error", "support", "low", "high"):
            value = data[name]
            if value is not None and (type(value) not in (int, float) or not math.isfinite(value)):
                raise ValueError(f"{where}.{name} must be a finite number or null")
        for name in ("error", "standard_error"):
            if data[name] is not None and data[name] < 0:
                raise ValueError(f"{where}.{name} must be at least 0")

        def number(name: str, missing: float) -> float:
            return missing if data[name] is None else float(data[name])

        return cls(
            error=number("error", math.inf),
            standard_error=number("standard_error", math.inf),
            pole=data["pole"],
            support=number("support", math.inf if data["supported"] else -math.inf),
            bounds=Bounds(number("low", -math.inf), number("high", math.inf), data["defined"]),
            luck=float(luck),
            nats=None if nats is None else float(nats),
            freedom=None if freedom is None else float(freedom),
            saved=None if saved is None else float(saved),
            pole_seen=data.get("pole_seen", False),
            gains=_checked_gains(data.get("gains", []), where),
            outliers=outliers,
            rest_loss=None if rest is None else float(rest),
            step_loss=None if steps is None else float(steps),
            **{name: data.get(name, False) for name in _FLAGS},
            by_chance=float(data.get("by_chance", 0.0)),
            chance=data.get("chance"),
            chosen_anew=tuple(float(x) for x in anew),
        )

    def with_more_constants(self, n_own: int, n_rows: int) -> Outlook:
        """The same where `n_own` constants more than the formula shows were fitted to the rows: those of groups."""
        factor = math.sqrt(freedom_factor(n_own, n_rows))
        return replace(self, error=factor * self.error, standard_error=factor * self.standard_error) if n_own else self

    def scaled(self, exponent: int) -> Outlook:
        """The same for a target multiplied by 2**`exponent`."""
        return replace(
            self,
            error=times_power(self.error, exponent),
            standard_error=times_power(self.standard_error, exponent),
            bounds=replace(
                self.bounds,
                low=times_power(self.bounds.low, exponent),
                high=times_power(self.bounds.high, exponent),
            ),
        )


def _checked_gains(entries: Any, where: str) -> tuple[tuple[int, float], ...]:
    """Pairs of a complexity and a number of standard errors, of which those beyond the numbers are null."""
    if not isinstance(entries, list) or len(entries) > MOST_GAINS:
        raise ValueError(f"{where}.gains must be a list of at most {MOST_GAINS} pairs")
    for entry in entries:
        if not (isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int and entry[0] > 0):
            raise ValueError(f"{where}.gains must hold pairs of a complexity and a number")
        if entry[1] is not None and (type(entry[1]) not in (int, float) or not math.isfinite(entry[1])):
            raise ValueError(f"{where}.gains must hold finite numbers or null")
    return tuple((c, math.inf if z is None else float(z)) for c, z in entries)


def freedom_factor(n_constants: int, n_rows: int) -> float:
    """How much larger than on the rows a mean squared error is on others, for that many constants fitted to them.

    The factor of generalised cross-validation, (N/(N - K))² (Golub, Heath and Wahba 1979).
    """
    return (n_rows / (n_rows - n_constants)) ** 2 if n_constants < n_rows else math.inf


def worthless_error(root: Node, square: FloatArray, X: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """The error to expect of a formula whose values have nothing to do with the target: the spread of both, added as squares.

    No luck makes more of it. Values are those with each row left out, which spread as far as on other rows: `square` [N]
    are their squared errors, to the side of the formula's own.
    """
    residual = y - evaluate(root, lambda index: X[:, index], np.float64, np)
    values = y - np.copysign(np.sqrt(square), residual)
    spreads = [math.sqrt(float(np.cov(each, aweights=weights, ddof=0))) for each in (values, y)]
    return math.hypot(*spreads) * math.sqrt(freedom_factor(1, len(y)))


def outlooks(
    roots: Sequence[Node],
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    *,
    seed: int = 0,
    between: bool = True,
    loss: Loss = SQUARED,
    stated: Sequence[Node] | None = None,
    rivals: Sequence[Node] = (),
    shrunk: Mapping[Node, ShrunkSum] | None = None,
) -> tuple[Outlook, ...]:
    """The outlook of each formula of a front on the rows it was fitted to by `loss`.

    Without `between` nobody looks between the rows, as where columns are constants of groups: no row lies between two.
    `stated` are the forms that formulas have in pure numbers where units are known: they say all that is free to choose.
    `rivals` are others that a gain is asked against too. Rows left out of `shrunk` sums are known beforehand.
    """
    shrunk = {} if shrunk is None else shrunk
    weights = np.ones(len(y)) if weights is None else weights / weights.mean()
    points = points_between(X[:MOST_ROWS], np.random.default_rng(seed), POINTS) if between else X[:0]
    inside = np.vstack([X[:MOST_ROWS], points])
    ranges = np.stack([X.min(axis=0), X.max(axis=0)], axis=1)
    everyone = [*roots, *rivals]
    squares = [shrunk[root].costs if root in shrunk else left_out_costs(root, X, y, weights, loss) for root in everyone]
    poles = [has_pole(root, inside) for root in everyone]
    price = FrontConfig.unseen_node_nats
    nothing = luck_factor(structure_nats(Constant(1.0), X.shape[1], node_cost=price), len(y), 1.0)  # the mean's own
    forms = [*(roots if stated is None else stated), *rivals]
    nats = [
        shrunk[root].nats if root in shrunk else structure_nats(form, X.shape[1], node_cost=price)
        for root, form in zip(everyone, forms, strict=True)
    ]
    lengths = [(each, tree_complexity(root)) for each, root in zip(nats, everyone, strict=True)]
    found = []
    for root, square, pole, length in zip(roots, squares, poles, lengths, strict=False):
        others = [(s, n) for s, p, n in zip(squares, poles, lengths, strict=True) if n < length and not p]
        simpler = [s for s, _ in others]
        strays = excursion(root, points, y, loss)
        at_pole = loss.value is None and (pole or (strays > 0 and runs_to_pole(root, X)))
        at_poles = squares_at_poles(root, X, weights, inside, y, simpler) if at_pole else None
        square, strays = (square, strays) if at_poles is None else (at_poles, 0.0)
        mean = float(np.average(square, weights=weights)) + strays
        error = math.sqrt(mean) if loss.value is None else mean
        spread = _standard_error(square, mean, weights) * (1.0 if loss.value is None else 2.0 * math.sqrt(mean))
        luck = luck_factor(length[0], len(y), error, loss)
        if loss.value is None and not pole and strays == 0 and 0 < error < math.inf:
            luck = min(luck, max(nothing * worthless_error(root, square, X, y, weights) / error, 1.0))
        gains = tuple((n[1], paired_z(other, square, weights)) for other, n in others)
        found.append(
            Outlook(
                error=error * luck,
                standard_error=spread * luck,
                pole=pole,
                support=min((z for _, z in gains), default=math.inf),
                bounds=bounds(root, ranges),
                luck=luck,
                nats=length[0] if stated is not None or root in shrunk else None,
                freedom=shrunk[root].freedom if root in shrunk else None,
                saved=shrunk[root].saved if root in shrunk else None,
                pole_seen=at_poles is not None,
                gains=gains,
            )
        )
    return tuple(found)


def left_out_costs(root: Node, X: FloatArray, y: FloatArray, weights: FloatArray, loss: Loss = SQUARED) -> FloatArray:
    """What each row [N] costs with that row left out of the fit: its squared error, or the loss that has a value."""
    if loss.value is None:
        return left_out_squares(root, X, y, weights)
    return left_out_losses(root, X, y, weights, loss)


def paired_z(other: NDArray[np.float64], square: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """How far squared errors [N] lie below another formula's, in standard errors.

    The mean of the difference over its standard error. Or what says more: the logarithm of the ratio of the two means over
    its own, since of a few rows that span magnitudes the largest alone makes the difference, though all are met a thousand
    times better; and the difference without the rows that gain most, since one row far from all others makes the standard
    error as large as the gain, though the others gain as well.
    """
    if not (np.isfinite(other).all() and np.isfinite(square).all()):
        return math.inf if not np.isfinite(other).all() else -math.inf
    mean, error = mean_and_error(other - square, weights)
    paired = mean / error if error > 0 else math.copysign(math.inf, mean) if mean else 0.0
    if mean > 0:
        n_most = math.ceil(MOST_GAINING * len(square))
        rest = np.argsort(other - square)[:-n_most]
        if len(rest) >= LEAST_REST:
            mean, error = mean_and_error((other - square)[rest], weights[rest])
            paired = max(paired, mean / error) if error > 0 else paired
    (above, above_error), (below, below_error) = mean_and_error(other, weights), mean_and_error(square, weights)
    if not 0 < below < above:
        return paired
    spread = math.hypot(above_error / above, below_error / below)
    return max(paired, math.log(above / below) / spread) if spread > 0 else paired


def mean_and_error(values: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, float]:
    """Weighted mean, and its standard error. (As `np.average` computes them, which takes three times as long for it.)"""
    total = weights.sum()
    mean = float((values * weights).sum() / total)
    return mean, math.sqrt(float((weights * (values - mean) ** 2 * weights).sum() / total) / len(values))


def _standard_error(square: NDArray[np.float64], mean: float, weights: NDArray[np.float64]) -> float:
    """Of the root of a mean of squares, by the delta method: that of the mean over twice the root."""
    if not math.isfinite(mean) or mean <= 0:
        return math.inf if not math.isfinite(mean) else 0.0
    centred = square - float(np.average(square, weights=weights))
    spread = math.sqrt(float(np.average(weights * centred**2, weights=weights)) / len(square))
    return spread / (2.0 * math.sqrt(mean))


def times_power(value: float, exponent: int) -> float:
    """The value times 2**`exponent`; infinite beyond the numbers."""
    with np.errstate(over="ignore"):
        return float(np.ldexp(value, exponent))
