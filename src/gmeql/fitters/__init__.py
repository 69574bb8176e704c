"""Fitting the constants of programs: one contract, several engines.

`fit` takes a batch of programs with starting constants and returns fitted constants and losses. One bad candidate
never raises: its loss is `inf`. The CPU engine is `cpu.py` (compiled, threads); `cuda/` does the same on
accelerators; `reference.py` is the slow, obvious version that both are tested against, and the
path for operators that users registered.
"""

from __future__ import annotations

from gmeql.fitters.result import CONVERGED, HOPELESS, NOT_FINITE, STEPS_SPENT, FitResult

__all__ = ["CONVERGED", "HOPELESS", "NOT_FINITE", "STEPS_SPENT", "FitResult", "fit"]


def fit(programs, start, inputs, target, weights=None, *, engine: str = "cpu", **options) -> FitResult:
    """Fit a batch of programs with the named engine ("cpu", "device", "reference"); see `cpu.fit` for the options."""
    if engine == "cpu":
        from gmeql.fitters import cpu as chosen
    elif engine == "device":
        from gmeql.fitters.cuda import engine as chosen  # type: ignore[no-redef]
    elif engine == "reference":
        from gmeql.fitters import reference as chosen  # type: ignore[no-redef]
    else:
        raise ValueError(f"engine must be 'cpu', 'device' or 'reference', got {engine!r}")
    return chosen.fit(programs, start, inputs, target, weights, **options)
