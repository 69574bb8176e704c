"""Numbers of the search with groups, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GroupConfig:
    """Numbers of the search with groups, each with its reason."""

    searched: int = 16
    """Groups, the largest ones, that candidates are fitted to; formulas are judged on all."""
    rows_each: int = 32
    """Rows of a group that candidates are fitted to at least, as far as it has them: several times the constants."""
    least_rows: int = 5
    """Rows that the largest group must have: fewer cannot tell two constants from noise."""
    most_groups: int = 5000
    """Groups that a table may have."""
    refit_steps: int = 30
    joint_steps: int = 40
    """Levenberg-Marquardt steps of one formula in every group by itself, and in all together."""
    shared_at_once: int = 5
    """Formulas of one offer whose constants are shared out."""
    joint_tolerance: float = 1e-8
    """Relative gain of a step below which such a fit ends."""
    lost: float = 10.0
    """A group whose relative error is this many times that of the better groups may sit in a local minimum ..."""
    better: float = 0.25
    """(the quantile of the groups that are the better ones: waves of different frequencies lose more than half)"""
    lost_starts: int = 32
    """... and is given this many starts more,"""
    jitter: float = 0.7
    """spread by this standard deviation of the logarithm around the constants of groups that are met."""
    kept_starts: int = 8
    """Groups that lend their constants so."""
    looked: int = 3
    """Groups, the largest ones, that direct methods look at one by one: what they see in one may hold in all."""
    longer: float = 2.0
    """Times the share of the budget that direct methods get without groups: they look at several tables, and candidates
    that every group must be fitted by are slow."""
    seen_most: int = 6
    """Formulas of different shape, seen so, that are fitted to all groups."""
    surplus: float = 1e-10
    """Share of the largest singular value of a group's slopes below which its rows leave constants open: what two constants
    do alike leaves 1e-16 to 1e-13."""
    whole: float = 1e-4
    """How far from a whole number an exponent of such constants may be,"""
    most_exponent: int = 3
    """and the largest that is looked for: constants stand in squares and cubes, hardly in more."""
    alike: float = 1e-9
    """Relative spread between groups below which a constant is the same in all."""
    ridge: float = 1e-12
    """Share of the largest diagonal entry added to the equations of a group, whose rows may leave a constant open."""


GROUPS = GroupConfig()
