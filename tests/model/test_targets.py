"""One target or several: lists and back."""

from __future__ import annotations

import pytest

from gmeql.model.targets import as_list, one_or_list, target_names


@pytest.mark.parametrize("values", [["a"], ["a", "b"], [["x"], ["y"]]])
def test_lists_and_back(values) -> None:
    assert as_list(one_or_list(values)) == values


def test_one_value_stands_alone() -> None:
    assert one_or_list([3]) == 3 and one_or_list((3, 4)) == [3, 4]


def test_names_count_from_one() -> None:
    assert target_names(1) == ["y"] and target_names(3, "p") == ["p1", "p2", "p3"]
