"""How good and how sure a formula is, in figures and in a few sentences. The terminal and the report say the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gmeql.model.evidence import Rival, alternative_weights, rivals
from gmeql.report.cautions import cautions
from gmeql.report.unseen import unseen_text

if TYPE_CHECKING:
    from gmeql.model.front import Front, FrontMember
    from gmeql.tables.read import Training

EXACT = 1e-10  # of the target's spread: a true formula without noise reaches 1e-12, near misses 1e-7
LIKELY = 0.7  # a smaller chance is no preference
MOST_ODDS = 20  # odds beyond this are said in words
NOTHING_FOUND = "The data do not support anything beyond the mean."


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
    elif not member.expression.variables:
        sentences = [f"It is a constant, with a typical error of {found.rmse:.3g} on {rows}{_unseen(member)}."]
    elif found.r2 <= 0:
        sentences = [f"It explains nothing of the variance of the {rows}: typical error {found.rmse:.3g}."]
    else:
        sentences = [
            f"It explains {percent(found.r2)} of the variance of {rows}; "
            f"typical error {found.rmse:.3g}{_unseen(member)}, largest {found.largest_error:.3g}."
        ]
    sentences += _against_simpler(front, index) if exact else _preference(front, index, training)
    return sentences + cautions(member, training, predicted, exact=exact)


def _unseen(member: FrontMember) -> str:
    """The typical error to expect on unseen rows, with its spread, where it is known."""
    outlook = member.outlook
    if outlook is None or outlook.pole or not math.isfinite(outlook.error) or outlook.error == 0:
        return ""
    return f", on unseen rows about {unseen_text(outlook)}"


def _against_simpler(front: Front, index: int) -> list[str]:
    if len(front) == 1:
        return ["No other formula was found to compare it with."]
    if index == 0:
        return []
    simpler = front[index - 1]
    return [f"The next simpler formula, {_short(simpler)}, has a typical error of {simpler.loss:.3g}."]


def _preference(front: Front, index: int, training: Training) -> list[str]:
    """How likely it predicts unseen rows better than the next best formula, or worse than the best (`model/evidence`)."""
    best = front.select("best").index
    if len(front) == 1:
        alone = _against_simpler(front, index)
        return alone if front[index].expression.variables else [NOTHING_FOUND, *alone]
    if not front.has_outlooks:  # of an earlier version or another method: nothing was measured for those
        return _against_simpler(front, index)
    constant = [] if index != best or front[index].expression.variables else [NOTHING_FOUND]
    among = None if index == best else (index,)
    found = rivals(front, training.X, training.y, training.weights, among=among)
    if not found:
        return constant
    if index == best:
        return constant + _beside_the_next_best(front, best, found)
    chance, name = found[0].chance, f"formula {best} of the front, {_short(front[best])},"
    if chance < LIKELY:
        return [f"{name[0].upper()}{name[1:]} is about as good."]
    return [f"{name[0].upper()}{name[1:]} is {_likely(chance)} to predict unseen rows better."]


def _beside_the_next_best(front: Front, best: int, found: tuple[Rival, ...]) -> list[str]:
    hardest = found[0]
    if hardest.chance >= LIKELY:
        rival = f"formula {hardest.index} of the front, {_short(front[hardest.index])}"
        return [f"It is {_likely(hardest.chance)} to predict unseen rows better than the next best formula, {rival}."]
    others = [k for k in alternative_weights(front, found) if k != best]
    text = f"Not sure: formula {hardest.index} of the front, {_short(front[hardest.index])}, is about as good"
    more = [k for k in others if k != hardest.index]
    if more:
        text += f", and {_numbered(more)} may be"
    return [text + "."]


def _numbered(indices: list[int]) -> str:
    if len(indices) == 1:
        return f"formula {indices[0]}"
    return f"formulas {', '.join(map(str, indices[:-1]))} and {indices[-1]}"


def _likely(chance: float) -> str:
    """A chance above one half in words and odds, never beyond what was measured.

    >>> _likely(0.8), _likely(0.999)
    ('likely (about 4 to 1)', 'very likely (more than 20 to 1)')
    """
    odds = chance / (1.0 - chance)
    if odds > MOST_ODDS:
        return f"very likely (more than {MOST_ODDS} to 1)"
    return f"likely (about {odds:.0f} to 1)"


def _short(member: FrontMember, limit: int = 80) -> str:
    text = str(member)
    return text if len(text) <= limit else text[: limit - 1] + "…"
