"""Classes of a column as rows of a classifier, and the files of a run."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql import GMEQLClassifier
from gmeql.runs.classes import MOST_CLASSES, class_rows, write_classes
from gmeql.runs.execute import frame_of
from gmeql.runs.settings import ConfigError
from gmeql.tables.read import read

TABLE = "a,b,kind\n" + "\n".join(f"{i},{i % 5},{'low' if i < 20 else 'high'}" for i in range(40)) + "\n7,,low\n8,1,\n"


def test_rows_without_a_class_or_a_number_are_left_out():
    training, labels = class_rows(read(TABLE.encode(), name="t.csv"), "kind")
    assert len(labels) == len(training.y) == 40 and set(labels) == {"low", "high"}
    assert (labels == np.where(training.y == 1.0, "low", "high")).all()  # classes are numbered in their order


@pytest.mark.parametrize("column", ["same", "many"])
def test_one_class_or_too_many_are_refused(column):
    text = "a,same,many\n" + "\n".join(f"{i},x,w{i}" for i in range(MOST_CLASSES + 1))
    with pytest.raises(ConfigError, match=f"2 to {MOST_CLASSES} classes can be told apart"):
        class_rows(read(text.encode(), name="t.csv"), column)


def test_rows_that_are_each_a_class_of_their_own_are_refused():
    text = "a,y\n" + "\n".join(f"{i},{i / 7}" for i in range(20))
    with pytest.raises(ConfigError, match="every row of column 'y' is a class of its own"):
        class_rows(read(text.encode(), name="t.csv"), "y")


def test_a_folder_holds_the_model_an_overview_and_a_page_for_each_formula(tmp_path):
    training, labels = class_rows(read(TABLE.encode(), name="t.csv"), "kind")
    X = frame_of(training)
    model = GMEQLClassifier(max_candidates=100, max_time=None, random_state=0, n_jobs=1).fit(X, labels)
    pages = write_classes(model, tmp_path / "run", training, labels, X, "gmeql classify t.csv")
    assert [page.name for page in pages] == ["report.html", "report-1.html"]
    assert ">classify<" in pages[0].read_text() and "logit of kind is low" in pages[1].read_text()
    again = GMEQLClassifier.load(tmp_path / "run" / "model.json")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
