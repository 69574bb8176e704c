"""How good and how sure a formula is, in figures and in a few sentences. The terminal and the report say the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gmeql.model.front import Front, FrontMember
    from gmeql.tables.read import Training

EXACT = 1e-10  # of the target's spread: a true formula without noise reaches 1e-12, near misses 1e-7
SURE_NATS = math.log(1000.0)  # a thousand to one
UNSURE_NATS = math.log(10.0)  # less than ten to one is no preference
SAME = 0.25  # of the typical error: formulas that differ by less say the same
FEW_ROWS_PER_CONSTANT = 5
PATTERN_Z = 3.0  # lag-one correlation of the residuals, in its standard errors, that counts as a pattern


@dataclass(frozen=True)
class Figures:
    """Figures of one formula on the training rows."""

    rmse: float
    r2: float
    largest_error: float
    relative: float
    """RMSE over the standard deviation of the target."""


def figures(predicted: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Figures:
    """Figures of predictions [N] for targets [N]; rows where the formula is not defined make them infinite."""
    weights = np.ones(len(y)) if weights is None else weights
    weights = weights / weights.sum()
    mean = float(np.sum(weights * y))
    spread = math.sqrt(float(np.sum(weights * (y - mean) ** 2)))
    errors = np.abs(predicted - y)
    if not np.isfinite(errors).all():
        return Figures(math.inf, -math.inf, math.inf, math.inf)
    rmse = math.sqrt(float(np.sum(weights * errors**2)))
    relative = rmse / spread if spread > 0 else math.inf
    return Figures(rmse, 1 - relative**2, float(errors.max()), relative)


def percent(r2: float) -> str:
    """A share with as many digits as tell it from 100 %.

    >>> percent(0.9), percent(0.99983), percent(1 - 1e-12)
    ('90.0 %', '99.983 %', 'all but 1e-10 %')
    """
    if r2 < 0:
        return "nothing"
    missing = 1 - r2
    if missing <= 0:
        return "all"
    if missing < 1e-6:
        return f"all but {100 * missing:.0e} %".replace("e-0", "e-")
    digits = max(0, math.ceil(-math.log10(100 * missing)) + 1)  # two digits of what is missing
    return f"{100 * r2:.{digits}f} %"


def judge(front: Front, index: int, training: Training) -> list[str]:
    """Sentences on member `index`: how good it is, how sure, and what to be careful about."""
    member = front[index]
    with np.errstate(all="ignore"):
        predicted = member.expression(training.X)
    found = figures(predicted, training.y, training.weights)
    rows = f"{len(training.y)} rows"
    if not math.isfinite(found.rmse):
        return [f"It is not defined on some of the {rows}."]
    exact = found.relative <= EXACT
    if exact:
        sentences = [f"It reproduces all {rows} to rounding: the largest error is {found.largest_error:.1g}."]
    elif found.r2 <= 0:
        sentences = [f"It explains nothing of the variance of the {rows}: typical error {found.rmse:.3g}."]
    else:
        sentences = [
            f"It explains {percent(found.r2)} of the variance of {rows}; "
            f"typical error {found.rmse:.3g}, largest {found.largest_error:.3g}."
        ]
    sentences += _preference(front, index, training, predicted, exact)
    sentences += _cautions(front, index, training, predicted, exact)
    return sentences


def _preference(front: Front, index: int, training: Training, predicted: np.ndarray, exact: bool) -> list[str]:
    """How the data weigh it against the rest of the front, by description length (see `Front.select`).

    Formulas that say the same to within a part of the error, such as x**2.0003 beside x**2, are no rivals.
    """
    if len(front) == 1:
        return ["No other formula was found to compare it with."]
    if exact:
        simpler = [m for m in front if m.index < index]
        if not simpler:
            return []
        return [f"The next simpler formula, {_short(simpler[-1])}, has a typical error of {simpler[-1].loss:.3g}."]
    own = front.description_length(front[index])
    rivals = {
        m.index: front.description_length(m)
        for m in front
        if m.index != index and _differs(m.expression(training.X), predicted, front[index].loss)
    }
    if not rivals:
        return []
    rival = min(rivals, key=lambda k: rivals[k])
    gain = rivals[rival] - own
    if not math.isfinite(gain):
        return []
    if gain >= SURE_NATS:
        return [f"The data prefer it {_odds(gain)} to one over the next best formula of the front."]
    if gain > -UNSURE_NATS:
        return [f"Not sure: formula {rival} of the front, {_short(front[rival])}, is about as likely."]
    return [f"The data prefer formula {rival} of the front {_odds(-gain)} to one over it."]


def _differs(one: np.ndarray, other: np.ndarray, loss: float) -> bool:
    with np.errstate(all="ignore"):
        distance = float(np.sqrt(np.mean((one - other) ** 2)))
    return not distance < SAME * loss


def _cautions(front: Front, index: int, training: Training, predicted: np.ndarray, exact: bool) -> list[str]:
    from gmeql.model.front import free_constants

    sentences = []
    constants = int(free_constants(front[index].expression).sum())
    if len(training.y) < FEW_ROWS_PER_CONSTANT * constants:
        sentences.append(f"Few rows for {constants} constants: try it on data it has not seen.")
    if not exact and has_pattern(predicted, training.y):
        sentences.append("Its errors still show a pattern, so there may be more to find: give it more time.")
    return sentences


def has_pattern(predicted: np.ndarray, y: np.ndarray) -> bool:
    """Whether residuals, in the order of the prediction, resemble their neighbours more than chance does.

    Lag-one correlation against its standard error 1/sqrt(N).
    """
    residuals = (predicted - y)[np.argsort(predicted, kind="stable")]
    residuals = residuals - residuals.mean()
    size = float(np.sum(residuals**2))
    if len(y) < 10 or size == 0:
        return False
    correlation = float(np.sum(residuals[1:] * residuals[:-1])) / size
    return correlation * math.sqrt(len(y)) > PATTERN_Z


def _odds(nats: float) -> str:
    power = nats / math.log(10)
    return "more than a million" if power > 6 else f"{round(10**power, -int(power)):,.0f}"


def _short(member: FrontMember, limit: int = 80) -> str:
    text = str(member)
    return text if len(text) <= limit else text[: limit - 1] + "…"
