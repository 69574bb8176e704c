"""What a fitted estimator shows and stores: printed, in files, in figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from quick_models import quick
from sklearn.pipeline import make_pipeline

from gmeql import GMEQLRegressor


class TestPrinting:
    def test_a_fitted_model_prints_its_formula(self, model) -> None:
        assert str(model) == f"GMEQLRegressor: y = {model.expression_}"
        assert f"{model}" == str(model)

    def test_several_targets_print_a_line_each(self, table) -> None:
        X, y = table
        fitted = quick().fit(X, np.column_stack([y, X[:, 0]]))
        first, second = fitted.expression_
        assert str(fitted) == f"GMEQLRegressor:\n  y1 = {first}\n  y2 = {second}"

    def test_targets_of_a_frame_are_called_by_their_names(self, table, tmp_path: Path, capsys) -> None:
        X, y = table
        frame = pd.DataFrame({"the sum": y, "<first>": X[:, 0]})
        fitted = quick(verbose=2, max_candidates=200).fit(X, frame)
        told = capsys.readouterr()
        assert "the sum (1 of 2): " in told.out + told.err and "<first> (2 of 2): " in told.out + told.err
        first, second = fitted.expression_
        assert str(fitted) == f"GMEQLRegressor:\n  the sum = {first}\n  <first> = {second}"
        assert "<p>&lt;first&gt;</p>" in fitted._html_repr()
        fitted.save(tmp_path / "model.json")
        loaded = GMEQLRegressor.load(tmp_path / "model.json")
        assert loaded.target_names_ == ("the sum", "<first>") and str(loaded) == str(fitted)
        main_of = quick(max_candidates=200)
        assert str(main_of.fit(X, frame["the sum"])) == f"GMEQLRegressor: the sum = {main_of.expression_}"
        assert not hasattr(main_of.fit(X, y), "target_names_")

    def test_repr_is_that_of_scikit_learn(self, model) -> None:
        blank = quick(max_candidates=20_000)
        assert repr(model) == repr(blank) == str(blank)
        assert "GMEQLRegressor(functions=['+', '*'], max_candidates=20000" in repr(make_pipeline(model))


class TestFiles:
    def test_saved_models_predict_the_same(self, model, table, tmp_path: Path) -> None:
        X, y = table
        model.save(tmp_path / "model.json")
        loaded = GMEQLRegressor.load(tmp_path / "model.json")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert str(loaded.expression_) == str(model.expression_)
        assert str(loaded.front_) == str(model.front_)
        assert loaded.get_params() == model.get_params()
        assert loaded.score(X, y) == model.score(X, y)

    def test_names_shapes_and_targets_come_back(self, table, tmp_path: Path) -> None:
        X, y = table
        frame = pd.DataFrame(X, columns=["=cmd()", "<b>"])
        fitted = quick(max_candidates=400).fit(frame, np.column_stack([y, -y]))
        fitted.save(tmp_path / "m.json")
        loaded = GMEQLRegressor.load(tmp_path / "m.json")
        assert list(loaded.feature_names_in_) == ["=cmd()", "<b>"]
        np.testing.assert_array_equal(loaded.predict(frame), fitted.predict(frame))
        assert loaded.selected_index_ == fitted.selected_index_

    def test_parameters_that_are_code_stay_out(self, noisy, tmp_path: Path) -> None:
        fitted = quick(
            model_selection=lambda front: 0, callbacks=[lambda p: None], random_state=np.random.RandomState(0)
        ).fit(*noisy)
        fitted.save(tmp_path / "m.json")
        loaded = GMEQLRegressor.load(tmp_path / "m.json")
        assert loaded.callbacks is None and loaded.random_state is None
        assert loaded.selected_index_ == 0

    def test_an_architecture_comes_back(self, noisy, tmp_path: Path) -> None:
        from gmeql import architecture_preset

        network = architecture_preset("general", 3)
        fitted = quick(architecture=network).fit(*noisy)
        fitted.save(tmp_path / "m.json")
        assert GMEQLRegressor.load(tmp_path / "m.json").architecture == network

    def test_a_loaded_model_can_be_fitted_again(self, model, table, tmp_path: Path) -> None:
        model.save(tmp_path / "m.json")
        again = GMEQLRegressor.load(tmp_path / "m.json").fit(*table)
        assert str(again.expression_) == str(model.expression_)


class TestPlots:
    def test_every_plot_is_a_figure_with_what_it_shows(self, model, table) -> None:
        X, y = table
        figures = {
            "front": model.plot_front(),
            "parity": model.plot_parity(X, y),
            "residuals": model.plot_residuals(X, y),
            "history": model.plot_history(),
            "expression": model.plot_expression(),
        }
        assert list(figures["front"].data[0].x) == [m.complexity for m in model.front_]
        assert list(figures["parity"].data[1].x) == list(y)
        np.testing.assert_array_equal(figures["residuals"].data[0].y, y - model.predict(X))
        assert {"x1", "x2"} <= set(figures["expression"].data[1].text)
        for figure in figures.values():
            assert figure.to_json()
