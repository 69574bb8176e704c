"""The scikit-learn face of the library."""

from __future__ import annotations

from gmeql._deferred import HARDLY_USED_BY_SKLEARN, deferred

with deferred(*HARDLY_USED_BY_SKLEARN):
    import sklearn.base  # noqa: F401

from gmeql.estimator.classifier import GMEQLClassifier
from gmeql.estimator.regressor import GMEQLRegressor, fit_formula

__all__ = ["GMEQLClassifier", "GMEQLRegressor", "fit_formula"]
