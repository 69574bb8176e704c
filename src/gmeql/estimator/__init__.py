"""The scikit-learn face of the library."""

from __future__ import annotations

from gmeql._deferred import deferred

with deferred("pandas", "scipy.stats"):  # two thirds of the time that scikit-learn takes to import, for two functions
    import sklearn.base  # noqa: F401

from gmeql.estimator.classifier import GMEQLClassifier
from gmeql.estimator.regressor import GMEQLRegressor, fit_formula

__all__ = ["GMEQLClassifier", "GMEQLRegressor", "fit_formula"]
