"""The scikit-learn face of the library."""

from __future__ import annotations

from gmeql.estimator.classifier import GMEQLClassifier
from gmeql.estimator.regressor import GMEQLRegressor, fit_formula

__all__ = ["GMEQLClassifier", "GMEQLRegressor", "fit_formula"]
