"""The numbers by which laws of motion are found, with where each comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TrajectoryConfig:
    """What counts as a trajectory."""

    min_points: int = 6  # a curve, its slope and its noise need more than a parabola's four
    gap: float = 10.0  # an interval this many times as long as both its neighbours is not bridged
    longest: int = 500  # points smoothed together: the cost grows with their cube


@dataclass(frozen=True)
class SmoothingConfig:
    """Curves through noisy points: Gaussian processes (Rasmussen and Williams 2006, chapters 2, 4 and 5)."""

    exact: float = 1e-4  # noise, relative to the spread, below which points are interpolated
    degree: int = 5  # of the interpolating spline: its slope is accurate to the fifth order of the step
    least_noise: float = 1e-6  # relative; keeps the covariance invertible
    scales: int = 16  # length scales tried between the step and the duration, then as few again around the best
    finer: int = 5
    growing_shares: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)  # of noise that grows with the value
    grid: int = 4  # points of the smooth curve for each measured one
    most_grid: int = 1200


@dataclass(frozen=True)
class WeakConfig:
    """Integral form: both sides against bumps (1 - s²)^p (Messenger and Bortz 2021, doi 10.1137/20M1343166)."""

    widths: tuple[float, ...] = (0.06, 0.15, 0.4)  # of a bump, in shares of the duration
    least_points: float = 6.0  # measured points that a bump spans at least
    shift: float = 0.25  # from one bump to the next, in widths
    exponent: int = 4  # p
    floor: float = 1e-6  # residual, relative to the size of the left side, that counts as none
    steps: int = 15  # of a fit,
    tolerance: float = 1e-12  # which ends where a step gains or moves less than this share
    least_error: float = 1e-3  # of an equation, in shares of the largest: more of them are not worth more


@dataclass(frozen=True)
class TermConfig:
    """Sums of products and of parts that the search found."""

    degree: int = 3
    most_terms: int = 80  # monomials of a lower degree only where there would be more
    scales: tuple[float, ...] = (0.1, 0.22, 0.46, 1.0, 2.2, 4.6, 10.0)  # of saturating terms, in typical sizes
    steepness: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)  # of switches, in spreads of their column
    largest_exponent: float = 30.0  # of a switch at the middle of the values: its factor stays a number
    found_terms: int = 24  # further terms, out of formulas that the search found
    of_others: int = 2  # equations of each other state whose terms are tried in a state's own
    largest: int = 6  # terms of a sum
    beam: int = 80  # sums of each length carried on
    kept: int = 8  # ... and handed on,
    kept_scaled: tuple[int, ...] = (10, 25, 25)  # of one, two, three terms where some hold constants: fits tell


@dataclass(frozen=True)
class ShootingConfig:
    """Multiple shooting (Bock 1983): short pieces, integrated side by side, tied at their ends."""

    points: int = 8  # measured points of a piece
    tolerance: float = 1e-9  # integration error, relative to the spread, for which steps are halved,
    quick_tolerance: float = 1e-7  # where systems are only compared,
    noise_share: float = 0.01  # and in shares of the noise where there is noise
    most_halvings: int = 4  # a system that needs finer steps on such short pieces is not the one
    loose: float = 1.0  # weight of the ties while constants are far off
    tight: float = 30.0  # ... and at the end
    loose_steps: int = 8
    tight_steps: int = 25
    quick_steps: int = 8  # where systems are only compared
    largest: float = 1e3  # states beyond this many spreads are cut off


@dataclass(frozen=True)
class SystemConfig:
    """Comparing systems."""

    shortlist: int = 14  # equations of each state that enter the comparison
    combined: int = 6  # ... the first of them in combinations with those of other states,
    combinations: int = 40  # ... so many,
    pruned: int = 6  # ... the best of them pruned
    exact: float = 1e-7  # misfit, relative to the spread, below which systems count as exact: the integration's level
    function_cost: float = 4.0  # nats more for a sine, exponential, ...: powers and fractions are tried before them,
    usual_power: float = 3.0  # ... whole ones up to this; as in `TermConfig.degree`
    degree_cost: float = 2.5  # nats for a product of more than
    usual_degree: int = 2  # ... columns: 14 of the 163 terms in `benchmarks/dynamics/systems.py` are such, log(163/14)
    pole_cost: float = 10.0  # nats for a term that has a pole near the measured states, as in `runaway_cost`
    node_cost: float = 1.0  # nats for a unit of complexity, as in `SelectionConfig.unseen_node_nats`
    sweeps: int = 3
    plain_share: float = 0.05  # of the time, at most, for sums of products, where there is no noise,
    proposal_share: float = 0.1  # ... for fits of equations in integral form,
    first_share: float = 0.3  # ... until systems of sums alone have been compared
    search_share: float = 0.55  # ... until the search for formulas has ended
    reserve: float = 0.08  # ... kept for the last refit
    others: int = 60  # formulas beyond the front of a search that are looked at
    search_rows: int = 300  # points of the curves that the search sees
    better: float = 0.7  # residual of an equation, relative to a simpler one's, for which it is compared too
    tries: int = 3  # fits of one structure
    lost: float = 10.0  # nats behind the best for which a system is fitted from its own start once more
    cuts: int = 3  # terms that are tried to be left out at a time
    near_one: float = 2.0  # standard errors from 1 up to which a factor may be left out
    near_equal: float = 3.0  # standard errors up to which constants of a term in two equations may be the same
    certain: float = 12.0  # standard errors from zero up to which a coefficient may be left out
    cliff: float = 100.0  # a system is exact where every simpler one is so many times as far from the measurements
    other_starts: int = 16  # starts that nobody measured, for each trajectory, from which finalists are followed,
    beyond: float = 0.5  # ... up to so many ranges of the states beyond what was measured
    runaway_cost: float = 10.0  # nats for a system that runs away from all of them
    lost_alone_cost: float = 10.0  # ... and at most for one that loses the measurements in one run from the first point
    refit_lost: float = 1.0  # nats lost in one run for which constants and start are fitted to it
    negative: float = 0.1  # in its largest value, how far a state that was never negative must not fall below zero
    finalists: int = 60  # systems that are followed at most


@dataclass(frozen=True)
class JointConfig:
    """Choosing the terms of all equations together."""

    tested_together: int = 12  # terms whose slopes are looked at in one integration
    faint: float = 1e-4  # coefficient of a term that is added, for which it moves the state by this share
    additions: int = 6  # terms that each equation is tried with, beyond its own, on average
    plain: int = (
        20  # products and simple functions on offer for each equation, those that the trajectories ask for most
    )
    asked: int = 20  # ... and terms of any kind
    beam: int = 60  # choices for one equation carried on at a time by a term more or less,
    joint_beam: int = 12  # ... for all of them,
    exchanged: int = 4  # ... and the best of them by one in place of another, too
    steps: int = 20
    patience: int = 3  # steps without a shorter description
    combined: int = 4  # choices for each equation that are tried with those for the others
    kept: int = 12  # systems that are fitted then
    bases: int = 4  # systems of the shortest descriptions whose slopes are looked at


@dataclass(frozen=True)
class InvariantConfig:
    """Quantities that stay constant."""

    terms: int = 4  # of a sum
    beam: int = 1000  # sums of each length carried on: parts of a quiet sum need not be quiet
    largest: float = 0.1  # variation, relative to chance, above which nothing counts as conserved
    exact: float = 1e-5  # ... and below which it counts as none: curves are no better
    noise_share: float = 0.5  # of the states' noise that is left in their curves


@dataclass(frozen=True)
class MotionConfig:
    """All of them."""

    trajectory: TrajectoryConfig = TrajectoryConfig()
    smoothing: SmoothingConfig = SmoothingConfig()
    weak: WeakConfig = WeakConfig()
    terms: TermConfig = TermConfig()
    shooting: ShootingConfig = ShootingConfig()
    system: SystemConfig = SystemConfig()
    joint: JointConfig = JointConfig()
    invariant: InvariantConfig = InvariantConfig()


MOTION = MotionConfig()
