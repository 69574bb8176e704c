"""How good and how sure a formula is, in figures and in a few sentences. The terminal and the report say the same."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gmeql.formula.messages import shortened
from gmeql.model.choice.chance import passed_over
from gmeql.model.choice.evidence import Rival, alternative_weights, rivals
from gmeql.model.choice.exponents import with_fitted_exponents
from gmeql.model.choice.series import nearest_to_rows
from gmeql.model.rows.outliers import Outliers
from gmeql.model.rows.weighing import CountedRows, counted_rows
from gmeql.report.cautions import cautions, outliers_in
from gmeql.report.numbers import percent_text, three_digits
from gmeql.report.unseen import unseen_text
from gmeql.search.losses.converging import mean_loss_of_constant
from gmeql.search.losses.losses import Loss, find_loss

if TYPE_CHECKING:
    from gmeql.model.pareto.front import Front
    from gmeql.model.pareto.member import FrontMember
    from gmeql.tables.training import Training

EXACT = 1e-10  # of the target's spread: a true formula without noise reaches 1e-12, near misses 1e-7
LIKELY = 0.7  # a smaller chance is no preference
MOST_ODDS = 20  # odds beyond this are said in words
TOLD_ROWS = 8  # fewer rows tell no formula from another, however well it fits them


@dataclass(frozen=True)
class Figures:
    """Figures of one formula on the training rows."""

    rmse: float
    r2: float
    largest_error: float
    """Of the rows that count at all."""
    relative: float
    """RMSE over the standard deviation of the target."""


def figures(predicted: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> Figures:
    """Figures of predictions [N] for targets [N]; rows where the formula is not defined make them infinite."""
    weights = np.ones(len(y)) if weights is None else weights
    weights = weights / weights.sum()
    errors = np.where(weights > 0, np.abs(predicted - y), 0.0)
    if not np.isfinite(errors).all():
        return Figures(math.inf, -math.inf, math.inf, math.inf)
    spread = _root_mean_square(y - float(np.sum(weights * y)), weights)
    rmse = _root_mean_square(errors, weights)
    relative = rmse / spread if spread > 0 else math.inf
    return Figures(rmse, 1 - relative**2, float(errors.max()), relative)


def _root_mean_square(values: np.ndarray, weights: np.ndarray) -> float:
    """Of values [N] whose squares may be too large or too small for a number."""
    unit = 2.0 ** (math.frexp(float(np.abs(values).max()))[1] - 1)  # a power of two: no digit is lost
    return unit * math.sqrt(float(np.sum(weights * (values / unit) ** 2))) if unit > 0 else 0.0


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


def judge(
    front: Front, index: int, training: Training, *, loss: str = "squared", outliers: Outliers | None = None
) -> list[str]:
    """Sentences on member `index`: how good it is, how sure, and what to be careful about.

    `loss` is what the front was fitted by: rows count here as they count in it. `outliers` of the table, where several
    members are judged, so that they are looked at once.
    """
    member = front[index]
    counted = counted_rows(front, training.X, training.y, training.weights, loss=loss)
    with np.errstate(all="ignore"):
        predicted = predictions(member, training.X, loss)
    found = figures(predicted, training.y, counted.weights)
    if not math.isfinite(found.rmse):
        return [f"It is not defined on some of the {len(training.y):,} rows."]
    exact = found.relative <= EXACT
    own = find_loss(loss)
    if own.value is not None and not exact:
        sentences = [_fit_by_loss(member, training, own, counted)]
    elif counted.sizes is not None and not exact:
        sentences = _fit_by_size(member, predicted - training.y, found, counted)
    else:
        sentences = [_fit(member, found, counted, exact=exact)]
    if len(training.y) < TOLD_ROWS:
        sentences.append(_too_few(len(training.y)))
    else:
        sentences += _against_simpler(front, index) if exact else _preference(front, index, training, counted)
    outliers = outliers_in(training, counted, [m.expression for m in front]) if outliers is None else outliers
    chosen = index == front.select("best").index
    sentences += cautions(member, training, predicted, counted, exact=exact, outliers=outliers, chosen=chosen)
    return [sentence.replace("….", "…") for sentence in sentences]  # a formula that is cut short ends its sentence


def predictions(member: FrontMember, X: np.ndarray, loss: str) -> np.ndarray:
    """What a formula predicts [N]: its values, or what the loss's link makes of them."""
    link = find_loss(loss).link
    values = member.expression(X)
    return values if link is None else link(values)


