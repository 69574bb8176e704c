"""In a scikit-learn pipeline: columns are chosen and the formula's freedom is tuned by cross-validation.

The diabetes table ships with scikit-learn: 442 patients, ten measurements, the progress of the disease after a year.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline

from gmeql import GMEQLRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# A candidate budget, so that the search is repeatable; set_output keeps the column names for the formula.
formula = GMEQLRegressor(max_candidates=1500, max_time=None, random_state=0)
pipeline = Pipeline([("columns", SelectKBest(f_regression)), ("formula", formula)]).set_output(transform="pandas")
grid = GridSearchCV(pipeline, {"columns__k": [4, 10], "formula__max_complexity": [15, 30]}, cv=3)
grid.fit(X_train, y_train)

print("best settings:", grid.best_params_)
print("formula: progress =", grid.best_estimator_["formula"].expression_)
print(f"R² on unseen patients: {grid.score(X_test, y_test):.3f}")
linear = LinearRegression().fit(X_train, y_train)
print(f"linear regression on all ten columns: {linear.score(X_test, y_test):.3f}")
folds = cross_val_score(grid.best_estimator_, X_train, y_train, cv=3)
print("cross-validation:", np.round(folds, 3))
