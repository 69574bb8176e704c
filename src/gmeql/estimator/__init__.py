"""The scikit-learn face of the library."""

from __future__ import annotations

from gmeql.estimator.regressor import GMEQLRegressor, fit_formula

__all__ = ["GMEQLRegressor", "fit_formula"]
