"""Groups as users meet them: one formula, own constants, prediction, a new group from few rows, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gmeql import GMEQLRegressor
from gmeql.formula.parsing import parse_tree
from gmeql.model.files.storage import StorageError
from gmeql.model.fit import fitting
from quick_models import quick

SHIFT = {"red": -5.0, "green": 0.0, "blue": 5.0}


def few(**changes) -> GMEQLRegressor:
    """Every formula is fitted to every group, so that few and short ones are enough here."""
    return quick(**{"max_candidates": 200, "max_complexity": 9, **changes})


@pytest.fixture(scope="module")
def bands() -> tuple[pd.DataFrame, np.ndarray]:
    """A target that its category shifts by 5 either way."""
    rng = np.random.default_rng(0)
    colour, t = rng.choice(list(SHIFT), 150), rng.uniform(0.5, 3, 150)
    y = 2.5 * t**2 + np.array([SHIFT[c] for c in colour]) + 0.05 * rng.standard_normal(150)
    return pd.DataFrame({"t": t, "colour": colour}), y


@pytest.fixture(scope="module")
def banded(bands) -> GMEQLRegressor:
    return few().fit(*bands, groups="colour")


@pytest.fixture(scope="module")
def decays() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    codes, t = np.repeat(np.arange(5), 20), rng.uniform(0.1, 3, 100)
    sizes, rates = rng.uniform(0.5, 2, 5), rng.uniform(0.5, 2, 5)
    y = sizes[codes] * np.exp(-rates[codes] * t) + 0.005 * rng.standard_normal(100)
    return pd.DataFrame({"t": t}), y, codes


class TestOneFormula:
    def test_the_shift_is_each_groups_own_and_the_rest_is_shared(self, banded) -> None:
        assert str(banded.expression_) == "2.5*t**2 + k1[colour]"
        table = banded.group_table()
        np.testing.assert_allclose(table["k1[colour]"].loc[list(SHIFT)], list(SHIFT.values()), atol=0.03)

    def test_the_printed_formula_can_be_read_again(self, banded) -> None:
        expression = banded.expression_
        assert parse_tree(str(expression), expression.names) is not None

    def test_frames_of_polars_and_labels_as_an_array_give_the_same(self, bands, banded, monkeypatch) -> None:
        class Searched(Exception):
            """What reached the searches."""

        def keep(rows, names, **options):
            raise Searched(rows, names)

        frame, y = bands
        monkeypatch.setattr(fitting, "search_targets", keep)
        seen = []
        for given, groups in (
            (frame, "colour"),
            (frame[["t"]], frame["colour"]),
            (pl.from_pandas(frame), "colour"),
        ):
            with pytest.raises(Searched) as reached:
                few().fit(given, y, groups=groups)
            rows, names = reached.value.args
            seen.append((names, rows.groups.column, rows.groups.labels, rows.groups.codes.tolist(), rows.X.tolist()))
        assert seen[0] == seen[1] == seen[2] and seen[0][:2] == (("t",), "colour")
        np.testing.assert_array_equal(banded.predict(pl.from_pandas(frame)), banded.predict(frame))

    def test_equal_rows_of_two_groups_are_not_merged(self) -> None:
        t = np.tile(np.linspace(1, 3, 20), 2)
        groups = np.repeat(["a", "b"], 20)
        model = few().fit(t[:, None], t + np.repeat([0.0, 4.0], 20), groups=groups)
        np.testing.assert_allclose(model.predict(t[:, None], groups=groups), t + np.repeat([0.0, 4.0], 20), atol=1e-9)

    def test_validation_judges_on_rows_of_known_groups(self, bands) -> None:
        frame, y = bands
        model = few(model_selection="validation").fit(frame, y, groups="colour")
        assert model.score(frame, y) > 0.99


class TestPrediction:
    def test_groups_come_from_the_frame_or_by_themselves(self, bands, banded) -> None:
        frame, y = bands
        expected = banded.predict(frame)
        assert np.std(expected - y) < 0.06
        np.testing.assert_array_equal(banded.predict(frame[["t"]], groups=frame["colour"]), expected)
        for member in banded.front_:
            assert np.isfinite(banded.predict(frame, index=member.index)).all()

    def test_what_is_missing_or_unknown_is_said(self, bands, banded) -> None:
        frame, _ = bands
        with pytest.raises(ValueError, match="give groups="):
            banded.predict(frame[["t"]])
        with pytest.raises(ValueError, match="unknown colour 'pink'"):
            banded.predict(frame[["t"]], groups=["pink"] * len(frame))
        with pytest.raises(ValueError, match="2 labels for 150 rows"):
            banded.predict(frame[["t"]], groups=["red", "blue"])

    def test_intervals_cover_own_constants_too(self, bands, banded) -> None:
        frame, y = bands
        low, high = banded.prediction_interval(frame)
        assert 0.9 < ((low < y) & (y < high)).mean() < 1.0
        own = banded.intervals(frame, y)[-3:]  # in the order of the labels: blue, green, red
        for interval, truth in zip(own, (5.0, 0.0, -5.0), strict=True):
            assert interval.low - 0.02 < truth < interval.high + 0.02

    def test_a_new_group_needs_a_few_rows(self, bands, banded, tmp_path) -> None:
        banded.save(tmp_path / "model.json")
        model = GMEQLRegressor.load(tmp_path / "model.json")
        t = np.array([1.0, 2.0])
        model.refit_group(pd.DataFrame({"t": t}), 2.5 * t**2 + 17, "white")
        np.testing.assert_allclose(model.predict(pd.DataFrame({"t": [3.0], "colour": ["white"]})), 39.5, atol=0.05)
        assert list(model.group_table().index) == ["blue", "green", "red", "white"]


class TestRefusals:
    def test_a_column_that_is_not_there(self, bands) -> None:
        frame, y = bands
        with pytest.raises(ValueError, match="'shape' is no column"):
            quick().fit(frame, y, groups="shape")
        with pytest.raises(ValueError, match="X is not a data frame"):
            quick().fit(frame[["t"]].to_numpy(), y, groups="colour")

    def test_a_label_for_each_row(self, bands) -> None:
        frame, y = bands
        with pytest.raises(ValueError, match="one label for each row"):
            quick().fit(frame[["t"]], y, groups=["red"])

    def test_methods_that_know_none(self, bands) -> None:
        frame, y = bands
        with pytest.raises(ValueError, match="knows no groups"):
            GMEQLRegressor(method="paper").fit(frame, y, groups="colour")

    def test_a_model_without_groups(self, model, table) -> None:
        X, y = table
        with pytest.raises(ValueError, match="fitted without"):
            model.predict(X, groups=["a"] * len(X))
        with pytest.raises(ValueError, match="fitted without groups"):
            model.group_table()
        with pytest.raises(ValueError, match="fitted without groups"):
            model.refit_group(X, y, "a")


class TestFiles:
    def test_saved_models_predict_the_same(self, bands, banded, tmp_path) -> None:
        frame, _ = bands
        banded.save(tmp_path / "model.json")
        loaded = GMEQLRegressor.load(tmp_path / "model.json")
        assert str(loaded.expression_) == str(banded.expression_)
        np.testing.assert_array_equal(loaded.predict(frame), banded.predict(frame))

    def test_a_table_that_does_not_fit_the_formulas_is_refused(self, banded, tmp_path) -> None:
        import json

        from gmeql.model.files.model_file import checksum_of

        banded.save(tmp_path / "model.json")
        envelope = json.loads((tmp_path / "model.json").read_text())
        for row in envelope["payload"]["groups"][0]["values"]:
            row.pop()
        envelope["checksum"] = checksum_of(envelope["payload"])
        (tmp_path / "model.json").write_text(json.dumps(envelope))
        with pytest.raises(StorageError):
            GMEQLRegressor.load(tmp_path / "model.json")

    def test_exports_take_the_own_constants_of_the_formula_alone(self, banded) -> None:
        assert "def formula(t, k1_colour)" in banded.export("python")
        assert r"k_{1}\left[\mathrm{colour}\right]" in banded.latex()

    def test_a_resumed_run_ends_where_an_unbroken_one_does(self, bands, tmp_path) -> None:
        frame, y = bands[0][:60], bands[1][:60]
        noisy = y + np.random.default_rng(5).standard_normal(len(y))
        whole = few(max_candidates=100).fit(frame, noisy, groups="colour")
        few(max_candidates=50, checkpoint=tmp_path).fit(frame, noisy, groups="colour")
        resumed = few(max_candidates=100, checkpoint=tmp_path).fit(frame, noisy, groups="colour")
        assert resumed.candidates_ == whole.candidates_
        assert [str(m) for m in resumed.front_] == [str(m) for m in whole.front_]


@pytest.fixture(scope="module")
def falling(decays) -> GMEQLRegressor:
    frame, y, codes = decays
    return few(constraints=["decreasing in t", "output >= 0"]).fit(frame, y, groups=codes)


class TestWhatElseIsKnown:
    """Units, constraints, guesses and templates together with groups."""

    @pytest.mark.parametrize(
        "known",
        [
            {"guesses": ["a*exp(-b*t)"]},
            {"template": "a*exp(-b*t)"},
            pytest.param({"units": {"t": "s"}, "target_units": "1", "constant_units": "1/s"}, marks=pytest.mark.slow),
            {},
        ],
        ids=["guess", "template", "units", "constraints"],
    )
    def test_the_law_is_found_with_two_own_constants(self, decays, falling, known) -> None:
        frame, y, codes = decays
        model = few(**known).fit(frame, y, groups=codes) if known else falling
        assert model.group_table().shape == (5, 2)
        assert np.std(model.predict(frame, groups=codes) - y) < 0.006

    def test_no_group_breaks_a_constraint(self, decays, falling) -> None:
        frame, _, _ = decays
        points = pd.DataFrame({"t": np.linspace(frame["t"].min(), frame["t"].max(), 2000)})
        for member in falling.front_:
            for group in range(5):
                values = falling.predict(points, groups=[group] * 2000, index=member.index)
                assert (values >= 0).all() and (np.diff(values) <= 1e-12).all()

    def test_every_formula_keeps_strict_units(self, decays) -> None:
        frame, y, codes = decays
        units = {"units": {"t": "s"}, "target_units": "s"}
        model = few(**units).fit(frame, y, groups=codes)
        for member in model.front_:  # without a unit for constants only multiples of t are left
            assert "exp" not in str(member) and "t" in str(member)

    def test_bounds_of_constants_are_refused(self, decays) -> None:
        frame, y, codes = decays
        with pytest.raises(ValueError, match="constants= gives bounds"):
            quick(template="a*exp(-b*t)", constants={"a": (0, 1)}).fit(frame, y, groups=codes)
