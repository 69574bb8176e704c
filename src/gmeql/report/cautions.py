"""What to be careful about with a formula: poles, constants without evidence, rows that lie far from it, patterns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gmeql.formula.calculus import differentiate
from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.messages import shortened
from gmeql.formula.nodes import Constant
from gmeql.model.certainty.deciding import deciding_rows, intervals_of
from gmeql.model.rows.far_rows import rows_far_away, spread_grows, varies_by_factors
from gmeql.model.rows.outliers import Outliers
from gmeql.model.rows.weighing import CountedRows
from gmeql.report.error_shapes import are_counts, errors_grow, one_sided, spread_as_counts
from gmeql.report.far_off import by_factors, far_away, forgotten, without_outliers
from gmeql.report.numbers import four_digits, percent_text, three_digits
from gmeql.report.patterns import has_pattern, patterns
from gmeql.search.judging.soundness import denominators
from gmeql.search.losses.converging import SQUARES, converged
from gmeql.search.losses.losses import Loss, find_loss

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gmeql.model.pareto.member import FrontMember
    from gmeql.tables.training import Training


@dataclass(frozen=True)
class CautionConfig:
    """From where on something is worth a sentence."""

    rows_per_constant: int = 5
    """Fewer rows than this for each constant are few."""
    least_rows: int = 10
    """Fewer rows do not tell a column that is nearly the target, nor the tail of a divisor."""
    nearly_the_target: float = 0.9999
    """Squared correlation from which a column is the target in other units."""
    tail: float = 0.05
    """Quantile of a divisor's sizes below which its tail lies."""
    one_value: float = 0.5
    """Share of rows with one and the same target from which the others are another kind of rows."""
    few_values: int = 10
    """Different whole numbers of a column up to which a curve over it is a guess between them, ..."""
    rows_per_value: int = 3
    """... where each stands in so many rows on average."""
    copied: float = 0.05
    """Share of rows that repeat others from which they are worth a word, ..."""
    copies_alike: float = 0.5
    """... where at least this share of the pairs of rows with one target are alike as a whole: in a table of a few whole
    numbers rows are alike by chance, and most with the same target differ elsewhere."""
    met_when_rounded: float = 0.9
    """Share of rows that a formula must meet once its values are rounded as the target is, so that what is left is rounding."""
    beyond_shares: float = 0.02
    """Share of rows from which on values below 0 or above 1 are worth a word, where the target is a share, ..."""
    shares_range: float = 0.5
    """... which takes up that much of the range from 0 to 1."""
    missed: float = 5.99
    """Twice the nats that a constant must save beside 0 to be needed, whatever its interval holds: at 0 the term that it stands
    before may take another constant with it, so that chance reaches this in 5 % of tables (chi squared of two)."""
    looked_at: int = 20_000
    """Rows by which that is asked."""
    ordered_rows: int = 20
    """Rows that a column of whole numbers must put in the order of the target to be a rank of it."""


CAUTIONS = CautionConfig()


