"""The table of selection rules, and the numbers they go by."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.search.config import FrontConfig
from gmeql.search.judging.outlook import Outlook
from gmeql.search.judging.structure import linear_columns, power_columns, structure_nats

RULES = {
    "best": "shortest description of formula and residuals together",
    "accurate": "smallest loss",
    "simple": "largest drop of the loss per unit of complexity",
    "validation": "simplest within one standard error of the best on rows kept from the search",
}
"""The one table of selection rules; `Front.select` says each in full."""

EPS = float(np.finfo(np.float64).eps)
"""Relative rounding of one number."""


@dataclass(frozen=True)
class SelectionConfig:
    """Numbers of the selection rule, with where each comes from."""

    exact_relative: float = 1e-10
    """A loss below this share of the target's spread is rounding: true formulas reach 1e-12, near misses 1e-7."""
    exact_ulps: float = 64.0
    """... or below this many units in the last place of the largest target: the target itself holds no more."""
    comparable: float = 1e3
    """At rounding level, losses within this factor of the smallest count as equal: formulas round differently."""
    unseen_node_nats: float = FrontConfig.unseen_node_nats
    """Price of one unit of complexity where errors on unseen rows are known: those of lucky formulas show by themselves,
    so it is half of what polishing asks. Chosen on messy tables and noisy laws together (benchmarks/trust.py)."""
    form_nats: float = 3.0
    """What a formula pays that is neither a sum of columns nor a power law, where errors on unseen rows are known: of forms
    there are many, and the luckiest of those beats a plain sum by a little on any table; laws do so by far more. From 2 to 5
    all chose alike on messy tables (benchmarks/trust.py); with less, odd forms came before sums that predict better."""
    least_support: float = 0.5
    """A gain over a simpler member must be this many standard errors of the paired difference, row by row."""
    by_chance: float = 0.05
    """Share of shuffles of the target in which chance may do as well as a formula that is still chosen before a constant: the
    usual level of a test."""
    clearly_less: float = 0.95
    """Share of the error that a sum of some columns promises below which the sum of all, drawn towards 0, takes its place."""
    hardly_more: float = 1.05
    """Multiple of the error of columns chosen anew, without the rows that judge, up to which the sum of all may err where
    it is briefer."""
    about_as_much: float = 1.1
    """Multiple of the error on rows left out up to which that sum may err where it is briefer: the luckiest of many columns errs
    by less there than it does on others."""
    pole_price: float = FrontConfig.pole_price
    """The squared error of a formula with a pole among the rows counts this many times, as while the search goes on."""
    standard_errors: float = 1.0
    """Validation rule: the simplest member within this many standard errors of the best (Breiman et al., 1984). A sum of
    columns drawn towards 0 takes the place of a constant only beyond as many of the paired difference, which tables of
    nothing but noise seldom reach."""


SELECTION = SelectionConfig()


def stating_nats(root: Node, n_columns: int) -> float:
    """What it takes to say which formula it is, where errors on unseen rows are known."""
    is_plain = linear_columns(root) is not None or power_columns(root) is not None
    form = 0.0 if is_plain else SELECTION.form_nats
    return structure_nats(root, n_columns, node_cost=SELECTION.unseen_node_nats) + form


def rounding_level(target_spread: float, target_largest: float) -> float:
    """Loss below which two formulas cannot be told apart: what rounding of the target and of a few terms leaves."""
    return max(SELECTION.exact_ulps * EPS * target_largest, EPS * target_spread, float(np.finfo(np.float64).tiny))


def is_next_to_zero(mean: float, target_spread: float, rows: float) -> bool:
    """Whether a mean says no more than 0, which takes no constant to state: log(N) standard errors squared.

    Else a slope through zero, which has as many constants as a mean, took the place of one that is not needed.

    >>> is_next_to_zero(0.1, 1.0, 100), is_next_to_zero(0.5, 1.0, 100)
    (True, False)
    """
    return abs(float(mean)) * math.sqrt(rows / math.log(max(rows, 2.0))) < target_spread  # squares may overflow


def excess_of_zero(expression: Expression, target_spread: float) -> float:
    """By how much the logarithm of the squared error of 0 lies above that of a mean that stands for it: who states no
    constant has 0 and not the mean.

    >>> from gmeql.formula.nodes import Constant
    >>> excess_of_zero(Expression(Constant(0.1)), 1.0) > excess_of_zero(Expression(Constant(0.0)), 1.0) == 0.0
    True
    """
    if expression.variables or not expression.constants or not target_spread > 0:
        return 0.0
    return math.log1p(min(abs(float(expression.constants[0])) / target_spread, 1.0) ** 2)


def is_beyond_chance(shrunk: Outlook, constant: Outlook) -> bool:
    """Whether a sum with factors drawn towards 0 says more than chance does with the target shuffled; where nobody asked, whether
    it promises less error than a constant by a standard error."""
    if shrunk.chance is not None:
        return shrunk.chance <= SELECTION.by_chance
    return shrunk.error < constant.error and shrunk.support >= SELECTION.standard_errors


def errs_less_chosen_anew(shrunk: Outlook, n_columns: int, n_all: int, is_briefer: bool) -> bool | None:
    """Whether a sum with factors drawn towards 0 errs less than a sum of so many columns that are chosen anew, without the rows
    that judge, or of as many as these rows allow, or hardly more and is briefer; None where nobody asked that, or where these
    are all, of which none was chosen."""
    if not 0 < n_columns < n_all or not shrunk.chosen_anew:
        return None
    times = shrunk.chosen_anew[min(n_columns, len(shrunk.chosen_anew)) - 1]
    return times > 1.0 or (is_briefer and times * SELECTION.hardly_more > 1.0)
