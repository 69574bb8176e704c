"""Everything that steers `gmeql.solve`: one frozen config, its numbers with their reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NumericalConfig:
    """Numbers of the numerical solution. Its errors must lie below what the search takes for exact (1e-10)."""

    ode_sizes: tuple[int, ...] = (12, 24, 48, 96, 192)
    """Chebyshev polynomials for a function of one variable, tried until the last ones are rounding."""
    plane_sizes: tuple[int, ...] = (8, 14, 20, 26)
    """The same along each of two variables ..."""
    space_sizes: tuple[int, ...] = (5, 8, 11)
    """... and of three: the unknowns are their product."""
    more_points: float = 1.25
    """Points at which the equation is asked for, along each variable, for every polynomial."""
    tail: float = 1e-13
    """Share of the largest coefficient below which the last ones are rounding."""
    good_tail: float = 1e-9
    """A tail that is still good enough to search on where no size reaches rounding."""
    newton_steps: int = 40
    newton_halvings: int = 10
    newton_tolerance: float = 1e-14
    """Relative size of a step at which Newton's method has converged."""
    rank: float = 1e-8
    """Relative size below which a direction of the unknowns is left open by equation and conditions: with 14
    polynomials 1e-10 and less where values on a face are missing, 3e-5 and more where none are."""
    small_scale: float = 1e-3
    """Rows whose terms are smaller than this share of the largest are weighed as if they were of that size."""
    contradiction: float = 1e-6
    """Relative misfit from which equation and conditions contradict each other."""
    same: float = 1e-5
    """Relative distance from the integrated solution up to which Newton's method has not left it."""
    limit_step: float = 0.01
    """Share of the domain between the points from which a value at a condition's place is seen that has none itself."""
    tolerance: float = 1e-13
    """Relative tolerance of `solve_ivp` (DOP853; Radau where that gives up)."""
    ivp_seconds: float = 8.0
    """Time one integration may take."""
    large: float = 1e8
    """A solution that grows beyond this has a pole ahead: the domain ends before it."""
    kept_share: float = 0.9
    """Share of the way to such a pole that is kept."""
    roots_within: float = 1e3
    """Highest derivatives at the start are looked for up to this size where the equation is not linear in them."""
    default_length: float = 2.0
    """Length of the domain from an initial point where none is given."""
    parameter_range: tuple[float, float] = (0.5, 2.0)
    """Values of a free parameter where none are given ..."""
    parameter_values: int = 8
    """... and how many of them are solved for."""


@dataclass(frozen=True)
class ProofConfig:
    """Numbers of polishing, recognising and proving."""

    near: float = 1e-7
    """Relative error on the numerical solution up to which a formula is polished on the equation: that of a true one,
    fitted to values without noise, is smaller by far."""
    max_constants: int = 12
    """... and the number of its constants: exact derivatives by each are trees of their own."""
    polish_steps: int = 25
    halvings: int = 8
    rounding: float = 1e-15
    """Relative residual at which there is nothing left to polish."""
    loose: float = 1e-9
    """Share of the largest singular value below which a direction of the constants changes nothing."""
    met: float = 1e-9
    """Relative residual and misfit of the conditions up to which a polished formula is worth a proof."""
    same: float = 1e-9
    """Relative distance at which a fitted constant is taken for an exact number."""
    none: float = 1e-13
    """Size below which a fitted constant is taken for 0."""
    same_unit: float = 1e-14
    """Relative distance at which two units are one."""
    ratios: tuple[float, float] = (1e-4, 1e6)
    """Least and largest size of a constant in a unit of which it may be a fraction."""
    largest_denominator: int = 1000
    largest_whole: float = 1e9
    """Of a number that is whole, if no such fraction."""
    largest_height: int = 4000
    """Largest numerator times denominator of a recognised fraction: more of them than the digits can tell apart."""
    max_work: int = 1_000_000
    """Products of terms after which the normal form of a residual is given up: a few seconds."""
    digits: int = 50
    """Digits with which a formal proof is checked at points of the domain."""
    checked_points: int = 5
    """How many such points."""


@dataclass(frozen=True)
class SolveConfig:
    """How the search for a closed form is led."""

    points: int = 120
    """Values of a numerical solution of one variable that the search sees ..."""
    points_of_many: int = 320
    """... and of several variables."""
    first_candidates: int = 60_000
    """Formulas tried in the first round; each further round tries `growth` times as many, with another seed."""
    growth: float = 2.0
    quick_candidates: int = 15_000
    """The same for each way to fill conditions that were not given, and for each branch of an implicit equation."""
    fillings: tuple[float, ...] = (0.0, 1.0, 2.0, -1.0, 0.5, -2.0, 3.0, -0.5)
    """Values tried for conditions that were not given."""
    hints: int = 6
    """Functions of the equation that are columns of the search beside the variables, at most."""
    hint_operations: int = 12
    """Operations of such a function: roots of higher polynomials are no help to anybody."""
    hinted_candidates: int = 12_000
    """Formulas tried with them in the first round, before the search on the variables alone."""
    judged: int = 40
    """Formulas near a numerical solution that are polished and put into the equation, per search."""
    exact: float = 1e-11
    """Relative error at which the formula of one function of a system is taken for exact."""
    constant: float = 1e-12
    """Spread of a solution, relative to its size, below which it is a constant."""
    functions: tuple[str, ...] = (
        "add", "sub", "mul", "div", "sqrt", "square", "cube", "pow4", "pow5", "pow6", "sin", "cos", "exp", "log", "tanh",
        "atan", "sum", "prod",
    )  # fmt: skip
    """Operators of solutions: the standard set, and the arc tangent that integration makes."""


NUMERICAL = NumericalConfig()
PROOF = ProofConfig()
SOLVE = SolveConfig()