def _fit_by_loss(member: FrontMember, training: Training, loss: Loss, counted: CountedRows) -> str:
    """How well a formula meets the rows by the loss it was fitted by, beside the best constant."""
    rows = f"{len(training.y):,} rows"
    told = f"{loss.measure} of {three_digits(member.loss)} on {rows}{_unseen(member, len(training.y))}"
    if not member.expression.variables:
        return f"It is a constant, with a {told}."
    alone = mean_loss_of_constant(training.y, counted.given, loss)
    share = 1.0 - member.loss / alone if alone > 0 else 0.0
    if not share > 0:
        return f"It has a {told}: no less than the best constant."
    return f"It has a {told}: {percent(share)} less than the best constant."


def _fit(member: FrontMember, found: Figures, counted: CountedRows, *, exact: bool) -> str:
    """How well a formula meets the rows."""
    rows = f"{len(counted.weights):,} rows"
    weighted = " as the loss weighs them" if counted.by_the_loss else ""
    unseen = _unseen(member, len(counted.weights))
    if exact:
        met = f"{len(counted.weights) - counted.left_out:,} of the {rows}" if counted.left_out else f"all {rows}"
        return f"It reproduces {met} to rounding: the largest error is {found.largest_error:.1g}."
    if not member.expression.variables:
        return f"It is a constant, with a typical error of {three_digits(found.rmse)} on {rows}{weighted}{unseen}."
    if found.r2 <= 0:
        return f"It explains nothing of the variance of the {rows}{weighted}: typical error {three_digits(found.rmse)}."
    errors = f"typical error {three_digits(found.rmse)}{unseen}, largest {three_digits(found.largest_error)}"
    if counted.left_out:
        errors += " of the rows that count"
    return f"It explains {percent(found.r2)} of the variance of {rows}{weighted}; {errors}."


def _fit_by_size(member: FrontMember, errors: np.ndarray, found: Figures, counted: CountedRows) -> list[str]:
    """How well a formula meets the rows [N] of a target over many magnitudes, each in its own size."""
    assert counted.sizes is not None
    start, rows = "It has" if member.expression.variables else "It is a constant, with", f"{len(errors):,} rows"
    largest = float(np.max(np.abs(errors)[counted.weights > 0] / counted.sizes[counted.weights > 0]))
    unit, unseen = counted.unit, ""
    if _unseen(member, len(errors)):
        outlook = member.outlook
        assert outlook is not None
        scaled = replace(outlook, error=100 * outlook.error / unit, standard_error=100 * outlook.standard_error / unit)
        unseen = f", on unseen rows about {unseen_text(scaled)} %"
    return [
        f"{start} a typical error of {three_digits(100 * found.rmse / unit)} % of each row's own size on {rows}{unseen}, "
        f"largest {three_digits(100 * largest)} %.",
        f"The target runs over many magnitudes, so rows count by their own size: a loss of {three_digits(unit)} is as much as "
        "the rows themselves.",
    ]


def _too_few(n_rows: int) -> str:
    rows = "One row cannot" if n_rows == 1 else f"{n_rows} rows cannot"
    return f"{rows} tell formulas apart: many others fit as well, and how far off it is elsewhere is not known."


def _unseen(member: FrontMember, n_rows: int) -> str:
    """The typical error to expect on unseen rows, with its spread, where it is known."""
    outlook = member.outlook
    if n_rows < TOLD_ROWS or outlook is None or outlook.pole or not math.isfinite(outlook.error) or outlook.error == 0:
        return ""
    return f", on unseen rows about {unseen_text(outlook)}"


def _against_simpler(front: Front, index: int) -> list[str]:
    if len(front) == 1:
        return ["No other formula was found to compare it with."]
    if index == 0:
        return []
    simpler = front[index - 1]
    measure = find_loss(front.loss).measure if front.has_own_loss and front.loss != "own" else "typical error"
    return [f"The next simpler formula, {_short(simpler)}, has a {measure} of {three_digits(simpler.loss)}."]


