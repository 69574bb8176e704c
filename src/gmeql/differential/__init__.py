"""Differential equations: found in data, and solved."""

from __future__ import annotations

from gmeql._deferred import HARDLY_USED_BY_SKLEARN, deferred

with deferred(*HARDLY_USED_BY_SKLEARN):
    import sklearn.base  # noqa: F401
