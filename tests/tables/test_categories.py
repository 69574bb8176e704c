"""Categories: which words are, and the columns of 0 and 1 that a table makes of them, in a fit and in prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gmeql.tables.categories import LEAST_ROWS, MOST_CATEGORIES, categories, column_of, columns_of, indicator
from gmeql.tables.read import read


def words(*given: str) -> np.ndarray:
    return np.array(given, dtype=object)


def test_few_words_with_rows_enough_are_categories() -> None:
    assert categories(words(*["b"] * LEAST_ROWS, *["a"] * LEAST_ROWS, "rare", "")) == ("a", "b")
    assert categories(words(*["a"] * 20)) == ()
    assert categories(words(*(f"w{i % (MOST_CATEGORIES + 1)}" for i in range(200)))) == ()
    assert categories(None) == ()


def test_an_indicator_is_one_in_its_rows() -> None:
    assert indicator(words("a", "b", "", "a"), "a").tolist() == [1.0, 0.0, 0.0, 1.0]


def test_a_kind_is_of_the_column_that_its_name_begins_with() -> None:
    assert column_of("kind=red", ["kind", "y"]) == "kind"
    assert column_of("a=b=c", ["a", "a=b", "y"]) == "a=b"  # the longer of two
    assert column_of("a=b", ["a", "a=b", "y"]) == "a=b"  # a column of that very name
    assert columns_of(["t", "kind=red", "kind=blue"], ["t", "kind", "y"]) == ["t", "kind"]
    assert column_of("size", ["kind", "y"]) == "size" and column_of("kind=red", ()) == "kind=red"


@pytest.fixture
def table(tmp_path: Path):
    path = tmp_path / "bands.csv"
    lines = [f"{i},{('red', 'green', 'blue')[i % 3]},note {i},{i + (-5, 0, 5)[i % 3]}" for i in range(30)]
    path.write_text("\n".join(["t,colour,remark,y", *lines]) + "\n")
    return read(path)


def test_a_table_explains_by_its_categories(table) -> None:
    training = table.select("y")
    assert training.names == ("t", "colour=blue", "colour=green", "colour=red")
    assert training.X[1].tolist() == [1.0, 0.0, 1.0, 0.0]
    told = {note.code: str(note) for note in training.notes}
    assert "3 categories" in told["categories"] and "of them: empty" not in told["categories"]
    assert "remark" in told["text_columns"]
    gaps = read(b"colour,y\n" + b"red,1\nblue,2\n" * 6 + b",3\n,4\npink,5\n", name="gaps.csv").select("y")
    assert "'colour=red' (3 rows are none of them: empty, or too rare)" in str(gaps.notes[0])


def test_columns_can_be_named_and_dropped(table) -> None:
    assert table.select("y", columns=["t", "colour"]).names == ("t", "colour=blue", "colour=green", "colour=red")
    assert table.select("y", drop=["colour"]).names == ("t",)


def test_prediction_finds_the_words_again(table) -> None:
    X = table.matrix(["colour=red", "t"])
    assert X[:3].tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]
    assert table.knows("colour=red") and not table.knows("shape=round")