def _preference(front: Front, index: int, training: Training, counted: CountedRows) -> list[str]:
    """How likely it predicts unseen rows better than its strongest rival, or worse than the best (`model/evidence`)."""
    best = front.select("best").index
    if len(front) == 1:
        if not front[index].expression.variables:
            return [f"{_nothing_beyond(counted)}."]
        return _against_simpler(front, index)
    if not front.has_outlooks:  # of an earlier version or another method, or stopped before anybody looked
        return [*_against_simpler(front, index), "It was not tried on rows left out of the fit."]
    if front[best].is_by_steps:
        return _by_steps(front, index, best)
    among = None if index == best else (index,)
    loss = find_loss(counted.loss)
    found = rivals(front, training.X, training.y, counted.weights, among=among, loss=loss)
    if index == best:
        fitted = with_fitted_exponents(front).index
        found = tuple(rival for rival in found if rival.index != fitted)
        others = _beside_the_next_best(front, best, found, counted) + _by_chance(front, best)
        others += _passed_over(front, best, found, fitted)
        return _in_round_exponents(front, best, fitted) + others
    if not found:
        return (
            []
            if _has_pole(front[index])
            else [f"On these rows it says nearly the same as formula {best} of the front."]
        )
    chance, name = found[0].chance, f"formula {best} of the front, {_short(front[best])},"
    if chance < LIKELY:
        return [f"{name[0].upper()}{name[1:]} is about as good."]
    return [f"{name[0].upper()}{name[1:]} is {_likely(chance)} to predict {_rows_meant(front[best])} better."]


def _by_steps(front: Front, index: int, best: int) -> list[str]:
    """Of rows that are a series: that the chosen formula says as much from row to row as the one that lies nearer."""
    if index == best:
        nearer = nearest_to_rows(front)
        name, chosen = f"Formula {nearer.index} of the front, {_short(nearer)},", "this one"
    elif front[index].complexity > front[best].complexity:
        name, chosen = "It", f"formula {best} of the front, {_short(front[best])}"
    else:
        return []
    return [
        f"{name} lies nearer to the rows, but from one row to the next it says no more than {chosen}: columns that drift "
        "resemble the target by chance."
    ]


def _by_chance(front: Front, best: int) -> list[str]:
    """Of a formula that is chosen since chance does as well as a longer one: how often it does."""
    if not front[best].is_by_chance:
        return []
    longer, share = passed_over(front), front[best].outlook.by_chance  # type: ignore[union-attr]
    tables = f"{percent_text(100 * share)} of tables with the same rows and the target shuffled"
    return [f"Chance alone does as well as formula {longer.index}, {_short(longer)}, in {tables}."]


def _in_round_exponents(front: Front, best: int, fitted: int) -> list[str]:
    """Of a formula in round exponents: that the fitted ones lie nearer to the rows."""
    if best == fitted:
        return []
    name = f"formula {fitted} of the front, {_short(front[fitted])}"
    return [
        f"Its exponents are round numbers, which the rows do not refute: {name}, lies nearer to the rows, but by less than "
        "the digits of its exponents are worth."
    ]


def _beside_the_next_best(front: Front, best: int, found: tuple[Rival, ...], counted: CountedRows) -> list[str]:
    """How sure the best formula is. That nothing was found is said of a constant only where no rival is as good."""
    constant = not front[best].expression.variables
    if not found:
        return [f"{_nothing_beyond(counted)}."] if constant else []
    hardest = found[0]
    rival = f"formula {hardest.index} of the front, {_short(front[hardest.index])}"
    if hardest.chance >= LIKELY:
        doubtful = _promises_less_error(front[hardest.index], front[best]) and not front[best].is_unmoved
        start = f"{_nothing_beyond(counted, hardly=doubtful)}: it" if constant else "It"
        doubt = ", though that one promises a little less error: the difference is within the spread" * doubtful
        return [
            f"{start} is {_likely(hardest.chance)} to predict {_rows_meant(front[best])} better than its strongest rival, "
            f"{rival}{doubt}.",
            *_saying_the_same(front, best, found),
        ]
    start = f"Not sure whether the data say more than {_plainest(counted)}" if constant else "Not sure"
    text = f"{start}: {rival}, is about as good"
    more = [k for k in alternative_weights(front, found) if k not in (best, hardest.index)]
    if more:
        text += f", and {_numbered(more)} may be"
    return [text + "."]


