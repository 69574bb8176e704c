"""Estimators with a small budget, for tests of what stands around the search."""

from __future__ import annotations

from gmeql import GMEQLRegressor


def quick(**changes) -> GMEQLRegressor:
    return GMEQLRegressor(
        **{"max_candidates": 500, "max_complexity": 9, "max_time": None, "random_state": 0, **changes}
    )
