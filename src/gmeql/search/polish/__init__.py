"""Formulas without ballast: drop what the data do not need, refit, and round constants to what people recognise.

Raw solutions carry terms that cancel, dead terms and constants such as 1.9999999998. Every shorter formula that one
cut can make is refitted to the data, and kept when the description length falls: half the rows times the log of the
loss, plus what the constants and the nodes cost. On noise-free data the loss counts only down to rounding level; on
noisy data a constant must earn its keep, so a constant that the noise cannot tell from a short number becomes it.
"""

from gmeql.search.polish.cutting import prune, reductions, without_dead_terms
from gmeql.search.polish.polishing import polish
from gmeql.search.polish.recognition import all_recognised, n_loose_constants, recognised
from gmeql.search.polish.rounding import snap
from gmeql.search.polish.scoring import JudgedRows, Scored, clean, description_length, refit

Rows = JudgedRows

__all__ = [
    "JudgedRows",
    "Rows",
    "Scored",
    "all_recognised",
    "clean",
    "description_length",
    "n_loose_constants",
    "polish",
    "prune",
    "recognised",
    "reductions",
    "refit",
    "snap",
    "without_dead_terms",
]
