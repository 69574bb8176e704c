"""GMEQLClassifier beside logistic regression on scikit-learn's own tables: five-fold log loss and share of right classes.

    python benchmarks/classification.py --max-time 20

Folds are the same for both; logistic regression gets its columns standardised and its default penalty. One line for each
table: mean log loss and share right of either, and the formulas' mean complexity.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SEED = 0


def zeros_and_ones() -> tuple[np.ndarray, np.ndarray]:
    """Handwritten threes against eights, by 64 pixels."""
    X, y = load_digits(return_X_y=True)
    keep = np.isin(y, (3, 8))
    return X[keep], y[keep]


TABLES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits 3 and 8": zeros_and_ones,
    "moons": lambda: make_moons(400, noise=0.25, random_state=SEED),
}


def held_out(model: Any, X: np.ndarray, y: np.ndarray, folds: int) -> tuple[float, float, list[Any]]:
    """Mean log loss and share right on rows left out, and the fitted models."""
    losses, right, models = [], [], []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=SEED).split(X, y):
        fitted = model().fit(X[train], y[train])
        chances = np.clip(fitted.predict_proba(X[test]), 1e-6, 1.0)
        losses.append(log_loss(y[test], chances / chances.sum(axis=1, keepdims=True), labels=fitted.classes_))
        right.append(float(np.mean(fitted.predict(X[test]) == y[test])))
        models.append(fitted)
    return float(np.mean(losses)), float(np.mean(right)), models


def main() -> None:
    from gmeql import GMEQLClassifier
    from gmeql.model.targets import as_list

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-time", type=float, default=20.0)
    parser.add_argument("--max-candidates", type=int)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--tables", default=",".join(TABLES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | gmeql: log loss | right | complexity | logistic regression: log loss | right |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in options.tables.split(","):
        X, y = TABLES[name]()
        budget = {"max_time": options.max_time, "max_candidates": options.max_candidates}
        loss, right, models = held_out(
            lambda: GMEQLClassifier(**budget, random_state=SEED, n_jobs=1),  # noqa: B023 - called at once
            X, y, options.folds,
        )  # fmt: skip
        size = np.mean([sum(e.complexity for e in as_list(m.expression_)) for m in models])
        other, other_right, _ = held_out(
            lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)), X, y, options.folds
        )
        print(f"| {name} | {loss:.3f} | {right:.3f} | {size:.0f} | {other:.3f} | {other_right:.3f} |", flush=True)


if __name__ == "__main__":
    main()
