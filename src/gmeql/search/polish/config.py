"""Numbers of polishing, in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gmeql.formula.limits import PLAIN_EXPONENT_LIMIT


@dataclass(frozen=True)
class PolishConfig:
    """Numbers of polishing, each with its reason. Lengths are in nats, losses are mean squares."""

    # judging
    relative_rounding: float = 1e-11
    """Relative error (root mean square, against the target's spread) below which a formula is exact on the data."""
    target_rounding: float = 4e-15
    """... or against the target's largest value: some twenty units in its last place."""
    least_floor: float = 1e-300
    """Loss at rounding level where the target is so small that its square underflows."""
    exact_factor: float = 100.0
    """A loss up to this many times that at rounding level is exact: formulas round differently."""
    node_cost: float = 2.0
    """Description length of one unit of complexity: a symbol has to be named, and the search tries thousands of
    formulas of which the luckiest must not win."""
    sign_rows: int = 512
    """Rows on which a part of a formula must be positive to be taken for it."""
    refit_steps: int = 25
    refit_tolerance: float = 1e-7
    """Relative gain of a step below which a refit ends."""

    # what the rows can tell
    frozen: float = 1e-14
    """A function whose values differ by no more than this, relative to their size, is a constant on the rows."""
    least_felt: float = 0.01
    """Nats that halving the argument of a steep function, or leaving the function out, or halving a constant of a silly
    size must cost; the last two ..."""
    few_rows: int = 2
    """... apart from this many rows that feel it most."""
    halvings: tuple[int, ...] = (256, 128, 64, 32, 16, 8, 4, 2, 1)
    """Steps by which the number of halvings is found that a steep argument takes unfelt; together they reach 1e-153."""
    silly_constant: float = 1e6
    """Constants larger than this, or smaller than its inverse, have to matter."""
    highest_power: float = 12.5
    """Exponents beyond this, such as x**19.7 or tanh(x)**1438, go through a few rows of noise; the highest in use is the 12
    of Lennard and Jones."""
    cancelling: float = 1e10
    """Terms of a sum that are larger than the sum by this factor leave it fewer than six digits."""
    slow_turns: float = 2.0
    """Turns over the rows up to which a wave is a curve like any other; a faster one has to stand out from noise."""
    false_alarm: float = 18.0
    """Nats below which the chance must lie that noise has such a wave: a hundred million candidates pay for theirs."""
    same_length: float = 1e-6
    """Description lengths that differ by less are the same."""

    # cutting
    max_rounds: int = 20
    dead: float = 1e-9
    """A term this much smaller than the largest of its sum, on every row, is dropped untried."""
    dead_rows: int = 128
    """Rows on which terms are compared."""
    refitted_together: int = 50
    """Formulas refitted between two looks at the clock."""
    exponent_parts: tuple[int, ...] = (1, 2, 3)
    """An exponent is rounded to whole numbers, halves and thirds ..."""
    near_exponent: float = 0.2
    """... that are no further away than this."""
    near_phase: float = 0.1
    """A phase this near to a multiple of a quarter turn may be one (radians)."""
    largest_power: int = PLAIN_EXPONENT_LIMIT
    """Powers of a column up to this one are exchanged for another."""
    largest_exchanged: int = 35
    """Complexity up to which exchanges are tried: a long formula has thousands."""
    look_ahead: int = 4
    """Formulas, the shortest and as many of the best fitting, from which a second cut or exchange is tried where no
    single one helps."""

    shed_rounds: int = 3
    """Terms that the best formula may lose at the end where no time is left to polish it, ..."""
    shed_tried: int = 30
    """... each the best of this many cuts."""

    # what is printed
    printed_loss: float = 1.04
    """Loss of a formula as it is printed, relative to its own, up to which it still fits: errors 2 % larger."""
    shown_loss: float = 1.0001
    """The same where constants have more digits than usual, of which no more are kept than this takes."""
    fewest_digits: int = 3
    known_share: float = 0.1
    """Digits that a constant is shown with at least, and the share of what its own error costs that rounding may cost."""
    lost_digits: float = 100.0
    """How much more than their sum terms must vary to cancel."""

    # rounding
    max_rounded: int = 12
    """Rounds of rounding: one constant each, or all at once where the data are exact."""
    near_number: float = 0.05
    """Relative distance within which a number may stand for a constant."""
    near_exact: float = 1e-6
    """The same where the data are exact."""
    tried_exact: int = 2
    """Numbers tried for a constant there."""
    max_digits: int = 3
    """Digits of a short decimal."""
    rounding_nats: float = 1.0
    """A number of many digits costs this much less than a fitted one, so that what loses nothing by it is rounded."""
    largest_whole: float = 1e6
    """Larger constants are not rounded to a whole number."""
    denominators: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8)
    largest_numerator: int = 32
    units: tuple[float, ...] = (1.0, math.pi, math.pi**2, 1 / math.pi, math.sqrt(2.0))
    """What small fractions are multiples of."""


POLISH = PolishConfig()
