"""Constants that others make up for: seen by their slopes, and held at 1 without another value of the formula."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.calculus import row_slopes
from gmeql.formula.nodes import row_values
from gmeql.formula.parsing import parse_tree
from gmeql.search.groups.surplus import is_surplus, scaled_to_one

NAMES = ("x", "k", "l", "m")
X = np.linspace(1.0, 3.0, 20)[:, None]
OWN = np.array([[2.0, 3.0, -1.5], [4.0, 5.0, 0.25], [-1.0, 7.0, 1e9]])


def rows_of(own: np.ndarray) -> np.ndarray:
    """The rows with the constants of one group."""
    return np.hstack([X, np.broadcast_to(own, (len(X), len(own)))])


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("(k*x + l)/(m*x**2 + 1)", False),
        ("(k*x + l)/(m*x + m)", True),
        ("k*(x + l)/m", True),
        ("k**2*x/l + m", True),
        ("k*exp(l*x) + m", False),
        ("sqrt(k)*sin(l*x)/m", True),
        ("k + (l + x) + m*x", True),  # open, but not by a factor
    ],
)
def test_factors_are_told_from_constants_that_are_known(text: str, is_open: bool) -> None:
    root, own = parse_tree(text, NAMES), np.abs(OWN)
    codes, table = np.repeat(np.arange(3), len(X)), np.tile(X, (3, 1))
    assert is_surplus(root, own, table, codes) == is_open
    slopes = row_slopes(root, rows_of(own[0]), (1, 2, 3))[2]
    found = scaled_to_one(slopes, own, 0)
    assert (found is not None) == (is_open and text != "k + (l + x) + m*x")
    if found is not None:
        moved, one = found
        assert (moved[:, one] == 1).all()
        for before, after in zip(own, moved, strict=True):
            expected = row_values(root, NAMES, rows_of(before))
            np.testing.assert_allclose(row_values(root, NAMES, rows_of(after)), expected, rtol=1e-9)


def test_what_is_alike_in_all_groups_shows_where_the_right_constant_is_one() -> None:
    """Of (k*x + l)/(m*x**2 + m) all but l are alike once k or m is 1."""
    own = np.array([[2.0, 3.0, 1.0], [8.0, 4.0, 4.0], [-1.0, 7.0, -0.5]])
    slopes = row_slopes(parse_tree("(k*x + l)/(m*x**2 + m)", NAMES), rows_of(own[0]), (1, 2, 3))[2]
    found = scaled_to_one(slopes, own, 0)
    assert found is not None
    k, l, m = found[0].T
    np.testing.assert_allclose(k, 2 * m)
    np.testing.assert_allclose(k, k[0])
    np.testing.assert_allclose(l / k, own[:, 1] / own[:, 0])


def test_what_cannot_be_one_is_not_made_one() -> None:
    slopes = row_slopes(parse_tree("k*l*x + m", NAMES), rows_of(OWN[0]), (1, 2, 3))[2]
    found = scaled_to_one(slopes, np.where(np.arange(3) == 0, 0.0, np.abs(OWN)), 1)  # k is 0 in all groups
    assert found is None or found[1] != 0
    assert scaled_to_one(np.full((20, 3), np.nan), OWN, 0) is None
    assert scaled_to_one(np.ones((2, 3)), OWN, 0) is None  # fewer rows than constants
