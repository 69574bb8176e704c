"""Files that gmeql 0.1.0 wrote (tests/data/v0.1, made by its make.py) still load, predict and go on."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from gmeql import GMEQLRegressor
from gmeql.model.files.checkpoint import load_checkpoint
from programs import program
from thinned import thinned

OLD = Path(__file__).parents[2] / "data" / "v0.1"


MAKER = program("tests/data/v0.1/make.py")
X, EASY, HARD = MAKER.tables()


def test_a_model_file_loads_and_predicts() -> None:
    model = GMEQLRegressor.load(OLD / "model.json")
    np.testing.assert_allclose(model.predict(X), EASY, rtol=1e-9)
    assert str(model.expression_) == "2.5*x1 + 3*x2"
    assert model.get_params() == GMEQLRegressor(**MAKER.BUDGET).get_params()


def test_a_model_file_of_two_targets_loads_and_predicts() -> None:
    model = GMEQLRegressor.load(OLD / "two-targets.json")
    np.testing.assert_allclose(model.predict(X), np.column_stack([EASY, X[:, 0] * X[:, 1]]), rtol=1e-9)
    assert [str(e) for e in model.expression_] == ["2.5*x1 + 3*x2", "x1*x2"]


@pytest.mark.usefixtures("compiled_quickly")
@pytest.mark.parametrize("name", thinned(MAKER.CHECKPOINTS, 2))
def test_a_checkpoint_goes_on(name: str, tmp_path: Path) -> None:
    data = lzma.decompress((OLD / f"{name}.gmeql.xz").read_bytes())
    (tmp_path / "checkpoint-00000001.gmeql").write_bytes(data)
    found = load_checkpoint(tmp_path)
    assert found is not None
    content, problems = found
    assert problems == []
    before = len(content["history"]["elapsed"])
    model = GMEQLRegressor(**MAKER.BUDGET | MAKER.CHECKPOINTS[name], checkpoint=tmp_path).fit(X, HARD)
    assert model.candidates_ > content["history"]["candidates"][-1] >= MAKER.STOP_AT[name]
    assert model.front_[-1].loss <= content["history"]["loss"][-1]
    np.testing.assert_array_equal(model.history_["elapsed"][:before], content["history"]["elapsed"])
    np.testing.assert_array_equal(model.predict(X), model.expression_(X))
