"""Whether errors resemble their neighbours, in the order of the prediction or in that of the rows, in sentences.

The correlation of each error with the next is asked twice. By the errors themselves: these are what a better formula would lower.
And by their ranks, each pair in the size that it has: otherwise the two largest of a heavy tail, side by side by chance, make a
correlation of any size, and errors that grow with the prediction, each beside others as large, make it vary more than 1/sqrt(N).
Ranks alone would not do: where one far row turns a line, the ranks of all others follow it.

Legend: `N` rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PatternConfig:
    """From where on errors resemble their neighbours."""

    sure: float = 3.0
    """Standard errors that both correlations must be above 0, by which 0.1 % of normal errors in random order are. Of 2,000
    tables each with 30, 60, 200 and 1,000 rows that show nothing it were at most 0.25 % of any with normal, Student's (1, 2
    degrees), log-normal, counted, rare and growing errors. By the errors alone log-normal ones were 2.3 %, growing ones 32 %;
    those that grow and are skewed as well are up to 3.5 %."""
    least_rows: int = 10
    """Fewer rows show no pattern."""
    seed: int = 0
    """Of the order of rows with one and the same prediction."""


PATTERNS = PatternConfig()


def patterns(
    predicted: np.ndarray, X: np.ndarray, y: np.ndarray, residuals: np.ndarray, places: np.ndarray, *, chosen: bool
) -> list[str]:
    """What errors [N] show in the order of the prediction, and in that of the rows (`places`) where they show more there."""
    drifts = chosen and has_pattern(places, residuals) and not _sorted_by_target(X, y)
    if has_pattern(predicted, residuals):
        ordered = neighbours_correlation(residuals[_order(predicted)])
        if not drifts or neighbours_correlation(residuals) < ordered + 1.0 / math.sqrt(len(residuals)):
            more = ", so there may be more to find: give it more time." if chosen else ": it does not say all."
            return [f"Its errors still show a pattern{more}"]
    return [_drifting(residuals, is_constant=np.ptp(predicted) == 0)] if drifts else []


def has_pattern(order_by: np.ndarray, residuals: np.ndarray) -> bool:
    """Whether residuals [N], in the order of something, resemble their neighbours more than chance does. A constant has no
    order."""
    if len(residuals) < PATTERNS.least_rows or np.ptp(order_by) == 0:
        return False
    ordered = residuals[_order(order_by)]
    if not neighbours_correlation(ordered) * math.sqrt(len(ordered)) > PATTERNS.sure:
        return False
    ranks = _centred_ranks(ordered)
    products = ranks[1:] * ranks[:-1]
    return float(products.sum()) > PATTERNS.sure * math.sqrt(float(np.sum(products**2)))


def neighbours_correlation(residuals: np.ndarray) -> float:
    """Of each residual [N] with the next; 0 where all are equal."""
    residuals = residuals - residuals.mean()
    size = float(np.sum(residuals**2))
    return float(np.sum(residuals[1:] * residuals[:-1])) / size if size > 0 else 0.0


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks [N], equal values with one rank, less their mean."""
    _, of_value, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - 0.5 * (counts - 1)
    return np.asarray(middles[of_value] - 0.5 * (len(values) + 1))


def _order(by: np.ndarray) -> np.ndarray:
    """Rows in the order of something; those where it is equal in any order, since theirs in the table is asked by itself."""
    shuffled = (
        np.random.default_rng(PATTERNS.seed).permutation(len(by))
        if len(np.unique(by)) < len(by)
        else np.arange(len(by))
    )
    return shuffled[np.argsort(by[shuffled], kind="stable")]


def _sorted_by_target(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether the rows stand in the order of the target, so that neighbours are alike whatever the formula. A series that rises
    all along has a column that does so too, such as the time."""
    return _is_sorted(y) and not any(_is_sorted(column) for column in X.T)


def _is_sorted(values: np.ndarray) -> bool:
    steps = np.diff(values)
    return bool((steps >= 0).all() or (steps <= 0).all()) and np.ptp(values) > 0


def _drifting(residuals: np.ndarray, *, is_constant: bool) -> str:
    """What rows are worth whose errors resemble those of the row before: with a correlation r as much about a slope as
    N (1 - r)/(1 + r) others. Two series that drift resemble each other by chance (Granger and Newbold 1974)."""
    correlation = neighbours_correlation(residuals)
    worth = max(round(len(residuals) * (1.0 - correlation) / (1.0 + correlation)), 1)
    text = "Errors of neighbouring rows are alike, as in a time series: a column that drives them may be missing, and later "
    text += "rows may lie further off than stated."
    others = "1 other row" if worth == 1 else f"{worth} other rows"
    if is_constant:
        return f"{text} About its level these tell as much as {others}, so its interval should be wider than stated."
    return f"{text} About a slope these tell as much as {others}: columns that drift resemble the target by chance."
