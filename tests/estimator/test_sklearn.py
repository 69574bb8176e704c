"""scikit-learn's own checks of an estimator: all of them, none expected to fail, none skipped."""

from __future__ import annotations

import warnings

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from gmeql import GMEQLClassifier, GMEQLRegressor

# A candidate budget makes the checks quick and repeatable; only that and shorter formulas of fewer functions differ from the
# defaults.
FEW: dict = {"max_candidates": 128, "max_time": None, "random_state": 0, "functions": ["+", "*"]}
ESTIMATOR = GMEQLRegressor(max_complexity=7, **FEW)
CLASSIFIER = GMEQLClassifier(max_complexity=7, **FEW)


@parametrize_with_checks([ESTIMATOR])
def test_scikit_learn_check(estimator, check) -> None:
    hold(estimator, check)


@pytest.mark.slow
@parametrize_with_checks([CLASSIFIER])
def test_scikit_learn_check_of_the_classifier(estimator, check) -> None:
    hold(estimator, check)


def hold(estimator, check) -> None:
    """A check holds and is not skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            check(estimator)
        except pytest.skip.Exception as skipped:
            raise AssertionError(f"a check was skipped: {skipped}") from skipped


def test_there_are_as_many_checks_as_scikit_learn_has_for_regressors_with_several_targets() -> None:
    from sklearn.linear_model import LinearRegression

    own = {getattr(check, "func", check).__name__ for _, check in estimator_checks_generator(ESTIMATOR, legacy=True)}
    theirs = {
        getattr(check, "func", check).__name__
        for _, check in estimator_checks_generator(LinearRegression(), legacy=True)
        if "sparse" not in getattr(check, "func", check).__name__
    }
    assert theirs - own <= {"check_classifiers_regression_target"}
    assert len(own) >= 45
