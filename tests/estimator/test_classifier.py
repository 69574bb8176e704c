"""The classifier as users meet it: labels of any kind, chances, several classes, files, refusals."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from gmeql import GMEQLClassifier, GMEQLRegressor
from gmeql.model.files.storage import StorageError
from quick_models import FEW


def quick(**changes) -> GMEQLClassifier:
    return GMEQLClassifier(**{**FEW, "max_candidates": 400, "max_complexity": 12, **changes})


@pytest.fixture(scope="module")
def ring() -> tuple[pd.DataFrame, np.ndarray]:
    """Inside or outside a circle, with labels near its edge drawn by chance."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, (400, 2)), columns=["a", "b"])
    logit = 6 * (1.5 - X["a"] ** 2 - X["b"] ** 2)
    return X, np.where(rng.uniform(size=400) < 1 / (1 + np.exp(-logit)), "in", "out")


@pytest.fixture(scope="module")
def model(ring) -> GMEQLClassifier:
    return quick(max_candidates=1500, max_complexity=20).fit(*ring)


class TestTwoClasses:
    def test_the_logit_is_the_formula_and_its_sign_the_class(self, model, ring) -> None:
        X, y = ring
        assert model.classes_.tolist() == ["in", "out"]
        np.testing.assert_array_equal(model.decision_function(X), model.expression_(X.to_numpy()))
        np.testing.assert_array_equal(model.predict(X) == "out", model.decision_function(X) > 0)
        assert model.score(X, y) > 0.9
        assert model.expression_.variables == (0, 1)

    def test_chances_are_the_logits_and_losses_their_log_losses(self, model, ring) -> None:
        X, y = ring
        chances = model.predict_proba(X)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        np.testing.assert_allclose(chances[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
        observed = -np.mean(np.log(np.where(y == "out", chances[:, 1], chances[:, 0])))
        assert model.front_[model.selected_index_].loss == pytest.approx(observed, rel=1e-7)

    def test_stated_chances_hold(self, model, ring) -> None:
        X, y = ring
        chances = model.predict_proba(X)[:, 1]
        assert np.mean(chances) == pytest.approx(np.mean(y == "out"), abs=0.02)

    def test_validation_judges_by_the_log_loss(self, ring) -> None:
        X, y = ring
        assert quick(model_selection="validation").fit(X, y).score(X, y) > 0.6


@pytest.fixture(scope="module")
def flowers() -> GMEQLClassifier:
    return quick(max_candidates=200).fit(*load_iris(return_X_y=True))


class TestSeveralClasses:
    def test_each_class_has_a_formula(self, flowers) -> None:
        (X, y), model = load_iris(return_X_y=True), flowers
        assert len(model.expression_) == 3
        assert model.predict_proba(X).shape == model.decision_function(X).shape == (150, 3)
        assert model.score(X, y) > 0.9

    def test_a_frame_is_fitted_without_a_warning_each_search_under_the_name_of_its_class(self, capsys) -> None:
        """The frame's names were missed in the rows that the classes' chances were compared on."""
        X = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = quick(max_candidates=50, verbose=2).fit(X, np.repeat(["old", "new", "other"], 10))
            model.predict(X)
        told = capsys.readouterr()
        assert "class new (1 of 3): " in told.out + told.err
        assert str(model).splitlines()[1].startswith("  logit of new = ")

    def test_chances_are_a_softmax_whose_sharpness_the_rows_decide(self, tmp_path) -> None:
        """Three overlapping clouds: against the factor found by trying many; where classes part, logits count in full."""
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], 80)
        overlapping = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[y] + rng.standard_normal((240, 2))
        model = quick(max_candidates=200, max_complexity=9).fit(overlapping, y)
        logits = model.decision_function(overlapping)

        def log_loss(factor: float) -> float:
            chances = np.exp(factor * logits)
            return -np.mean(np.log(chances[np.arange(240), y] / chances.sum(axis=1)))

        factors = np.linspace(0.02, 1, 99)
        assert model.sharpness_ == pytest.approx(factors[np.argmin([log_loss(f) for f in factors])], abs=0.011)
        assert model.sharpness_ < 0.95
        found = model.predict_proba(overlapping)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert -np.mean(np.log(found[np.arange(240), y])) == pytest.approx(log_loss(model.sharpness_))
        model.save(tmp_path / "model.json")
        np.testing.assert_array_equal(GMEQLClassifier.load(tmp_path / "model.json").predict_proba(overlapping), found)
        model.sharpness_ = 2.0
        model.save(tmp_path / "model.json")
        with pytest.raises(StorageError, match="sharpness"):
            GMEQLClassifier.load(tmp_path / "model.json")
        apart = quick(max_candidates=100, max_complexity=9).fit(
            overlapping + 20 * np.array([[0, 0], [1, 0], [0, 1]])[y], y
        )
        assert apart.sharpness_ == 1.0

    def test_models_of_earlier_files_share_out_the_chances_against_the_rest(self, flowers) -> None:
        X, _ = load_iris(return_X_y=True)
        model = copy.copy(flowers)
        del model.sharpness_
        each = 1 / (1 + np.exp(-model.decision_function(X)))
        np.testing.assert_allclose(model.predict_proba(X), each / each.sum(axis=1, keepdims=True), atol=1e-12)


def test_what_is_no_number_is_named_with_its_column() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.array([1, None, 3], dtype="Int64")})
    with pytest.raises(ValueError, match="column 'b' of X contains NaN: 1 of 3 values"):
        quick().fit(X, ["u", "v", "u"])
    with pytest.raises(ValueError, match="column 'b' of X holds text .*; leave the column out or code it as numbers$"):
        quick().fit(X.assign(b=["x", "y", "z"]), ["u", "v", "u"])


class TestFiles:
    def test_saved_models_predict_the_same(self, model, ring, tmp_path) -> None:
        model.save(tmp_path / "model.json")
        loaded = GMEQLClassifier.load(tmp_path / "model.json")
        np.testing.assert_array_equal(loaded.predict(ring[0]), model.predict(ring[0]))
        assert loaded.front_.loss == "logistic"

    def test_files_of_the_other_kind_are_named(self, model, tmp_path) -> None:
        model.save(tmp_path / "model.json")
        with pytest.raises(StorageError, match="GMEQLClassifier"):
            GMEQLRegressor.load(tmp_path / "model.json")
        x = np.arange(20.0)[:, None]
        GMEQLRegressor(max_candidates=200, max_time=None).fit(x, 2 * x[:, 0]).save(tmp_path / "other.json")
        with pytest.raises(StorageError, match="GMEQLRegressor"):
            GMEQLClassifier.load(tmp_path / "other.json")


def test_one_class_and_numbers_are_refused(ring) -> None:
    X, _ = ring
    with pytest.raises(ValueError, match="at least 2 classes"):
        quick().fit(X, ["in"] * len(X))
    with pytest.raises(ValueError, match="Unknown label type"):
        quick().fit(X, np.linspace(0, 1, len(X)))