def _saying_the_same(front: Front, best: int, found: tuple[Rival, ...]) -> list[str]:
    """Of formulas that promise as little error as the strongest rival, or less, and are none: that they say the same."""
    others = {best} | {rival.index for rival in found}
    strongest = front[found[0].index].outlook
    same = [
        m.index
        for m in front
        if m.index not in others and m.expression.variables and not _has_pole(m)
        and m.outlook is not None and strongest is not None and m.outlook.error <= strongest.error
    ]  # fmt: skip
    if not same:
        return []
    name = _numbered(same)
    return [f"{name[0].upper()}{name[1:]} {'says' if len(same) == 1 else 'say'} nearly the same as this one."]


def _rows_meant(best: FrontMember) -> str:
    if not best.is_unmoved:
        return "unseen rows"
    levelled = best.outlook is not None and best.outlook.levelled
    return "unseen rows that do not lie far off" + " (levels aside)" * levelled


def _passed_over(front: Front, best: int, found: tuple[Rival, ...], fitted: int) -> list[str]:
    """Formulas that promise less error than the chosen one and are not named beside it: why they were not chosen."""
    named = {best, fitted} | ({rival.index for rival in found[:1]} if not front[best].is_unmoved else set())
    others = [m for m in front if m.index not in named and not m.is_shrunk and _promises_less_error(m, front[best])]
    poles, longer, sentences = [m for m in others if _has_pole(m)], [m for m in others if not _has_pole(m)], []
    within = "rows far off make most of it" if front[best].is_unmoved else "{its} gain is within the spread"
    if front[best].is_shrunk and longer and _left_out(front[best]) < min(map(_left_out, longer)):
        within = f"with each row left out this one errs less ({three_digits(_left_out(front[best]))}): what more it promises "
        within += "pays for the choice of its columns"
    for members, why in ((poles, "a denominator passes through zero among the rows or just beyond"), (longer, within)):
        if members:
            its, promises = ("its", "promises") if len(members) == 1 else ("their", "promise")
            name = _numbered([m.index for m in members])
            error = " to ".join(dict.fromkeys(three_digits(m.outlook.error) for m in _ends(members)))  # type: ignore[union-attr]
            sentences.append(
                f"{name[0].upper()}{name[1:]} of the front {promises} less error ({error}), but {why.format(its=its)}."
            )
    return sentences


def _ends(members: list[FrontMember]) -> list[FrontMember]:
    ordered = sorted(members, key=lambda m: m.outlook.error)  # type: ignore[union-attr]
    return [ordered[0], ordered[-1]]


def _left_out(member: FrontMember) -> float:
    """The error with each row left out, as if the formula had been given beforehand."""
    return math.inf if member.outlook is None else member.outlook.left_out


def _has_pole(member: FrontMember) -> bool:
    return member.outlook is not None and member.outlook.pole


def _promises_less_error(rival: FrontMember, best: FrontMember) -> bool:
    """Whether the front shows less error on unseen rows for a rival than for the best formula, which readers will ask about."""
    if rival.outlook is None or best.outlook is None or not rival.outlook.error < best.outlook.error:
        return False
    return three_digits(rival.outlook.error) != three_digits(best.outlook.error)


def _nothing_beyond(counted: CountedRows, *, hardly: bool = False) -> str:
    return f"{'Hardly anything' if hardly else 'Nothing'} was found that the data support beyond {_plainest(counted)}"


def _plainest(counted: CountedRows) -> str:
    """What the simplest formula is called: under a loss that weighs rows it is no plain mean."""
    return "a constant" if counted.by_the_loss or counted.loss != "squared" else "the mean"


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
    return shortened(str(member), limit)