def cautions(
    member: FrontMember,
    training: Training,
    predicted: np.ndarray,
    counted: CountedRows,
    *,
    exact: bool,
    outliers: Outliers | None = None,
    chosen: bool = True,
) -> list[str]:
    """Sentences on what speaks against relying on `member`, whose values on the training rows are `predicted` [N].

    What the rows say that are no `outliers` is looked up there. Errors of a formula that is not the `chosen` one say nothing
    about what the search did not find.
    """
    outliers = outliers_in(training, counted, [member.expression]) if outliers is None else outliers
    sentences = []
    if member.outlook is not None and member.outlook.pole:
        sentences.append(
            "Careful: a denominator passes through zero among the rows or just beyond them, so unseen rows may lie at a pole."
        )
    elif chosen and not exact and training.groups is None:
        sentences += _near_a_pole(member.expression, training)
    constants = int(free_constants(member.expression).sum())
    counting = int(np.sum(counted.weights > 0))
    freedom = member.outlook.freedom if member.outlook is not None else None
    if freedom is not None:
        drawn = "drawn towards 0 (ridge regression), as far as errors on rows left out ask for"
        several = f"Its factors are {drawn}: its columns predict together, no factor by itself is to be relied on."
        sentences.append(several if len(member.expression.variables) > 1 else f"Its factor is {drawn}.")
    if counting < CAUTIONS.rows_per_constant * (constants if freedom is None else freedom):
        sentences.append(f"Few rows for {constants} constant{'s' * (constants != 1)}: try it on data it has not seen.")
    residuals = predicted - training.y
    if exact:
        return sentences + forgotten((counted.weights == 0) & (counted.given > 0), counted)
    sentences += _undetermined(member, training, constants, counted)
    loss = find_loss(counted.loss)
    if loss.link is not None:  # a yes is never near a chance of one half
        return sentences
    expected = _expected_sizes(predicted, training.y, loss)
    far = rows_far_away(residuals * np.sqrt(counted.given) / expected)
    # errors of rows that count, in units of what each row's weight lets expect
    rows = counted.weights > 0
    scaled = (residuals * np.sqrt(counted.weights) / expected)[rows]
    sentences += _nearly_the_target(training) + _few_values(member.expression, training)
    copies = copied_rows(training.X, training.y)
    sentences += _copied(copies)
    if member.is_unmoved and not counted.by_the_loss:
        kept = deciding_rows(member, outliers.X, outliers.y, outliers.weights)
        sentences += without_outliers(member, residuals, kept, outliers)
        more = "Its errors there still show a pattern, so there may be more to find: give it more time."
        return sentences + [more] * has_pattern(predicted[kept], residuals[kept])
    if not counted.by_the_loss and varies_by_factors(predicted, training.y, far):
        sentences.append(by_factors(int(far.sum())))
        return sentences
    one_value = _mostly_one_value(training.y)
    if one_value and not counted.by_the_loss:
        return sentences + one_value
    by_size = not counted.by_the_loss and are_in_proportion(predicted, training.y, far)
    if by_size:
        far = rows_far_away(predicted / training.y - 1.0)
    elif not counted.by_the_loss and spread_grows(predicted, residuals * np.sqrt(counted.given), far):
        far = np.zeros_like(far)
    if counted.by_the_loss:
        sentences += forgotten(far, counted)
    elif (far.any() or (not by_size and outliers.behind(residuals))) and not _near_in_proportion(
        member, predicted, training.y
    ):
        errors = predicted / training.y - 1.0 if by_size else residuals * np.sqrt(counted.given) / expected
        sentences += far_away(errors, far, None if by_size else outliers.others)
    of_counts = are_counts(training.y) and spread_as_counts(predicted[rows], training.y[rows], scaled)
    if not far.any() and of_counts and not loss.mean_is_nats:
        sentences.append(
            "The target looks like counts, whose errors grow with them: try loss='poisson' (--loss poisson)."
        )
    elif not far.any() and errors_grow(predicted[rows], training.y[rows], scaled):
        sentences.append("The errors grow with the target: try its logarithm as the target.")
    else:
        once, kept = scaled[~copies[rows]], rows & ~copies
        rounding = _rounding(predicted[kept], training.y[kept]) if has_pattern(predicted[kept], once) else []
        seen = predicted[kept], training.X[kept], training.y[kept], once, np.flatnonzero(kept)
        sentences += rounding or patterns(*seen, chosen=chosen)
        sentences += one_sided(once) if not far.any() and counted.loss == "squared" else []
    return sentences + _beyond_shares(predicted, training.y)


def _rounding(predicted: np.ndarray, y: np.ndarray) -> list[str]:
    """Of a target in steps, such as whole numbers: that the formula meets it once rounded. What is left then has a pattern, that
    of rounding, and nothing more is to be found in it."""
    values = np.unique(y)
    step = float(np.diff(values).min()) if len(values) > 2 else 0.0
    with np.errstate(all="ignore"):
        in_steps = step > 0 and bool(np.allclose(values / step, np.rint(values / step), rtol=0.0, atol=1e-6))
        met = float(np.mean(np.abs(predicted - y) <= 0.5 * step)) if in_steps else 0.0
    if met < CAUTIONS.met_when_rounded:
        return []
    return [
        f"The target is rounded to multiples of {four_digits(step)}: rounded so, the formula meets {percent_text(100 * met)} of "
        "the rows, and what is left shows the pattern of rounding."
    ]


def _beyond_shares(predicted: np.ndarray, y: np.ndarray) -> list[str]:
    """A target that is a share, of which a formula makes less than nothing or more than all."""
    beyond = float(np.mean((predicted < 0.0) | (predicted > 1.0)))
    is_share = float(y.min()) >= 0.0 and float(y.max()) <= 1.0 and np.ptp(y) > CAUTIONS.shares_range
    if not is_share or beyond < CAUTIONS.beyond_shares or len(np.unique(y)) <= 2:
        return []
    return [
        f"The target lies between 0 and 1, the formula beyond that on {percent_text(100 * beyond)} of the rows: if it is a "
        "share, loss='logistic' (--loss logistic) keeps it there."
    ]


