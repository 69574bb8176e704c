"""Numbers of the search for symmetries, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SymmetriesConfig:
    """Numbers of the surrogate and of what is read off its slopes, each with its reason. Errors are in units of std(y).

    A proposal need only be plausible: a new surrogate on the smaller table decides. So the bounds are wide.
    """

    # where symmetries are looked for
    max_variables: int = 10
    max_views: int = 4
    """Smaller tables handed on; each takes its share of the islands."""
    rows: int = 700
    """Rows of the surrogate, whose cost grows with their cube."""
    rows_per_variable: int = 20
    """Fewer rows per variable are too few to tell a symmetry from chance."""
    far: float = 10.0
    """A column is far from zero where its middle is so many times half its range."""

    # the surrogate
    learning_rows: int = 150
    """Rows that its lengths are learnt from: on 200 laws of four collections as many right tables were seen as with 200, in
    0.7 of the time."""
    largest_ratio: float = 1e4
    """A positive column is read by its logarithm up to this ratio of largest to smallest, a target up to its square."""
    even_quantiles: tuple[float, float, float] = (0.02, 0.5, 0.98)
    even: float = 3.0
    """... and beyond where these quantiles of its logarithm lie evenly, one distance at most so many times the other."""
    many: float = 1e3
    """Ratio of the 95 % to the 5 % quantile of the target's size from which its relative error counts."""
    good: float = 1e-5
    """Error below which no other heights are tried."""
    plane: float = 1e-9
    """Largest relative residual of a plane; then no process is fitted over it."""
    jitters: tuple[float, ...] = (1e-12, 1e-10, 1e-8)
    """Share of the amplitude on the diagonal, so that the kernel is positive definite after rounding: the first that does."""
    typical_share: tuple[int, int] = (9, 10)
    """Rows whose squares count in a typical size: a surrogate is weak in the corners."""

    # learning its lengths: logarithms, of lengths in units of a column's spread
    middle_length: float = 0.7
    """Start, and middle of a weak prior."""
    short_length: float = -1.0
    """A second start where there are at most two columns: a wave may be short."""
    length_prior: float = 0.05
    length_bounds: tuple[float, float] = (-3.0, 5.0)
    amplitude_start: float = 0.7  # above the log of the residuals' size, as all that follow
    amplitude_bounds: tuple[float, float] = (-3.0, 6.0)
    noise_start: float = -3.5
    noise_bounds: tuple[float, float] = (-14.0, 1.0)
    learning_steps: int = 30
    learning_tolerance: float = 1e-5
    """Share of the loss, some thousandths of a nat, by which a step must lower it to be followed by another: on three laws
    whose smaller tables stayed the same the look took 0.72 to 0.86 of the time."""
    not_definite: float = 1e10
    """Loss of lengths for which the kernel is not positive definite."""

    # believing a proposal
    hopeless: float = 0.5
    """Error of a surrogate that has understood nothing,"""
    hardly: float = 0.9
    """or share of the error of a constant, where few rows make up the target's spread."""
    negligible: float = 3e-4
    """Error at which a surrogate is taken as perfect."""
    understood: float = 0.25
    """Error of a surrogate from which the reading that serves it best says nothing about smaller tables."""
    rough: float = 1e-3
    """Error of a surrogate from which several proposals are compared instead of taking the first that holds,"""
    far_better: float = 0.5
    """until one leaves less than this share of the error."""
    allowed_growth: float = 1.02
    """Factor by which the error may grow on a smaller table."""

    # two columns merged into one
    powers: tuple[float, ...] = (1.0, 2.0, -1.0, 3.0, -2.0, 0.5)
    merges_tried: int = 3
    least_slope: float = 1e-3
    """Columns that matter less than this share of the one that matters most are not merged."""
    ratio_slack: float = 0.1
    """How far from 1 the ratio of the two slopes may be."""
    merge_misfit: float = 0.1
    rough_misfit: float = 0.3
    """... where slopes are rough,"""
    roughness: float = 8.0
    """which are off by so many times the surrogate's error."""
    power_cost: float = 0.002
    """Misfit by which a power must pay per unit of its exponent."""

    # units
    near_null: float = 0.1
    """Directions whose slopes are below this share of the largest may be symmetries."""
    null_gap: float = 0.5
    """Ratio between the slopes of symmetries and of the rest that counts as a gap."""
    inner_rows: float = 0.95
    """Quantile of the rows by size beyond which slopes are not believed."""
    least_pivot: float = 1e-2
    fraction_slacks: tuple[tuple[int, float], ...] = ((1, 0.25), (2, 0.15), (3, 0.1))
    """Exponents are read as whole numbers, halves or thirds, each within its slack."""
    largest_exponent: float = 12.0
    singular: float = 1e-6
    """Determinant below which columns cannot serve as units together."""
    root_cost: float = 2.0
    """What a fractional power in a view costs beside its size: J/(m r²) and r√m/√J are one column, but a law that is short
    in the first is long in the second, and under noise its look-alikes come before it."""
    unit_choices: int = 20_000
    """Choices of columns as units that are looked at, at most."""
    unit_views_tried: int = 40
    unit_views: int = 6
    """Tables that given units make: all hold the law, and the simplest is not known beforehand."""
    unit_parts: int = 6
    """Powers of units are multiples of one over this: halves and thirds."""

    # a factor of one column
    factors_tried: int = 2
    factor_misfit: float = 0.2
    pair_misfit: float = 0.02
    """Misfit of two functions of a column, or of less plain ones, as a factor: they bend to much, noise among it."""
    pair_gain: float = 0.1
    """... and its share of the best misfit of a power or one of the plainest functions."""
    largest_power: float = 6.0
    """Exponent of such a function, at most."""
    least_angle_range: float = 0.5
    """Range of a column (radians) below which a sine cannot be told from a power."""
    largest_exponential: float = 50.0
    """Size of a column up to which its exponential may be a factor."""

    # two columns read as one product, or as one sum behind a power
    joined_parts: tuple[str, ...] = ("column", "cos", "sin", "add")
    """Kinds of functions of a column in such a product: itself, waves, and 1 beside a power."""
    joined_power: float = 3.0
    joined_powers: tuple[float, ...] = (1.0, 2.0)
    joined_tried: int = 2
    part_cost: float = 0.01
    """Misfit by which a function of a column must pay where the column itself would do."""

    # of a formula
    formula_rows: int = 200
    formula_slacks: tuple[float, ...] = (1e-3, 0.02)
    """Shares of a formula's slopes that a smaller table may not explain: the formula itself is only nearly right, and
    exponents that were fitted are not quite those of the symmetry."""

    # under noise: a smooth fit by linear algebra
    smooth_degrees: tuple[int, ...] = (12, 8, 5, 4, 3, 2)
    """Degree of its polynomial at most, of one column, two, and so on; the last of all beyond."""
    least_apart: float = 1e-4
    """Share of a term that must be left beside those before it, or normal equations would lose half of the digits."""
    rows_per_term: float = 6.0
    least_left_out: float = 0.05
    """Share of its residual that a row keeps when it is left out, at least: one that decides alone is not divided by 0."""
    least_one_sign: float = 0.8
    """Rows on which the target has one sign, from which a product of powers may stand before the polynomial."""
    power_steps: int = 8
    power_gain: float = 1e-3
    """Share of the loss by which a step of these powers must lower it to be followed by another."""

    # ... and the smaller tables that it does not speak against
    noisy: float = 0.04
    """Error of a surrogate from which its slopes are not believed alone."""
    noisy_rows: int = 1000
    noisy_rows_per_variable: int = 30
    noisy_beam: tuple[int, ...] = (3, 3, 3, 2, 1)
    """Tables that go on to the next size, of one column, two, and so on; the last of all beyond."""
    noisy_sizes: int = 3
    """Sizes of tables of which one is handed on, the smallest: those may say less than there is."""
    noisy_tried: int = 24
    """Symmetries of a table that are tried, in the order of what slopes say."""
    noisy_spreads: float = 2.0
    """Standard deviations by which left-out rows may be predicted worse than by the best fit."""
    noisy_symbol: float = 2.0
    """Nats that a symbol of a view costs beside its errors."""
    noisy_powers: tuple[float, ...] = (1.0, -1.0, 2.0, -2.0)
    noisy_degrees: tuple[float, ...] = (
        0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1.5, -1.5, 4.0, -4.0, 5.0, -5.0, 6.0, -6.0,
    )  # fmt: skip
    noisy_merged: tuple[float, ...] = (1.0, 2.0, -1.0)


SYMMETRIES = SymmetriesConfig()
