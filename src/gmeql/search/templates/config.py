"""Numbers of the search inside a template, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TemplateConfig:
    """Each with its reason; those of islands are `IslandConfig`'s. Trials: five templates, 300 rows, two seeds."""

    first_starts: int = 256
    """Random starts of all constants with the plainest functions: a wrong frequency is a minimum that no step leaves."""
    least_size: float = 0.1
    largest_size: float = 30.0
    """Sizes that random starts of unbounded constants are drawn between, evenly by their logarithm."""
    restart_share: float = 0.15
    """Candidates whose named constants start anew instead of where the best solution has them."""
    candidates_per_step: int = 64
    finished_per_step: int = 4
    """Best candidates of a step that are taken to convergence."""
    finish_steps: int = 40
    pool: int = 24
    """Solutions that are built upon: the best of each complexity."""
    best_share: float = 0.5
    """Steps that build upon the best solution; others upon any of the pool."""
    steps_per_track: int = 24
    patience: int = 8
    """Steps of every function without a gain after which a track ends, and all is begun anew."""
    direct_methods: tuple[str, ...] = ("linear", "rational", "forms")
    """Methods that look at what a function must be: those that see short formulas of few columns in a moment."""
    direct_seconds: float = 0.3
    """What each of them may take, in seconds of one core, ..."""
    direct_each: int = 8
    """... and formulas of each that are fitted."""
    looked_after: tuple[int, ...] = (0, 3, 10)
    """Steps of a track after which they look."""
    slope_step: float = 1e-3
    """Step for the slope of the outer form, relative to the spread of the function's values."""
    least_weight: float = 1e-8
    """Rows that count less than this share of the heaviest say nothing of the function."""
    least_rows: int = 8
    gain: float = 0.01
    bound_rounds: int = 3
    """Times that constants beyond their bounds are put on them and the others fitted anew."""
    polished_per_track: int = 2
    shared_per_solution: int = 3
    """Formulas met while one is cut, the final one first, whose constants are shared out between groups."""
    cut_rounds: int = 12
    rounded: int = 12
    """Constants that are rounded at most."""


TEMPLATES = TemplateConfig()
