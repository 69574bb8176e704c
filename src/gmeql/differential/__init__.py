"""Differential equations: found in data, and solved."""

from __future__ import annotations

from gmeql._deferred import deferred

with deferred("pandas", "scipy.stats"):  # as for the estimators: most of what scikit-learn takes to import
    import sklearn.base  # noqa: F401
