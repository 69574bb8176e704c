"""Input meant to harm, or merely cruel: hostile column names, and numbers at the edge of what floats hold."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from quick_models import FEW

from gmeql import GMEQLRegressor

NAMES = [
    "__import__('os').system('touch pwned')",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|'!A0",
    "x1",
    "х1",  # Cyrillic
    "\u202ex1",  # right-to-left override
    "x\u200b1",  # zero-width space
    "",
    " ",
    "same",
    "same",
    "lambda",
    "\\input{/etc/passwd}",
    "$x$",
    "*/ int main() { /*",
    '"""\nimport os\nos.system("touch pwned")\n"""',
    "{{7*7}}",
    "[bold red]x[/]",
    "\x1b[31mred",
    "%s%n",
    "Ω_θ",
    "a" * 5000,
]
EXPORTS = ("python", "c", "latex", "json", "text", "spreadsheet", "mathml")


@lru_cache
def fit_on(name: str, other: str = "plain", **changes) -> tuple[GMEQLRegressor, pd.DataFrame]:
    X = np.random.default_rng(0).uniform(1, 2, (30, 2))
    frame = pd.DataFrame(X)
    frame.columns = [name, other]
    parameters = {**FEW, **changes}
    return GMEQLRegressor(**parameters).fit(frame, 3.5 * X[:, 0] + 0.25), frame


class Tags(HTMLParser):
    """Collects the tags and attributes a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list]] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.append((tag, attrs))


@pytest.mark.parametrize("name", NAMES, ids=[f"name{i}" for i in range(len(NAMES))])
def test_hostile_names_are_shown_and_never_obeyed(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    model, frame = fit_on(name)
    assert list(model.feature_names_in_) == [name, "plain"]
    model.save("model.json")
    loaded = GMEQLRegressor.load("model.json")
    assert loaded.expression_.names == (name, "plain")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    model.sympy(), str(model.front_), model.equations_, model.latex()
    for format in EXPORTS:
        model.export(format)
    tags = Tags()
    tags.feed(model._repr_html_())
    assert not any(tag == "img" or any(key == "onerror" for key, _ in attrs) for tag, attrs in tags.seen)
    assert "<script>alert" not in model._repr_html_()
    for figure in (model.plot_front(), model.plot_expression()):
        assert "<script>alert" not in json.loads(figure.to_json()).__repr__()
    assert os.listdir(tmp_path) == ["model.json"]


def test_duplicate_and_empty_names_stay_apart() -> None:
    X = np.random.default_rng(0).uniform(1, 2, (40, 3))
    frame = pd.DataFrame(X)
    frame.columns = ["same", "same", ""]
    model = GMEQLRegressor(max_candidates=2000, max_time=None, random_state=0).fit(frame, X[:, 0] - 2 * X[:, 1])
    np.testing.assert_allclose(model.predict(frame), X[:, 0] - 2 * X[:, 1], rtol=1e-8, atol=1e-8)
    apart = GMEQLRegressor(max_candidates=500, max_time=None, random_state=0).fit(
        frame.set_axis(list("abc"), axis=1), X[:, 0]
    )
    with pytest.raises(ValueError, match="feature names should match"):
        apart.predict(frame)
    assert len(model.sympy().free_symbols) == 2


def test_python_export_of_hostile_names_runs_only_the_formula(tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        model, frame = fit_on(name)
        (tmp_path / f"formula{number}.py").write_text(model.export("python"), encoding="utf-8")
    code = "".join(f"import formula{number}\n" for number in range(len(NAMES)))
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    )
    assert sorted(os.listdir(tmp_path)) == sorted(f"formula{number}.py" for number in range(len(NAMES)))


def test_frames_written_to_csv_read_back_as_text() -> None:
    model, _ = fit_on("=1+1")
    text = model.equations_.to_csv()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(model.front_)


# --- magnitudes ------------------------------------------------------------------------------------------------------


def ordinary() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(4).uniform(1, 3, (50, 3))
    return X, 2.5 * X[:, 0] + 0.5 * X[:, 1]


def fit(X: np.ndarray, y: np.ndarray) -> GMEQLRegressor:
    model = GMEQLRegressor(max_candidates=3000, max_complexity=15, max_time=None, random_state=0).fit(X, y)
    assert all(np.isfinite(m.loss) for m in model.front_)
    assert np.isfinite(model.predict(X)).all()
    return model


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100, 1e300])
def test_targets_in_extreme_units_give_the_same_formula(scale: float) -> None:
    X, y = ordinary()
    model = fit(X, y * scale)
    assert model.expression_.variables == (0, 1)
    np.testing.assert_allclose(model.predict(X), y * scale, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_columns_in_extreme_units_give_the_same_formula(scale: float) -> None:
    X, y = ordinary()
    model = fit(X * scale, y)
    assert model.expression_.variables == (0, 1)
    np.testing.assert_allclose(model.predict(X * scale), y, rtol=1e-8)


@pytest.mark.parametrize(
    "column",
    [
        np.full(50, 1e308),
        np.linspace(-1, 1, 50) * 1.7e308,
        np.linspace(0, 5e-324 * 50, 50),
        np.zeros(50),
        np.r_[np.zeros(49), 1e308],
        np.r_[np.full(25, 1e-308), np.full(25, 1e308)],
    ],
    ids=["1e308", "to the ends", "denormal", "zero", "one spike", "both ends"],
)
def test_a_cruel_column_beside_ordinary_ones(column: np.ndarray) -> None:
    X, y = ordinary()
    model = fit(np.column_stack([X[:, :2], column]), y)
    np.testing.assert_allclose(model.predict(np.column_stack([X[:, :2], column])), y, rtol=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "y", [np.linspace(-1, 1, 50) * 1.7e308, np.linspace(0, 1e-320, 50), np.full(50, 1e308), np.full(50, 5e-324)]
)
def test_cruel_targets(y: np.ndarray) -> None:
    X, _ = ordinary()
    predicted, scale = fit(X, y).predict(X), np.abs(y).max()
    assert np.isfinite(predicted).all()
    error, spread = np.sqrt(np.mean((predicted / scale - y / scale) ** 2)), np.std(y / scale)
    assert error <= spread + 1e-3  # the columns say nothing of these targets: as good as their mean


def test_duplicate_rows_and_columns() -> None:
    X, y = ordinary()
    doubled = np.column_stack([X, X])
    model = fit(np.vstack([doubled] * 3), np.tile(y, 3))
    np.testing.assert_allclose(model.predict(doubled), y, rtol=1e-8)
    once = fit(doubled, y)
    assert str(once.expression_) == str(model.expression_)


def test_contradicting_rows_average() -> None:
    X = np.ones((10, 1))
    model = fit(X, np.arange(10.0))
    np.testing.assert_allclose(model.predict(X), 4.5)
