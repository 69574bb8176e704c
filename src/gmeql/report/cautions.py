"""What to be careful about with a formula: poles, constants without evidence, rows that lie far from it, patterns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gmeql.model.front import free_constants
from gmeql.model.intervals import constant_intervals
from gmeql.model.weighing import CountedRows

from gmeql.report.numbers import percent_text
from gmeql.search.losses import Loss, find_loss

if TYPE_CHECKING:
    from gmeql.formula.expression import Expression
    from gmeql.model.front import FrontMember
    from gmeql.tables.read import Training


@dataclass(frozen=True)
class CautionConfig:
    """From where on something is worth a sentence."""

    rows_per_constant: int = 5
    """Fewer rows than this for each constant are few."""
    pattern_z: float = 3.0
    """Lag-one correlation of the residuals, in its standard errors, that counts as a pattern."""
    least_rows: int = 10
    """Fewer rows show no pattern."""
    far: float = 6.0
    """Robust standard deviations beyond which a row lies far from the formula: one normal row in 500 million does."""
    most_far: float = 0.4
    """A larger share of such rows is no share of outliers."""
    robust_share: float = 0.5
    """Outliers matter where the robust standard deviation is below this share of the RMSE."""
    skewed: float = 5.0
    """A positive target whose 95 % quantile is this multiple of its 5 % quantile spans orders."""
    growing: float = 3.0
    """Rank correlation of sizes of errors with the prediction, in its standard errors, that counts as growth, ..."""
    least_growth: float = 0.3
    """... and the least correlation that matters."""


CAUTIONS = CautionConfig()
NORMAL_MEDIAN = 1.4826  # standard deviation over median absolute deviation, of a normal distribution


def cautions(
    member: FrontMember, training: Training, predicted: np.ndarray, counted: CountedRows, *, exact: bool
) -> list[str]:
    """Sentences on what speaks against relying on `member`, whose values on the training rows are `predicted` [N]."""
    sentences = []
    if member.outlook is not None and member.outlook.pole:
        sentences.append("Careful: a denominator passes through zero among the rows, so unseen rows may lie at a pole.")
    constants = int(free_constants(member.expression).sum())
    counting = int(np.sum(counted.weights > 0))
    if counting < CAUTIONS.rows_per_constant * constants:
        sentences.append(f"Few rows for {constants} constants: try it on data it has not seen.")
    residuals = predicted - training.y
    if exact:
        return sentences + _far_away((counted.weights == 0) & (counted.given > 0), counted)
    sentences += _undetermined(member.expression, training, constants, counted)
    loss = find_loss(counted.loss)
    if loss.link is not None:  # a yes is never near a chance of one half
        return sentences
    expected = _expected_sizes(predicted, training.y, loss)
    far = rows_far_away(residuals * np.sqrt(counted.given) / expected)
    sentences += _far_away(far, counted)
    # errors of rows that count, in units of what each row's weight lets expect
    rows = counted.weights > 0
    scaled = (residuals * np.sqrt(counted.weights) / expected)[rows]
    if not far.any() and errors_grow(predicted[rows], training.y[rows], scaled):
        sentences.append("The errors grow with the target: try its logarithm as the target.")
    elif has_pattern(predicted[rows], scaled):
        sentences.append("Its errors still show a pattern, so there may be more to find: give it more time.")
    return sentences


def _expected_sizes(predicted: np.ndarray, y: np.ndarray, loss: Loss) -> np.ndarray:
    """Sizes [N] of errors that a loss expects, up to a factor: of counts the root of the mean, of relative ones the target."""
    if not (loss.mean_is_nats or loss.is_square):
        return np.ones(len(y))
    assert loss.curvature is not None
    return np.asarray(1.0 / np.sqrt(loss.curvature(predicted, y)))


def _far_away(far: np.ndarray, counted: CountedRows) -> list[str]:
    """Rows [N] far from the formula: what the loss makes of them, or which loss would forget them."""
    count = int(far.sum())
    if count == 0:
        return []
    rows, them = ("1 row lies", "it") if count == 1 else (f"{count} rows lie", "them")
    if not counted.by_the_loss:
        return [f"{rows} far from it: outliers? loss='robust' (--loss robust) gives {them} no weight."]
    share = counted.share(far)
    weight = "no weight" if share == 0 else f"{percent_text(100 * share)} of the weight"
    return [f"{rows} far from it; the loss gives {them} {weight}."]


def _undetermined(expression: Expression, training: Training, constants: int, counted: CountedRows) -> list[str]:
    """Which constants the data leave open: those without a finite interval, or with one that holds zero."""
    if not expression.variables:
        return []
    try:
        intervals = constant_intervals(
            expression, training.X, training.y, sample_weight=training.weights, loss=counted.loss
        )
    except ValueError:  # too few rows, or no slope somewhere: the table of constants says so
        return []
    open_ones = [item for item in intervals if not math.isfinite(item.standard_error) or item.low <= 0.0 <= item.high]
    if not open_ones:
        return []
    values = ", ".join(f"{item.value:.3g}" for item in open_ones)
    verb = "is" if len(open_ones) == 1 else "are"
    of = "constant is" if constants == 1 else f"{constants} constants {verb}"
    start = "Its" if constants == 1 else f"{len(open_ones)} of its"
    return [f"{start} {of} not determined by the data: {values}."]


def rows_far_away(residuals: np.ndarray) -> np.ndarray:
    """Which residuals [N] are outliers; none where they are too many for that or do not matter.

    Centre and scale are those of the middle half, `s = 1.4826 median |r - median r|`, which outliers do not move: on one
    side of a fit they pull it towards themselves.
    """
    sizes = np.abs(residuals - np.median(residuals))
    scale = NORMAL_MEDIAN * float(np.median(sizes))
    if not scale < CAUTIONS.robust_share * math.sqrt(float(np.mean(sizes**2))):
        return np.zeros(len(residuals), bool)
    far = sizes > CAUTIONS.far * scale
    return far if far.sum() < CAUTIONS.most_far * len(residuals) else np.zeros(len(residuals), bool)


def errors_grow(predicted: np.ndarray, y: np.ndarray, residuals: np.ndarray) -> bool:
    """Whether a positive target spans orders and the sizes of errors rise with the prediction (rank correlation)."""
    low, high = np.quantile(y, [0.05, 0.95])
    if len(y) < CAUTIONS.least_rows or float(y.min()) <= 0 or high < CAUTIONS.skewed * low:
        return False
    if np.ptp(predicted) == 0:
        return False
    ranks = [np.argsort(np.argsort(values, kind="stable")) for values in (predicted, np.abs(residuals))]
    correlation = float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    return correlation > max(CAUTIONS.least_growth, CAUTIONS.growing / math.sqrt(len(y)))


def has_pattern(predicted: np.ndarray, residuals: np.ndarray) -> bool:
    """Whether residuals, in the order of the prediction, resemble their neighbours more than chance does.

    Lag-one correlation against its standard error 1/sqrt(N).
    """
    residuals = residuals[np.argsort(predicted, kind="stable")]
    residuals = residuals - residuals.mean()
    size = float(np.sum(residuals**2))
    if len(residuals) < CAUTIONS.least_rows or size == 0:
        return False
    correlation = float(np.sum(residuals[1:] * residuals[:-1])) / size
    return correlation * math.sqrt(len(residuals)) > CAUTIONS.pattern_z
