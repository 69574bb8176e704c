"""One target or several: lists and back."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gmeql.model.targets import as_list, given_names, names_of, one_or_list, target_names


@pytest.mark.parametrize("values", [["a"], ["a", "b"], [["x"], ["y"]]])
def test_lists_and_back(values) -> None:
    assert as_list(one_or_list(values)) == values


def test_one_value_stands_alone() -> None:
    assert one_or_list([3]) == 3 and one_or_list((3, 4)) == [3, 4]


def test_names_count_from_one() -> None:
    assert target_names(1) == ["y"] and target_names(3, "p") == ["p1", "p2", "p3"]


def test_names_are_those_of_a_frame_or_a_series_all_of_them_texts():
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    assert given_names(frame) == ("a", "b") and given_names(frame["a"]) == ("a",)
    assert given_names(frame.to_numpy()) is given_names(pd.Series([1.0])) is given_names([1.0]) is None
    assert given_names(frame.rename(columns={"b": 3})) is given_names(pl.Series([1.0])) is None


def test_a_model_calls_its_targets_by_names_classes_or_position():
    assert names_of(SimpleNamespace(selected_index_=[0, 1])) == ["y1", "y2"]
    assert names_of(SimpleNamespace(selected_index_=[0, 1], target_names_=("up", "down"))) == ["up", "down"]
    assert names_of(SimpleNamespace(classes_=np.array(["in", "out"]))) == ["logit of out"]
    assert names_of(SimpleNamespace(classes_=np.array([1, 2, 3]))) == ["logit of 1", "logit of 2", "logit of 3"]