def _near_a_pole(expression: Expression, training: Training) -> list[str]:
    """What a formula divides by and rows may come nearer to zero with: where zero is no further beyond the least value than
    the next ones lie before it, as with a column whose values thin out towards it."""
    if len(training.y) < CAUTIONS.least_rows:
        return []
    for part in denominators(expression.root):
        divisor = Expression(part, expression.names)
        with np.errstate(all="ignore"):
            values = divisor(training.X) if divisor.variables else np.zeros(0)
        sizes = np.abs(values)
        if not len(sizes) or not np.isfinite(sizes).all() or values.min() * values.max() <= 0:
            continue
        least, low = float(sizes.min()), float(np.quantile(sizes, CAUTIONS.tail))
        if least < low - least:
            return [
                f"It divides by {shortened(str(divisor), 40)}, which comes as near to 0 as {three_digits(least)}: on rows that "
                "come nearer its values grow without bound, and no row tells whether the target does."
            ]
    return []


def outliers_in(training: Training, counted: CountedRows, formulas: Iterable[Expression]) -> Outliers:
    """Outliers of a table, and what the other rows say, by some formulas."""
    by_group, names = training.groups is not None, tuple(training.names)
    return Outliers(training.X, training.y, counted.given, tuple(formulas), names, by_group)


def _expected_sizes(predicted: np.ndarray, y: np.ndarray, loss: Loss) -> np.ndarray:
    """Sizes [N] of errors that a loss expects, up to a factor: of counts the root of the mean, of relative ones the target."""
    if not (loss.mean_is_nats or loss.is_square):
        return np.ones(len(y))
    assert loss.curvature is not None
    return np.asarray(1.0 / np.sqrt(loss.curvature(predicted, y)))


def _mostly_one_value(y: np.ndarray) -> list[str]:
    """A target that is the same on most rows, such as 0: the others are no outliers, and no errors around a formula."""
    values, counts = np.unique(y, return_counts=True)
    most = int(np.argmax(counts))
    if counts[most] < CAUTIONS.one_value * len(y) or len(values) < CAUTIONS.least_rows:
        return []
    return [
        f"The target is {four_digits(values[most])} on {percent_text(100 * counts[most] / len(y))} of the rows: whether it is "
        "that, and what it is otherwise, may be two questions (gmeql classify answers the first)."
    ]


def _copied(copies: np.ndarray) -> list[str]:
    """Copies are no evidence of their own: with them, everything here sounds surer than it is."""
    count = int(copies.sum())
    if count < CAUTIONS.copied * len(copies):
        return []
    return [
        f"{count:,} of the {len(copies):,} rows are copies of others: unless each was measured by itself, errors on "
        "unseen rows and intervals are wider than stated."
    ]


def _undetermined(member: FrontMember, training: Training, constants: int, counted: CountedRows) -> list[str]:
    """Which constants the data leave open: those without a finite interval, or with one that holds zero."""
    expression = member.expression
    if not expression.variables:
        return []
    try:
        given, loss = training.weights, counted.loss
        intervals = intervals_of(member, expression, training.X, training.y, sample_weight=given, loss=loss)
    except ValueError:  # too few rows, or no slope somewhere: the table of constants says so
        return []
    unknown = [item for item in intervals if not math.isfinite(item.standard_error)]
    near_zero = [item for item in intervals if item not in unknown and item.low <= 0.0 <= item.high]
    if loss == "squared" and not member.is_unmoved and not member.is_shrunk:
        near_zero = [item for item in near_zero if not _is_missed(item.position, expression, training)]
    sentences = []
    for found, said in (
        (unknown, "not determined by the data"),
        (near_zero, f"not distinguishable from 0 (95 % intervals{deciding_text(member, training)})"),
    ):
        values = ", ".join(f"{item.value:.3g}" for item in found)
        of = "constant is" if constants == 1 else f"{constants} constants {'is' if len(found) == 1 else 'are'}"
        start = "Its" if constants == 1 else f"{len(found)} of its"
        sentences += [f"{start} {of} {said}: {values}."] if found else []
    return sentences


