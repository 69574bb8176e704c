"""Estimators with a small budget, for tests of what stands around the search."""

from __future__ import annotations

from typing import Any

from gmeql import GMEQLRegressor

FEW: dict[str, Any] = {
    "max_candidates": 500,
    "max_complexity": 9,
    "functions": ["+", "*"],
    "max_time": None,
    "random_state": 0,
}
"""Most of what a short fit takes is to polish and judge its formulas: less than half where these are of few functions."""


def quick(**changes) -> GMEQLRegressor:
    return GMEQLRegressor(**{**FEW, **changes})
