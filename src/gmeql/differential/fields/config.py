"""Everything that steers `GMEQLField`: one frozen config, its numbers with their reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldConfig:
    """Numbers of reading a law off a grid."""

    least_points: int = 12
    """Points along an axis: fewer hold no fourth derivative."""
    even: float = 0.01
    """Part of a step up to which a point may lie beside its place on an even grid: files hold rounded coordinates."""
    seam: float = 3.0
    """An axis is periodic where the step over its seam is no larger than so many typical steps, slope and all."""
    orders: tuple[int, ...] = (4, 2, 2)
    """Highest derivative by default, for one, two and three dimensions of space."""
    degree: int = 3
    """Highest degree of products of fields among the terms on offer."""
    coordinate_powers: tuple[int, ...] = (-2, -1, 1, 2)
    """Powers of a coordinate that derivatives are offered with, where the law may depend on it."""
    quiet: float = 1e-5
    """Noise, relative to the spread, below which derivatives are taken as exactly as the grid allows."""
    difference: int = 6
    """Differences of this order see the noise and little else."""
    polynomial: int = 6
    """Degree of local polynomials (Savitzky and Golay 1964)."""
    exact_half_width: int = 4
    """Points to each side of a local polynomial without noise: differences of eighth order."""
    smooth_lengths: float = 1.0
    """Half width of a local polynomial with noise, in correlation lengths."""
    bump_lengths: float = 4.0
    """Half width of test functions, in correlation lengths of the field along each axis: they weigh what lies within a
    quarter of it ..."""
    least_bump: int = 8
    bump_points_per_order: int = 2
    """... but so many points at least, more for each order of the law's highest derivative, so that sums over the grid are
    integrals, and
    at most this share of the axis:"""
    largest_bump: float = 0.22
    bump_power: int = 8
    """Test functions (1 - s**2)**power: smooth enough for four derivatives and for the sum to be the integral
    (Messenger and Bortz 2021)."""
    rows_per_bump: int = 4
    """Test functions that stand along the half width of one."""
    most_rows: int = 6000
    beam: int = 30
    """Sums of terms carried on at a time."""
    most_terms: int = 10
    ridge: float = 1e-13
    """Added to normal equations of terms that are sums of each other."""
    dependent: float = 1e-12
    """Squared share of a term that others do not hold, below which it is one of their sums."""
    folds: int = 5
    term_nats: float = 4.0
    """Price of a term, in nats of the description of independent test functions."""
    floor: float = 1e-4
    """Relative residual that counts as none: what sums differ from integrals by."""
    search_points: int = 600
    """Points of the grid that the open-form search sees."""
    first_candidates: int = 20_000
    """Formulas it tries, for each field."""
    polished: int = 1
    """Its formulas that are cut to shape at the end: terms are selected afterwards anyway."""
    least_seconds: float = 0.5
    """Time it gets even where none is left."""
    max_complexity: int = 30
    """Size of its formulas: longer laws are sums, which the selection of terms finds."""
    found_terms: int = 12
    """Terms of its formulas that are offered beside products of fields and derivatives."""
    large: float = 1e8
    """A simulation that grows beyond this share of the data has failed."""
    dense_points: int = 1600
    """Unknowns up to which a simulation is taken by an implicit method."""


FIELDS = FieldConfig()
