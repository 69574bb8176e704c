"""Numbers as the report writes them: as many digits as they deserve, no power of ten where one can read without."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gmeql.formula.printing.notation import PLAIN, unfolded
from gmeql.formula.printing.notation import four_digits as four_digits

MOST_DIGITS = 7  # of a number that is certain to rounding
DIGITS = 6  # of numbers in plots
SURE = 0.95  # a larger share of the evidence is said in words; odds beyond 20 to 1 are said by no sentence either


def three_digits(value: float) -> str:
    """
    >>> three_digits(2388.2), three_digits(0.50487), three_digits(1.2e-7)
    ('2390', '0.505', '1.2e-07')
    """
    return unfolded(f"{value:.3g}")


def outward(value: float, *, up: bool) -> str:
    """A bound in four digits that is still a bound.

    >>> outward(12.3451, up=True), outward(12.3451, up=False), outward(-18103.0, up=False)
    ('12.35', '12.34', '-18110')
    """
    text = f"{value:.4g}"
    if (float(text) < value) if up else (float(text) > value):
        last = 10.0 ** (_power(value) - 3)
        text = f"{float(text) + (last if up else -last):.4g}"
    return unfolded(text)


def r2_text(r2: float) -> str:
    """R² with enough digits to tell it from 1."""
    if not math.isfinite(r2):
        return "not finite"
    if 1 - r2 < 1e-9:
        return "1"
    digits = 4 if r2 < 0.999 else min(10, 2 + math.ceil(-math.log10(1 - r2)))
    return f"{r2:.{digits}f}"


def with_same_decimals(values: Sequence[float], uncertainty: float) -> list[str]:
    """Numbers with the digits that their uncertainty justifies, two of its own, and all with equally many decimals.

    >>> with_same_decimals((19988.3, 19852.8, 20123.2), 135.2)
    ['19990', '19850', '20120']
    >>> with_same_decimals((0.3, 0.296634, 0.303366), 0.003366)
    ['0.3000', '0.2966', '0.3034']
    >>> with_same_decimals((8.785e-11, 8.1e-11, 9.4e-11), 0.65e-11)
    ['8.79e-11', '8.10e-11', '9.40e-11']
    """
    largest = max(map(abs, values))
    power = _power(largest)
    last = power - MOST_DIGITS + 1 if uncertainty <= 0 else max(_power(uncertainty) - 1, power - MOST_DIGITS + 1)
    last = min(last, power)
    if largest == 0 or PLAIN[0] <= largest < PLAIN[1]:
        return [f"{round(value, -last) + 0.0:.{max(0, -last)}f}" for value in values]
    return [f"{value / 10.0**power + 0.0:.{power - last}f}e{power:+03d}" for value in values]


def _power(value: float) -> int:
    """The power of ten of a number's first digit."""
    return int(f"{value:e}".partition("e")[2])


def percent_text(percent: float) -> str:
    """
    >>> percent_text(0.678), percent_text(123.4), percent_text(1e-12), percent_text(1e9)
    ('0.68 %', '123 %', 'under 0.0001 %', '')
    """
    if percent > 1e4:
        return ""
    if percent < 1e-4:
        return "under 0.0001 %"
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def plain(value: float, digits: int = DIGITS) -> float | None:
    """The number with the digits a plot needs; None where it is not finite."""
    value = float(value)
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def plain_list(values: np.ndarray) -> list[float | None]:
    """The numbers with the digits by which they differ from each other: times of a clock share their first ones."""
    finite = np.asarray(values, float)[np.isfinite(values)]
    spread, largest = (float(np.ptp(finite)), float(np.abs(finite).max())) if len(finite) else (0.0, 0.0)
    shared = math.ceil(math.log10(largest / spread)) if 0 < spread < largest else 0
    return [plain(value, DIGITS + shared) for value in values]


def share_text(share: float) -> str:
    """A share of the evidence, never nearer to all or nothing than evidence by training losses can be.

    >>> share_text(0.9997), share_text(0.834), share_text(0.0041)
    ('over 95 %', '83 %', 'below 1 %')
    """
    if share > SURE:
        return f"over {100 * SURE:.0f} %"
    return "below 1 %" if share < 0.01 else f"{100 * share:.0f} %"