def _is_missed(position: int, expression: Expression, training: Training) -> bool:
    """Whether the rows are described clearly worse with a constant at 0 and all others fitted anew (a likelihood ratio).

    The interval of `a` in `a*exp(b*t)` may hold 0 since a larger `b` makes up for a smaller `a`, though the term is sure.
    """
    some = slice(None, None, -(-len(training.y) // CAUTIONS.looked_at))
    X, y = training.X[some], training.y[some]
    weights = np.ones(len(y)) if training.weights is None else training.weights[some]
    without = expression.with_constants([0.0 if k == position else c for k, c in enumerate(expression.constants)])
    with np.errstate(all="ignore"):
        square = converged(expression.root, X, y, weights, SQUARES)[1]
        square_without = converged(without.root, X, y, weights, SQUARES, frozenset({position}))[1]
    if not 0.0 < square < math.inf or not math.isfinite(square_without):
        return False
    return len(training.y) * math.log(square_without / square) > CAUTIONS.missed


def deciding_text(member: FrontMember, training: Training) -> str:
    """By which rows intervals of a member's constants are, where that is not all of them."""
    if not member.is_unmoved:
        return ""
    others = f" by the {int(deciding_rows(member, training.X, training.y, training.weights).sum()):,} rows not far off"
    return others + ", of the level by all" * (member.outlook is not None and member.outlook.levelled)


def _few_values(expression: Expression, training: Training) -> list[str]:
    """Columns of a few whole numbers over which the formula bends: codes of kinds, or steps with nothing between them."""
    sentences = []
    for index in expression.variables:
        values = np.unique(training.X[:, index]) if index < training.X.shape[1] else np.empty(0)
        if not 2 < len(values) <= CAUTIONS.few_values or not (values == np.rint(values)).all():
            continue
        if len(training.y) < CAUTIONS.rows_per_value * len(
            values
        ):  # a short series of whole numbers is measured nowhere else
            continue
        if differentiate(differentiate(expression.root, index), index) == Constant(0.0):
            continue
        name = training.names[index]
        sentences.append(
            f"{name} takes only {len(values)} different values, so its curve between them is a guess; if they are codes of "
            f"kinds, give them as words or as groups (--groups {name})."
        )
    return sentences


def _nearly_the_target(training: Training) -> list[str]:
    """A column that holds the answer: nobody wants the target from itself in other units."""
    X, y = training.X, training.y
    if X.shape[1] < 2 or len(y) < CAUTIONS.least_rows or np.ptp(y) == 0:
        return []
    with np.errstate(all="ignore"):
        centred, target = X - X.mean(axis=0), y - y.mean()
        alike = (centred.T @ target) ** 2 / (np.sum(centred**2, axis=0) * float(target @ target))
    found = [training.names[k] for k in np.flatnonzero(alike > CAUTIONS.nearly_the_target)]
    if found:
        return [f"{found[0]} alone follows the target almost exactly: is it the same quantity in another form?"]
    ranks = [training.names[k] for k in range(X.shape[1]) if _ranks(X[:, k], y)]
    numbered = "numbers the rows in the order of the target: is it a rank of it, or the place in a table sorted by it?"
    return [f"{ranks[0]} {numbered} Then it is not known of other rows."] if ranks else []


def _ranks(column: np.ndarray, y: np.ndarray) -> bool:
    """Whether whole numbers, each once, put rows in the order of the target that do not stand so themselves, as a series may."""
    if len(y) < CAUTIONS.ordered_rows or (column != np.rint(column)).any() or len(np.unique(column)) < len(column):
        return False
    steps, own = np.diff(y[np.argsort(column)]), np.diff(column)
    is_series = bool((own > 0).all() or (own < 0).all())
    return not is_series and bool((steps >= 0).all() or (steps <= 0).all())


def copied_rows(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which rows [N] repeat an earlier one whole; none where rows of few whole numbers are alike by chance."""
    _, first, of_row = np.unique(np.column_stack([X, y]), axis=0, return_index=True, return_counts=True)
    of_target = np.unique(y, return_counts=True)[1]
    copies = np.ones(len(y), bool)
    copies[first] = False
    pairs, alike = (int(np.sum(counts * (counts - 1))) for counts in (of_target, of_row))
    return copies if alike > CAUTIONS.copies_alike * pairs else np.zeros(len(y), bool)


def _near_in_proportion(member: FrontMember, predicted: np.ndarray, y: np.ndarray) -> bool:
    """Whether no row lies far in proportion from a formula whose round exponents may have been judged by that."""
    return member.is_rounded and float(y.min()) > 0 and not rows_far_away(predicted / y - 1.0).any()


def are_in_proportion(predicted: np.ndarray, y: np.ndarray, far: np.ndarray) -> bool:
    """Whether errors grow with a positive prediction, so that rows `far` [N] from it are to be looked for in proportion."""
    if not far.any() or float(y.min()) <= 0 or float(predicted.min()) <= 0:
        return False
    return errors_grow(predicted, y, predicted - y)
