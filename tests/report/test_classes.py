"""The page about classes: its counts are those of the model, and no name of a class becomes markup."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, log_loss

from gmeql import GMEQLClassifier
from gmeql.report.classes import build, explained
from gmeql.report.numbers import four_digits


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    return X, np.array(["<b>", "mid", "up"], dtype=object)[np.digitize(X[:, 0] + 0.4 * X[:, 1], [-0.7, 0.7])]


@pytest.fixture(scope="module")
def model(rows) -> GMEQLClassifier:
    return GMEQLClassifier(max_candidates=200, max_time=None, random_state=0, n_jobs=1).fit(*rows)


def test_counts_and_figures_are_those_of_the_model(model, rows):
    X, y = rows
    created = "2026-11-18T11:28:05+00:00"
    page = build(model, X, y, target="kind", pages=["a.html", "b.html", "c.html"], created=created)
    assert "2026-11-18 11:28:05 UTC" in page and "formulas: all candidates are tried<" in page
    assert explained(model) == ["<b>", "mid", "up"]
    for i, line in enumerate(confusion_matrix(y, model.predict(X))):
        cells = "".join(
            f'<td class="number">{f"<b>{n}</b>" if i == j else n}</td>' for j, n in enumerate(line.tolist())
        )
        assert cells in page
    assert four_digits(log_loss(y, model.predict_proba(X))) in page
    assert f"{model.score(X, y):.1%} of 60 rows" in page
    assert all(f'href="{name}"' in page for name in ("a.html", "b.html", "c.html"))
    assert "is <b><b></b>" not in page and "is <b>&lt;b&gt;</b>" in page
    assert f"exp({four_digits(model.sharpness_)} · logit)" in page


def test_two_classes_have_one_formula(rows):
    X, y = rows
    model = GMEQLClassifier(max_candidates=100, max_time=None, random_state=0, n_jobs=1).fit(X, y == "up")
    page = build(model, X, y == "up", target="up", pages=["report-1.html"])
    assert explained(model) == ["True"] and page.count('class="formula"') == 1 and "1/(1 + exp(-logit))" in page
