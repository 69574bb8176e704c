"""In a scikit-learn pipeline: columns are chosen and the formula's freedom is tuned by cross-validation.

Friedman's table ships with scikit-learn: y = 10 sin(π x1 x2) + 20 (x3 - 0.5)² + 10 x4 + 5 x5 and noise, beside five columns
that mean nothing. So small a budget does not find that law, but a formula that says more than a plane through all columns.
"""

from __future__ import annotations

import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline

from gmeql import GMEQLRegressor

values, y = make_friedman1(400, noise=1.0, random_state=0)
X = pd.DataFrame(values, columns=[f"x{k + 1}" for k in range(10)])
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# A candidate budget, so that the search is repeatable; set_output keeps the column names for the formula.
formula = GMEQLRegressor(max_candidates=1500, max_time=None, random_state=0)
pipeline = Pipeline([("columns", SelectKBest(f_regression)), ("formula", formula)]).set_output(transform="pandas")
grid = GridSearchCV(pipeline, {"columns__k": [4, 10], "formula__max_complexity": [15, 40]}, cv=2)
grid.fit(X_train, y_train)

print("best settings:", grid.best_params_)
print("formula: y =", grid.best_estimator_["formula"].expression_)
print(f"R² on unseen rows: {grid.score(X_test, y_test):.3f}")
linear = LinearRegression().fit(X_train, y_train)
print(f"linear regression on all ten columns: {linear.score(X_test, y_test):.3f}")
for name, model in (("formula", grid.best_estimator_), ("linear regression", linear)):
    folds = cross_val_score(model, X_train, y_train, cv=2)
    print(f"two folds, {name}: {folds.mean():.3f} ± {folds.std():.3f}")
