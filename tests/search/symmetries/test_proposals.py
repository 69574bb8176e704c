"""Views that slopes speak for."""

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.search.symmetries.proposals import joined_views, merged_views, scaled_views
from gmeql.search.symmetries.views import FittedView, View

NAMES = ("a", "b", "c")


def fitted(X, y, slopes, reading=(1, False)):
    return FittedView(View.raw(X.shape[1]), X, y, 0.0, np.column_stack(slopes), reading)


def drawn(rows=300):
    return np.random.default_rng(0).uniform(0.5, 1.4, (rows, 3))


def columns(view):
    return {str(Expression(column, NAMES)) for column in view.columns}


def test_a_difference_is_merged():
    X = drawn()
    a, b, c = X.T
    slope = c * np.cos(a - b)
    first = next(merged_views(fitted(X, c * np.sin(a - b), [slope, -slope, np.sin(a - b)])))
    assert columns(first) == {"c", "a - b"}


def test_rows_near_zero_do_not_hide_a_scaling():
    """1 + cos(9 a b/c) is never negative but nearly 0 on some rows, where slopes over it are nothing to go by."""
    X = drawn()
    a, b, c = X.T
    u = 9 * a * b / c
    rough = np.random.default_rng(1).normal(0, 0.01, (3, len(a)))
    slopes = [-np.sin(u) * u / column * sign for column, sign in ((a, 1), (b, 1), (c, -1))] + rough
    (view, *_), *_ = scaled_views(fitted(X, 1 + np.cos(u), slopes))
    assert len(view.columns) == 1


def test_products_of_waves_are_read_without_roots():
    X = drawn()
    a, b, c = X.T
    u = a * np.sin(b / 2) ** 2
    slopes = [np.exp(u) * np.sin(b / 2) ** 2 * c, np.exp(u) * a * np.sin(b / 2) * np.cos(b / 2) * c, np.exp(u)]
    first = next(joined_views(fitted(X, c * np.exp(u), slopes)))
    assert "sqrt" not in str(columns(first)) and any("sin(0.5*b)**2" in text for text in columns(first))
