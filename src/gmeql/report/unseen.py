"""What a formula promises on rows it has not seen, in words: the error to expect, and between which values it stays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gmeql.report.numbers import MOST_DIGITS, outward, three_digits, with_same_decimals

if TYPE_CHECKING:
    from gmeql.search.judging.outlook import Outlook

UNKNOWN = "–"


def unseen_text(outlook: Outlook | None) -> str:
    """The error on unseen rows with its standard error; a dash where nobody looked."""
    if outlook is None:
        return UNKNOWN
    if not math.isfinite(outlook.error):
        return "no bound"
    least = outlook.error / 10.0**MOST_DIGITS  # errors that are all alike have a standard error of rounding
    if not least < outlook.standard_error < math.inf:
        return three_digits(outlook.error)
    return " ± ".join(with_same_decimals((outlook.error, outlook.standard_error), outlook.standard_error))


def promise(outlook: Outlook | None) -> str:
    """What is certain about its values, in a sentence; empty where nothing is, or for a constant, of which all is said."""
    if outlook is None or not outlook.bounds.finite or outlook.bounds.low == outlook.bounds.high:
        return ""
    low, high = outward(outlook.bounds.low, up=False), outward(outlook.bounds.high, up=True)
    return f"It stays between {low} and {high} while every column stays within its range (guaranteed)."
