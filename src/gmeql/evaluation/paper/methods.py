"""The methods that are compared: what each is called, what it counts, how it is drawn, what the paper says it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ComparedMethod:
    """One method of the comparison.

    Attributes:
        label: its name for people.
        unit: what its budget and its curves count.
        colour: of its curves and bars.
        paper_time: how long a run takes by the paper's appendix C, one core of a desktop processor.
        side_by_side: whether several runs train as one batch.
    """

    label: str
    unit: str
    colour: str
    paper_time: str
    side_by_side: bool


METHODS = {
    "gmeql": ComparedMethod("GMEQL", "sampled instances", "#0b6e99", "3 to 4 hours", True),
    "eql": ComparedMethod("EQL", "training steps", "#d98e04", "up to 30 minutes", True),
    "dsr": ComparedMethod("DSR", "sampled expressions", "#a23b72", "about 2 hours", True),
    "fitted": ComparedMethod("fitted (ours)", "fitted candidates", "#2e7d32", "not in the paper", False),
    "gp": ComparedMethod("GP", "evaluated programs", "#6b7280", "up to 30 minutes", False),
}
"""The paper's method, its opponents and the default method of this library, by the name that records carry."""
CURVE_METHODS = tuple(name for name in METHODS if name != "gp")
"""Methods of the paper's learning curves; it compares with GP by final errors alone."""
