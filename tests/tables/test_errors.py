"""Errors of columns from numbers and from other columns, on the rows that are left."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.tables.cells import TableError
from gmeql.tables.errors import with_errors
from gmeql.tables.read import read

TABLE = b"x,z,s,y\n1,2,0.1,3\n2,,0.2,4\n3,1,0.4,7\n4,2,0.2,1\n5,3,0.1,2\n6,1,0.3,9\n"


def rows():
    table = read(TABLE, name="t.csv")
    return table, table.select("y", drop=("s",))


def test_numbers_and_columns_on_the_rows_that_are_left() -> None:
    table, training = rows()
    found = with_errors(table, training, "s", {"x": "0.5", "z": "s"})
    np.testing.assert_array_equal(found.y_errors, [0.1, 0.4, 0.2, 0.1, 0.3])  # the second row has no z
    np.testing.assert_allclose(found.weights, (0.4 / found.y_errors) ** 2)
    np.testing.assert_array_equal(found.x_errors, np.column_stack([np.full(5, 0.5), found.y_errors]))
    assert found.fingerprint != training.fingerprint


def test_one_number_weighs_all_rows_alike() -> None:
    table, training = rows()
    found = with_errors(table, training, "0.3", {})
    assert found.weights is None and found.x_errors is None and set(found.y_errors) == {0.3}
    assert with_errors(table, training, None, {}) is training


@pytest.mark.parametrize(
    ("y_error", "x_error", "message"),
    [
        ("0", {}, "above 0"),
        ("-1", {}, "no standard deviation"),
        ("q", {}, "q"),
        ("0.1", {"q": "1"}, "'q' is no column"),
    ],
)
def test_what_is_wrong_is_said(y_error: str, x_error: dict[str, str], message: str) -> None:
    table, training = rows()
    with pytest.raises(TableError, match=message):
        with_errors(table, training, y_error, x_error)
