"""Model files: what is saved comes back, what is harmed or hostile is refused and runs nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz_model_files import example_model, sealed
from gmeql.estimator import GMEQLRegressor
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.files.model_file import load_model, save_model
from gmeql.model.files.storage import NewerFormatError, StorageError
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.events import Member
from random_trees import NAMES, expressions


class TestModelFiles:
    def test_round_trip(self, tmp_path: Path) -> None:
        model = example_model()
        save_model(tmp_path / "m.json", model)
        again = load_model(tmp_path / "m.json")
        assert [list(f) for f in again.fronts] == [list(f) for f in model.fronts]
        assert again.parameters == model.parameters
        assert (again.feature_names, again.selected, again.target_columns) == (("a", "b", "c"), (1,), None)
        assert (again.candidates, again.seconds, again.n_features) == (1234, 2.5, 3)

    @given(
        st.recursive(
            st.floats(-1e300, 1e300).map(Constant) | st.integers(0, 2).map(Variable),
            lambda inner: (
                st.tuples(st.sampled_from(["sin", "exp", "sqrt", "log"]), st.tuples(inner), st.booleans())
                | st.tuples(st.sampled_from(["add", "mul", "div", "pow"]), st.tuples(inner, inner), st.just(False))
            ).map(lambda parts: Call(*parts)),
            max_leaves=20,
        ),
        st.lists(st.text(max_size=10), min_size=3, max_size=3),
    )
    def test_any_formula_reads_and_computes_the_same_after_saving(self, root, names) -> None:
        expression = Expression(root, tuple(names))
        member = FrontMember(expression, 0.5, expression.complexity, 0.0, 0)
        front = Front.from_members([member], rows=9, target_spread=1, target_largest=1)
        model = replace(example_model(), fronts=(front,), selected=(0,), feature_names=tuple(names))
        with tempfile.TemporaryDirectory() as folder:
            save_model(Path(folder) / "m.json", model)
            (again,) = load_model(Path(folder) / "m.json").fronts[0]
        assert str(again) == str(expression) and again.expression.exact() == expression.exact()
        X = np.array([[0.5, -1.5, 3.0], [2.0, 0.0, -1.0]])
        np.testing.assert_array_equal(again(X), expression(X))

    @given(st.lists(st.tuples(expressions(), st.floats(0, 1e6), st.integers(-3, 3)), min_size=1, max_size=12))
    def test_any_front_comes_back_whatever_complexities_the_search_noted_down(self, found) -> None:
        members = [Member(e, loss, max(1, e.complexity + off)) for e, loss, off in found]
        front = Front.from_members(members, rows=9, target_spread=1, target_largest=1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.json"
            save_model(path, replace(example_model(), fronts=(front,), selected=(0,), feature_names=NAMES))
            (again,) = load_model(path).fronts
        assert list(again) == list(front)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(8))
    def test_fits_of_noisy_power_laws_are_saved_and_come_back(self, tmp_path: Path, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X, exponents = rng.uniform(0.5, 4, (40, 2)), rng.choice([-2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3], 2)
        y = rng.uniform(0.5, 9) * (X**exponents).prod(axis=1) * (1 + rng.choice([0.01, 0.05]) * rng.standard_normal(40))
        model = GMEQLRegressor(max_candidates=4000, max_time=None, random_state=seed, n_jobs=1).fit(X, y)
        model.save(tmp_path / "m.json")
        again = GMEQLRegressor.load(tmp_path / "m.json")
        assert list(again.front_) == list(model.front_)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_ranges_and_the_columns_of_the_table_come_back_and_may_be_absent(self, tmp_path: Path) -> None:
        model = replace(example_model(), ranges=((0, 1), (-2.5, 1e30), (3, 3)), table_columns=("c", "=1+1", "b", "a"))
        save_model(tmp_path / "m.json", model)
        again = load_model(tmp_path / "m.json")
        assert (again.ranges, again.table_columns) == (model.ranges, model.table_columns)
        save_model(tmp_path / "m.json", replace(model, ranges=None, table_columns=None))
        again = load_model(tmp_path / "m.json")
        assert (again.ranges, again.table_columns) == (None, None)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("bases", []),
            ("bases", [{"free": [0], "spread": 1.0, "freedom": 5}]),
            ("bases", [{"free": [99], "spread": 1.0, "freedom": 5, "root": [[1.0]]}]),
            ("bases", [{"free": [], "spread": -1.0, "freedom": 5, "root": []}]),
            ("bases", [{"free": [], "spread": 1.0, "freedom": 0, "root": []}]),
            ("bases", [{"free": [], "spread": 1.0, "freedom": 5, "root": [[1.0]]}]),
            ("ranges", [[0, 1]]),
            ("ranges", [[0, 1], [0, 1], [1, 0]]),
            ("ranges", [[0, 1], [0, 1], [0, 1, 2]]),
            ("ranges", [[0, 1], [0, 1], ["0", 1]]),
            ("ranges", [[0, 1], [0, 1], [True, 1]]),
            ("sharpness", 0),
            ("sharpness", "1"),
            ("table_columns", "abc"),
            ("table_columns", [1]),
            ("target_names", ["a", "b"]),
            ("target_names", [1]),
        ],
    )
    def test_ranges_and_columns_of_the_table_are_checked(self, tmp_path: Path, field: str, value: object) -> None:
        path = tmp_path / "m.json"
        save_model(path, example_model())
        envelope = json.loads(path.read_text())
        envelope["payload"][field] = value
        path.write_bytes(sealed(envelope))
        with pytest.raises(StorageError, match=field):
            load_model(path)

    def test_a_newer_version_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "m.json"
        save_model(path, example_model())
        path.write_text(path.read_text().replace('"version": 2', '"version": 99'))
        with pytest.raises(NewerFormatError, match="upgrade gmeql"):
            load_model(path)

    def test_a_changed_number_is_noticed(self, tmp_path: Path) -> None:
        path = tmp_path / "m.json"
        save_model(path, example_model())
        path.write_text(path.read_text().replace("1.25", "1.26"))
        with pytest.raises(StorageError, match="checksum"):
            load_model(path)

    def test_a_folder_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="cannot be written"):
            save_model(tmp_path / "none" / "m.json", example_model())

    @pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.slow)])
    def test_hostile_files_run_nothing_and_are_refused(self, count: int, tmp_path: Path) -> None:
        program = Path(__file__).parents[2] / "fuzz_model_files.py"
        answer = subprocess.run(
            [sys.executable, str(program), str(count), "0"], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        found = json.loads(answer.stdout)
        assert found["crafted"] >= 200 and found["mutated"] == count
        assert found["events"] == [], "code ran, or a file was opened for writing"
        assert found["wrong"] == [], "something other than a StorageError was raised"
        assert found["refused"] + found["loaded"] >= found["crafted"] + count
        assert found["refused"] > found["loaded"] > 0
        assert found["slowest"] < 2.0 and found["megabytes"] < 256
        assert os.listdir(tmp_path) == []
